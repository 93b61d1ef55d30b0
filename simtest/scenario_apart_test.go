package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// slowlyApart has the two nodes of a room that goes on by survivor_after be in no wave with each
// other, as their links are slow, until each lets people in by waves of its own.
func slowlyApart(t *testing.T) *script {
	t.Helper()
	o := short(2)
	o.Rooms[0].QueueAll, o.Rooms[0].Survivor, o.Rooms[0].Session = true, 6*time.Second, 6*time.Second
	s := founded(t, o)
	slow := o.Cluster.Deadline.Microseconds() * 3 / 2
	s.wires.link(0, 1).slow, s.wires.link(1, 0).slow = slow, slow
	s.until(30*time.Second, "two sides that call", func() bool {
		for i := range s.hosts {
			if h := &s.hosts[i]; !s.sees(i, 1) || h.seen.status.Grade < eviction.Primary || !h.seen.rooms[0].MayAdmit {
				return false
			}
		}
		return true
	})
	s.run(time.Second)
	return s
}

// Two nodes are apart and each goes on alone. Somebody who comes to them in turn has
// missed a call at each that the other does not know of: the ticket was told of it and
// says nothing of its end. Nothing has happened to the home since it had the place. No
// node has them miss more than claims_max. Seed 96019960 of the swarm.
func TestScenarioACallIsMissedOnEachOfTwoSides(t *testing.T) {
	s := slowlyApart(t)
	b := s.browser()
	b.must(0, opJoin)
	id := b.ticket.ID
	for gen, h := range []int{0, 1, 0} {
		s.letsPass(b, h)
		if int(b.ticket.Gen) != gen || b.ticket.ID != id || s.lives[s.lifeOf(b.ticket.Home)].host != int32(h) {
			t.Errorf("the place is at %v in generation %d, want n%02d, %d", b.ticket.Home, b.ticket.Gen, h, gen)
		}
	}
	if a := b.must(0, opCheckIn); !a.Ticket.Anew || a.Ticket.ID == id {
		t.Errorf("n00 had it miss two calls, and it is no new place: %+v", a.Ticket)
	}
	s.fast()
	s.finish()
}

// One of two tabs goes in on each side.
func TestScenarioTwoTabsGoInOnTwoSides(t *testing.T) {
	s := slowlyApart(t)
	b := s.browser()
	b.must(0, opJoin)
	s.until(10*time.Second, "a call", func() bool { return b.must(0, opCheckIn).State == node.Called })
	other := b.copy()
	s.until(10*time.Second, "a call there", func() bool { return other.must(1, opCheckIn).State == node.Called })
	b.must(0, opLeave)
	other.must(1, opLeave)
	s.fast()
	s.finish()
}

// fast ends the slowness of all links.
func (s *script) fast() {
	for i := range s.wires.links {
		s.wires.links[i].slow = 0
	}
}
