package estimate

import (
	"math"
	"slices"
	"time"
)

// Room is what an estimate goes by beside the visits: the figures of the whole room.
type Room struct {
	OnSite  int // people on the site
	Coming  int // called, not there yet
	Free    int // slots that nobody has; below 0: so many more are in use than the limit
	Missing int // slots that come back
	WholeIn time.Duration
	Opens   time.Duration // until people are called; 0: they are
	Waiting int           // people in line
	Ages    []float64     // s that people in line have waited, at even distances, the first in front

	PerMinute int           // new users; 0: any
	Claim     time.Duration // how long a call that nobody comes for keeps its slot
	Longest   time.Duration // no visit is longer; 0: nobody knows
}

// Forecast is when how many are called.
type Forecast struct {
	step    float64   // s
	calls   []float64 // by step: the place up to which people are called by its end, in expectation
	bySlots []float64 // of it, as slots came free: the rest by the rate
	spread  []float64 // its variance, were it known how long visits last
	cv2     float64
	seen    float64
	opens   float64 // s until people are called
	idle    float64 // s that a slot lies idle between two visits
	more    float64 // calls per second after the last step; 0: not known
}

// stepsMax bounds a forecast: what is later goes on at the same rate.
const stepsMax = 2048

// minute is new_users_per_minute's, in s: whoever is let in is counted for up to half
// a second longer, so that there are never more in 60 s.
const minute = 60.4

// Forecast plays the room on from now.
func (v *Visits) Forecast(r Room, now int64) *Forecast {
	v.decay(now)
	t := v.visits.table(now)
	step := 1.0
	switch l := r.Longest.Seconds(); {
	case t.seen < endsMin || t.mean <= 0:
		t = table{} // slots that are free now go to people all the same
	case l > 0:
		t = t.within(l)
		fallthrough
	default:
		step = max(t.mean/32, 0.02)
	}
	p := play{r: r, t: t, step: step, noShow: v.noShows / max(1, v.came+v.noShows)}
	if calls := v.came + v.noShows; calls > 0 {
		p.back = min(0.9, v.backs/calls)
	}
	if calls := v.came + v.noShows; calls > 0 {
		p.idle = v.idle / 1e6 / (calls + callsMin)
	}
	if v.came > 0 {
		p.comes = min(r.Claim.Seconds(), max(0, v.coming/1e6-v.noShows*r.Claim.Seconds())/v.came)
	}
	p.stays = v.patience(now)
	p.begin(v, now)
	return p.run()
}

// callsMin are as many calls as it takes to say how long a slot lies idle, half way.
const callsMin = 50

// within lets those whose visits nobody has seen the end of leave at the longest
// age that there is.
func (t table) within(longest float64) table {
	left := 1.0
	for _, m := range t.masses {
		left -= m.share
	}
	if left > 1e-9 {
		t.masses = append(slices.Clone(t.masses), mass{longest, left, longest, longest})
	}
	return t
}

// play is a forecast in the making.
type play struct {
	r      Room
	t      table
	step   float64 // s
	noShow float64 // share of the called who do not come
	back   float64 // share of the calls that go to people who let one pass before
	comes  float64 // s from a call to the visit
	idle   float64 // s from the end of a visit to the next call
	stays  patience
	exits  [stepsMax]float64 // slots that come free, by step
	wobble [stepsMax]float64 // by how much the variance of their sum grows
	beyond [stepsMax]float64 // visits that become older than any whose end was seen, by step
}

// add has n slots ready after s seconds, and whoever hands them on.
func (p *play) add(s, n float64) {
	if k := p.stepOf(s); k < stepsMax {
		p.exits[k] += n
	}
}

// stepOf is the step in which a slot is ready of a visit that ends after s seconds.
func (p *play) stepOf(s float64) int {
	return int(min(stepsMax, max(0, (s+p.idle)/p.step)))
}

// cohortsMost is how many groups of one age the people on the site are taken for.
const cohortsMost = 64

// begin schedules the ends of the visits that there are.
func (p *play) begin(v *Visits, now int64) {
	here := 0
	for _, c := range v.visits.here {
		here += c.n
	}
	switch {
	case here > 0: // the room's are as old as this node's
		each := float64(p.r.OnSite) / float64(here)
		for i, n, ages := 0, 0, 0.0; i < len(v.visits.here); i++ {
			c := v.visits.here[i]
			n, ages = n+c.n, ages+float64(c.n)*float64(now-c.at)/1e6
			if last := i == len(v.visits.here)-1; last || n*cohortsMost >= here || len(v.visits.here) <= cohortsMost {
				p.goOn(ages/float64(n), float64(n)*each)
				n, ages = 0, 0
			}
		}
	default: // they are of any age
		for _, m := range p.t.masses {
			for part := 0.5; part < 8; part++ {
				p.add(m.age*part/8, float64(p.r.OnSite)*m.share*m.age/p.t.mean/8)
			}
		}
	}
	if coming := float64(p.r.Coming); coming > 0 { // they are halfway
		comes := p.comes
		p.comes /= 2
		p.visit(0, coming)
		p.comes = comes
	}
	if p.r.Missing > 0 {
		p.add(p.r.WholeIn.Seconds(), float64(p.r.Missing))
	}
}

