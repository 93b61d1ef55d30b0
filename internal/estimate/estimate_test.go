package estimate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/estimate"
)

const second = int64(time.Second / time.Microsecond)

// site is a room of one node, the truth about which is known.
type site struct {
	visits estimate.Visits
	limit  int
	now    int64
	ends   []int64 // of those on the site, sorted
	began  map[int64][]int64
	length func() int64
}

func newSite(limit int, length func() int64) *site {
	return &site{limit: limit, now: 1_700_000_000 * second, began: map[int64][]int64{}, length: length}
}

func (s *site) enter() {
	s.visits.Begin(s.now, s.now)
	s.visits.Came()
	end := s.now + s.length()
	s.began[end] = append(s.began[end], s.now)
	i, _ := slices.BinarySearch(s.ends, end)
	s.ends = slices.Insert(s.ends, i, end)
}

// next goes on to the next end of a visit.
func (s *site) next() {
	s.now, s.ends = s.ends[0], s.ends[1:]
	began := s.began[s.now]
	s.visits.End(began[0], s.now)
	s.began[s.now] = began[1:]
}

func (s *site) room(waiting int) estimate.Room {
	return estimate.Room{OnSite: len(s.ends), Free: s.limit - len(s.ends), Waiting: waiting}
}

// People who walk in while there is room say nothing of when anybody leaves.
func TestWalkInsAreNoTurnover(t *testing.T) {
	s := newSite(20, func() int64 { return 600 * second })
	for range 20 {
		s.enter()
		s.now += second / 10
	}
	f := s.visits.Forecast(s.room(40), s.now)
	if q, ok := f.Wait(1); ok {
		t.Errorf("the first of a line at a site that nobody has left yet is told %v", q)
	}
	if f := s.visits.Forecast(s.room(0), s.now+300*second); f == nil {
		t.Error("no forecast")
	} else if q, ok := f.Wait(40); ok {
		t.Errorf("the fortieth is told %v", q)
	}
}

// Slots that are free go to people at once, and at the room's rate, whatever is
// known of visits; and not before the room opens.
func TestWhatIsFreeNeedsNoEvidence(t *testing.T) {
	var v estimate.Visits
	f := v.Forecast(estimate.Room{Free: 100, Waiting: 50, PerMinute: 60}, second)
	if q, ok := f.Wait(30); !ok || q[1] < 28*time.Second || q[1] > 32*time.Second || q[0] > q[1] || q[1] > q[2] {
		t.Errorf("the thirtieth at one a second: %v, %t", q, ok)
	}
	f = v.Forecast(estimate.Room{Free: 100, Waiting: 50, Opens: time.Minute}, second)
	if q, ok := f.Wait(1); !ok || q[1] < time.Minute || q[1] > 62*time.Second {
		t.Errorf("the first of a room that opens in a minute: %v, %t", q, ok)
	}
	if q, ok := f.Wait(150); ok {
		t.Errorf("there are 100 slots, and the 150th is told %v", q)
	}
}

// With visits of one length, the line moves in steps of it.
func TestVisitsOfOneLength(t *testing.T) {
	s := newSite(10, func() int64 { return 60 * second })
	for range 10 {
		s.enter()
	}
	for range 10 {
		s.next()
	}
	for range 10 {
		s.enter()
	}
	s.now += 20 * second
	f := s.visits.Forecast(s.room(25), s.now)
	for n, want := range map[float64]float64{5: 40, 15: 100, 25: 160} {
		if q, ok := f.Wait(n); !ok || math.Abs(q[1].Seconds()-want) > 4 {
			t.Errorf("place %v: %v, %t; want %v s", n, q, ok, want)
		}
	}
}

// With visits of any length the quartiles are quartiles.
func TestQuartilesOfRandomVisits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	under, n := [3]int{}, 0
	for range 60 {
		s := newSite(20, func() int64 { return 1 + int64(rng.ExpFloat64()*30*float64(second)) })
		for range 20 {
			s.enter()
		}
		for range 200 {
			s.next()
			s.enter()
		}
		const place = 15
		q, ok := s.visits.Forecast(s.room(place), s.now).Wait(place)
		if !ok {
			t.Fatal("nothing is known after 200 visits")
		}
		from := s.now
		for range place {
			s.next()
			s.enter()
		}
		for i := range q {
			if s.now-from <= q[i].Microseconds() {
				under[i]++
			}
		}
		n++
	}
	for i, want := range []int{25, 50, 75} {
		if got := 100 * under[i] / n; got < want-20 || got > want+20 {
			t.Errorf("%d %% of the truth is under the quartile of %d %%", got, want)
		}
	}
}

// Halfway through a second round of visits that are neither all alike nor any, half of
// those who wait are called between the quartiles.
func TestQuartilesOfVisitsThatDifferALittle(t *testing.T) {
	length := steady()
	between, n := 0, 400
	for range n {
		s := newSite(20, length)
		s.fill(100)
		const place = 30
		q, ok := s.visits.Forecast(s.room(place), s.now).Wait(place)
		if !ok {
			t.Fatal("nothing is known after 100 visits")
		}
		from := s.now
		for range place {
			s.next()
			s.enter()
		}
		if took := s.now - from; took > q[0].Microseconds() && took <= q[2].Microseconds() {
			between++
		}
	}
	if got := 100 * between / n; got < 45 || got > 60 {
		t.Errorf("%d %% of the truth is between the quartiles of 25 and 75 %%", got)
	}
}

