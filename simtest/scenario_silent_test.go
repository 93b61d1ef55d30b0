package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// There is one slot, and who is called does not come. After the claim window,
// and not before, the slot goes to the next in line. The one who missed the call
// keeps the place: back again, they are called before whoever joined later.
func TestScenarioTheSilentLoseTheirSlotAndKeepTheirPlace(t *testing.T) {
	for _, algorithm := range []eviction.Algorithm{eviction.ByCut, eviction.ByQPID} {
		for _, home := range []int{0, 2} { // of the silent one; the others are elsewhere
			t.Run(fmt.Sprintf("algorithm %d, n%02d", algorithm, home), func(t *testing.T) {
				o := short(3)
				o.Rooms[0].Target, o.Rooms[0].QueueAll, o.Rooms[0].Algorithm = 1, true, algorithm
				o.Rooms[0].Session = 10 * time.Second
				s := founded(t, o)
				silent, next, last := s.browser(), s.browser(), s.browser()
				silent.must(home, opJoin)
				s.until(time.Second, "the call", func() bool { return s.hosts[home].seen.rooms[0].Called == 1 })
				called := s.now
				next.must(1, opJoin)
				last.must(1, opJoin)
				s.turn(next, last)
				if early := called + s.o.Rooms[0].ClaimWindow.Microseconds() - s.now; early > 0 {
					t.Errorf("the slot is taken away %v before the claim window ends", micros(early))
				}
				next.must(1, opLeave)
				if a := silent.must(home, opCheckIn); a.State != node.Waiting {
					t.Errorf("who missed the call is %v, want waiting", a.State)
				}
				next.must(1, opEnd)
				s.turn(silent, last)
				silent.must(home, opLeave)
				silent.must(home, opEnd)
				s.turn(last)
				last.must(1, opLeave)
				s.finish()
			})
		}
	}
}

// Who waits and falls silent for three refresh intervals is out of line: a slot
// that comes free then is not kept for them, but goes to the next.
func TestScenarioASlotIsNotKeptForTheSilentInLine(t *testing.T) {
	for _, algorithm := range []eviction.Algorithm{eviction.ByCut, eviction.ByQPID} {
		t.Run(fmt.Sprintf("algorithm %d", algorithm), func(t *testing.T) {
			o := short(3)
			o.Rooms[0].Target, o.Rooms[0].QueueAll, o.Rooms[0].Algorithm = 1, true, algorithm
			o.Rooms[0].Session = 10 * time.Second
			s := founded(t, o)
			inside := s.visit(0)
			silent, next := s.browser(), s.browser()
			silent.must(2, opJoin)
			next.must(1, opJoin)
			for range 8 {
				s.run(250 * time.Millisecond)
				next.must(1, opCheckIn)
			}
			from := s.now
			inside.must(0, opEnd)
			s.turn(next)
			if wait := micros(s.now - from); wait >= s.o.Rooms[0].ClaimWindow {
				t.Errorf("the next in line was called after %v: the slot was kept for the silent", wait)
			}
			next.must(1, opLeave)
			next.must(1, opEnd)
			s.finish()
		})
	}
}

// turn lets all of these browsers check in until first is called. Of the others
// nobody may be called before.
func (s *script) turn(first *browser, others ...*browser) {
	s.t.Helper()
	checkIn := func(b *browser) node.Answer {
		return b.must(int(s.lives[s.lifeOf(b.ticket.Home)].host), opCheckIn)
	}
	for range 20 {
		for _, b := range others {
			if a := checkIn(b); a.State != node.Waiting {
				s.t.Fatalf("ticket %d is %v before its turn", s.ticketOf(b.ticket.ID), a.State)
			}
		}
		if checkIn(first).State == node.Called {
			return
		}
		s.run(200 * time.Millisecond)
	}
	s.t.Fatalf("nobody is called for 4 s: %s", s.ledgers(0))
}