// lindy is how long visits that are older than others ever were are taken to go on:
// for this part of the time that they have gone on for.
const lindy = 8

// goOn schedules the ends of n visits of that age.
func (p *play) goOn(age, n float64) {
	alive, left := 1.0, 0.0
	for _, m := range p.t.masses {
		alive -= m.share
		left += m.after(age).share
	}
	longer := max(0, alive) // share of visits that are longer than any seen
	over := 0.0
	for _, m := range p.t.masses {
		if m = m.after(age); m.share > 0 {
			share := m.share / (left + longer)
			p.add(m.age-age, n*share)
			if k := p.stepOf(m.age - age); k < stepsMax { // each of n is over or not
				p.wobble[k] += n * ((over+share)*(1-over-share) - over*(1-over))
			}
			over += share
		}
	}
	switch k := p.stepOf(max(p.t.known-age, age/lindy)); {
	case longer > 1e-9 && k < stepsMax:
		p.beyond[k] += n * (1 - over)
	case left <= 0: // older than all others were: it is about to end
		p.add(0, n)
	}
}

// visit begins n visits at step k.
func (p *play) visit(k int, n float64) {
	at := (float64(k) + 0.5) * p.step
	for _, m := range p.t.masses {
		p.add(at+p.comes+m.age, n*(1-p.noShow)*m.share)
	}
	p.add(at+p.r.Claim.Seconds(), n*p.noShow)
}

// stay is which share of the people at that place is still there at step k.
func (p *play) stay(place float64, k int) float64 {
	age := 0.0
	if n := len(p.r.Ages); n > 0 && place < float64(p.r.Waiting) {
		age = p.r.Ages[int(place/float64(p.r.Waiting)*float64(n))]
	}
	return p.stays.stay(age, (float64(k)+0.5)*p.step)
}

// unseen is which share of the visits, or of the calls if those are more, may have got
// by then to an age of which nothing was seen: nobody knows how soon such visits end.
const unseen = 0.1

// run calls people step by step, for as far as what was seen goes.
func (p *play) run() *Forecast {
	f := &Forecast{step: p.step, cv2: min(p.t.cv2, 4), seen: p.t.seen, opens: p.r.Opens.Seconds(), idle: p.idle}
	free, tokens, line := float64(p.r.Free), 0.0, 1.5*float64(p.r.Waiting)+8 // the slow quartile of the last is a later one's
	all := float64(p.r.OnSite+p.r.Coming) + max(1, free)
	place, slots, calls, wobble, beyond := 0.0, 0.0, 0.0, 0.0, 0.0
	k := 0
	for ; k < stepsMax && line-place > 1e-9; k++ {
		free += p.exits[k]
		wobble += p.wobble[k]
		if beyond += p.beyond[k]; beyond > unseen*max(all, slots) {
			break
		}
		n, bySlots := 0.0, 1.0
		if float64(k+1)*p.step > p.r.Opens.Seconds() {
			n = max(0, free)
			if p.r.PerMinute > 0 {
				if tokens += float64(p.r.PerMinute) / minute * p.step; tokens < n {
					n, bySlots = tokens, 0
				}
				tokens = min(tokens-n, float64(p.r.PerMinute)/60)
			}
			if now := float64(p.r.Free); k == 0 && now > 0 && n > 0 {
				bySlots *= 1 - min(1, now/n) // those slots are free already
			}
		}
		if n > 0 {
			further := (1 - p.back) / p.stay(place, k) // whoever gives up makes a call reach that much further
			n = min(n, (line-place)/further)
			free -= n
			p.visit(k, n)
			place, slots, calls = place+n*further, slots+n*further*bySlots, calls+n
		}
		// Step k is over: its places hold what came of it.
		p.exits[k], p.wobble[k], p.beyond[k] = place, slots, f.spreadOf(place, slots, calls, wobble, all)
	}
	f.calls, f.bySlots, f.spread = slices.Clone(p.exits[:k]), slices.Clone(p.wobble[:k]), slices.Clone(p.beyond[:k])
	if n := len(f.calls); n == stepsMax {
		if late := f.calls[n-1] - f.calls[n/2-1]; late > f.calls[n-1]/4 { // else whoever is left stays for longer than anyone was seen to
			f.more = late / (float64(n-n/2) * p.step)
		}
	}
	return f
}

