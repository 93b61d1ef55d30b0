package simtest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// noShowBrowser is a browser that never comes in when it is called.
type noShowBrowser struct {
	*browser
	dodges  bool  // asks only while it is out of line, so that nobody can tell it of a call
	at      int64 // true time of the next request
	called  bool  // when it was looked at last
	slept   int   // calls that it slept through
	since   int64 // true time since which it has been asking; 0: it sleeps
	silence int64 // in µs, as told last
}

// ask checks in if it is time.
func (b *noShowBrowser) ask() {
	if b.dodges && !b.dodge() || b.s.now < b.at {
		return
	}
	if b.since == 0 {
		b.since = b.s.now
	}
	last := b.dodges && b.s.now-b.since >= b.patience() // it is in line after this one
	a := b.must(int(b.s.lives[b.s.lifeOf(b.ticket.Home)].host), opCheckIn)
	b.at, b.silence = b.s.now+a.Refresh.Microseconds(), 3*a.Refresh.Microseconds()
	if last {
		b.since = 0
	}
}

// dodge reports whether it is out of line. It knows the rules.
func (b *noShowBrowser) dodge() bool {
	t := &b.s.crowd.tickets[b.s.ticketOf(b.ticket.ID)]
	if b.called && t.state == parked {
		b.slept++
	}
	b.called = t.state == calledIn
	return t.state == parked || b.since > 0
}

func (b *noShowBrowser) patience() int64 {
	return (1<<max(b.slept-1, 0) - 1) * b.silence
}

// T visitors who never come are in line before an honest one. However they go
// about it, they delay that one by no more than the bound of package node. Those
// who were told of their calls are behind that one from then on.
func TestScenarioNoShowsDelayNobodyByMoreThanTheBound(t *testing.T) {
	for _, c := range []struct {
		algorithm eviction.Algorithm
		dodge     bool
	}{{eviction.ByCut, false}, {eviction.ByCut, true}, {eviction.ByQPID, false}, {eviction.ByQPID, true}} {
		t.Run(fmt.Sprintf("algorithm %d, dodging %t", c.algorithm, c.dodge), func(t *testing.T) {
			const limit, many = 3, 9
			o := short(3)
			r := &o.Rooms[0]
			r.Target, r.QueueAll, r.Algorithm, r.ClaimsMax = limit, true, c.algorithm, 2
			r.Refresh, r.ClaimWindow, r.TicketTTL = 2*time.Second, 30*time.Second, 10*time.Minute
			s := founded(t, o)
			var all []*noShowBrowser
			for i := range many {
				b := &noShowBrowser{browser: s.browser(), dodges: c.dodge}
				b.must(i%3, opJoin)
				all = append(all, b)
				s.run(10 * time.Millisecond)
			}
			honest := s.browser()
			honest.must(0, opJoin)
			from := s.now
			called := false
			for !called {
				s.run(200 * time.Millisecond)
				for _, b := range all {
					b.ask()
				}
				a := honest.must(0, opCheckIn)
				waited := micros(s.now - from)
				called = a.State == node.Called
				if !called && waited > noShowBound(s.o, many, c.dodge, waited) {
					t.Fatalf("not called after %v, the bound: %s", waited, s.ledgers(0))
				}
			}
			honest.must(0, opLeave)
			waited := micros(s.now - from)
			t.Logf("called after %v, the bound is %v", waited, noShowBound(s.o, many, c.dodge, waited))
			slept := 0
			for _, b := range all {
				slept = max(slept, b.slept)
			}
			if !c.dodge {
				s.areBehind(all, honest)
			} else if slept < 3 {
				t.Errorf("nobody slept through more than %d calls", slept)
			}
			honest.must(0, opEnd)
			for _, b := range all {
				b.must(int(s.lives[s.lifeOf(b.ticket.Home)].host), opAbandon)
			}
			s.finish()
		})
	}
}

