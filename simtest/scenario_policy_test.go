package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// policy has an operator at host i set what sides do in the room.
func (s *script) policy(i int, p eviction.Policy) {
	room := s.hosts[i].seen.rooms[0].Room
	room.OnPartition = p
	s.setRoom(&s.hosts[i], 0, room)
}

// goesBy reports whether these hosts go by the policy.
func (s *script) goesBy(p eviction.Policy, at ...int32) func() bool {
	return func() bool {
		for _, i := range at {
			if s.hosts[i].seen.rooms[0].Room.OnPartition != p {
				return false
			}
		}
		return true
	}
}

// A room is told to share on a side without a quorum, where nobody of the others hears of
// it: they void the accounts there, and make their slots again. That side admits nobody.
func TestScenarioASideIsToldToShare(t *testing.T) {
	o := short(3)
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.split(hosts(0, 1), hosts(2))
	s.run(time.Second)
	s.policy(2, eviction.Share)
	s.until(2*time.Second, "the side goes by it", s.goesBy(eviction.Share, 2))
	s.arrive(2, 12)
	s.run(2*s.delay() + 2*time.Second)
	s.arrive(0, 12)
	s.run(2 * time.Second)
	s.mend()
	s.until(5*time.Second, "all share", func() bool { return s.together(3) && s.goesBy(eviction.Share, 0, 1, 2)() })
	s.run(s.delay())
	if owned, _ := s.ownedNow(); owned != 12 {
		t.Errorf("%d slots, want 12: %s", owned, s.ledgers(0))
	}

	// From here on a side goes on, as everybody was told of it.
	s.split(hosts(0, 1), hosts(2))
	s.run(time.Second)
	s.arrive(2, 12)
	s.until(10*time.Second, "those who wait on the side have its slots", func() bool {
		owned, used := s.ownedNow(2)
		return owned > 0 && used == owned
	})
	s.mend()
	s.finish()
}

// A room is told not to share any more. A node loses the commit that says so, and is then
// cut off: it goes on with its slots, which nobody else makes again until it is back.
func TestScenarioASideHasNotHeardThatItSharesNoMore(t *testing.T) {
	o := short(3)
	o.Rooms[0].OnPartition = eviction.Share
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	commit := ofKind(mCommit, none, none)
	s.tap = func(f *flight) verdict {
		if f.to == 2 && commit(f) {
			return lose
		}
		return pass
	}
	s.policy(0, eviction.Majority)
	s.until(2*time.Second, "two know of it", s.goesBy(eviction.Majority, 0, 1))
	s.tap = nil
	s.split(hosts(0, 1), hosts(2))
	s.run(time.Second)
	s.arrive(2, 12)
	s.run(2*s.delay() + 2*time.Second)
	if _, used := s.ownedNow(2); used == 0 {
		t.Errorf("nobody got in on the side that shares: %s", s.ledgers(0))
	}
	s.arrive(0, 12)
	s.run(2 * time.Second)
	s.mend()
	s.until(5*time.Second, "nobody shares", func() bool { return s.together(3) && s.goesBy(eviction.Majority, 0, 1, 2)() })
	s.until(2*s.delay(), "all slots", func() bool { owned, _ := s.ownedNow(); return owned == 12 })

	// From here on a lost node's slots are made again, as of any room.
	s.run(time.Second)
	s.split(hosts(0, 1), hosts(2))
	s.until(2*s.delay(), "the slots of the lost", func() bool { owned, _ := s.ownedNow(0, 1); return owned == 12 })
	s.mend()
	s.finish()
}

// An operator says of a node that it will not return, while it goes on with its slots on
// the other side of a split. It does return, much later: what it had is void still.
func TestScenarioAReclaimedSideReturns(t *testing.T) {
	for _, after := range []eviction.Policy{eviction.Share, eviction.Majority} {
		t.Run(after.String(), func(t *testing.T) {
			for phase := range 5 {
				reclaimedSideReturns(t, after, time.Duration(phase)*40*time.Millisecond)
			}
		})
	}
}

func reclaimedSideReturns(t *testing.T, after eviction.Policy, phase time.Duration) {
	o := short(3)
	o.Rooms[0].OnPartition = eviction.Share
	s := founded(t, o)
	s.split(hosts(0, 1), hosts(2))
	s.run(time.Second)
	account := s.hosts[2].seen.rooms[0].Account
	s.checker.rooms[0].sides++ // what a node does of which an operator was wrong comes on top
	room := s.hosts[0].seen.rooms[0].Room
	room.Reclaimed = []eviction.Member{s.hosts[2].seen.status.Self}
	s.setRoom(&s.hosts[0], 0, room)
	s.until(2*s.delay()+2*time.Second, "its slots", func() bool { owned, _ := s.ownedNow(0, 1); return owned == 12 })
	s.policy(0, after)
	s.run(3*s.delay() + 2*time.Second + phase)
	s.mend()
	s.until(5*time.Second, "one wave of all", func() bool { return s.together(3) })
	s.until(time.Second, "another account of it", func() bool { return s.hosts[2].seen.rooms[0].Account.Born > account.Born })
	s.run(2 * s.delay())
	if owned, _ := s.ownedNow(); owned != 12 {
		t.Errorf("%d slots, want 12: %s", owned, s.ledgers(0))
	}
	s.finish()
}

// The same, and it meets one of the others before the rest: it runs the wave of both, as the
// eldest, and does not know yet that what it has is void. The other one does, and gives it
// no slot.
func TestScenarioAReclaimedNodeIsGivenNoSlots(t *testing.T) {
	o := short(4)
	o.Rooms[0].OnPartition = eviction.Share
	s := founded(t, o)
	s.split(hosts(0), hosts(1, 2, 3))
	s.run(time.Second)
	s.checker.rooms[0].sides++
	room := s.hosts[1].seen.rooms[0].Room
	room.Reclaimed = []eviction.Member{s.hosts[0].seen.status.Self}
	s.setRoom(&s.hosts[1], 0, room)
	s.until(2*s.delay()+2*time.Second, "its slots", func() bool { owned, _ := s.ownedNow(1, 2, 3); return owned == 12 })
	s.arrive(0, 12) // more than it has slots for
	s.end(s.splits[0])
	s.split(hosts(0, 3), hosts(1, 2))
	s.run(2 * time.Second)
	s.mend()
	s.until(5*time.Second, "one wave of all", func() bool { return s.together(4) })
	s.finish()
}
