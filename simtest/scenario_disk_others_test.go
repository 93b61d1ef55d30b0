package simtest

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// Visits of which others may know more than the disk: who wound them up, was given them, or may adopt them.

// A node dies alone, and others may have made its slots again for what they keep of its visits:
// when all die after that, it does not go on with what its disk has.
func TestScenarioVisitsThatOthersHaveWoundUpDoNotGoOn(t *testing.T) {
	o := onDisks(3)
	o.Cluster.Copies = 1
	s := founded(t, o)
	in := s.halfFull()
	copies := s.wind(in)
	s.powerCut(time.Second)
	s.run(5 * time.Second)
	for _, b := range copies {
		_, _ = b.ask(2, opRefresh)
	}
	s.run(5 * time.Second)
}

// wind has the other two of three wind up what the third had, which is lost: they end its
// visits, and have others in for them. It returns a copy of what each of them was shown.
func (s *script) wind(in []*browser) (copies []*browser) {
	s.t.Helper()
	s.run(time.Second)
	s.down(2)
	s.run(5 * time.Second)
	for _, b := range in {
		if s.lives[s.lifeOf(b.pass.Home.Member)].host == 2 {
			copies = append(copies, b.copy())
			for i := range 2 {
				_, _ = b.copy().ask(i, opEnd)
			}
		}
	}
	s.o.Load.Browse = Range{time.Hour, time.Hour}
	s.arriveOver(0, 20, time.Second)
	s.run(5 * time.Second)
	if _, used := s.ownedNow(); used < 12 {
		s.t.Fatalf("%d of 12 are in%s", used, s.ledgers(0))
	}
	return copies
}

// A node is lost, others wind up what it had, and one of them dies. That one and the first are
// back: what the disk of the first has was made again.
func TestScenarioVisitsThatALivingNodeHasWoundUpDoNotGoOn(t *testing.T) {
	o := onDisks(3)
	o.Cluster.Copies = 1
	s := founded(t, o)
	copies := s.wind(s.halfFull())
	s.reboot(1)
	s.boot(2)
	s.run(5 * time.Second)
	for _, b := range copies {
		_, _ = b.ask(2, opRefresh)
	}
	s.run(5 * time.Second)
}

// fill brings as many on the site of a host as the limit has.
func (s *script) fill(h int) (in []*browser) {
	for range 12 {
		in = append(in, s.visit(h))
		s.run(200 * time.Millisecond)
	}
	return in
}

// giveInVain has one of three leave, and loses the first visits that it gives to the third, which has
// begun anew and has none of its own.
func (s *script) giveInVain() {
	s.t.Helper()
	s.reboot(2)
	s.until(3*time.Second, "waves of all", func() bool { return s.together(3) })
	s.run(time.Second)
	s.fill(1)
	n := 0
	s.tap = func(f *flight) verdict {
		if m, ok := f.m.Body.(*eviction.Slots); ok && len(m.Visits) > 0 && f.to == 2 {
			n += len(m.Visits)
			return lose
		}
		return pass
	}
	s.goodbye(&s.hosts[1])
	s.until(time.Second, "a message with visits", func() bool { return n > 0 })
	s.tap = nil
}

// A node leaves, and what it gives to another is lost, as that one dies. That its disk has no visits
// does not say that nothing of it can act: those who were on their way have passes.
func TestScenarioVisitsOnTheirWayToALifeThatHadNone(t *testing.T) {
	s := founded(t, onDisks(3))
	s.giveInVain()
	from := s.now
	s.reboot(2)
	s.callsNobody(from)
}

// callsNobody demands that nobody is called who comes now, as all slots are used since true time from.
func (s *script) callsNobody(from int64) {
	s.t.Helper()
	s.o.Load.Browse = Range{time.Hour, time.Hour}
	s.arriveOver(0, 20, time.Second)
	s.run(10 * time.Second)
	if n := s.calls(from); n > 0 {
		s.t.Errorf("%d were called, and 12 of 12 have passes", n)
	}
	s.check()
}

