package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// What the disk has of a visit, and until when: of accounts that are closed, too.

// hangsAtThird is a cluster of three of which the disk of the third takes nothing any more, with two on the
// site there whose passes are due to be renewed.
func hangsAtThird(t *testing.T) (*script, *visitsDisk, []*browser) {
	t.Helper()
	o := onDisks(3)
	o.Rooms[0].Session, o.Faults.DiskWait = 20*time.Second, time.Minute
	s := founded(t, o)
	d := &s.hosts[2].disk.visits
	in := []*browser{s.visit(2), s.visit(2)}
	s.run(5 * time.Second)
	d.hung = true
	return s, d, in
}

// leaveOutThird has the others close the account of the third, which they do not reach, and take it back.
func (s *script) leaveOutThird() {
	s.t.Helper()
	s.split(hosts(0, 1), hosts(2))
	s.run(4 * time.Second)
	s.mend()
	s.until(5*time.Second, "waves of all", func() bool { return s.together(3) })
}

// A wall clock is an hour ahead when a node begins, and set right later: the visits of before are
// not off the disk for it.
func TestScenarioAWrongClockTakesNoVisitOffTheDisk(t *testing.T) {
	s := founded(t, onDisks(3))
	in := s.halfFull()
	s.allDown()
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
	s.leaveOutThird()
	s.run(time.Second)
	s.down(2)
	s.boot(2)
	s.run(5 * time.Second)
	s.finish()
}

// A visit goes on, and its account is closed before the disk has it as that one's. Its pass of
// before is good, and stays on the disk until it is not.
func TestScenarioAVisitThatIsNotWrittenAnewStaysOnTheDisk(t *testing.T) {
	o := onDisks(3)
	o.Faults.DiskWait = time.Minute
	s := founded(t, o)
	s.halfFull()
	s.allDown()
	s.run(time.Second)
	for i := range 3 {
		s.boot(i)
	}
	s.until(5*time.Second, "visits to go on", func() bool { return s.hosts[2].n.WentOn() })
	s.hosts[2].disk.failing = true
	s.leaveOutThird()
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

// A sync hangs until the account whose lines it has is closed. Those visits go on under another
// account of the node, and not by these lines: their passes are made when it has lines of its own.
func TestScenarioALineOfAClosedAccountExtendsNoPass(t *testing.T) {
	s, d, in := hangsAtThird(t)
	for _, b := range in {
		b.must(2, opRefresh)
	}
	first := d.flight
	if first == nil {
		t.Fatal("nothing is to be written")
	}
	s.leaveOutThird()
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

// A change of a line waits for the batch before it when its account is closed. It is not
// made any more, and the line stays as it is: its pass is out.
func TestScenarioAChangeThatWaitsDoesNotStrikeTheLineOfAClosedAccount(t *testing.T) {
	s, d, in := hangsAtThird(t)
	in[0].must(2, opRefresh)
	if d.flight == nil || len(d.flight.Rooms[0].Put) != 1 {
		t.Fatalf("the batch on its way is %+v", d.flight)
	}
	in[1].must(2, opRefresh)
	s.leaveOutThird()
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
