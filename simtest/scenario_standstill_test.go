package simtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// A machine stands still with its clocks and goes on as if no time had passed, with a
// lease, free slots and passes that the others have long settled. It stops as soon as
// it hears from one of them, before it answers anybody, and comes back when its clock
// is right.
func TestScenarioAMachineThatStoodStillStopsWhenItHears(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		for _, x := range []int32{0, 1, int32(nodes) - 1} { // the coordinator, a senior and the youngest
			for _, last := range []time.Duration{400 * time.Millisecond, 2 * time.Second, 7 * time.Second} {
				t.Run(fmt.Sprintf("%d nodes, n%02d, %v", nodes, x, last), func(t *testing.T) {
					o := short(nodes)
					o.Load.Browse = Range{20 * time.Second, 20 * time.Second}
					s := founded(t, o)
					b := s.visit(int(x))
					h := &s.hosts[x]
					s.freeze(h, last.Microseconds())
					s.arrive(int((x+1)%int32(nodes)), 30) // they take whatever becomes free
					s.run(last - time.Microsecond)
					if !h.stopped {
						t.Fatal("it has heard of it before it went on")
					}
					s.until(2*time.Second, "a word from another", func() bool { return !h.stopped })
					for end := s.now + 500_000; s.now < end; s.run(20 * time.Millisecond) {
						for _, op := range []op{opVisit, opRefresh} {
							if _, err := b.ask(int(x), op); err == nil {
								t.Fatalf("%v after it went on it answers a %v", micros(s.now-h.pauseTo), op)
							}
						}
					}
					h.clock.set(s.now, 0)
					s.until(20*time.Second, "all together", func() bool { return s.together(nodes) })
					s.finish()
				})
			}
		}
	}
}

// One of three nodes is lost, and of the two that are left one stands still. Their clocks
// are apart, and neither has a quorum that could tell whose is off. The one that stood
// still has heard that it may be its own, so once nothing that it timed is alive it goes
// by its wall clock, which is right again, and the two go on. Seed 90004096 of the swarm.
func TestScenarioOfTwoNodesThatAreLeftOneStoodStill(t *testing.T) {
	for x := range 2 {
		t.Run(fmt.Sprintf("n%02d", x), func(t *testing.T) {
			s := founded(t, short(3))
			s.hosts[2].gone = true
			s.down(2)
			s.until(5*time.Second, "the other two", func() bool { return s.together(2) })
			h := &s.hosts[x]
			s.freeze(h, 2_000_000)
			s.run(2 * time.Second)
			s.until(2*time.Second, "a word from the other", func() bool { return !h.stopped })
			h.clock.set(s.now, 0)
			s.arrive(1-x, 30)
			s.until(20*time.Second, "both together", func() bool { return s.together(2) })
			s.finish()
		})
	}
}

// Of two nodes the one that is a quorum by itself stood still with its clocks, and goes on
// alone: of two clocks it takes the other one for wrong, and has visitors all the time,
// so that something that its clock timed is always alive. When its wall clock is set
// right that bears the other out. It judges no pass until a wave has measured it again,
// and both are together. Seed 90001627 of the swarm.
func TestScenarioOneOfTwoThatStoodStillGoesByItsWallClock(t *testing.T) {
	for _, last := range []time.Duration{500 * time.Millisecond, 5 * time.Second} {
		t.Run(last.String(), func(t *testing.T) {
			o := short(2)
			o.Rooms[0].Session = 10 * time.Second
			o.Load.Browse = Range{time.Minute, time.Minute}
			s := founded(t, o)
			h := &s.hosts[0]
			s.freeze(h, last.Microseconds())
			s.run(last)
			s.until(5*time.Second, "one that is alone", func() bool { return s.sees(0, 1) && s.hosts[1].seen.status.Quarantined })
			b := s.visit(0)
			s.run(3 * time.Second)
			if !s.sees(0, 1) {
				t.Fatalf("together with a clock that is off: %s", s.statuses())
			}
			h.clock.set(s.now, 0)
			s.until(time.Second, "its following the wall clock", func() bool { return !h.seen.status.Vouched })
			for !h.seen.status.Vouched {
				for _, op := range []op{opVisit, opRefresh} {
					if _, err := b.ask(0, op); !errors.Is(err, ticket.ErrUnavailable) {
						t.Fatalf("%v by a clock that nobody vouched for: %v", op, err)
					}
				}
				s.run(time.Millisecond)
			}
			s.until(time.Second, "both together", func() bool { return s.together(2) })
			s.finish()
		})
	}
}

// Who stood still goes by its wall clock again when nothing that its clock timed is alive,
// however long after all faults that is. Then others measure it, and until they have it is
// in no wave: the oracle of one view waits for that. Seed 90001800 of the swarm.
func TestScenarioWhoStoodStillHasTimeToBeMeasured(t *testing.T) {
	s := founded(t, short(3))
	h := &s.hosts[2]
	s.freeze(h, 2_000_000)
	s.run(3 * time.Second)
	h.clock.set(s.now, 0)
	s.until(20*time.Second, "its following the wall clock", func() bool { return !h.seen.status.Vouched })
	if s.together(3) {
		t.Fatalf("nobody has measured it: %s", s.statuses())
	}
	s.checkSettled()
	s.check()
	s.until(micros(s.rejoinTime()), "all together", func() bool { return s.together(3) })
	s.checkSettled()
	s.finish()
}

