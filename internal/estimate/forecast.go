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

	PerMinute int           // new users; 0: any
	Claim     time.Duration // how long a call that nobody comes for keeps its slot
	Longest   time.Duration // no visit is longer; 0: nobody knows
}

// Forecast is when how many are called.
type Forecast struct {
	step    float64   // s
	calls   []float64 // by step: people called by its end, in expectation
	bySlots []float64 // of them, as slots came free: the others by the rate
	cv2     float64
	seen    float64
	more    float64 // calls per second after the last step; 0: not known
}

// stepsMax bounds a forecast: what is later goes on at the same rate.
const stepsMax = 2048

// Forecast plays the room on from now.
func (v *Visits) Forecast(r Room, now int64) *Forecast {
	var t table
	if v.life != nil {
		v.decay(now)
		t = v.table(now)
	}
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
	if v.came > 0 {
		p.comes = min(r.Claim.Seconds(), max(0, v.coming/1e6-v.noShows*r.Claim.Seconds())/v.came)
	}
	if v.stood > 0 {
		p.drop = v.drops / v.stood * 1e6
	}
	p.begin(v, now)
	return p.run()
}

// within lets those whose visits nobody has seen the end of leave at the longest
// age that there is.
func (t table) within(longest float64) table {
	left := 1.0
	for _, m := range t.masses {
		left -= m.share
	}
	if left > 1e-9 {
		t.masses = append(slices.Clone(t.masses), mass{longest, left})
	}
	return t
}

// play is a forecast in the making.
type play struct {
	r      Room
	t      table
	step   float64   // s
	noShow float64   // share of the called who do not come
	back   float64   // share of the calls that go to people who let one pass before
	comes  float64   // s from a call to the visit
	drop   float64   // share of the line that gives up per second
	exits  []float64 // slots that come free, by step
}

// add has n slots come free after s seconds.
func (p *play) add(s, n float64) {
	if k := int(s / p.step); k < len(p.exits) {
		p.exits[max(0, k)] += n
	}
}

// begin schedules the ends of the visits that there are.
func (p *play) begin(v *Visits, now int64) {
	p.exits = make([]float64, stepsMax)
	here := 0
	for _, c := range v.here {
		here += c.n
	}
	switch {
	case here > 0: // the room's are as old as this node's
		for _, c := range v.here {
			p.goOn(float64(now-c.at)/1e6, float64(c.n)*float64(p.r.OnSite)/float64(here))
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

// goOn schedules the ends of n visits of that age.
func (p *play) goOn(age, n float64) {
	left := 0.0
	for _, m := range p.t.masses {
		if m.age > age {
			left += m.share
		}
	}
	alive := left
	for _, m := range p.t.masses {
		alive -= m.share
	}
	beyond := 1.0 + alive - left // share of visits that are longer than any seen
	for _, m := range p.t.masses {
		if m.age > age {
			p.add(m.age-age, n*m.share/(left+max(0, beyond)))
		}
	}
	if left <= 0 && beyond < 1e-9 { // older than all others were: it is about to end
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

// run calls people step by step.
func (p *play) run() *Forecast {
	f := &Forecast{step: p.step, cv2: min(p.t.cv2, 4), seen: p.t.seen}
	free, tokens, line := float64(p.r.Free), 0.0, 1.5*float64(p.r.Waiting)+8 // the slow quartile of the last is a later one's
	calls, bySlots, weight := 0.0, 0.0, 1.0
	for k := 0; k < stepsMax && line-calls > 1e-9; k++ {
		free += p.exits[k]
		if float64(k+1)*p.step <= p.r.Opens.Seconds() {
			f.calls, f.bySlots = append(f.calls, 0), append(f.bySlots, 0)
			continue
		}
		weight *= 1 + p.drop*p.step // whoever gives up makes a call reach that much further
		n, slots := max(0, free), 1.0
		if p.r.PerMinute > 0 {
			if tokens += float64(p.r.PerMinute) / 60.5 * p.step; tokens < n {
				n, slots = tokens, 0
			}
			tokens = min(tokens-n, float64(p.r.PerMinute)/60)
		}
		if k == 0 && slots > 0 {
			slots = 0 // those slots are free now
		}
		if n = min(n, (line-calls)/weight/(1-p.back)); n > 0 {
			free -= n
			p.visit(k, n)
		}
		n *= weight * (1 - p.back)
		calls, bySlots = calls+n, bySlots+n*slots
		f.calls, f.bySlots = append(f.calls, calls), append(f.bySlots, bySlots)
	}
	if n := len(f.calls); n == stepsMax {
		if late := f.calls[n-1] - f.calls[n/2-1]; late > f.calls[n-1]/4 { // else whoever is left stays for longer than anyone was seen to
			f.more = late / (float64(n-n/2) * p.step)
		}
	}
	return f
}

// Wait returns when the n-th of the line is called, with the quartiles.
func (f *Forecast) Wait(n float64) (quartiles [3]time.Duration, ok bool) {
	n = max(0.25, n-0.5) // the n-th call is in the middle of what is expected as n
	at, ok := f.reach(n)
	if !ok {
		return quartiles, false
	}
	variance := f.variance(n, at)
	for i, z := range [...]float64{-0.6745, 0, 0.6745} {
		s, ok := f.reach(gamma(n, variance, z))
		if !ok {
			return quartiles, false
		}
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

// model is by how much the model itself is off, of the number of calls.
const model = 0.05

// variance of the number of calls by the time that n are expected.
func (f *Forecast) variance(n, at float64) float64 {
	k := int(min(at/f.step, float64(len(f.bySlots)-1)))
	bySlots := f.bySlots[k] * n / max(n, f.calls[k])
	return bySlots*f.cv2 + bySlots*bySlots*f.cv2/max(1, f.seen) + n*n*model*model
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
