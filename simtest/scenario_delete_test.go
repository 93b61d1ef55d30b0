package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// take calls a deleteMin at host h; false if the node has no slot to send along.
func (s *script) take(h int) (qpid.OpID, bool) {
	host := &s.hosts[h]
	op, err := host.n.DeleteMin(host.clock.read(s.now), s.o.Rooms[0].Name)
	if err == nil {
		s.checker.takeCalled(s.world, host, op)
	}
	s.drain(host)
	s.check()
	return op, err == nil
}

// roots are the hosts that would answer a deleteMin now.
func (s *script) roots() (at []int) {
	for i := range s.hosts {
		if h := &s.hosts[i]; h.up() {
			if rs, ok := h.n.Room(s.o.Rooms[0].Name, h.clock.read(s.now)); ok && rs.QPIDRoot {
				at = append(at, i)
			}
		}
	}
	return at
}

// oneRoot demands S4 of a stable view: there is at most one root, whatever the
// epochs are of.
func (s *script) oneRoot() {
	s.t.Helper()
	if at := s.roots(); len(at) > 1 {
		s.fail("S4", "n%02d and n%02d are both root", at[0], at[1])
	}
	s.check()
}

// The freeze. A wave makes the next root out of what the replies say, so from its
// reply to its install no node answers a deleteMin and none moves the root: else
// the old root and the new one both answer. Here a lighter ticket turns up after
// the replies (its owner was silent, and is back), one reply takes its time, and
// so does one commit.
func TestScenarioAWaveFreezesTheQueue(t *testing.T) {
	const a, b, c = 0, 1, 2
	o := short(3)
	o.Net.Latency = Range{5 * time.Millisecond, 5 * time.Millisecond}
	o.Rooms[0].Algorithm, o.Rooms[0].QueueAll, o.Rooms[0].Session = eviction.ByQPID, true, time.Minute
	s := founded(t, o)
	var inside *browser // at c
	for i := range 12 {
		inside = s.visit(i % 3)
	}
	light, heavy := s.browser(), s.browser()
	light.must(c, opJoin)
	s.run(50 * time.Millisecond)
	heavy.must(b, opJoin)
	for s.hosts[c].seen.rooms[0].Parked == 0 {
		s.run(250 * time.Millisecond)
		heavy.must(b, opCheckIn)
	}
	s.run(250 * time.Millisecond)

	reply, commit := ofKind(mReply, b, a), ofKind(mCommit, a, c)
	s.tap = func(f *flight) verdict {
		if reply(f) || commit(f) {
			return keep
		}
		return pass
	}
	s.until(time.Second, "a wave to which all have replied", func() bool { return len(s.kept) > 0 })
	light.must(c, opCheckIn)
	inside.must(c, opEnd)
	if _, ok := s.take(c); !ok {
		t.Fatal("c has no slot for a deleteMin")
	}
	s.run(50 * time.Millisecond)
	for i := range s.hosts {
		if !s.hosts[i].n.Status().Frozen {
			t.Fatalf("%s is not in a wave: %s", s.hosts[i].name, s.statuses())
		}
	}
	if at := s.roots(); len(at) > 0 {
		s.fail("S4", "n%02d is root between its reply and its install", at[0])
	}
	s.check()

	epoch := s.hosts[b].seen.rooms[0].QPIDEpoch
	s.release()
	s.until(time.Second, "the install at b", func() bool { s.oneRoot(); return s.hosts[b].seen.rooms[0].QPIDEpoch != epoch })
	s.tap = func(f *flight) verdict { s.oneRoot(); return pass }
	s.release() // the commit for c
	turn := func(b *browser) *place { return &s.crowd.tickets[s.ticketOf(b.ticket.ID)] }
	s.until(time.Second, "the lighter ticket's turn", func() bool { return turn(light).entitledAt > 0 })
	if turn(heavy).entitledAt > 0 {
		t.Error("the heavier ticket's turn came first")
	}
	s.finish()
}

// A deleteMin takes one of its caller's slots along. When nobody waits, or when
// the request or its answer is lost, the slot is back: it is the caller's again
// at once, or when the request counts as lost. Else the room shrinks with each.
func TestScenarioADeleteMinsSlotComesBack(t *testing.T) {
	for _, lost := range []qpid.Kind{0, qpid.MsgDeleteMin, qpid.MsgTaken} {
		t.Run(fmt.Sprintf("lost %v", lost), func(t *testing.T) {
			o := short(3)
			o.Rooms[0].Algorithm, o.Rooms[0].QueueAll = eviction.ByQPID, true
			s := founded(t, o)
			s.tap = func(f *flight) verdict {
				if m, ok := f.m.Body.(*eviction.RoomQPID); ok && m.Msg.Kind == lost {
					return lose
				}
				return pass
			}
			within := 150 * time.Millisecond // a wave may be on
			if lost != 0 {
				within += s.o.Cluster.ExcludeAfter
			}
			const caller = 2 // not the root of an empty room
			for range 20 {   // more than the caller has slots
				op, ok := s.take(caller)
				if !ok {
					s.fail("L4", "the caller has no slot left for another deleteMin: %s", s.ledgers(0))
					s.check()
				}
				s.run(within)
				if _, used := s.ownedNow(); used != 0 {
					s.fail("L4", "%v after it was called, %v still holds a slot: %s", within, op, s.ledgers(0))
					s.check()
				}
			}
			s.tap = nil
			from := s.now
			s.arrive(none, 12)
			s.until(2*time.Second, "12 calls", func() bool { return s.calls(from) == 12 })
			s.finish()
		})
	}
}

// The same with visitors in line, and every third answer lost: the tickets that
// were taken meanwhile wait for the next wave's slot, and nobody is forgotten.
func TestScenarioLostAnswersForgetNobody(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			o := short(3)
			o.Seed = seed + 1
			o.Rooms[0].Algorithm, o.Rooms[0].QueueAll = eviction.ByQPID, true
			o.Load.Browse = Range{100 * time.Millisecond, 100 * time.Millisecond}
			s := founded(t, o)
			answers, lost := 0, 0
			s.tap = func(f *flight) verdict {
				if m, ok := f.m.Body.(*eviction.RoomQPID); ok && m.Msg.Kind == qpid.MsgTaken {
					answers++
					if answers%3 == 0 {
						lost++
						return lose
					}
				}
				return pass
			}
			s.arriveOver(none, 60, 3*time.Second)
			end := s.now + 3_000_000
			for i := 0; s.now < end; i++ {
				s.take(i % 3)
				s.run(30 * time.Millisecond)
			}
			s.until(10*time.Second, "60 calls", func() bool { return s.calls(0) == 60 })
			if lost < 10 {
				t.Errorf("%d answers were lost: too few to see anything", lost)
			}
			s.finish()
		})
	}
}
