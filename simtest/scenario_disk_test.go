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

// onDisks is a cluster whose nodes have their visits on disks, with sessions so long that D is
// not over in any of these tests.
func onDisks(nodes int) Options {
	o := short(nodes)
	o.Faults.Disk, o.Faults.Visits = true, true
	o.Rooms[0].Session, o.Rooms[0].TicketTTL = 2*time.Minute, time.Hour
	return o
}

// powerCut ends all processes at once, and starts them again.
func (s *script) powerCut(away time.Duration) {
	for i := range s.o.Nodes {
		s.down(i)
	}
	s.run(away)
	for i := range s.o.Nodes {
		s.boot(i)
	}
}

// halfFull brings as many on the site as half of the limit, and returns them.
func (s *script) halfFull() (in []*browser) {
	for i := range 6 {
		in = append(in, s.visit(i%s.o.Nodes))
	}
	s.run(500 * time.Millisecond)
	return in
}

// All nodes die at once, and are back. Nobody waits until the passes of before have run out: as
// soon as those who waited had the time to come back, what is free of the limit is used, in order,
// and who was on the site goes on.
func TestScenarioVisitsGoOnAfterACrashOfEverything(t *testing.T) {
	for _, nodes := range []int{1, 3, 5} {
		for _, copies := range []int{0, 1} {
			t.Run(fmt.Sprintf("%d nodes, copies %d", nodes, copies), func(t *testing.T) {
				o := onDisks(nodes)
				o.Cluster.Copies = copies
				s := founded(t, o)
				in := s.halfFull()
				s.powerCut(time.Second)
				from := s.now
				s.arriveOver(none, 10, 100*time.Millisecond)
				s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
				t.Logf("what is free of the limit was used %v after the last was back", time.Duration(s.now-from)*time.Microsecond)
				if n := s.calls(from); n > 6 {
					t.Errorf("%d were called, and 6 of 12 are on the site", n)
				}
				s.inOrder(from)
				for i, b := range in {
					before := b.pass
					a := b.must((i+1)%nodes, opRefresh)
					if a.Pass.Expires <= before.Expires || a.Pass.Home == before.Home {
						t.Errorf("the pass of visitor %d does not go on: %+v, before %+v", i, a.Pass, before)
					}
				}
				b := in[0]
				b.must(0, opEnd)
				s.until(2*time.Second, "a call for who has left", func() bool { return s.calls(from) >= 7 })
				s.finish()
			})
		}
	}
}

// One of three does not come back: what it had is waited for, as without disks.
func TestScenarioVisitsOfOneThatDoesNotComeBackAreWaitedFor(t *testing.T) {
	o := onDisks(3)
	o.Rooms[0].Session = 10 * time.Second
	s := founded(t, o)
	s.halfFull()
	for i := range 3 {
		s.down(i)
	}
	from := s.now
	s.boot(0)
	s.boot(1)
	s.arriveOver(0, 10, 100*time.Millisecond)
	s.run(s.delay() - 2*time.Second)
	if n := s.calls(from); n > 0 {
		t.Errorf("%d were called before D was over", n)
	}
	s.until(5*time.Second, "calls after D", func() bool { return s.calls(from) > 0 })
	s.finish()
}

// The last of three is back long after the others, within D: then all go on.
func TestScenarioVisitsGoOnWhenTheLastIsBack(t *testing.T) {
	s := founded(t, onDisks(3))
	s.halfFull()
	for i := range 3 {
		s.down(i)
	}
	s.boot(0)
	s.boot(1)
	s.run(20 * time.Second)
	s.reboot(0) // it has two earlier lives now
	s.run(10 * time.Second)
	from := s.now
	s.boot(2)
	s.arriveOver(0, 10, 100*time.Millisecond)
	s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
	s.finish()
}

