package estimate

import (
	"cmp"
	"math"
	"slices"
)

// Ages are counted in buckets: eight to an octave, from 1/16 s to 12 days.
const (
	buckets   = 196
	perOctave = 8
	ageMin    = 62_500 // µs
)

func bucketOf(age int64) int {
	if age < ageMin {
		return 0
	}
	return min(buckets-1, 1+int(perOctave*math.Log2(float64(age)/ageMin)))
}

// Visits is what a node has seen of visits to one room, and of its line. Times are
// in microseconds, of any one clock. The zero Visits has seen nothing.
type Visits struct {
	life *life    // nil: nobody has come yet
	here []cohort // by time: who is on the site

	came, noShows float64 // calls, lately: answered, and not
	backs         float64 // people who let a call pass, and are back in line in front
	coming        float64 // µs that people have been called and not there yet
	drops, stood  float64 // people in the front half of the line who gave up, lately, and µs that people have stood in it
	decayed       int64   // time up to which all that is lately has been decayed
}

// life is a life table.
type life struct {
	reached [buckets]float64 // visits that reached this age, lately
	ended   [buckets]float64 // of them, before the next
	ages    [buckets]float64 // µs: of the ended, summed up
}

// cohort are visits that began at about the same time. Those that are over are
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

func (v *Visits) find(started int64) (int, bool) {
	at := started / resolution * resolution
	return slices.BinarySearchFunc(v.here, at, func(c cohort, at int64) int { return cmp.Compare(c.at, at) })
}

// bring counts how far c has come by now.
func (v *Visits) bring(c *cohort, now int64) {
	for b := bucketOf(now - c.at); c.upTo < b; {
		c.upTo++
		v.life.reached[c.upTo] += float64(c.n)
	}
}

// Begin counts a visit that began at started and is here since now.
func (v *Visits) Begin(started, now int64) {
	if v.life == nil {
		v.life, v.decayed = new(life), now
	}
	i, ok := v.find(started)
	if !ok {
		at := started / resolution * resolution
		v.here = slices.Insert(v.here, i, cohort{at: at, upTo: bucketOf(now - at)})
	}
	c := &v.here[i]
	v.bring(c, now)
	c.n++
	v.life.reached[c.upTo]++
}

// End counts the end of a visit.
func (v *Visits) End(started, now int64) {
	i, ok := v.find(started)
	if !ok {
		return
	}
	c := &v.here[i]
	v.bring(c, now)
	v.life.ended[c.upTo]++
	v.life.ages[c.upTo] += float64(max(0, now-started))
	v.take(i)
}

// Forget takes out a visit that goes on elsewhere, or of which nobody knows.
func (v *Visits) Forget(started int64) {
	if i, ok := v.find(started); ok {
		v.take(i)
	}
}

func (v *Visits) take(i int) {
	if v.here[i].n--; v.here[i].n == 0 {
		v.here = slices.Delete(v.here, i, i+1)
	}
}

// Came counts a call that was answered, NoShow one that was not.
func (v *Visits) Came()   { v.came++ }
func (v *Visits) NoShow() { v.noShows++ }

// Back counts somebody who let a call pass and is in line again.
func (v *Visits) Back() { v.backs++ }

// Drop counts somebody who gave up when so many of the line were before them. Those
// of the back half do not count: most who give up do it soon after they came, and
// what matters is who gives up of those who have stood for a while.
func (v *Visits) Drop(before, line int) {
	if 2*before < line {
		v.drops++
	}
}

// Stood counts a line, and people who are called, that were so long and so many
// for that many µs.
func (v *Visits) Stood(line, called int, µs int64) {
	v.stood += float64(line) / 2 * float64(µs)
	v.coming += float64(called) * float64(µs)
}

// decay lets what was seen fade.
func (v *Visits) decay(now int64) {
	f := math.Exp2(-float64(max(0, now-v.decayed)) / memory)
	v.decayed = max(v.decayed, now)
	for b := range v.life.reached {
		v.life.reached[b], v.life.ended[b], v.life.ages[b] = v.life.reached[b]*f, v.life.ended[b]*f, v.life.ages[b]*f
	}
	v.came, v.noShows, v.coming = v.came*f, v.noShows*f, v.coming*f
	v.backs, v.drops, v.stood = v.backs*f, v.drops*f, v.stood*f
}

// mass is a share of visits that last for that long.
type mass struct{ age, share float64 } // s

// table is what follows from a life table.
type table struct {
	masses []mass // by age; together at most 1: who stays for longer is not known
	seen   float64
	mean   float64 // of the masses, s
	cv2    float64 // their squared coefficient of variation
}

// endsMin is how many visits have to have ended before they say something.
const endsMin = 3

// table works the life table out.
func (v *Visits) table(now int64) (t table) {
	var here [buckets]float64
	for i := range v.here {
		c := &v.here[i]
		v.bring(c, now)
		here[c.upTo] += float64(c.n)
	}
	alive, sum, squares := 1.0, 0.0, 0.0
	for b := range v.life.reached {
		ended := v.life.ended[b]
		if t.seen += ended; ended < 1e-3 {
			continue
		}
		share := alive * min(1, ended/max(ended, v.life.reached[b]-here[b]/2)) // half of who is in a bucket have got half through it
		age := v.life.ages[b] / ended / 1e6
		t.masses = append(t.masses, mass{age, share})
		alive -= share
		sum, squares = sum+share*age, squares+share*age*age
	}
	if known := 1 - alive; known > 0 {
		t.mean = sum / known
		t.cv2 = max(0, squares/known-t.mean*t.mean) / max(1e-12, t.mean*t.mean)
	}
	return t
}
