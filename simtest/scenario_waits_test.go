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

// The coordinator's clock is behind those of all others, so when they reply they have
// visitors whom they stamped after its T. These are not counted: whoever comes to a
// node after its reply may be stamped before them.
func TestScenarioNobodyAfterTheGathersTIsCounted(t *testing.T) {
	for _, limit := range []int{30, 3000} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			o := short(4)
			o.Net.Latency = Range{5 * time.Millisecond, 15 * time.Millisecond}
			o.Rooms[0].Target, o.Rooms[0].QueueAll = limit, true
			o.Load.Browse = Range{0, 20 * time.Millisecond}
			s := assemble(t, o)
			s.wrongBy(-40*time.Millisecond, 40*time.Millisecond, 0, 20*time.Millisecond)
			s.begin()
			w := &cutWatch{s: s, t: map[uint64]uint64{}}
			s.tap = w.look
			s.arriveOver(none, 1000, 3*time.Second)
			s.run(5 * time.Second)
			w.check()
			s.finish()
		})
	}
}

// A fourth node joins, and of the proposal to let it vote only the coordinator has
// heard: the commits to two of three voters are lost. That is nobody's majority, so
// the proposal does not take force. Else the coordinator and the newcomer, of four
// voters half with the lowest name, and the two others, of three the majority, both
// go on when they are cut off from each other.
func TestScenarioAProposalThatOneVoterHasIsNotInForce(t *testing.T) {
	o := short(3)
	o.Faults.Adds = 1
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.addNode()
	proposed := false
	s.tap = func(f *flight) verdict {
		if c, ok := f.m.Body.(*eviction.Commit); ok && (f.to == 1 || f.to == 2) {
			proposed = proposed || c.Voters.Next != nil
			if proposed {
				return lose
			}
		}
		return pass
	}
	s.until(3*time.Second, "a proposal", func() bool { return proposed })
	s.run(600 * time.Millisecond) // some waves
	s.tap = nil
	s.split(hosts(0, 3), hosts(1, 2))
	s.arrive(0, 20)
	s.arrive(1, 20)
	s.run(2 * s.delay())
	if n := s.mintedAt(0, 1, 2); n != 12 {
		t.Errorf("the majority of those who vote has %d slots, want 12: %s", n, s.statuses())
	}
	s.finish()
}

// A node was cut off, and the others took its visitors over. When it is back it gets
// slots and a cut that covers all of them before it has been told. It calls nobody
// before that: all have their places elsewhere.
func TestScenarioACutOffNodeAsksBeforeItCalls(t *testing.T) {
	s, inside := full(t, 3, 500*time.Millisecond)
	const x = 2
	visitors := make([]*browser, 6)
	for i := range visitors {
		visitors[i] = s.browser()
		visitors[i].must(x, opJoin)
	}
	s.run(300 * time.Millisecond)
	s.split(hosts(x), hosts(0, 1))
	s.until(2*time.Second, "waves without it", func() bool { return len(s.hosts[0].seen.status.List) == 2 })
	s.run(s.o.Cluster.ExcludeAfter) // until they may be taken over
	for i, b := range visitors {
		if home := b.patient(i%2, opCheckIn).Ticket.Home; home.Name == "n02" {
			t.Fatal("nobody has taken the place over")
		}
	}
	told := ofKind(mSyncReply, none, x)
	s.tap = func(f *flight) verdict {
		if told(f) {
			return keep
		}
		return pass
	}
	s.mend()
	s.until(3*time.Second, "a wave of all", func() bool { return len(s.hosts[x].seen.status.List) == 3 })
	for _, b := range inside[:8] {
		b.must(1, opEnd)
	}
	s.run(300 * time.Millisecond) // it asks no longer after 500
	if s.hosts[x].seen.rooms[0].Owned == 0 || len(s.kept) == 0 {
		t.Fatalf("it has no slots, or knows: %s", s.ledgers(0))
	}
	called := s.hosts[x].seen.rooms[0].Called
	s.release()
	s.run(300 * time.Millisecond)
	called += s.hosts[x].seen.rooms[0].Called
	if called > 0 {
		t.Errorf("it has called %d visitors whom others had taken over", called)
	}
	s.finish()
}

// A side goes on alone after D at the earliest, whatever survivor_after says, as the
// docs promise: until then it may have an account, and extend passes, that the others
// reckon with.
func TestScenarioSurvivorsWaitForD(t *testing.T) {
	o := short(3)
	o.Rooms[0].Survivor = time.Second
	s := founded(t, o)
	s.split(hosts(0, 1), hosts(2))
	from := s.now
	s.arrive(2, 6)
	s.until(2*s.delay(), "one node alone", func() bool { return s.alone(2) })
	if after := micros(s.now - from); after < s.delay()-500*time.Millisecond {
		t.Errorf("it goes on alone after %v, and D is %v", after, s.delay())
	}
	s.finish()
}