// A node alone dies again and again.
func TestScenarioVisitsGoOnThroughManyLives(t *testing.T) {
	s := founded(t, onDisks(1))
	in := s.halfFull()
	for i := range 5 {
		s.down(0)
		s.run(300 * time.Millisecond)
		s.boot(0)
		s.run([]time.Duration{0, 100 * time.Millisecond, 150 * time.Millisecond, time.Second, 3 * time.Second}[i])
	}
	from := s.now
	s.arriveOver(0, 10, 100*time.Millisecond)
	s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
	for i, b := range in {
		if a := b.must(0, opRefresh); a.Pass.Home.Member != s.hosts[0].member(s.world) {
			t.Errorf("the pass of visitor %d does not go on: %+v", i, a.Pass)
		}
	}
	s.finish()
}

// What a disk has of visits is damaged: they are waited for, as without disks.
func TestScenarioVisitsThatAreDamagedAreWaitedFor(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		o := onDisks(nodes)
		o.Rooms[0].Session = 10 * time.Second
		s := founded(t, o)
		s.halfFull()
		for i := range nodes {
			s.down(i)
		}
		s.hosts[nodes-1].disk.visits.damaged = true
		from := s.now
		for i := range nodes {
			s.boot(i)
		}
		s.arriveOver(0, 10, 100*time.Millisecond)
		s.run(s.delay() - 2*time.Second)
		if n := s.calls(from); n > 0 {
			t.Errorf("%d were called before D was over", n)
		}
		s.until(5*time.Second, "calls after D", func() bool { return s.calls(from) > 0 })
		s.finish()
	}
}

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

