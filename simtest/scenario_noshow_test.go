package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// noShowBrowser is a browser that never comes in when it is called.
type noShowBrowser struct {
	*browser
	dodges bool  // asks only when it is out of line, so that nobody can tell it of a call
	at     int64 // true time of the next request
	places int   // that it had
}

// ask checks in if it is time.
func (b *noShowBrowser) ask() {
	if b.s.now < b.at {
		return
	}
	t := &b.s.crowd.tickets[b.s.ticketOf(b.ticket.ID)]
	if b.dodges && t.state != parked {
		return
	}
	before := b.ticket.ID
	a := b.must(int(b.s.lives[b.s.lifeOf(b.ticket.Home)].host), opCheckIn)
	if b.at = b.s.now + a.Refresh.Microseconds(); a.Ticket.ID != before {
		b.places++
	}
}

// T people who never come are in line before an honest one. However they go
// about it, they delay that one by no more than the bound of package node, and
// are behind them from then on.
func TestScenarioNoShowsDelayNobodyByMoreThanTheBound(t *testing.T) {
	for _, c := range []struct {
		algorithm eviction.Algorithm
		dodge     bool
	}{{eviction.ByCut, false}, {eviction.ByCut, true}, {eviction.ByQPID, false}, {eviction.ByQPID, true}} {
		t.Run(fmt.Sprintf("algorithm %d, dodging %t", c.algorithm, c.dodge), func(t *testing.T) {
			const limit, many, claims = 3, 9, 2
			o := short(3)
			r := &o.Rooms[0]
			r.Target, r.QueueAll, r.Algorithm, r.ClaimsMax = limit, true, c.algorithm, claims
			r.Refresh, r.ClaimWindow, r.TicketTTL = 2*time.Second, 30*time.Second, time.Minute
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
			told := max(10*time.Second, 3*r.Refresh)
			each, calls := claims*told, time.Duration(claims)
			if c.dodge {
				each, calls = r.ClaimWindow+claims*(4*3*r.Refresh+told), 4*claims
			}
			wave := 4*o.Cluster.Period + o.Cluster.Deadline + 500*time.Millisecond // from a slot that is free to a call, and the wheel
			bound := (many*(each+calls*wave))/limit + r.ClaimWindow
			called := false
			for !called {
				s.run(200 * time.Millisecond)
				for _, b := range all {
					b.ask()
				}
				a := honest.must(0, opCheckIn)
				if called = a.State == node.Called; !called && micros(s.now-from) > bound {
					t.Fatalf("not called after %v, the bound: %s", bound, s.ledgers(0))
				}
			}
			honest.must(0, opLeave)
			t.Logf("called after %v, the bound is %v", micros(s.now-from), bound)
			s.areBehind(all, honest)
			honest.must(0, opEnd)
			for _, b := range all {
				b.must(int(s.lives[s.lifeOf(b.ticket.Home)].host), opAbandon)
			}
			s.finish()
		})
	}
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

// A phone that sleeps through its calls has missed none: its place is where it was.
func TestScenarioWhoSleepsThroughCallsKeepsThePlace(t *testing.T) {
	s := noShowWorld(t)
	other := s.visit(0)
	b := s.browser()
	b.must(1, opJoin)
	place := b.ticket.Weight()
	for range 3 {
		other.must(0, opEnd)
		s.until(3*time.Second, "the call", func() bool { return s.hosts[1].seen.rooms[0].Called == 1 })
		s.until(5*time.Second, "the end of the call", func() bool { return s.hosts[1].seen.rooms[0].Parked == 1 })
		other = s.visit(0)
		if a := b.must(1, opCheckIn); a.State != node.Waiting || a.Ticket.Weight() != place || a.Ticket.Anew {
			t.Fatalf("back after a call: %v at %v, was %v", a.State, a.Ticket.Weight(), place)
		}
	}
	other.must(0, opEnd)
	s.turn(b)
	b.must(1, opLeave)
	b.must(1, opEnd)
	s.finish()
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
			for b.ticket.Missed < 4 { // one call
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
