package estimate

import (
	"cmp"
	"math"
	"slices"
)

// Ages are counted in buckets: sixteen to an octave, from 1/16 s to 12 days.
const (
	buckets   = 391
	perOctave = 16
	ageMin    = 62_500 // µs
)

func bucketOf(age int64) int {
	if age < ageMin {
		return 0
	}
	return min(buckets-1, 1+int(perOctave*math.Log2(float64(age)/ageMin)))
}

// fromOf is the age, in s, from which on a bucket is.
func fromOf(bucket int) float64 {
	if bucket == 0 {
		return 0
	}
	return ageMin / 1e6 * math.Exp2(float64(bucket-1)/perOctave)
}

// Visits is what a node has seen of visits to one room, and of its line. Times are
// in microseconds, of any one clock. The zero Visits has seen nothing.
type Visits struct {
	visits spans // on the site
	line   spans // in line, until somebody gives up

	came, noShows float64 // calls, lately: answered, and not
	backs         float64 // people who let a call pass, and are back in line in front
	returns       float64 // people who had given up, as it seemed, and are back in their place
	coming        float64 // µs that people have been called and not there yet
	idle          float64 // µs that slots were free while people waited
	decayed       int64   // time up to which all that is lately has been decayed
}

// spans is how long something lasts: a life table, and what goes on.
type spans struct {
	life   *life    // nil: nothing has begun yet
	before *life    // what is taken to have been seen before, and does not fade; nil: nothing
	here   []cohort // by time: what goes on
}

// life is a life table.
type life struct {
	reached [buckets]float64 // that reached this age, lately
	ended   [buckets]float64 // of them, before the next
	left    [buckets]float64 // of them, that went out of sight before the next
	ages    [buckets]float64 // µs: of the ended, summed up
}

// cohort are spans that began at about the same time. Those that are over are
// counted in the life table.
//
// Invariant: reached has each of n in all buckets from where it came in up to upTo.
type cohort struct {
	at   int64
	n    int
	upTo int
}

// resolution is how far apart cohorts are, in µs.
const resolution = 250_000

// memory is the half-life of what was seen, in µs.
const memory = 3_600_000_000

func (s *spans) find(started int64) (int, bool) {
	at := started / resolution * resolution
	return slices.BinarySearchFunc(s.here, at, func(c cohort, at int64) int { return cmp.Compare(c.at, at) })
}

// bring counts how far c has come by now.
func (s *spans) bring(c *cohort, now int64) {
	for b := bucketOf(now - c.at); c.upTo < b; {
		c.upTo++
		s.life.reached[c.upTo] += float64(c.n)
	}
}

// begin counts one that began at started and is here since now.
func (s *spans) begin(started, now int64) {
	if s.life == nil {
		s.life = new(life)
	}
	i, ok := s.find(started)
	if !ok {
		at := started / resolution * resolution
		s.here = slices.Insert(s.here, i, cohort{at: at, upTo: bucketOf(now - at)})
	}
	c := &s.here[i]
	s.bring(c, now)
	c.n++
	s.life.reached[c.upTo]++
}

// end counts the end of one.
func (s *spans) end(started, now int64) {
	i, ok := s.find(started)
	if !ok {
		return
	}
	c := &s.here[i]
	s.bring(c, now)
	s.life.ended[c.upTo]++
	s.life.ages[c.upTo] += float64(max(0, now-started))
	s.take(i)
}

// forget takes out one whose end nobody sees.
func (s *spans) forget(started, now int64) {
	if i, ok := s.find(started); ok {
		c := &s.here[i]
		s.bring(c, now)
		s.life.left[c.upTo]++
		s.take(i)
	}
}

func (s *spans) take(i int) {
	if s.here[i].n--; s.here[i].n == 0 {
		s.here = slices.Delete(s.here, i, i+1)
	}
}

// Begin counts a visit that began at started and is here since now.
func (v *Visits) Begin(started, now int64) { v.visits.begin(started, now) }

// End counts the end of a visit.
func (v *Visits) End(started, now int64) { v.visits.end(started, now) }

// Forget takes out a visit that goes on elsewhere, or of which nobody knows.
func (v *Visits) Forget(started, now int64) { v.visits.forget(started, now) }

// Join counts somebody who joined at that time and is in line since now, Leave takes
// them out, and GaveUp takes out who does not wait any longer, or is silent.
func (v *Visits) Join(joined, now int64)   { v.line.begin(joined, now) }
func (v *Visits) Leave(joined, now int64)  { v.line.forget(joined, now) }
func (v *Visits) GaveUp(joined, now int64) { v.line.end(joined, now) }

// Returned counts somebody who gave up by being silent, and speaks again.
func (v *Visits) Returned() { v.returns++ }

// Came counts a call that was answered, NoShow one that was not.
func (v *Visits) Came()   { v.came++ }
func (v *Visits) NoShow() { v.noShows++ }

// Back counts somebody who let a call pass and is in line again.
func (v *Visits) Back() { v.backs++ }