// A wall clock is an hour ahead when a node begins, and set right later: the visits of before are
// not off the disk for it.
func TestScenarioAWrongClockTakesNoVisitOffTheDisk(t *testing.T) {
	s := founded(t, onDisks(3))
	in := s.halfFull()
	for i := range 3 {
		s.down(i)
	}
	s.run(time.Second)
	s.hosts[2].clock.set(s.now, time.Hour.Microseconds())
	for i := range 3 {
		s.boot(i)
	}
	s.run(5 * time.Second)
	s.hosts[2].clock.set(s.now, 0)
	from := s.now
	s.arriveOver(0, 10, 100*time.Millisecond)
	s.until(6*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
	for i, b := range in {
		if a := b.patient(i%3, opRefresh); a.Pass.Home.Member == (eviction.Member{}) || s.lives[s.lifeOf(a.Pass.Home.Member)].over {
			t.Errorf("the pass of visitor %d does not go on: %+v", i, a.Pass)
		}
	}
	s.finish()
}

// The session of a room is shorter when all are back: passes of before are as good as they were,
// and none is renewed for longer than the longest there is.
func TestScenarioVisitsGoOnWithAnotherSession(t *testing.T) {
	for _, session := range []time.Duration{20 * time.Second, 4 * time.Minute} {
		s := founded(t, onDisks(3))
		in := s.halfFull()
		for i := range 3 {
			s.down(i)
		}
		s.o.Rooms[0].Session = session
		for i := range 3 {
			s.boot(i)
		}
		from := s.now
		s.arriveOver(0, 10, 100*time.Millisecond)
		s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
		for i, b := range in {
			b.must(i%3, opRefresh)
		}
		s.finish()
	}
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

// A visit ends at a node whose disk takes nothing. Its slot is nobody else's before the disk
// has that: if all died now the node would go on with it.
func TestScenarioASlotWaitsUntilItsVisitIsOffTheDisk(t *testing.T) {
	o := onDisks(2)
	o.Faults.DiskWait = time.Minute
	s := founded(t, o)
	var in []*browser
	for i := range 12 {
		in = append(in, s.visit(i%2))
	}
	s.run(time.Second)
	s.hosts[1].disk.failing = true
	for _, b := range in {
		if s.lives[s.lifeOf(b.pass.Home.Member)].host == 1 {
			_, _ = b.copy().ask(1, opEnd)
		}
	}
	s.o.Load.Browse = Range{time.Hour, time.Hour}
	s.arriveOver(0, 6, 100*time.Millisecond)
	s.run(3 * time.Second)
	s.hosts[1].disk.visits.flight = nil // none of it was written
	s.down(0)
	s.down(1)
	s.hosts[1].disk.failing = false
	s.boot(0)
	s.boot(1)
	s.run(3 * time.Second)
	for _, b := range in {
		_, _ = b.ask(1, opRefresh)
	}
	s.run(3 * time.Second)
}

// A node is cut off, and has another account when it is back. The passes of the one before are
// good until they end, and its disk has them.
func TestScenarioTheDiskHasThePassesOfAClosedAccount(t *testing.T) {
	s := founded(t, onDisks(3))
	s.halfFull()
	s.split(hosts(0, 1), hosts(2))
	s.run(4 * time.Second)
	s.mend()
	s.until(5*time.Second, "waves of all", func() bool { return s.together(3) })
	s.run(time.Second)
	s.down(2)
	s.boot(2)
	s.run(5 * time.Second)
	s.finish()
}

// The disk has a visit for longer than its pass is good. A later life goes on with it for no
// longer than a pass of before can be: who has gone is not waited for.
func TestScenarioAVisitGoesOnForNoLongerThanItsPass(t *testing.T) {
	o := onDisks(1)
	o.Rooms[0].Session = 20 * time.Second
	s := founded(t, o)
	s.halfFull()
	s.powerCut(100 * time.Millisecond)
	back := s.now
	s.run(10 * time.Second)
	s.until(20*time.Second, "all to be over", func() bool { _, used := s.ownedNow(); return used == 0 })
	if after := time.Duration(s.now-back) * time.Microsecond; after > 20*time.Second+500*time.Millisecond {
		t.Errorf("who has gone had a slot for %v", after)
	}
	s.finish()
}

// A node alone cannot save that it has begun anew, and dies once more. That life had no slots for the
// visits of before: the one after it knows nothing of it.
func TestScenarioALifeThatNobodyKnowsHasNoVisits(t *testing.T) {
	s := founded(t, onDisks(1))
	s.halfFull()
	s.down(0)
	s.hosts[0].disk.failing = true
	s.boot(0)
	s.run(2 * time.Second)
	s.hosts[0].disk.renamed = nil // the directory was never synced
	s.down(0)
	s.hosts[0].disk.failing = false
	s.boot(0)
	from := s.now
	s.arriveOver(0, 10, 100*time.Millisecond)
	s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
	s.finish()
}

// A node alone whose record cannot be saved, and whose visits can: after D it lets people in. No later
// life knows of that one but by its visits, and has none go on as long as their passes may be good.
func TestScenarioALifeThatIsOnNoRecordIsWaitedFor(t *testing.T) {
	o := onDisks(1)
	o.Rooms[0].Session = 10 * time.Second
	s := founded(t, o)
	s.halfFull()
	s.down(0)
	disk := &s.hosts[0].disk
	disk.failing, disk.spares = true, true
	s.boot(0)
	s.until(2*time.Minute, "slots", func() bool { owned, _ := s.ownedNow(); return owned > 0 })
	s.fill(0)
	s.down(0)
	disk.failing, disk.spares, disk.renamed = false, false, nil
	s.boot(0)
	from := s.now
	s.arrive(0, 12)
	s.until(2*time.Minute, "somebody to be called", func() bool { return s.calls(from) > 0 })
	if took := time.Duration(s.now-from) * time.Microsecond; took < o.Rooms[0].Session {
		t.Errorf("called %v after the start, and passes of a minute before were good for 10 s", took)
	}
	s.check()
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
	s.o.Load.Browse = Range{time.Hour, time.Hour}
	s.arriveOver(0, 20, time.Second)
	s.run(10 * time.Second)
	if n := s.calls(from); n > 0 {
		t.Errorf("%d were called, and 12 of 12 have passes", n)
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
		s.o.Load.Browse = Range{time.Hour, time.Hour}
		s.arriveOver(0, 20, time.Second)
		s.run(10 * time.Second)
		if n := s.calls(from); n > 0 {
			t.Errorf("%d were called, and 12 of 12 have passes", n)
		}
		s.check()
	}
}

// A visit goes on, and its account is closed before the disk has it as that one's. Its pass of
// before is good, and stays on the disk until it is not.
func TestScenarioAVisitThatIsNotWrittenAnewStaysOnTheDisk(t *testing.T) {
	o := onDisks(3)
	o.Faults.DiskWait = time.Minute
	s := founded(t, o)
	s.halfFull()
	for i := range 3 {
		s.down(i)
	}
	s.run(time.Second)
	for i := range 3 {
		s.boot(i)
	}
	s.until(5*time.Second, "visits to go on", func() bool { return s.hosts[2].n.WentOn() })
	s.hosts[2].disk.failing = true
	s.split(hosts(0, 1), hosts(2))
	s.run(4 * time.Second)
	s.mend()
	s.until(5*time.Second, "waves of all", func() bool { return s.together(3) })
	s.run(time.Second)
	s.hosts[2].disk.failing = false
	s.run(2 * time.Second)
	if n := len(s.hosts[2].disk.visits.room(s.o.Rooms[0].Name).lines); n != 2 {
		t.Errorf("the disk has %d visits, and 2 have passes of before", n)
	}
	s.o.Load.Browse = Range{time.Hour, time.Hour}
	s.powerCut(time.Second)
	s.arriveOver(0, 20, time.Second)
	s.run(8 * time.Second)
	s.check()
}

// The room has a session_max when all are back, or a shorter one. Passes of before are as good as
// they were: those who have them have slots.
func TestScenarioVisitsGoOnWithAShorterSessionMax(t *testing.T) {
	for _, before := range []time.Duration{0, time.Hour} {
		o := onDisks(3)
		o.Rooms[0].SessionMax = before
		s := founded(t, o)
		in := s.halfFull()
		for i := range 3 {
			s.down(i)
		}
		s.run(time.Second)
		s.o.Rooms[0].SessionMax, s.o.Rooms[0].Session = 500*time.Millisecond, 400*time.Millisecond
		for i := range 3 {
			s.boot(i)
		}
		s.until(5*time.Second, "visits to go on", func() bool { _, used := s.ownedNow(); return used == len(in) })
		s.o.Load.Browse = Range{time.Hour, time.Hour}
		s.arriveOver(0, 20, time.Second)
		s.run(8 * time.Second)
		for i, b := range in {
			was := b.pass.Expires
			if a := b.must(i%3, opRefresh); a.Pass.Expires < was {
				t.Errorf("the pass of visitor %d is good until %d, and was until %d", i, a.Pass.Expires, was)
			}
		}
		s.check()
	}
}

// A sync hangs until the account whose lines it has is closed. Those visits go on under another
// account of the node, and not by these lines: their passes are made when it has lines of its own.
func TestScenarioALineOfAClosedAccountExtendsNoPass(t *testing.T) {
	o := onDisks(3)
	o.Rooms[0].Session, o.Faults.DiskWait = 20*time.Second, time.Minute
	s := founded(t, o)
	d := &s.hosts[2].disk.visits
	in := []*browser{s.visit(2), s.visit(2)}
	s.run(5 * time.Second)
	d.hung = true
	for _, b := range in {
		b.must(2, opRefresh)
	}
	first := d.flight
	if first == nil {
		t.Fatal("nothing is to be written")
	}
	s.split(hosts(0, 1), hosts(2))
	s.run(4 * time.Second)
	s.mend()
	s.until(5*time.Second, "waves of all", func() bool { return s.together(3) })
	s.run(5 * time.Second)
	home := func(b *browser) bool { return s.lives[s.lifeOf(b.pass.Home.Member)].host == 2 }
	for _, b := range in {
		if was := b.pass; !home(b) || b.must(2, opRefresh).Pass != was {
			t.Errorf("a pass is made anew: %+v, and was %+v", b.pass, was)
		}
	}
	d.hung = false
	s.until(time.Second, "the end of the first sync", func() bool { return d.flight != first })
	d.hung = true
	if d.flight == nil {
		t.Fatal("the second sync is over")
	}
	for _, b := range in {
		if was := b.pass; b.must(2, opRefresh).Pass != was {
			t.Errorf("a pass is made anew by a line of before: %+v, and was %+v", b.pass, was)
		}
	}
	d.hung = false
	s.run(time.Second)
	for _, b := range in {
		if was := b.pass; b.must(2, opRefresh).Pass.Home == was.Home {
			t.Errorf("a pass does not go on: %+v", b.pass)
		}
	}
	s.check()
}

// A node leaves that goes on with visits. Who has the pass of before is told who has them now, or is
// let in: nobody is thrown out.
func TestScenarioAPassOfBeforeIsGoodWhileItsNodeLeaves(t *testing.T) {
	s := founded(t, onDisks(3))
	in := s.halfFull()
	s.powerCut(time.Second)
	s.until(5*time.Second, "all to go on", func() bool {
		return s.hosts[0].n.WentOn() && s.hosts[1].n.WentOn() && s.hosts[2].n.WentOn()
	})
	s.run(3 * time.Second)
	s.goodbye(&s.hosts[2])
	for range 40 {
		s.run(50 * time.Millisecond)
		for i, b := range in {
			for h := range 3 {
				if _, err := b.copy().ask(h, opRefresh); errors.Is(err, ticket.ErrPassExpired) {
					t.Fatalf("%v: the pass of visitor %d has ended at %s", time.Duration(s.now)*time.Microsecond, i, s.hosts[h].name)
				}
			}
		}
	}
	s.finish()
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

// A change of a line waits for the batch before it when its account is closed. It is not
// made any more, and the line stays as it is: its pass is out.
func TestScenarioAChangeThatWaitsDoesNotStrikeTheLineOfAClosedAccount(t *testing.T) {
	o := onDisks(3)
	o.Rooms[0].Session, o.Faults.DiskWait = 20*time.Second, time.Minute
	s := founded(t, o)
	d := &s.hosts[2].disk.visits
	in := []*browser{s.visit(2), s.visit(2)}
	s.run(5 * time.Second)
	d.hung = true
	in[0].must(2, opRefresh)
	if d.flight == nil || len(d.flight.Rooms[0].Put) != 1 {
		t.Fatalf("the batch on its way is %+v", d.flight)
	}
	in[1].must(2, opRefresh)
	s.split(hosts(0, 1), hosts(2))
	s.run(4 * time.Second)
	s.mend()
	s.until(5*time.Second, "waves of all", func() bool { return s.together(3) })
	s.run(time.Second)
	d.hung = false
	s.run(time.Second)
	if n := len(d.room(s.o.Rooms[0].Name).lines); n != 2 {
		t.Errorf("the disk has %d visits, and 2 have passes", n)
	}
	s.down(2)
	s.boot(2)
	s.finish()
}

// One of three does not hear that all go on, and dies. Its visits are adopted nowhere, though
// others have slots that are free: when it is back it goes on with them.
func TestScenarioVisitsThatMayGoOnYetAreNotAdopted(t *testing.T) {
	s := founded(t, onDisks(3))
	in := s.halfFull()
	for i := range 3 {
		s.down(i)
	}
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

// A visit of an earlier life that is ended before its node goes on with it: its pass is good no more,
// and to end it again changes nothing.
func TestScenarioAVisitIsEndedBeforeItGoesOn(t *testing.T) {
	s := founded(t, onDisks(3))
	in := s.halfFull()
	for i := range 3 {
		s.down(i)
	}
	s.boot(0)
	s.boot(1)
	s.run(3 * time.Second)
	for _, b := range in {
		for h := range 2 {
			_, _ = b.copy().ask(h, opEnd)
		}
	}
	s.boot(2)
	s.until(5*time.Second, "visits to go on", func() bool { return s.hosts[0].n.WentOn() && s.hosts[1].n.WentOn() })
	s.run(time.Second)
	spent := func() (n int) {
		for i := range 3 {
			n += s.hosts[i].seen.rooms[0].Spent
		}
		return n
	}
	before := spent()
	for range 10 {
		for _, b := range in {
			_, _ = b.copy().ask(0, opEnd)
		}
	}
	s.run(time.Second)
	if n := spent(); n > before+len(in) {
		t.Errorf("%d visits are remembered as over, %d before %d passes were ended again and again", n, before, len(in))
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
	for i := range 3 {
		s.down(i)
	}
	d.hung = false
	s.run(500 * time.Millisecond)
	for i := range 3 {
		s.boot(i)
	}
	s.until(5*time.Second, "visits to go on", func() bool { return s.hosts[1].n.WentOn() })
	s.run(time.Second)
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