// So it is when the node that gave them dies after that: nobody counts them then.
func TestScenarioVisitsOnTheirWayFromOneThatIsLost(t *testing.T) {
	for _, back := range []bool{false, true} {
		s := founded(t, onDisks(3))
		s.giveInVain()
		from := s.now
		s.reboot(2)
		s.run(3 * time.Second)
		s.down(1)
		if back {
			s.run(time.Second)
			s.hosts[1].gone = false
			s.boot(1)
		}
		s.callsNobody(from)
	}
}

// Visits have gone on, and have been counted. When two of three die after that, what is free at the third
// is used, as ever.
func TestScenarioTwoOfThreeDieAfterVisitsWentOn(t *testing.T) {
	s := founded(t, onDisks(3))
	s.halfFull()
	s.powerCut(time.Second)
	s.run(10 * time.Second)
	s.down(0)
	s.down(1)
	s.boot(0)
	s.boot(1)
	s.run(2 * time.Second)
	owned, used := s.ownedNow(2)
	if owned <= used {
		t.Fatalf("nothing is free: %s", s.ledgers(0))
	}
	from := s.now
	s.arriveOver(2, 10, 100*time.Millisecond)
	s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= owned-used })
	s.finish()
}

// One of three does not hear that all go on, and dies. Its visits are adopted nowhere, though
// others have slots that are free: when it is back it goes on with them.
func TestScenarioVisitsThatMayGoOnYetAreNotAdopted(t *testing.T) {
	s := founded(t, onDisks(3))
	in := s.halfFull()
	s.allDown()
	s.tap = func(f *flight) verdict {
		if c, ok := f.m.Body.(*eviction.Commit); ok && f.to == 2 && len(c.Rooms) > 0 && c.Rooms[0].Resume {
			return lose
		}
		return pass
	}
	for i := range 3 {
		s.boot(i)
	}
	s.until(2*time.Second, "visits to go on", func() bool { return s.hosts[0].n.WentOn() && s.hosts[1].n.WentOn() })
	if s.hosts[2].n.WentOn() {
		t.Fatal("n02 has heard of it")
	}
	s.down(2)
	s.tap = nil
	s.run(6 * time.Second)
	var third []*browser
	for _, b := range in {
		if s.lives[s.lifeOf(b.pass.Home.Member)].host == 2 {
			third = append(third, b)
			continue
		}
		_, _ = b.ask(0, opEnd)
		_, _ = b.ask(1, opEnd)
	}
	s.run(time.Second)
	if owned, used := s.ownedNow(0, 1); owned == used || len(third) == 0 {
		t.Fatalf("nothing is free, or nobody is to be adopted: %s", s.ledgers(0))
	}
	var old []*browser
	for i, b := range third {
		old = append(old, b.copy())
		for h := range 2 {
			_ = b.copy().must(h, opRefresh)
			s.run(200 * time.Millisecond) // until the disk has it, if it is adopted
			if was := b.pass; b.must(h, opRefresh).Pass != was {
				t.Errorf("the pass of visitor %d is extended at %s: %+v", i, s.hosts[h].name, b.pass)
			}
		}
	}
	s.boot(2)
	s.run(5 * time.Second)
	for i, b := range old {
		b.must(2, opRefresh)
		if b.pass.Home.Member != s.hosts[2].member(s.world) {
			t.Errorf("the pass of visitor %d does not go on: %+v", i, b.pass)
		}
	}
	s.finish()
}