// Stood counts people who are called, and slots that are free and that somebody waits
// for, that were so many for that many µs.
func (v *Visits) Stood(called, free int, µs int64) {
	v.coming += float64(called) * float64(µs)
	v.idle += float64(free) * float64(µs)
}

// decay lets what was seen fade.
func (v *Visits) decay(now int64) {
	if v.decayed == 0 {
		v.decayed = now
	}
	f := math.Exp2(-float64(max(0, now-v.decayed)) / memory)
	v.decayed = max(v.decayed, now)
	for _, l := range []*life{v.visits.life, v.line.life} {
		if l == nil {
			continue
		}
		for b := range l.reached {
			l.reached[b], l.ended[b], l.left[b], l.ages[b] = l.reached[b]*f, l.ended[b]*f, l.left[b]*f, l.ages[b]*f
		}
	}
	v.came, v.noShows, v.coming = v.came*f, v.noShows*f, v.coming*f
	v.backs, v.returns, v.idle = v.backs*f, v.returns*f, v.idle*f
}

// mass is a share of visits that last for that long, between from and to, in s.
type mass struct{ age, share, from, to float64 }

// after is the part of m that is longer than age.
func (m mass) after(age float64) mass {
	switch {
	case age <= m.from:
		return m
	case age >= m.to:
		return mass{}
	}
	return mass{(age + m.to) / 2, m.share * (m.to - age) / (m.to - m.from), age, m.to}
}

// table is what follows from a life table.
type table struct {
	masses []mass // by age; together at most 1: who stays for longer is not known
	seen   float64
	mean   float64 // of the masses, s
	cv2    float64 // their squared coefficient of variation
	known  float64 // s: enough visits got to this age, whether they ended or not
}

// endsMin is how many visits have to have ended before they say something.
const endsMin = 3 - 1e-9 // what is added up of shares may fall short by that

// hazards are which share of those that got to each bucket ended in it.
func (s *spans) hazards(now int64) (h [buckets]float64) {
	var here [buckets]float64
	for i := range s.here {
		c := &s.here[i]
		s.bring(c, now)
		here[c.upTo] += float64(c.n)
	}
	seen := s.seen()
	for b := range h {
		if ended := seen.ended[b]; ended >= 1e-3 {
			half := (here[b] + seen.left[b]) / 2 // who is in a bucket, or left it, has got half through it
			h[b] = min(1, ended/max(ended, seen.reached[b]-half))
		}
	}
	return h
}

// seen is the life table with what is taken to have been seen before.
func (s *spans) seen() (sum life) {
	for _, l := range []*life{s.life, s.before} {
		if l == nil {
			continue
		}
		for b := range sum.reached {
			sum.reached[b] += l.reached[b]
			sum.ended[b] += l.ended[b]
			sum.left[b] += l.left[b]
			sum.ages[b] += l.ages[b]
		}
	}
	return sum
}

// table works the life table of visits out.
func (s *spans) table(now int64) (t table) {
	if s.life == nil && s.before == nil {
		return t
	}
	alive, sum, squares := 1.0, 0.0, 0.0
	hazards, seen := s.hazards(now), s.seen()
	for b, hazard := range hazards {
		ended := seen.ended[b]
		if seen.reached[b] >= endsMin {
			t.known = fromOf(b)
		}
		if t.seen += ended; hazard == 0 {
			continue
		}
		share, age := alive*hazard, seen.ages[b]/ended/1e6
		t.masses = append(t.masses, mass{age, share, fromOf(b), fromOf(b + 1)})
		alive -= share
		sum, squares = sum+share*age, squares+share*age*age
	}
	if known := 1 - alive; known > 0 {
		t.mean = sum / known
		t.cv2 = max(0, squares/known-t.mean*t.mean) / max(1e-12, t.mean*t.mean)
	}
	return t
}

// patience is how long people stay in line who are not called.
type patience struct {
	alive   [buckets]float64 // share of those who join that is there when a bucket begins
	returns float64          // share of those who give up that comes back
}

func (v *Visits) patience(now int64) (p patience) {
	alive, gone := 1.0, 0.0
	for b, hazard := range v.line.hazards(now) {
		p.alive[b] = alive
		alive *= 1 - hazard
	}
	if v.line.life != nil {
		for _, ended := range v.line.life.ended {
			gone += ended
		}
	}
	if gone > 0 {
		p.returns = min(1, v.returns/gone)
	}
	return p
}

// at is the share that is there at an age in s.
func (p *patience) at(age float64) float64 {
	if age < ageMin/1e6 {
		return 1
	}
	at := 1 + perOctave*math.Log2(age*1e6/ageMin)
	b := int(min(at, buckets-2))
	return p.alive[b] + (p.alive[b+1]-p.alive[b])*min(1, at-float64(b))
}

// stay is which share of those who have waited for age s is there after more of them.
func (p *patience) stay(age, more float64) float64 {
	there := p.at(age)
	if there < 1e-6 {
		return 1
	}
	stay := p.at(age+more) / there
	return max(0.05, stay+(1-stay)*p.returns)
}
