package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// A node finds that one of its two rooms is not as it must be: a slot counts as free
// that somebody uses. It calls nobody there any more and extends no pass; those that are
// out are good until they end, and who waits there keeps the place. Its slots are made
// again elsewhere when D is over, as those of a lost node. The other room, the other
// nodes and the waves go on. When it has started anew it is as good as any.
func TestScenarioABrokenRoomIsGivenUpByItsNodeAlone(t *testing.T) {
	for _, algorithm := range []eviction.Algorithm{eviction.ByCut, eviction.ByQPID} {
		for _, at := range []int{0, 1} { // n00 leads
			if at == 0 && algorithm == eviction.ByQPID {
				continue // whoever leads runs the deleteMins: docs/operating.md says what becomes of them
			}
			t.Run(fmt.Sprintf("algorithm %v, n%02d", algorithm, at), func(t *testing.T) { breakRoom(t, algorithm, at) })
		}
	}
}

func breakRoom(t *testing.T, algorithm eviction.Algorithm, at int) {
	o := short(3)
	o.Rooms[0].Target, o.Rooms[0].TicketTTL, o.Rooms[0].Algorithm = 3, time.Minute, algorithm
	o.Rooms = append(o.Rooms, o.Rooms[0])
	o.Rooms[1].Name = "news"
	s := founded(t, o)
	other := 2
	inside := []*browser{s.visit(0), s.visit(1), s.visit(2)}
	waits := s.browser()
	if a := waits.must(at, opJoin); a.State != node.Waiting {
		t.Fatalf("with 3 of 3 inside a fourth is %v", a.State)
	}
	s.run(300 * time.Millisecond)
	s.spoilt = true
	if !s.hosts[at].n.Spoil("shop") {
		t.Fatal("nobody is on the site there")
	}
	shop := &s.hosts[at].seen.rooms[0]
	s.until(300*time.Millisecond, "the room given up", func() bool { return shop.Broken != "" })
	from := s.now
	for i := range s.hosts {
		for r, rs := range s.hosts[i].seen.rooms {
			if broken := rs.Broken != ""; broken != (i == at && r == 0) {
				t.Errorf("room %s is broken %t at n%02d", rs.Room.Name, broken, i)
			}
		}
	}

	// Its pass is good until it ends, the others' go on.
	for _, b := range inside {
		b.must(at, opVisit)
	}
	until := inside[at].pass.Expires
	inside[at].must(at, opRefresh)
	if inside[at].pass.Expires != until {
		t.Errorf("a pass was extended by %v in a room that was given up", micros(inside[at].pass.Expires-until))
	}
	if a, err := s.browser().ask(at, opJoin); err == nil {
		t.Errorf("somebody who joins there is %v, want to be sent elsewhere", a.State)
	}

	// Its slots are made again elsewhere, and those who join there come in.
	late := []*browser{s.browser(), s.browser()}
	for _, b := range late {
		b.must(other, opJoin)
	}
	for s.now < from+(s.delay()+3*time.Second).Microseconds() {
		s.run(400 * time.Millisecond)
		if shop.MayAdmit {
			t.Fatalf("%v after the room was given up its node may call visitors there", micros(s.now-from))
		}
		for i, b := range inside {
			if i != at {
				b.must(other, opRefresh)
			}
		}
		if a := waits.must(other, opCheckIn); a.State != node.Waiting || waits.ticket.Home.Name != s.hosts[at].name {
			t.Fatalf("who waits at the node that gave the room up is %v, at home %v", a.State, waits.ticket.Home)
		}
		for _, b := range late {
			b.must(other, opCheckIn)
		}
	}
	if a := late[0].must(other, opLeave); a.State != node.Admitted {
		t.Errorf("%v after D the slot is not made again: the first in line is %v%s", micros(s.now-from), a.State, s.ledgers(0))
	}
	if n := s.calls(from, int32(at)); n > 0 {
		t.Errorf("%d were called where the room was given up", n)
	}
	if n := len(s.hosts[at].seen.status.List); n != 3 {
		t.Errorf("%d nodes are in the waves of n%02d", n, at)
	}
	s.visitTo(1, at).must(at, opEnd)

	// Started anew it has nothing of this.
	s.reboot(at)
	late[0].must(other, opEnd)
	late[1].must(other, opAbandon)
	s.until(s.delay()+5*time.Second, "the call of who waited", func() bool {
		b := waits.copy()
		if a, err := b.ask(other, opCheckIn); err == nil {
			*waits = *b
			return a.State == node.Called
		}
		return false
	})
	if s.hosts[at].seen.rooms[0].Broken != "" {
		t.Error("a new life calls the room broken")
	}
	s.finish()
}