// A node is cut off for so long that the others forget it. They die, and one of them goes on with its
// visits. When it is cut off in turn, the one that was away knows that it may go on.
func TestScenarioWhoWasAwayKnowsThatALifeMayHaveGoneOn(t *testing.T) {
	o := onDisks(4)
	o.Rooms[0].Session = 10 * time.Second
	s := founded(t, o)
	s.run(time.Second)
	s.split(hosts(0, 1, 2), hosts(3))
	s.run(2*s.delay() + 30*time.Second)
	var in []*browser
	for range 8 {
		in = append(in, s.visit(0))
	}
	s.run(500 * time.Millisecond)
	for i := range 3 {
		s.down(i)
	}
	s.run(200 * time.Millisecond)
	for i := range 3 {
		s.boot(i)
	}
	s.until(5*time.Second, "visits to go on", func() bool { return s.hosts[0].n.WentOn() })
	s.mend()
	s.until(5*time.Second, "waves of all", func() bool { return s.together(4) })
	s.run(1300 * time.Millisecond)
	s.split(hosts(1, 2, 3), hosts(0))
	from, adopted := s.now, int64(0)
	for s.now < from+4_000_000 {
		s.run(20 * time.Millisecond)
		for _, b := range in {
			a, err := b.copy().ask(3, opRefresh)
			if err == nil && adopted == 0 && a.Pass.Expires > b.pass.Expires && s.lives[s.lifeOf(a.Pass.Home.Member)].host == 3 {
				adopted = s.now
			}
		}
	}
	if took := time.Duration(adopted-from) * time.Microsecond; adopted > 0 && took < o.Cluster.Lease {
		t.Errorf("a pass goes on elsewhere %v after the split, and where it is the lease may last for %v", took, o.Cluster.Lease)
	}
	if adopted == 0 {
		t.Error("no pass goes on elsewhere")
	}
	s.check()
}

// Later lives of a lost node that come and go keep nobody from going on with its visits, once those
// who do have counted all slots. No node has a disk.
func TestScenarioLivesThatComeAndGoKeepNoVisitFromBeingAdopted(t *testing.T) {
	o := short(3)
	o.Rooms[0].Session, o.Rooms[0].TicketTTL = 30*time.Second, time.Hour
	s := founded(t, o)
	in := []*browser{s.visit(2), s.visit(2), s.visit(2)}
	s.run(500 * time.Millisecond)
	s.down(2)
	taken := 0
	for range 10 {
		s.run(800 * time.Millisecond)
		s.boot(2)
		s.run(1300 * time.Millisecond)
		taken = 0
		for _, b := range in {
			if a, err := b.ask(0, opRefresh); err == nil && s.lives[s.lifeOf(a.Pass.Home.Member)].host != 2 {
				taken++
			}
		}
		s.down(2)
	}
	if taken < 2 {
		t.Errorf("%d of 3 visits of a lost node go on elsewhere after 21 s in which later lives of it came and went", taken)
	}
	s.check()
}

// A node dies, and is back while others are alive: its visits are waited for, and do not go on. When it
// dies once more, what was free at it is there again when its lease is over, as with any other.
func TestScenarioVisitsThatDoNotGoOnLeaveOthersCovered(t *testing.T) {
	o := onDisks(3)
	o.Cluster.Copies = 1
	s := founded(t, o)
	s.halfFull()
	s.reboot(2)
	s.until(3*time.Second, "waves of all", func() bool { return s.together(3) })
	s.run(3 * time.Second)
	s.visit(2)
	s.run(2 * time.Second)
	if owned, used := s.ownedNow(2); owned <= used || used == 0 {
		t.Fatalf("n02 has nothing that is free, or used: %s", s.ledgers(0))
	}
	s.down(2)
	c := &s.o.Cluster
	s.run(2*c.Deadline + c.Lease + 2*c.MaxSkew + c.Margin + c.ExcludeAfter + 8*c.Period)
	if n := s.slotsOfNobody(); n > 0 {
		t.Errorf("%d slots are missing: %s", n, s.ledgers(0))
	}
	s.check()
}