// A node is cut off for a moment. Its account is void when it is back, and the passes
// of that account are good for as long as they last: its slots are waited for like
// those of a node that is lost for good.
func TestScenarioANodesOwnOldPassesAreWaitedFor(t *testing.T) {
	o := short(3)
	o.Rooms[0].Session, o.Rooms[0].NoRenewal = 8*time.Second, true
	o.Load.Browse = Range{time.Minute, time.Minute}
	for x := range int32(3) {
		s := founded(t, o)
		s.arrive(int(x), 12)
		s.run(time.Second)
		s.split(hosts(x), hosts((x+1)%3, (x+2)%3))
		s.run(1500 * time.Millisecond)
		s.mend()
		s.until(5*time.Second, "all together", func() bool { return s.together(3) })
		s.arrive(int(x+1)%3, 30)
		s.run(12 * time.Second)
		s.finish()
	}
}

// A commit is long on its way to a node that nobody reaches meanwhile. The lease that
// it brings counts from the wave's gather, which is the last that the others know of
// this node: D begins there.
func TestScenarioALeaseCountsFromTheGather(t *testing.T) {
	o := short(3)
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	const x = 2
	s.tap = func(f *flight) verdict {
		if c, ok := f.m.Body.(*eviction.Commit); ok && f.to == x && len(c.Rooms) > 0 {
			return keep
		}
		return pass
	}
	s.arrive(1, 1) // so that a wave asks about the room
	s.until(time.Second, "a commit", func() bool { return len(s.kept) > 0 })
	at := s.now
	s.split(hosts(x), hosts(0)) // gossip goes around, so it does not run waves of its own
	s.arrive(0, 40)
	s.run(1900 * time.Millisecond)
	s.release()
	s.run(time.Duration(at-s.now)*time.Microsecond + 3800*time.Millisecond)
	s.arrive(x, 4)
	s.run(s.delay())
	s.finish()
}

// Everybody believes a node dead, and it is not: it has a lease, and calls its visitors
// as slots come free. Who has missed a wave or two is not lost: nobody takes them
// over, so that nobody is in line, or called, at two nodes.
func TestScenarioTheSuspectedKeepTheirVisitors(t *testing.T) {
	o := short(3)
	o.Rooms[0].Target, o.Rooms[0].QueueAll, o.Rooms[0].Session = 1, true, time.Minute
	s := founded(t, o)
	inside := s.visit(0)
	const x = 2
	b := s.browser()
	b.must(x, opJoin)
	s.run(300 * time.Millisecond)
	believe := func(life int32) {
		for _, o := range []int32{0, 1} {
			s.gossip.pair(o, x).life = life
			s.tellView(&s.hosts[o])
		}
	}
	believe(none)
	s.until(time.Second, "waves without it", func() bool { return len(s.hosts[0].seen.status.List) == 2 && len(s.hosts[1].seen.status.List) == 2 })
	for i := range 2 {
		_, _ = b.copy().ask(i, opCheckIn)
	}
	if n := s.queuedNow(); n != 1 || !s.mayAct(&s.hosts[x], 0) {
		t.Errorf("one person is in line at %d nodes, while the first of them may act: %t", n, s.mayAct(&s.hosts[x], 0))
	}
	believe(s.hosts[x].life)
	s.until(time.Second, "all together", func() bool { return s.together(3) })
	b.must(x, opCheckIn)
	inside.must(0, opEnd)
	s.finish()
}

// All nodes were restarted. Who waited before comes back within one refresh
// interval, and until then nobody else is called, though the slots are there.
func TestScenarioAfterAColdStartWhoWaitedIsFirst(t *testing.T) { whoWaitedIsFirst(t, false) }

// The same, and one of them has lost its disk. It is new to the room, and that it
// waits for nobody does not mean that there is nobody to wait for.
func TestScenarioAfterAColdStartANewNodeKnowsNothing(t *testing.T) { whoWaitedIsFirst(t, true) }

func whoWaitedIsFirst(t *testing.T, lostDisk bool) {
	o := short(3)
	o.Faults.Disk = true
	o.Rooms[0].Target, o.Rooms[0].QueueAll = 1, true
	o.Rooms[0].Session, o.Rooms[0].Refresh, o.Rooms[0].TicketTTL = time.Second, 6*time.Second, 10*time.Second
	s := founded(t, o)
	s.visit(0)
	first, next := s.browser(), s.browser()
	first.must(2, opJoin)
	s.run(300 * time.Millisecond)
	for i := range s.hosts {
		s.down(i)
	}
	if lostDisk {
		s.hosts[0].disk = disk{}
	}
	for i := range s.hosts {
		s.boot(i)
	}
	s.until(3*time.Second, "all together", func() bool { return s.together(3) })
	next.must(1, opJoin)
	for s.now < 8_000_000 {
		s.run(100 * time.Millisecond)
	}
	if a := next.must(1, opCheckIn); a.State != node.Waiting {
		t.Fatalf("the next in line is %v while the first has still time to come back", a.State)
	}
	first.must(1, opCheckIn)
	s.turn(first, next)
	s.finish()
}

