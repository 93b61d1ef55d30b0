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
	terms    uint32          // of the visits of before that visits counts; 0: of none
	forecast *estimate.Forecast
	at       int64 // boot time of forecast

	past     []earlier // of the last minute, since everybody was told a reason for a longer wait
	reasonAt int64     // boot time since which there is such a reason; 0: there is none
}

// earlier is what people were told by before.
type earlier struct {
	at       int64 // boot time
	forecast *estimate.Forecast
	waiting  int
}

// An estimate that jumps is not believed, and rightly so: within a minute it does not
// grow to more than its double. Where it would, without a reason that is told, nobody
// knows how long it takes. Below a minute all of them are told the same.
const (
	memoryOfWait = 60_000_000 // µs
	pastEvery    = 5_000_000  // µs between those that are kept: between them estimates wander
	growsMost    = 1.8        // and this leaves something for that
	waitLeast    = time.Minute
)

// remember keeps forecasts for as long as people remember what they were told, or
// until there is a reason that all of them have heard of, who ask once in asked.
func (w *waits) remember(now, asked int64, waiting int, reason bool) {
	if !reason {
		w.reasonAt = 0
	} else if w.reasonAt == 0 {
		w.reasonAt = now
	}
	if reason && now-w.reasonAt > asked {
		w.past = nil
		return
	}
	for len(w.past) > 0 && now-w.past[0].at > memoryOfWait+pastEvery {
		w.past = w.past[1:]
	}
	e := earlier{now, w.forecast, waiting}
	switch n := len(w.past); {
	case n == 0 || now-w.past[n-1].at >= pastEvery:
		w.past = append(w.past, e)
	case e.sooner(&w.past[n-1]):
		w.past[n-1].forecast, w.past[n-1].waiting = e.forecast, e.waiting
	}
}

// sooner reports whether the middle of the line is called sooner than by o, or o
// knows nothing of it.
func (e *earlier) sooner(o *earlier) bool {
	n := float64(max(1, e.waiting/2))
	a, known := e.forecast.Wait(n)
	b, was := o.forecast.Wait(n)
	return known && (!was || a[1] < b[1])
}

// jumps reports whether wait is more than people in that position were told before.
func (w *waits) jumps(wait time.Duration, of func(e *earlier) (q [3]time.Duration, ok bool)) bool {
	if wait <= waitLeast {
		return false
	}
	for i := range w.past {
		if q, ok := of(&w.past[i]); ok && float64(wait) > growsMost*float64(max(q[1], waitLeast)) {
			return true
		}
	}
	return false
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
		w.visits.Stood(r.called, r.idle(now), min(now.Boot-w.at, memoryOfLine))
	}
	w.at = now.Boot
	if w.terms != 0 && w.terms != r.visitTerms() { // such visits are no more
		w.visits.Before(nil)
		w.terms = 0
	}
	f := r.figures(now)
	w.forecast = w.visits.Forecast(f, r.node.ev.LastNow())
	w.remember(now.Boot, r.gate.Room().Refresh.Microseconds()*11/10, f.Waiting, f.Missing > 0 || f.Free < 0 || f.Opens > 0)
	return w.forecast
}

// idle is how many slots are free here that somebody waits for, and nothing else
// keeps from being handed on.
func (r *room) idle(now eviction.Time) int {
	c := r.gate.InForce()
	if c.NewPerMinute > 0 || c.Event.Start > r.node.ev.LastNow() || r.waiting() == 0 || !r.node.ev.Calls(r.gate, now) {
		return 0
	}
	return max(0, r.gate.Ledger().Free())
}

// agesMost is of how many people in line a forecast knows how long they have waited.
const agesMost = 32

// ages are how long people of this node's line have waited, at even distances, in s.
func (r *room) ages() (ages []float64) {
	n, now := r.gate.Queue.Len(), r.node.ev.LastNow()
	for i := range min(n, agesMost) {
		if w, ok := r.gate.Queue.Select((2*i + 1) * n / (2 * min(n, agesMost))); ok {
			if v := r.visitors.get(w.ID); v != nil {
				ages = append(ages, max(0, float64(now-int64(v.stamp))/1e6))
			}
		}
	}
	return ages
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
		Opens: max(micros(c.Event.Start-clock), micros(r.gate.HeldUntil()-now.Boot)), Waiting: r.waiting(), Ages: r.ages(),
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
	if r.gate.IsOpen() { // by figures of before the rush: the next wave tells how many have walked in
		r.waits.at = 0
		return Wait{}
	}
	f := r.forecastAt(now)
	if m := r.gate.InForce().Mode; m == eviction.Held || m == eviction.Deleted {
		return Wait{} // until when, an operator knows
	}
	of := func(e *earlier) ([3]time.Duration, bool) { return e.forecast.Wait(float64(max(1, position))) }
	if r.gate.InForce().Method == eviction.Random {
		of = func(e *earlier) ([3]time.Duration, bool) { return e.forecast.Lottery(float64(max(1, e.waiting))) }
	}
	q, ok := of(&earlier{forecast: f, waiting: r.waiting()})
	if !ok || r.waits.jumps(q[1], of) {
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
func (r *room) waiting() int { return r.gate.Waiting() }

// waitOfNext estimates the wait of somebody who joins now; none where newcomers
// walk straight in.
func (r *room) waitOfNext(now eviction.Time) Wait {
	if r.gate.IsOpen() {
		return Wait{}
	}
	return r.wait(now, r.waiting()+1)
}