// A node comes whose clock is ahead, and as it hears of nobody yet it asks the others
// whether they follow it. That is no word of one who knows the time: they go on.
func TestScenarioANewcomersClockStopsNobody(t *testing.T) {
	o := short(3)
	o.Faults.Adds = 1
	s := founded(t, o)
	h := s.addHost(0)
	h.clock.set(s.now, 2_000_000)
	s.start(h)
	for end := s.now + 5_000_000; s.now < end; s.run(time.Millisecond) {
		for i := range 3 {
			if st := &s.hosts[i].seen.status; st.Quarantined {
				t.Fatalf("%s stops: %s", s.hosts[i].name, s.statuses())
			}
		}
	}
	h.clock.set(s.now, 0)
	s.finish()
}

// A machine stands still for longer than D, and goes on while the coordinator is paused:
// whoever tells it the time has no quorum, so it is not told to stop, but doubts its clock,
// and goes on alone without a quorum. By that clock its old lease is good when the others
// make its slots again. It acts by it no more. Seed 90020386 of the swarm.
func TestScenarioAnOldLeaseOfOneThatStoodStillIsNoLease(t *testing.T) {
	o := short(3)
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	for i := range 3 {
		s.arrive(i, 6) // the room is in every wave
	}
	h := &s.hosts[1]
	s.run(500 * time.Millisecond)
	s.freeze(h, 6_000_000)
	s.run(3 * time.Second)
	s.stall(0, 4200*time.Millisecond)
	s.arrive(2, 30)
	s.until(5*time.Second, "a doubt", func() bool { return h.seen.status.Quarantined && h.seen.status.Grade == eviction.Side })
	s.tap = func(f *flight) verdict {
		if f.to == 1 {
			return lose // the next word from the others would be that its clock is off
		}
		return pass
	}
	s.until(2*time.Second, "slots made again", func() bool { owned, _ := s.ownedNow(0, 2); return owned == 12 })
	if h.clock.boot(s.now) >= h.seen.rooms[0].LeaseUntil {
		t.Fatalf("its lease is over: %s", s.ledgers(0))
	}
	s.tap = nil
	h.clock.set(s.now, 0)
	s.until(20*time.Second, "all together", func() bool { return s.together(3) })
	s.finish()
}

// Two short standstills together bring a clock out of bounds, each of them too short for
// anybody to notice. The node is a quorum by itself and leaves the other one out, whose
// clock is right, until its own wall clock is set right. Seed 90020144 of the swarm.
func TestScenarioTwoShortStandstillsOfALoner(t *testing.T) {
	s := assemble(t, short(2))
	s.hosts[0].clock.set(0, -10_000)
	s.hosts[1].clock.set(0, 30_000)
	s.begin()
	h := &s.hosts[0]
	for range 2 {
		s.freeze(h, 48_000)
		s.run(time.Second)
		if h.stopped {
			t.Fatal("a standstill that others may notice")
		}
	}
	s.until(5*time.Second, "one that is alone", func() bool { return s.sees(0, 1) })
	s.arriveOver(0, 60, 20*time.Second)
	s.run(3 * time.Second)
	h.clock.set(s.now, 0)
	s.until(2*time.Second, "both together", func() bool { return s.together(2) })
	s.finish()
}

// The coordinator stands still with its clocks while the replies to its wave are under way
// and before people gather for an event, and goes on while they do, its account settled or
// not yet. By its clock it is early: it calls who waited, as it would have then, and nobody
// any more once it has heard what time it is. Seed 90003357 of the swarm.
func TestScenarioWhoStoodStillIsEarlyByItsClock(t *testing.T) {
	for _, goesOn := range []time.Duration{5 * time.Second, 8 * time.Second} {
		t.Run(goesOn.String(), func(t *testing.T) {
			o := short(3)
			o.Rooms[0].QueueAll = true
			o.Rooms[0].Events = []eviction.Event{from(4*time.Second, 15*time.Second, 20*time.Second, eviction.Event{})}
			s := founded(t, o)
			h := &s.hosts[0]
			reply := ofKind(mReply, none, 0)
			s.tap = func(f *flight) verdict {
				if reply(f) && !h.stopped && h.seen.rooms[0].Queued > 0 {
					s.freeze(h, goesOn.Microseconds()-s.now)
				}
				return pass
			}
			s.arrive(0, 5)
			s.run(goesOn - micros(s.now) - time.Microsecond)
			s.tap = nil
			if !h.stopped || h.seen.rooms[0].Called > 0 {
				t.Fatalf("it stood still: %t; %d of its visitors were called", h.stopped, h.seen.rooms[0].Called)
			}
			called := false
			s.until(2*time.Second, "a word from another", func() bool {
				called = called || h.seen.rooms[0].Called > 0
				return !h.stopped
			})
			if !called {
				t.Error("it called nobody")
			}
			s.arriveOver(none, 30, 3*time.Second) // they wait for the event: S14
			s.run(4 * time.Second)
			h.clock.set(s.now, 0)
			s.until(20*time.Second, "all together", func() bool { return s.together(3) })
			s.finish()
		})
	}
}