// noShowBound is for how long many visitors who never come, or who always sleep,
// delay those behind them in a time t: the bound of package node.
func noShowBound(o Options, many int, asleep bool, t time.Duration) time.Duration {
	r := &o.Rooms[0]
	wave := 4*o.Cluster.Period + o.Cluster.Deadline + 500*time.Millisecond // from a slot that is free to a call, and the wheel
	calls := float64(r.ClaimsMax)
	each := time.Duration(r.ClaimsMax) * r.ToldClaim()
	if asleep { // but for those who come when a slot is free, and are told
		calls += math.Log2(2 + t.Seconds()/5.4)
		each += r.ClaimWindow + time.Duration(calls*3.3*float64(r.Refresh))
		calls++
	}
	return time.Duration(many)*(each+time.Duration(calls*float64(wave)))/time.Duration(r.Target) + r.ClaimWindow
}

// areBehind demands that whoever was before an honest person, and let their calls
// pass, is behind them.
func (s *script) areBehind(all []*noShowBrowser, honest *browser) {
	s.t.Helper()
	behind := 0
	for _, b := range all {
		if b.ticket.Stamp > honest.ticket.Stamp {
			behind++
		}
	}
	if behind < len(all)-s.o.Rooms[0].Target {
		s.t.Errorf("%d of %d are behind whoever came after them", behind, len(all))
	}
}

// missing lets b's calls pass until it is stamped anew, and returns the ticket
// that it had before.
func (s *script) missing(b *browser) node.Ticket {
	s.t.Helper()
	home := int(s.lives[s.lifeOf(b.ticket.Home)].host)
	for range 400 {
		old := b.ticket
		if a := b.must(home, opCheckIn); a.Ticket.ID != old.ID {
			if a.State != node.Waiting || !a.Ticket.Anew {
				s.t.Errorf("stamped anew and %v, %+v", a.State, a.Ticket)
			}
			return old
		}
		s.run(250 * time.Millisecond)
	}
	s.t.Fatalf("not stamped anew in 100 s: %s", s.ledgers(0))
	return node.Ticket{}
}

func noShowWorld(t *testing.T) *script {
	o := short(3)
	r := &o.Rooms[0]
	r.Target, r.QueueAll, r.ClaimsMax = 1, true, 2
	return founded(t, o)
}

// The ticket of a place that was stamped anew stands for the new one, however
// often and in whatever form it is asked with; and nobody gets the old place.
func TestScenarioTheOldTicketOfAPlaceStampedAnewStandsForIt(t *testing.T) {
	s := noShowWorld(t)
	b := s.browser()
	b.must(1, opJoin)
	old := s.missing(b)
	is := b.ticket
	again := func(h int) {
		t.Helper()
		tab := b.copy()
		tab.ticket = old
		a := tab.must(h, opCheckIn)
		if a.Ticket.ID != is.ID || a.Ticket.Stamp != is.Stamp {
			t.Errorf("the old ticket at n%02d is answered with %v, want %v", h, a.Ticket.Weight(), is.Weight())
		}
	}
	for range 3 {
		again(1)
		again(0) // which forwards
	}
	later := s.browser()
	later.must(1, opJoin)
	if later.ticket.Stamp < is.Stamp {
		t.Errorf("stamped anew as %d, after somebody who came later with %d", is.Stamp, later.ticket.Stamp)
	}
	s.turn(b, later)
	again(1)
	b.must(1, opLeave)
	tab := b.copy()
	tab.ticket = old
	if a := tab.must(1, opLeave); a.State != node.Admitted || a.Pass.ID != is.ID {
		t.Errorf("leaving with the old ticket gives %v and a pass of %v", a.State, a.Pass.ID)
	}
	b.must(1, opEnd)
	s.turn(later)
	later.must(1, opLeave)
	later.must(1, opEnd)
	s.finish()
}