// People who came at once go at about the same time, and so many are called in one
// moment. Which of them somebody is says little of when that is.
func TestNobodyIsCalledToTheSecond(t *testing.T) {
	s := newSite(20, func() int64 { return 60 * second })
	s.fill(40)
	f := s.visits.Forecast(s.room(60), s.now)
	for _, n := range []float64{10, 30, 50} {
		q, ok := f.Wait(n)
		if apart := (q[2] - q[0]).Seconds() / q[1].Seconds(); !ok || apart < 0.035 || apart > 0.08 {
			t.Errorf("place %v is told %v, %t: quartiles that are %.3f of the wait apart, want what the model is good for", n, q, ok, apart)
		}
	}
}

// At a rate nobody knows how far the next call has come, and all else.
func TestQuartilesOfARate(t *testing.T) {
	var v estimate.Visits
	f := v.Forecast(estimate.Room{Free: 1000, Waiting: 500, PerMinute: 60}, second)
	for _, n := range []float64{1, 10, 300} {
		if q, ok := f.Wait(n); !ok || math.Abs((q[2]-q[0]).Seconds()-0.5) > 0.06 {
			t.Errorf("place %v at one a second: %v, %t; want quartiles that are half a second apart", n, q, ok)
		}
	}
}

// Where slots come free one by one, whenever they like, the wait of the first is
// nearly as uncertain as that for a bus: its quartiles are at 0.29, 0.69 and 1.39 of
// the time between two.
func TestTheFirstWaitsAsForABus(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	s := newSite(100, func() int64 { return 1 + int64(rng.ExpFloat64()*60*float64(second)) })
	s.fill(2000)
	q, ok := s.visits.Forecast(s.room(1), s.now).Wait(1)
	const between = 60.0 / 100 // s
	for i, want := range []float64{0.29, 0.69, 1.39} {
		if got := q[i].Seconds() / between; !ok || math.Abs(got-want) > 0.3 {
			t.Errorf("the first is told %v of the time between two calls, %t; want %v", got, ok, want)
		}
	}
}

// steady is visits of 30 to 90 s.
func steady() func() int64 {
	rng := rand.New(rand.NewPCG(3, 4))
	return func() int64 { return 30*second + rng.Int64N(60*second) }
}

// fill has so many visits end, each with a next one, at a site that is full.
func (s *site) fill(n int) {
	for range s.limit {
		s.enter()
	}
	for range n {
		s.next()
		s.enter()
	}
}

// Most who give up do it soon. Those in front who have waited for long stay, and
// so the wait of whoever is behind them is no shorter; half of the others go.
func TestWhoHasWaitedForLongStays(t *testing.T) {
	s := newSite(100, steady())
	s.fill(2000)
	for i := range int64(400) { // half of them give up after 10 to 20 s, the others are called after 100
		joined := s.now - 100*second
		s.visits.Join(joined, joined)
		if i%2 == 0 {
			s.visits.GaveUp(joined, joined+10*second+i*second/40)
		} else {
			s.visits.Leave(joined, s.now)
		}
	}
	told := func(age float64) float64 {
		r := s.room(200)
		for range 8 {
			r.Ages = append(r.Ages, age)
		}
		q, ok := s.visits.Forecast(r, s.now).Wait(200)
		if !ok {
			t.Fatal("nothing is known")
		}
		return q[1].Seconds()
	}
	if old, fresh := told(50), told(0); math.Abs(old-120) > 15 || fresh > 0.7*old {
		t.Errorf("behind 199 who have waited for long it takes %.0f s, want 120; behind 199 who have just come %.0f s, want half of it and somewhat more", old, fresh)
	}
}

// Slots that are handed on late are late in the estimate.
func TestIdleSlotsCount(t *testing.T) {
	s := newSite(100, steady())
	s.fill(2000)
	before, _ := s.visits.Forecast(s.room(300), s.now).Wait(300)
	s.visits.Stood(0, 10, 1300*second) // 10 of 100 slots lie idle, as 2000 visits go by
	after, ok := s.visits.Forecast(s.room(300), s.now).Wait(300)
	if more := after[1].Seconds() / before[1].Seconds(); !ok || more < 1.05 || more > 1.15 {
		t.Errorf("the wait is %v times as long, want 1.1: %v, %v", more, before, after)
	}
}

// What is asked for has a bound, however strange the figures.
func TestStrangeFigures(t *testing.T) {
	s := newSite(3, func() int64 { return second })
	for range 3 {
		s.enter()
		s.next()
	}
	for _, r := range []estimate.Room{{Free: -1000, Waiting: 1 << 30}, {OnSite: 1 << 30, Waiting: 1 << 30}, {Coming: 5, Missing: 7, WholeIn: 1 << 60, Waiting: 3}} {
		f := s.visits.Forecast(r, s.now)
		for _, n := range []float64{0, 1, 1e3, 1e12} {
			for _, ask := range []func(float64) ([3]time.Duration, bool){f.Wait, f.Lottery} {
				if q, ok := ask(n); ok && (q[0] < 0 || q[0] > q[1] || q[1] > q[2] || q[2] > 1e6*time.Second) {
					t.Errorf("%+v: place %v is told %v", r, n, q)
				}
			}
		}
	}
}
