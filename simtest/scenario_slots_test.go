package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// Slots are made again only when every node of a wave is known to know that
// their old owner is void. Here x is dead and D is over, and one node has not
// heard of it: every commit since was lost on its way there, while slots that x
// had sent it before were still in a buffer. It is right to take them then; they
// must not exist already. In a room that shares, an operator has said that x
// will not return, and nothing but this wait guards against it: a ledger of such
// a room never lapses by itself.
func TestScenarioSafeIsWaitedFor(t *testing.T) {
	for _, policy := range []eviction.Policy{eviction.Share, eviction.Majority} {
		t.Run(fmt.Sprintf("policy %d", policy), func(t *testing.T) {
			o := short(4)
			o.Rooms[0].OnPartition = policy
			o.Load.Browse = Range{time.Minute, time.Minute}
			s := founded(t, o)
			s.strict = true
			const a, c, x = 0, 2, 3
			slots, commits, replies := ofKind(mSlots, x, c), ofKind(mCommit, a, c), ofKind(mReply, c, a)
			lastSeen, missed, due := int64(0), 0, false
			s.tap = func(f *flight) verdict {
				switch {
				case slots(f):
					return keep
				case commits(f) && !s.hosts[x].up():
					missed++
					return lose
				case s.lists(f, "n03"):
					lastSeen = s.now
				case replies(f) && s.now > lastSeen+s.delay().Microseconds()+10_000:
					due = true
				}
				return pass
			}
			s.arrive(c, 12)
			s.until(2*time.Second, "a transfer from x to c", func() bool { return len(s.kept) > 0 })
			s.kept = s.kept[:1] // repetitions carry nothing more
			gone := s.lives[s.hosts[x].life].member
			s.down(x)
			room := s.hosts[a].seen.rooms[0].Room
			room.Reclaimed = []eviction.Member{gone}
			s.setRoom(&s.hosts[a], 0, room)
			s.arrive(a, 3) // who wait, so that every wave asks about the room
			s.until(10*time.Second, "a wave after D to which c has replied", func() bool { return due })
			if missed < 10 || policy == eviction.Share && s.hosts[c].seen.rooms[0].Account.Born == 0 {
				t.Fatalf("c has heard of it, or has lapsed: %s", s.ledgers(0))
			}
			s.release() // the slots arrive before the commit
			s.tap = nil
			s.arrive(c, 5) // they would walk in
			s.run(10 * time.Second)
			if owned, _ := s.ownedNow(0, 1, 2); owned != 12 {
				t.Errorf("%d slots, want 12: %s", owned, s.ledgers(0))
			}
			s.finish()
		})
	}
}

// Slots that were on the way to or from a node when it was voided. Whenever
// they arrive, early, late or after they were made again, there are never more
// than the limit, and once D is over never fewer.
func TestScenarioSlotsInFlightAtVoid(t *testing.T) {
	for _, towards := range []bool{false, true} {
		for late := 250 * time.Millisecond; late < 8*time.Second; late += 500 * time.Millisecond {
			t.Run(fmt.Sprintf("to the void %t after %v", towards, late), func(t *testing.T) {
				s := founded(t, short(4))
				s.strict = true
				const c, x = 2, 3
				from, to := x, c
				if towards {
					from, to = c, x
				}
				slots := ofKind(mSlots, int32(from), int32(to))
				s.tap = func(f *flight) verdict {
					if slots(f) {
						return keep
					}
					return pass
				}
				s.arrive(to, 12)
				s.until(2*time.Second, "a transfer", func() bool { return len(s.kept) > 0 })
				s.kept = s.kept[:1]
				s.split(hosts(x), hosts(0, 1, c))
				s.run(late)
				s.release()
				s.run(2 * s.delay())
				if owned, _ := s.ownedNow(0, 1, c); owned != 12 {
					t.Errorf("the side with the quorum owns %d slots, want 12: %s", owned, s.ledgers(0))
				}
				s.finish()
			})
		}
	}
}

// A quiet room is not part of every wave. A node that was away, and whose slots
// were voided meanwhile, may come back into a wave that says nothing of the
// room: the wave must not be taken for a lease on it. Else visitors walk in, or
// have their passes extended, on slots that are about to be made again.
func TestScenarioReturnToAWaveWithoutTheRoom(t *testing.T) {
	t.Parallel()
	for _, visitors := range []int{0, 2} { // on the site at x when it goes away
		for away := 4 * time.Second; away < 6500*time.Millisecond; away += 100 * time.Millisecond {
			t.Run(fmt.Sprintf("%d there, after %v", visitors, away), func(t *testing.T) {
				o := short(3)
				o.Rooms[0].Session = 5 * time.Second
				s := founded(t, o)
				const x = 2
				var there []*browser
				for range visitors {
					there = append(there, s.visit(x))
				}
				s.stall(x, away)
				s.run(away)
				s.until(2*time.Second, "x in a wave", func() bool { return s.together(3) })
				s.o.Load.Browse = Range{time.Minute, time.Minute}
				s.run(10 * time.Millisecond)
				for _, b := range there {
					_, _ = b.ask(x, opRefresh)
				}
				s.arrive(x, 4)
				s.arrive(0, 30)
				s.run(2 * s.delay())
				s.finish()
			})
		}
	}
}

// Two nodes, two slots, one at each. Both visitors come to the same node, the
// second half a second after the first: the slot of the other node is there by
// then, and nobody waits while one is free.
func TestScenarioTheLastSlotIsWhereVisitorsCome(t *testing.T) {
	for at := range 2 {
		t.Run(fmt.Sprintf("at n%02d", at), func(t *testing.T) {
			o := short(2)
			o.Rooms[0].Target = 2
			s := founded(t, o)
			for range 2 {
				if a := s.browser().must(at, opJoin); a.State != node.Admitted {
					t.Fatalf("state %v with %s", a.State, s.ledgers(0))
				}
				s.run(500 * time.Millisecond)
			}
			s.finish()
		})
	}
}