// sleepsThrough has b, which waits at n01, sleep through a call while another
// visit ends, and returns the visit that has the slot then.
func (s *script) sleepsThrough(other *browser) *browser {
	s.t.Helper()
	other.must(0, opEnd)
	s.until(3*time.Second, "the call", func() bool { return s.hosts[1].seen.rooms[0].Called == 1 })
	s.until(5*time.Second, "the end of the call", func() bool { return s.hosts[1].seen.rooms[0].Parked == 1 })
	return s.visit(0)
}

// listens has b ask as it is told to until it is in line at n01, while the other
// stays on the site, and returns how long that took, in silences of b.
func (s *script) listens(b, other *browser) float64 {
	s.t.Helper()
	from, silence := s.now, int64(0)
	for range 1000 {
		a := b.must(1, opCheckIn)
		silence = max(silence, 3*a.Refresh.Microseconds())
		if s.hosts[1].seen.rooms[0].Parked == 0 {
			return float64(s.now-from) / float64(silence)
		}
		s.run(a.Refresh)
		other.must(0, opRefresh)
	}
	s.t.Fatal("not in line after 1,000 requests")
	return 0
}

// A phone that sleeps through its calls has missed none: its place is where it
// was, for ever. From the second on it is in line when it has listened for longer
// and longer.
func TestScenarioWhoSleepsThroughCallsKeepsThePlace(t *testing.T) {
	s := noShowWorld(t)
	other := s.visit(0)
	b := s.browser()
	b.must(1, opJoin)
	place := b.ticket.Weight()
	for n, silences := range []float64{0, 1, 3, 7, 15} {
		other = s.sleepsThrough(other)
		if took := s.listens(b, other); took < 0.8*silences || took > 1.25*silences+0.4 {
			t.Errorf("%d calls slept through: in line after %.2f silences, want %.0f", n+1, took, silences)
		}
		if b.ticket.Weight() != place || b.ticket.Anew || b.ticket.Missed > 0 {
			t.Fatalf("back after a call: %+v, was %v", b.ticket, place)
		}
	}
	other.must(0, opEnd)
	s.turn(b)
	b.must(1, opLeave)
	b.must(1, opEnd)
	s.finish()
}

// So is the count of calls that it slept through.
func TestScenarioCallsSleptThroughAreCountedOnAfterACrash(t *testing.T) {
	s := noShowWorld(t)
	other := s.visit(0)
	b := s.browser()
	b.must(1, opJoin)
	for range 2 {
		other = s.sleepsThrough(other)
		s.listens(b, other)
	}
	s.crash(&s.hosts[1], "the script says so")
	s.run(3 * time.Second)
	b.patient(0, opCheckIn)
	if b.ticket.Slept != 2 {
		t.Errorf("%d calls slept through, want 2: %+v", b.ticket.Slept, b.ticket)
	}
}

// The count of missed calls is in the ticket, and goes on at the node that takes
// a lost one's place over. Whoever has kept an older ticket, with a lower count,
// gets the old place back after the crash, and as many calls as that says: one
// round more.
func TestScenarioMissedCallsAreCountedOnAfterACrash(t *testing.T) {
	for _, cheats := range []bool{false, true} {
		t.Run(fmt.Sprintf("with an older ticket %t", cheats), func(t *testing.T) {
			s := noShowWorld(t)
			b := s.browser()
			b.must(1, opJoin)
			first := b.ticket
			for b.ticket.Missed < 1 {
				s.run(250 * time.Millisecond)
				b.must(1, opCheckIn)
			}
			s.crash(&s.hosts[1], "the script says so")
			s.run(3 * time.Second)
			if cheats {
				b.ticket = first
			}
			b.patient(0, opCheckIn)
			s.missing(b)
			most := int32(2)
			if cheats {
				most++
			}
			if missed := s.crowd.tickets[s.ticketOf(first.ID)].missed; missed > most {
				t.Errorf("stamped anew after %d missed calls, want at most %d", missed, most)
			}
		})
	}
}
