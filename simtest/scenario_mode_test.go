package simtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// mode has an operator at host i set the room's mode, and waits until all nodes
// that run know.
func (s *script) mode(i int, m eviction.Mode) {
	s.t.Helper()
	room := s.hosts[i].seen.rooms[0].Room
	room.Mode = m
	s.setRoom(&s.hosts[i], 0, room)
	s.until(time.Second, "mode "+m.String()+" everywhere", func() bool {
		for i := range s.hosts {
			if h := &s.hosts[i]; h.up() && h.seen.rooms[0].Room.Mode != m {
				return false
			}
		}
		return true
	})
}

// A room is held while visitors are on the site and others wait, or while there is
// room and nobody waits. Nobody new gets in, with all nodes there and with one
// lost; who is on the site stays, also whose node is lost; and after the release
// visitors come in in the order in which they joined.
func TestScenarioAHeldRoomCallsNobody(t *testing.T) {
	for _, algorithm := range []eviction.Algorithm{eviction.ByCut, eviction.ByQPID} {
		for _, inside := range []int{0, 8, 12} {
			for _, lost := range []int{none, 0, 3} {
				if inside == 12 && lost != none {
					continue // no slot is left for who comes from the lost node, held or not
				}
				t.Run(fmt.Sprintf("%v, %d inside, n%02d lost", algorithm, inside, lost), func(t *testing.T) {
					holdAndRelease(t, algorithm, inside, lost)
				})
			}
		}
	}
}

func holdAndRelease(t *testing.T, algorithm eviction.Algorithm, inside, lost int) {
	o := short(4)
	o.Rooms[0].Algorithm, o.Rooms[0].Session, o.Rooms[0].TicketTTL = algorithm, 10*time.Second, time.Minute
	o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
	s := founded(t, o)
	var visitors []*browser
	for i := range inside {
		visitors = append(visitors, s.visit(i%4))
	}
	if inside == 12 {
		s.arrive(none, 20)
		s.run(200 * time.Millisecond)
	}
	s.mode(1, eviction.Held)
	from := s.now
	if inside == 0 {
		if a := s.browser().must(2, opJoin); a.State != node.Waiting {
			t.Fatalf("a newcomer to a held room with free slots is %v", a.State)
		}
	} else {
		visitors[1].must(2, opEnd) // of n01: its slot is free now
	}
	s.arrive(none, 20)
	if lost != none {
		s.down(lost)
	}
	for range 12 { // sessions go on for longer than one lasts
		s.run(time.Second)
		for i, b := range visitors {
			if i != 1 {
				b.patient(2, opRefresh)
			}
		}
	}
	if n := s.calls(from); n != 0 {
		t.Errorf("%d visitors were called or walked in while the room was held", n)
	}
	for i, b := range visitors {
		if left := b.pass.Expires - epochWall - s.now; i != 1 && left < 0 {
			t.Errorf("a session of n%02d ended while the room was held", i%4)
		}
		if i != 1 {
			b.patient(2, opEnd)
		}
	}
	if lost != none {
		s.boot(lost)
	}
	s.mode(2, eviction.Normal)
	s.until(20*time.Second, "all who waited called", func() bool { return s.calls(from) >= 20+20*(inside/12) })
	if lost == none {
		s.inOrder(from)
	}
	s.finish()
}

// A room is drained: nobody joins at any node, who had joined keeps the place
// and is called in turn.
func TestScenarioADrainedRoomTakesNobody(t *testing.T) {
	for _, algorithm := range []eviction.Algorithm{eviction.ByCut, eviction.ByQPID} {
		t.Run(algorithm.String(), func(t *testing.T) {
			o := short(3)
			o.Rooms[0].Algorithm, o.Rooms[0].QueueAll = algorithm, true
			s := founded(t, o)
			from := s.now
			s.arrive(none, 60)
			first := s.browser()
			first.must(0, opJoin)
			s.run(100 * time.Millisecond)
			s.mode(2, eviction.Draining)
			for i := range 3 {
				if _, err := s.browser().ask(i, opJoin); !errors.Is(err, ticket.ErrRejected) {
					t.Errorf("a newcomer at n%02d: %v, want %v", i, err, ticket.ErrRejected)
				}
			}
			if a := first.must(1, opCheckIn); a.Ticket == (node.Ticket{}) && a.State == node.Waiting {
				t.Errorf("who had joined: %+v", a)
			}
			s.until(30*time.Second, "all who had joined called", func() bool { return s.calls(from) >= 60 })
			s.mode(0, eviction.Normal)
			s.browser().must(1, opJoin)
			s.finish()
		})
	}
}

// A room is deleted, and all nodes start again with a file that has it: it stays
// deleted. Another operator's wish brings it back.
func TestScenarioADeletedRoomStaysDeleted(t *testing.T) {
	o := short(3)
	o.Faults.Disk = true
	s := founded(t, o)
	b := s.visit(0)
	s.mode(1, eviction.Deleted)
	unknown := func() {
		t.Helper()
		for i := range 3 {
			if _, err := s.browser().ask(i, opJoin); !errors.Is(err, ticket.ErrRoomUnknown) {
				t.Errorf("a newcomer at n%02d: %v, want %v", i, err, ticket.ErrRoomUnknown)
			}
			if _, err := b.ask(i, opRefresh); !errors.Is(err, ticket.ErrRoomUnknown) {
				t.Errorf("a visitor at n%02d: %v, want %v", i, err, ticket.ErrRoomUnknown)
			}
		}
	}
	unknown()
	for i := range 3 {
		s.down(i)
	}
	for i := range 3 {
		s.boot(i)
	}
	s.until(5*time.Second, "one wave of all", func() bool { return s.together(3) })
	s.run(2 * s.delay())
	unknown()
	s.mode(2, eviction.Normal)
	s.browser().must(1, opJoin)
	s.finish()
}
