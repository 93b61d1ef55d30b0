package node

import (
	"math"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/estimate"
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

// turn guesses how soon somebody may be called, by the calls of the last minutes:
// only for how soon to ask them back, where a guess that is too short costs little.
// 0: nobody knows.
func (r *room) turn(position int) time.Duration {
	c := r.gate.InForce()
	rate := r.gate.Rate()
	if rate == 0 {
		rate = prior(*c)
	}
	if rate <= 0 {
		return 0
	}
	after := float64(position) / rate
	if c.Method == eviction.Random {
		after = -math.Ln2 / math.Log(1-min(0.999, rate/float64(max(1, r.waiting()))))
	}
	return max(1, time.Duration(min(after, 1e6)*float64(time.Second)))
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

// waits is what a room knows of how long people wait.
type waits struct {
	visits   estimate.Visits // in pass time
	forecast *estimate.Forecast
	at       int64 // boot time of forecast
}

// forecastEvery is how often a room is played on, in microseconds.
const forecastEvery = 1_000_000

// forecastAt returns what is known of the calls to come, nil if that is nothing.
func (r *room) forecastAt(now eviction.Time) *estimate.Forecast {
	w := &r.waits
	if w.at != 0 && now.Boot-w.at < forecastEvery {
		return w.forecast
	}
	if w.at != 0 {
		w.visits.Stood(r.gate.Queue.Len(), r.called, min(now.Boot-w.at, memoryOfLine))
	}
	w.at = now.Boot
	w.forecast = w.visits.Forecast(r.figures(now), r.node.ev.LastNow())
	return w.forecast
}

// drops counts somebody in line who gives up.
func (r *room) drops(v *visitor) {
	if v.stage == queued {
		r.waits.visits.Drop(r.gate.Queue.Rank(r.gate.Key(v.weight())), r.gate.Queue.Len())
	}
}

// memoryOfLine bounds the time for which a line is taken to have been as long as
// it is, in microseconds.
const memoryOfLine = 10_000_000

// figures are what the forecast goes by.
func (r *room) figures(now eviction.Time) estimate.Room {
	c := r.gate.InForce()
	active, coming := r.gate.Active()
	missing, wholeAt := r.gate.Missing()
	clock := r.node.ev.LastNow()
	micros := func(µs int64) time.Duration { return time.Duration(max(0, µs)) * time.Microsecond }
	f := estimate.Room{
		OnSite: max(0, active-coming), Coming: coming, Free: c.Target - missing - active, Missing: missing, WholeIn: micros(wholeAt - now.Boot),
		Opens: max(micros(c.Event.Start-clock), micros(r.gate.HeldUntil()-now.Boot)), Waiting: r.waiting(),
		PerMinute: c.NewPerMinute, Claim: c.ClaimWindow,
	}
	if c.NoRenewal {
		f.Longest = r.gate.Session()
	}
	if most := r.gate.Room().SessionMax; most > 0 && (f.Longest == 0 || most < f.Longest) {
		f.Longest = most
	}
	return f
}

// wait estimates the time until the call of the person at position, or of anyone
// in a draw; zero if nothing is known.
func (r *room) wait(now eviction.Time, position int) Wait {
	f := r.forecastAt(now)
	if m := r.gate.InForce().Mode; m == eviction.Held || m == eviction.Deleted {
		return Wait{} // until when, an operator knows
	}
	var q [3]time.Duration
	var ok bool
	if r.gate.InForce().Method == eviction.Random {
		q, ok = f.Lottery(float64(max(1, r.waiting())))
	} else {
		q, ok = f.Wait(float64(max(1, position)))
	}
	if !ok {
		return Wait{}
	}
	return Wait{P25: q[0], P50: q[1], P75: q[2]}
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
func (r *room) waitOfNext(now eviction.Time) Wait {
	if r.gate.IsOpen() {
		return Wait{}
	}
	return r.wait(now, r.waiting()+1)
}
