package simtest

import (
	"testing"
	"time"
)

// lostOne is a crowd of which one node dies and does not return: people stay for as long as
// stay says, and sessions are so long that D does not end in the test.
func lostOne(t *testing.T, copies, victim int, stay Range) *script {
	t.Helper()
	o := crowdOf(5, uint64(victim)+1)
	o.Cluster = short(5).Cluster
	o.Cluster.Copies = copies
	o.Rooms[0].Session, o.Rooms[0].TicketTTL = 5*time.Minute, 10*time.Minute
	o.Load.Browse = stay
	s := founded(t, o)
	s.arriveOver(none, 600, 2*time.Second)
	s.run(4 * time.Second)
	s.down(victim)
	return s
}

// slotsOfNobody is how many slots nobody has: neither a node that runs nor somebody on the site by
// an account of one that does not.
func (s *script) slotsOfNobody() int {
	owned, _ := s.ownedNow()
	for i := range s.checker.rooms[0].accounts {
		if a := &s.checker.rooms[0].accounts[i]; a.life == none || s.lives[a.life].over {
			owned += a.live
		}
	}
	return s.o.Rooms[0].Target - owned
}

// A node dies, and what was free of its slots is there again as soon as its lease is over:
// not after a session, as without heirs. What people use who were let in by it comes back when
// they leave, or go on at another node.
func TestScenarioALostNodesFreeSlotsComeBackWithItsLease(t *testing.T) {
	for _, victim := range []int{0, 3} {
		s := lostOne(t, 1, victim, Range{time.Second, 3 * time.Second})
		c := &s.o.Cluster
		soon := 2*c.Deadline + c.Lease + 2*c.MaxSkew + c.Margin + c.ExcludeAfter + 8*c.Period
		s.run(soon)
		if n := s.slotsOfNobody(); n > 0 {
			t.Errorf("node %d: %d slots are missing %v after it died: %s", victim, n, soon, s.ledgers(0))
		}
		if s.reached.n[reachClaimLowered] == 0 {
			t.Error("nothing was made again early: the world shows nothing")
		}
		s.until(time.Minute, "everybody served but who had a pass of the lost node", func() bool { return s.crowd.served >= 570 })

		s = lostOne(t, 0, victim, Range{time.Second, 3 * time.Second})
		if s.run(soon); s.slotsOfNobody() == 0 {
			t.Errorf("node %d: no slot is missing without heirs: the world shows nothing", victim)
		}
	}
}

// A node dies, and its heirs with it: how many of its slots are used is known to nobody, and
// they are waited for.
func TestScenarioALostNodeWhoseHeirsAreLostIsWaitedFor(t *testing.T) {
	s := lostOne(t, 1, 3, Range{time.Second, 3 * time.Second})
	s.down(4)
	s.run(10 * time.Second)
	if n := s.reached.n[reachClaimLowered]; n > 0 {
		t.Errorf("slots were made again %d times of which nobody knows whether they are used: %s", n, s.ledgers(0))
	}
}
