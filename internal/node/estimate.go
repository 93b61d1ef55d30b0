package node

import (
	"math"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// refreshMin is the shortest time between check-ins that a node asks for.
const refreshMin = 2 * time.Second

// refreshAfter returns when v is asked back, in ms: a quarter of its wait
// within bounds, so that a lost node's people are back within seconds where it
// matters, ± 10 % so that they do not all come at once.
func (r *room) refreshAfter(v *visitor, wait time.Duration) uint32 {
	if v.has(quiet) { // so that it may be silent for as long as a place is kept
		return uint32(min(max(r.gate.Room().TicketTTL.Milliseconds()/3, 1), math.MaxUint32))
	}
	most := r.gate.Room().Refresh
	if v.slept > 0 { // it must be able to find a call, however short they are
		most = min(most, r.gate.Room().ClaimWindow/3)
	}
	d := min(max(wait/4, min(refreshMin, most)), most)
	if wait == 0 {
		d = min(refreshMin, most)
	}
	spread := (int64(v.id[0]) + 7*(v.seen>>16)) & 0xff // varies by visitor and visit
	ms := d.Microseconds() * (90*255 + 20*spread) / (100 * 255 * 1000)
	return uint32(min(max(ms, 1), math.MaxUint32))
}

// wait estimates the time until the call from the rate of the last minutes:
// for the person at position, or for anyone in a draw.
func (r *room) wait(position int) Wait {
	c := r.gate.InForce()
	rate := r.gate.Rate()
	if rate == 0 {
		rate = prior(*c)
	}
	if rate <= 0 {
		return Wait{}
	}
	seconds := func(s float64) time.Duration { return time.Duration(min(s, 1e6) * float64(time.Second)) }
	if c.Method == eviction.Random {
		q := min(0.999, rate/float64(max(1, r.waiting()))) // let in per second
		after := func(p float64) time.Duration { return seconds(math.Log(1-p) / math.Log(1-q)) }
		return Wait{P25: after(0.25), P50: after(0.5), P75: after(0.75)}
	}
	p := float64(position)
	half := 0.67 * math.Sqrt(p) // half the people in line are within this many places
	return Wait{P25: seconds(max(0, p-half) / rate), P50: seconds(p / rate), P75: seconds((p + half) / rate)}
}

// later is w for somebody who has to listen for that many µs before.
func later(w Wait, asleep int64) Wait {
	if d := time.Duration(asleep) * time.Microsecond; w != (Wait{}) {
		w.P25, w.P50, w.P75 = w.P25+d, w.P50+d, w.P75+d
	}
	return w
}

// waiting is how many people wait in the whole room, as far as this node knows.
func (r *room) waiting() int { return r.gate.Waiting(r.node.c.Self.Member) }

// waitOfNext estimates the wait of somebody who joins now; none where newcomers
// walk straight in.
func (r *room) waitOfNext() Wait {
	if r.gate.IsOpen() {
		return Wait{}
	}
	return r.wait(r.waiting() + 1)
}

// prior is the rate to expect before anyone was called, per second.
func prior(c eviction.Room) float64 {
	rate := math.Inf(1)
	if c.NewPerMinute > 0 {
		rate = float64(c.NewPerMinute) / 60
	}
	if c.Session > 0 {
		rate = min(rate, float64(c.Target)/c.Session.Seconds())
	}
	if math.IsInf(rate, 1) {
		return 0
	}
	return rate
}