// All nodes were down for longer than an untouched ticket lasts. Nobody could ask
// meanwhile, so who comes back within that time has their place.
func TestScenarioAfterAColdStartOldTicketsCount(t *testing.T) {
	o := short(3)
	o.Faults.Disk = true
	o.Rooms[0].QueueAll, o.Rooms[0].Target = true, 1
	s := founded(t, o)
	s.visit(0)
	b := s.browser()
	joined := b.must(2, opJoin).Ticket
	s.run(300 * time.Millisecond)
	for i := range s.hosts {
		s.down(i)
	}
	s.run(o.Rooms[0].TicketTTL + time.Second)
	for i := range s.hosts {
		s.boot(i)
	}
	s.until(3*time.Second, "all together", func() bool { return s.together(3) })
	s.run(time.Second)
	a, err := b.ask(1, opCheckIn)
	if errors.Is(err, ticket.ErrExpired) || err == nil && (a.Ticket.ID != joined.ID || a.Ticket.Stamp != joined.Stamp) {
		t.Errorf("a ticket of before is answered with %v, %v", a, err)
	}
	s.finish()
}

// The first in line waited at a node that is lost, and a slot comes free before they
// have come back. Whoever is next waits for them for as long as they need to ask
// again elsewhere.
func TestScenarioTheVisitorsOfALostNodeAreWaitedFor(t *testing.T) {
	o := short(3)
	o.Rooms[0].Target, o.Rooms[0].QueueAll, o.Rooms[0].Session = 1, true, 8*time.Second
	s := founded(t, o)
	inside := s.visit(0)
	first, next := s.browser(), s.browser()
	first.must(2, opJoin)
	s.run(50 * time.Millisecond)
	next.must(1, opJoin)
	s.run(500 * time.Millisecond)
	s.down(2)
	s.until(3*time.Second, "two without it", func() bool { return len(s.hosts[0].seen.status.List) == 2 })
	inside.must(0, opEnd)
	for range 6 {
		s.run(50 * time.Millisecond)
		if a := next.must(1, opCheckIn); a.State != node.Waiting {
			t.Fatalf("the next in line is %v while the first may still come back", a.State)
		}
	}
	first.patient(0, opCheckIn)
	s.turn(first, next)
	s.finish()
}

// A node's clock is off by nearly as much as it may be. It is listed when it was measured
// well, and left out when it was not, over and over. Those who wait there are counted
// whenever it is listed, and nobody waits for them to come elsewhere then: else
// every absence would begin that wait anew, and nobody would be called while they last.
// Seed 90002314 of the swarm.
func TestScenarioANodeThatComesAndGoesHoldsNobodyUp(t *testing.T) {
	o := short(3)
	o.Rooms[0].Target, o.Rooms[0].QueueAll, o.Rooms[0].Refresh, o.Rooms[0].TicketTTL = 4, true, 2*time.Second, 10*time.Second
	s := assemble(t, o)
	s.wrongBy(0, 0, 80*time.Millisecond)
	s.begin()
	var in []*browser
	for range o.Rooms[0].Target {
		in = append(in, s.visit(0))
	}
	first, next := s.browser(), s.browser()
	first.must(2, opJoin)
	s.run(300 * time.Millisecond)
	next.must(1, opJoin)
	s.run(500 * time.Millisecond)
	left, from, calledAt := 0, int64(0), [2]int64{}
	for end := s.now + 6_000_000; s.now < end; {
		s.slowDown(&s.hosts[2], 40*time.Millisecond)
		s.until(3*time.Second, "two", func() bool { return !s.sees(0, 3) })
		left++
		if left == 1 {
			in[0].must(0, opEnd)
			in[1].must(0, opEnd)
			from = s.now
		}
		s.slowDown(&s.hosts[2], 0)
		s.until(3*time.Second, "three", func() bool { return s.sees(0, 3) })
		for range 5 {
			in[2].must(0, opRefresh)
			in[3].must(0, opRefresh)
			for i, b := range []*browser{first, next} {
				if a, _ := b.ask(2-i, opCheckIn); a.State == node.Called && calledAt[i] == 0 {
					calledAt[i] = s.now - from
				}
			}
			s.run(60 * time.Millisecond)
		}
	}
	if left < 4 {
		t.Errorf("it was left out %d times", left)
	}
	for i, at := range calledAt {
		if at == 0 || at > 2_000_000 {
			t.Errorf("%d of two is called after %v, 0: never", i+1, micros(at))
		}
	}
	s.finish()
}
