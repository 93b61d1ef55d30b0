package estimate_test

import (
	"math"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/estimate"
)

// minutes are visits of before that lasted for so long, evenly over a third about it.
func minutes(mean time.Duration, n int) (all []estimate.Lasted) {
	for i := range n {
		share := 5.0/6 + (float64(i)+0.5)/float64(n)/3
		all = append(all, estimate.Lasted{Age: int64(share * float64(mean.Microseconds())), N: 1})
	}
	return all
}

// crowd has twenty people walk in and nobody leave, ten seconds ago.
func crowd(length func() int64) *site {
	s := newSite(20, length)
	for range 20 {
		s.enter()
	}
	s.now += 10 * second
	return s
}

// Where nobody has left yet, people are told what the visits of before tell, and nothing
// where there were too few of them, or none.
func TestTheHistoryTellsBeforeAnybodyHasLeft(t *testing.T) {
	s := crowd(func() int64 { return 60 * second })
	if q, ok := s.visits.Forecast(s.room(40), s.now).Wait(10); ok {
		t.Errorf("without a history the tenth is told %v", q)
	}
	s.visits.Before(minutes(time.Minute, 29))
	if q, ok := s.visits.Forecast(s.room(40), s.now).Wait(10); ok {
		t.Errorf("of 29 visits the tenth is told %v", q)
	}
	for parts := 1; parts <= 30; parts++ { // however they add up
		var enough []estimate.Lasted
		for i := range parts {
			enough = append(enough, estimate.Lasted{Age: 60*second + int64(i), N: float64((30*(i+1))/parts - 30*i/parts)})
		}
		s.visits.Before(enough)
		if q, ok := s.visits.Forecast(s.room(40), s.now).Wait(10); !ok {
			t.Errorf("of 30 visits in %d parts the tenth is told %v", parts, q)
		}
	}
	s.visits.Before(minutes(time.Minute, 1000))
	for n, want := range map[float64]float64{10: 50, 30: 110} {
		if q, ok := s.visits.Forecast(s.room(40), s.now).Wait(n); !ok || math.Abs(q[1].Seconds()-want) > 5 || q[0] >= q[1] || q[1] >= q[2] {
			t.Errorf("place %v is told %v, %t; want %v s", n, q, ok, want)
		}
	}
	s.visits.Before(nil)
	if q, ok := s.visits.Forecast(s.room(40), s.now).Wait(10); ok {
		t.Errorf("without a history any more the tenth is told %v", q)
	}
}

// What is seen overrules a history that is wrong: after a hundred visits of a minute
// nobody can tell whether those of before took ten minutes or six seconds.
func TestWhatIsSeenOverrulesTheHistory(t *testing.T) {
	for _, before := range []time.Duration{6 * time.Second, 10 * time.Minute} {
		s := newSite(20, func() int64 { return 60 * second })
		s.visits.Before(minutes(before, 1000))
		for range 5 {
			for range 20 {
				s.enter()
				s.now += second / 10
			}
			for range 20 {
				s.next()
			}
		}
		for range 20 {
			s.enter()
		}
		s.now += 10 * second
		q, ok := s.visits.Forecast(s.room(15), s.now).Wait(10)
		if !ok || math.Abs(q[1].Seconds()-50) > 5 {
			t.Errorf("visits took %v before, and now a minute: the tenth is told %v, %t; want 50 s", before, q, ok)
		}
	}
}
