package simtest

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// A used ticket is refused after its node was killed and is back, or has left, or
// everything was: by that node and by all the others, who might take it over.
func TestScenarioAUsedTicketStaysUsed(t *testing.T) {
	restart := func(hosts ...int) func(*script) {
		return func(s *script) {
			for _, h := range hosts {
				s.crash(&s.hosts[h], "the script says so")
			}
			s.run(time.Second)
			for _, h := range hosts {
				s.start(&s.hosts[h])
			}
		}
	}
	leave := func(s *script) { s.goodbye(&s.hosts[1]) }
	for _, tt := range []struct {
		name  string
		nodes int
		disk  bool
		what  func(*script)
		ask   []int
	}{
		{"a node alone is killed", 1, true, restart(0), []int{0}},
		{"one of three is killed", 3, true, func(s *script) {
			restart(1)(s)
			s.run(3 * time.Second) // until then others may take over what it has used, once
		}, []int{0, 1, 2}},
		{"all are killed", 3, true, restart(0, 1, 2), []int{0, 1, 2}},
		{"one of three leaves", 3, false, leave, []int{0, 2}},
		{"one leaves and another after it", 3, false, func(s *script) {
			leave(s)
			s.run(3 * time.Second)
			s.goodbye(&s.hosts[2])
		}, []int{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := short(tt.nodes)
			o.Rooms[0].QueueAll, o.Rooms[0].TicketTTL, o.Faults.Disk = true, time.Minute, tt.disk
			s := founded(t, o)
			home := min(1, tt.nodes-1)
			b := s.visit(home)
			b.must(home, opEnd)
			tt.what(s)
			for range 40 {
				s.run(250 * time.Millisecond)
				for _, h := range tt.ask {
					before := b.ticket
					_, _ = b.ask(h, opCheckIn) // it may not know yet, and not whom to ask
					b.ticket = before
				}
			}
			s.check()
			if n := s.hosts[tt.ask[0]].seen.rooms[0]; n.Called+n.OnSite > 0 {
				t.Errorf("somebody is called, or on the site, with a used ticket: %+v", n)
			}
			for _, h := range tt.ask {
				if a, err := b.ask(h, opCheckIn); !errors.Is(err, ticket.ErrUsed) {
					t.Errorf("n%02d answers the used ticket with %v, %v", h, a.State, err)
				}
			}
		})
	}
}

// A node is cut off until its account is void, and comes back; the passes of before run out, and it takes its leave:
// the others hear of those tickets that they are used, and call none of them again.
func TestScenarioWhoWasOnTheSiteWhenTheirNodeWasCutOffIsNotCalledAgain(t *testing.T) {
	o := short(3)
	o.Rooms[0].Session, o.Rooms[0].TicketTTL, o.Rooms[0].QueueAll = 6*time.Second, time.Hour, true
	s := founded(t, o)
	b := s.visit(0)
	before := s.hosts[0].seen.rooms[0].Account
	s.split(hosts(0), hosts(1, 2))
	s.run(3 * time.Second)
	s.mend()
	s.until(3*time.Second, "another account", func() bool {
		a := s.hosts[0].seen.rooms[0].Account
		return s.together(3) && a != before && a.Born > 0
	})
	s.run(6 * time.Second) // the pass has run out
	s.goodbye(&s.hosts[0])
	s.until(3*time.Second, "the others alone", func() bool { return !s.hosts[0].up() })
	s.run(2 * time.Second)
	if a, err := b.ask(1, opCheckIn); !errors.Is(err, ticket.ErrUsed) {
		t.Errorf("a ticket that was used is %v, %v", a.State, err)
	}
	s.check()
}