// The disk has people who were called, and their node dies before they hear that they can come in. It goes
// on with visits of which nobody knows, and they wait at another node, which leaves: they are let
// in, and not told that their places are gone.
func TestScenarioAPlaceIsLeftToAVisitThatNobodyKnowsOf(t *testing.T) {
	o := onDisks(3)
	o.Rooms[0].QueueAll, o.Rooms[0].ClaimWindow = true, time.Minute
	s := founded(t, o)
	d := &s.hosts[1].disk.visits
	d.hung = true
	var all, wait []*browser
	for range 8 {
		b := s.browser()
		b.must(1, opJoin)
		all = append(all, b)
	}
	s.run(400 * time.Millisecond)
	for _, b := range all {
		if a := b.must(1, opCheckIn); a.State == node.Called {
			_ = b.must(1, opLeave)
		}
	}
	d.take() // and nobody hears of it
	s.allDown()
	d.hung = false
	s.run(500 * time.Millisecond)
	for i := range 3 {
		s.boot(i)
	}
	s.until(5*time.Second, "visits to go on", func() bool { return s.hosts[1].n.WentOn() })
	s.run(200 * time.Millisecond)
	for _, b := range all {
		if a, err := b.ask(0, opCheckIn); err == nil && a.State == node.Waiting && b.ticket.Home.Name == s.hosts[0].name {
			wait = append(wait, b)
		}
	}
	if _, used := s.ownedNow(1); used == 0 || len(wait) < len(all) {
		t.Fatalf("%d of %d wait at n00: %s", len(wait), len(all), s.ledgers(0))
	}
	s.goodbye(&s.hosts[0])
	in := 0
	for range 20 {
		s.run(100 * time.Millisecond)
		for i, b := range wait {
			switch a, err := b.ask(1, opCheckIn); {
			case errors.Is(err, ticket.ErrExpired) || errors.Is(err, ticket.ErrUsed):
				t.Fatalf("%v: visitor %d: %v", time.Duration(s.now)*time.Microsecond, i, err)
			case a.State == node.Admitted:
				in++
			}
		}
	}
	if in == 0 {
		t.Error("nobody is let in")
	}
	s.check()
}

// People are on the site by a node that is cut off, and by their tickets once more at another one, which gives those visits to
// the first when that is back and it leaves itself; the first leaves, too, and dies. Its disk still has that passes of before are
// good.
func TestScenarioAVisitThatComesInTheNameOfAnotherLeavesThatOnTheDisk(t *testing.T) {
	o := onDisks(3)
	o.Rooms[0].QueueAll = true
	s := founded(t, o)
	var in []*browser
	for range 4 {
		in = append(in, s.visit(0).copy())
	}
	before := s.hosts[0].seen.rooms[0].Account
	s.split(hosts(0), hosts(1, 2))
	s.run(3 * time.Second)
	again := func() bool {
		all := true
		for _, b := range in {
			a, err := b.ask(2, opCheckIn)
			if err == nil && a.State == node.Called {
				a, err = b.ask(2, opLeave)
			}
			all = all && err == nil && a.State == node.Admitted
		}
		return all
	}
	s.until(20*time.Second, "all on the site by n02", again)
	s.mend()
	s.until(3*time.Second, "another account", func() bool {
		a := s.hosts[0].seen.rooms[0].Account
		return s.together(3) && a != before && a.Born > 0
	})
	s.run(time.Second)
	s.goodbye(&s.hosts[2])
	s.goodbye(&s.hosts[0])
	s.run(350 * time.Millisecond)
	s.down(0)
	s.check()
}

// Somebody is on the site by a node that is cut off and dies, and by their ticket once more at the other one, which gives that
// visit to the next life of the first and leaves. All that the disk had of the life before has been written over: its
// slots are not made again all the same, as that pass is good.
func TestScenarioAVisitInTheNameOfOneOfALifeBeforeLeavesThatLifeUnknown(t *testing.T) {
	o := onDisks(2)
	o.Rooms[0].QueueAll = true
	s := founded(t, o)
	b := s.visit(1).copy()
	s.split(hosts(0), hosts(1))
	s.until(20*time.Second, "once more on the site, by n00", func() bool {
		a, err := b.ask(0, opCheckIn)
		if err == nil && a.State == node.Called {
			a, err = b.ask(0, opLeave)
		}
		return err == nil && a.State == node.Admitted
	})
	s.down(1)
	s.mend()
	s.boot(1)
	s.until(3*time.Second, "both", func() bool { return s.together(2) })
	s.run(time.Second)
	s.goodbye(&s.hosts[0])
	s.until(3*time.Second, "n01 alone", func() bool { return !s.hosts[0].up() })
	if _, used := s.ownedNow(1); used == 0 {
		t.Fatalf("n01 was given no visit: %s", s.ledgers(0))
	}
	s.arrive(1, 30)
	s.run(10 * time.Second)
	s.check()
	s.run(s.delay()) // then no pass of before is good
	if owned, _ := s.ownedNow(1); owned != 12 {
		t.Errorf("n01 has %d slots, want 12: %s", owned, s.ledgers(0))
	}
	s.check()
}