// spreadOf is the variance of the place that so many calls reach: of the slots that
// come free, from those of now (wobble) and, in the long run, as in a renewal
// process; and of who is still there to be called.
func (f *Forecast) spreadOf(place, slots, calls, wobble, all float64) float64 {
	if place <= 0 {
		return 0
	}
	free := calls * slots / place
	each := free / all // visits that came to each slot, and are over
	exits := max(wobble*slots/place, all*max(f.cv2*each, min(each, math.Sqrt(f.cv2*each/math.Pi))))
	further := place / calls
	return further*further*exits + max(0, further-1)*place
}

// Wait returns when the n-th of the line is called, with the quartiles.
func (f *Forecast) Wait(n float64) (quartiles [3]time.Duration, ok bool) {
	n = max(1, n)
	at, ok := f.reach(n - 0.5)
	if !ok {
		return quartiles, false
	}
	mean, variance := f.until(n, at)
	var told [3]float64 // s
	for i, z := range [...]float64{-quartile, 0, quartile} {
		if told[i], ok = f.reach(gamma(mean, variance, z)); !ok {
			return quartiles, false
		}
	}
	off := quartile * f.off(n, at)
	told[0] = max(0, told[1]-math.Hypot(told[1]-told[0], off))
	told[2] = told[1] + math.Hypot(told[2]-told[1], off)
	for i, s := range told {
		quartiles[i] = seconds(s)
	}
	return quartiles, true
}

// Draw returns when somebody is called of whom nobody knows whether they are the
// first or the n-th of the line.
func (f *Forecast) Draw(n float64) (quartiles [3]time.Duration, ok bool) {
	for i, share := range [...]float64{0.25, 0.5, 0.75} {
		s, ok := f.reach(share * n)
		if !ok {
			return quartiles, false
		}
		quartiles[i] = seconds(s)
	}
	return quartiles, true
}

// Lottery returns when one of n is called where each call goes to anyone of them,
// and as many come as go.
func (f *Forecast) Lottery(n float64) (quartiles [3]time.Duration, ok bool) {
	for i, share := range [...]float64{0.25, 0.5, 0.75} {
		s, ok := f.reach(-math.Log(1-share) * n)
		if !ok {
			return quartiles, false
		}
		quartiles[i] = seconds(s)
	}
	return quartiles, true
}

func seconds(s float64) time.Duration { return time.Duration(min(s, 1e6) * float64(time.Second)) }

// quartile is how many standard deviations the quartiles of a normal distribution are
// from its mean.
const quartile = 0.6745

// even is the variance of the normal distribution that has the quartiles of an even one
// between 0 and 1.
const even = 1 / (16 * quartile * quartile)

// model is by how much the model itself is off, of the time for which slots are waited for.
const model = 0.03

// until is what is expected when the n-th is called, about at: calls that come one by
// one whenever they like come to n, and calls of a steady rate to n - 1/2, as nobody
// knows how far the next one has come.
func (f *Forecast) until(n, at float64) (mean, variance float64) {
	k := int(min(at/f.step, float64(len(f.calls)-1))) // at may be years away
	part := n / max(1e-9, f.calls[k])
	steady := 1 - min(1, f.spread[k]*part/n)
	return n - steady/2, f.spread[k]*part + steady*steady*even
}

// off is by how many seconds all calls that come as slots do may be early or late
// together, about when the n-th is called: as a standard deviation.
func (f *Forecast) off(n, at float64) float64 {
	k := int(min(at/f.step, float64(len(f.calls)-1)))
	long := max(0, at-f.opens) * math.Sqrt(f.cv2/max(1, f.seen)+model*model)
	return min(1, f.bySlots[k]/max(1e-9, f.calls[k])) * math.Hypot(long, f.idle)
}

// gamma is a quantile of the gamma distribution with that mean and variance.
func gamma(mean, variance, z float64) float64 {
	if variance < 1e-9*mean {
		return mean
	}
	k := mean * mean / variance
	x := max(0, 1-1/(9*k)+z/(3*math.Sqrt(k)))
	return mean * x * x * x
}

// reach returns after how many seconds n are called.
func (f *Forecast) reach(n float64) (float64, bool) {
	last := len(f.calls) - 1
	if last < 0 {
		return 0, false
	}
	k, _ := slices.BinarySearch(f.calls, n-1e-9)
	switch {
	case k <= last:
		before := 0.0
		if k > 0 {
			before = f.calls[k-1]
		}
		return (float64(k) + min(1, max(0, n-before)/max(1e-12, f.calls[k]-before))) * f.step, true
	case f.more > 0:
		return float64(last+1)*f.step + (n-f.calls[last])/f.more, true
	}
	return 0, false
}
