package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// In a room that shares, C dies and comes back as another life, having forgotten
// everything, while A is cut off: neither side has a quorum, so nobody voids the account
// of the dead. When they meet again its D, which the new C tells from its own start, is
// over twice, B has forgotten it, and A has not. Nothing of it can act any more: its slots
// are made again at once.
func TestScenarioSlotsOfTheDeadThatNobodyVoided(t *testing.T) {
	const c, a, b = 0, 1, 2 // c has all the slots
	for phase := range 10 { // a wave asks about a quiet room once a second
		o := short(3)
		o.Rooms[0].OnPartition, o.Rooms[0].Method = eviction.Share, eviction.Reject
		s := founded(t, o)
		s.split(hosts(a), hosts(b, c))
		s.reboot(c)
		s.run(2*s.delay() + 2*time.Second + time.Duration(phase)*s.o.Cluster.Period)
		s.mend()
		s.until(3*time.Second, "one wave of all", func() bool { return s.together(3) })
		s.until(3*time.Second, "all slots", func() bool { owned, _ := s.ownedNow(); return owned == 12 })
		s.finish()
	}
}

// A room of which each side goes on with the slots that it has. A node does for longer
// than D, alone, is killed with people on the site, and starts again among the others:
// its slots are made again D after that start, and not D after the others last saw it.
// Also if the node that gave it the slots has started anew meanwhile: then nobody has
// books with it, and all that the others have of it is that they have met it.
// Seeds 90008737 and 90015319 of the swarm, and 90015555.
func TestScenarioSlotsOfASideThatCameBackAnewAreWaitedFor(t *testing.T) {
	for _, disk := range []bool{false, true} {
		for _, books := range []bool{true, false} {
			t.Run(fmt.Sprintf("disk %t, books %t", disk, books), func(t *testing.T) {
				o := short(5)
				o.Rooms[0].OnPartition, o.Faults.Disk = eviction.Share, disk
				o.Load.Browse = Range{time.Minute, time.Minute}
				s := founded(t, o)
				s.strict = true
				const giver, x = 0, 4
				s.split(hosts(giver, 1, 2, 3), hosts(x))
				if !books {
					s.reboot(giver)
				}
				s.run(2*s.delay() + 2*time.Second)
				for _, p := range s.hosts[1].seen.rooms[0].Peers {
					if !books && p.Member.Name == s.hosts[x].name {
						t.Fatalf("there are books with the side of one: %s", s.ledgers(0))
					}
				}
				s.arrive(x, 12)
				s.run(time.Second)
				if _, used := s.ownedNow(x); used == 0 {
					t.Fatalf("nobody is on the site by the side of one: %s", s.ledgers(0))
				}
				s.arrive(1, 12) // who wait, so that what is made is used
				s.reboot(x)
				s.mend()
				s.until(5*time.Second, "one wave of all", func() bool { return s.together(5) })
				back := s.now
				s.run(2 * s.delay())
				if owned, _ := s.ownedNow(); owned != 12 {
					t.Errorf("%d slots %v after the start, want 12: %s", owned, time.Duration(s.now-back)*time.Microsecond, s.ledgers(0))
				}
				s.finish()
			})
		}
	}
}
