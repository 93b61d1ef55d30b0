package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// What a node does whose disk takes no visits, and what becomes of those on it when it leaves.

// Nobody gets a pass that the disk does not have, nor one for longer than that, while it takes
// nothing; and nobody is called who could not come in.
func TestScenarioADiskThatTakesNoVisitsLetsNobodyIn(t *testing.T) {
	s := founded(t, onDisks(1))
	in := s.halfFull()
	s.hosts[0].disk.failing = true
	b := s.browser()
	b.must(0, opJoin)
	s.run(2 * time.Second)
	if a, err := b.ask(0, opLeave); err == nil && a.Pass.Expires > 0 {
		t.Errorf("somebody is let in by a disk that takes nothing: %+v", a)
	}
	from := s.now
	s.arriveOver(0, 5, 100*time.Millisecond)
	s.run(3 * time.Second)
	if n := s.calls(from); n > 0 {
		t.Errorf("%d were called", n)
	}
	before := in[0].pass.Expires
	s.run(40 * time.Second)
	if a := in[0].must(0, opRefresh); a.Pass.Expires > before+s.o.Rooms[0].Session.Microseconds()/3 {
		t.Errorf("a pass is renewed for longer than the disk can have: %v after %v", a.Pass.Expires, before)
	}
	s.hosts[0].disk.failing = false
	s.until(3*time.Second, "calls", func() bool { return s.calls(from) >= 5 })
	_, _ = b.ask(0, opAbandon)
	s.finish()
}

// A node leaves in good order. What its disk has is nothing, and its next life waits for nothing.
func TestScenarioANodeThatHasLeftHasNoVisitsOnItsDisk(t *testing.T) {
	s := founded(t, onDisks(3))
	s.halfFull()
	s.goodbye(&s.hosts[2])
	s.run(3 * time.Second)
	if s.hosts[2].up() {
		t.Fatal("it is up yet")
	}
	for _, r := range s.hosts[2].disk.visits.rooms {
		if len(r.lines) > 0 {
			t.Errorf("room %s: %d visits are on the disk of a node that has given them away", r.name, len(r.lines))
		}
	}
	s.hosts[2].gone = false
	s.boot(2)
	s.until(3*time.Second, "waves of all", func() bool { return s.together(3) })
	s.run(time.Second)
	s.powerCut(time.Second)
	from := s.now
	s.arriveOver(0, 10, 100*time.Millisecond)
	s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
	s.finish()
}

// A sync hangs, and does not fail. Nobody is called, half a second after it began, who could not come
// in; when it is done all are.
func TestScenarioADiskThatHangsLetsNobodyBeCalled(t *testing.T) {
	s := founded(t, onDisks(1))
	s.halfFull()
	s.hosts[0].disk.visits.hung = true
	b := s.browser()
	b.must(0, opJoin)
	_, _ = b.ask(0, opLeave)
	s.run(600 * time.Millisecond)
	from := s.now
	s.arriveOver(0, 4, 100*time.Millisecond)
	s.run(3 * time.Second)
	if n := s.calls(from); n > 0 {
		t.Errorf("%d were called", n)
	}
	s.hosts[0].disk.visits.hung = false
	s.until(2*time.Second, "calls", func() bool { return s.calls(from) >= 4 })
	_, _ = b.ask(0, opAbandon)
	s.finish()
}

// The disk of one of two hangs that the other needs: it stays in the waves, as nobody could go on without
// it, and whoever is on the site by the other one stays there.
func TestScenarioANodeWhoseDiskHangsIsThereForWhoNeedsIt(t *testing.T) {
	o := onDisks(2)
	o.Rooms[0].Session, o.Rooms[0].TicketTTL = 10*time.Second, time.Minute
	s := founded(t, o)
	s.o.Load.Browse = Range{time.Second, 2 * time.Second}
	in := []*browser{s.visit(1), s.visit(1), s.visit(1)}
	s.run(500 * time.Millisecond)
	s.hosts[0].disk.visits.hung = true
	s.arriveOver(none, 100, 20*time.Second)
	for range 30 {
		s.run(time.Second)
		for _, b := range in {
			b.must(1, opRefresh)
		}
	}
	s.hosts[0].disk.visits.hung = false
	s.finish()
}

// The disk of a node hangs when it is told to stop, for longer than others are waited for. It gives no
// visit away of which the disk does not have that, so both going on after a crash are not at two nodes.
func TestScenarioANodeThatLeavesGivesNoVisitBeforeItsDiskKnows(t *testing.T) {
	o := onDisks(2)
	o.Cluster.ExcludeAfter, o.Cluster.Lease = 2*time.Second, 6*time.Second
	s := founded(t, o)
	s.visit(1)
	s.visit(1)
	s.run(500 * time.Millisecond)
	s.hosts[1].disk.visits.hung = true
	given := 0
	s.tap = func(f *flight) verdict {
		if m, ok := f.m.Body.(*eviction.Slots); ok {
			given += len(m.Visits)
		}
		return pass
	}
	s.goodbye(&s.hosts[1])
	s.run(4 * time.Second)
	if given > 0 {
		t.Errorf("%d visits are given away, and the disk does not know", given)
	}
	s.check()
}

// Nodes that stop in good order, with nobody to give their visits to, go on with them as after a crash.
func TestScenarioANodeAloneThatStopsGoesOnWithItsVisits(t *testing.T) {
	s := founded(t, onDisks(1))
	in := s.halfFull()
	h := &s.hosts[0]
	keys := h.keys
	s.goodbye(h)
	s.until(5*time.Second, "goodbye", func() bool { return !h.up() })
	h.gone, h.keys = false, keys // it is started again
	s.boot(0)
	from := s.now
	s.arriveOver(0, 10, 100*time.Millisecond)
	s.until(4*time.Second, "calls", func() bool { return s.calls(from) > 0 })
	for _, b := range in {
		b.must(0, opRefresh)
	}
	s.finish()
}

// The disk of one of three hangs while people come: the others go on without it, as if it stood
// still, and it comes back to them.
func TestScenarioANodeWhoseDiskHangsIsGoneOnWithout(t *testing.T) {
	for _, fails := range []bool{false, true} {
		o := onDisks(3)
		o.Rooms[0].Session, o.Rooms[0].TicketTTL = 20*time.Second, time.Hour
		s := founded(t, o)
		s.o.Load.Browse = Range{time.Second, 2 * time.Second}
		s.arriveOver(none, 400, 40*time.Second)
		s.run(10 * time.Second)
		disk := &s.hosts[2].disk
		disk.visits.hung, disk.failing = !fails, fails
		s.run(20 * time.Second)
		from := s.now
		s.run(10 * time.Second)
		for h := range int32(2) {
			if n := s.calls(from, h); n < 10 {
				t.Errorf("fails: %v: %s has called %d in 10 s, with a limit of 12 and visits of 1.5 s", fails, s.hosts[h].name, n)
			}
		}
		disk.visits.hung, disk.failing = false, false
		s.until(5*time.Second, "waves of all", func() bool { return s.together(3) })
		s.finish()
	}
}
