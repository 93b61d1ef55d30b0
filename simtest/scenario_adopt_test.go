package simtest

import (
	"testing"
	"time"
)

// A node stands still and is left out of the waves. For as long as it may wake
// up and extend the passes of its visitors, nobody else does: one of them would
// have two sessions.
func TestScenarioAPassIsNotTakenOverWhileItsHomeMayExtendIt(t *testing.T) {
	o := short(3)
	o.Rooms[0].Session = 30 * time.Second
	s := founded(t, o)
	const x = 2
	b := s.visit(x)
	home := b.pass.Home
	c := s.o.Cluster.WithDefaults()
	s.stall(x, c.ExcludeAfter+2*time.Second)
	s.run(c.ExcludeAfter + time.Second)
	b.must(0, opRefresh)
	if b.pass.Home != home {
		t.Errorf("the pass of %v was taken over by %v while its home might extend it", home, b.pass.Home)
	}
	s.run(2 * time.Second)
	s.finish()
}

// A pass that its home has ended is shown again after that home's death. Nobody
// left knows that it had ended, so it may take a free slot, but brings none.
// Found by seed 6900.
func TestScenarioAnEndedPassBringsNoSlot(t *testing.T) {
	o := short(3)
	o.Rooms[0].Session, o.Rooms[0].Target, o.Rooms[0].QueueAll = 20*time.Second, 1, true
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	const x = 2
	b := s.visit(x)
	ended := b.pass
	b.must(x, opEnd)
	s.visit(0) // the slot has gone there
	s.run(time.Second)
	s.down(x)
	c := s.o.Cluster.WithDefaults()
	s.run(c.ExcludeAfter + c.Lease + c.Deadline + 2*time.Second)
	b.pass = ended
	b.must(0, opRefresh)
	if b.pass.Home != ended.Home {
		t.Errorf("an ended pass made %v have a slot", b.pass.Home)
	}
	if _, used := s.ownedNow(); used != 1 {
		t.Errorf("%d on the site, the limit is 1: %s", used, s.ledgers(0))
	}
	s.run(30 * time.Second)
	s.finish()
}

// A node is restarted with its disk while it is cut off, and guesses until when others were in waves. It meets
// one who knows better as soon as a third is cut off, whose visits it takes over only when that one may
// extend no pass any more.
func TestScenarioAPassIsNotTakenOverByAGuess(t *testing.T) {
	const a, b, c = 0, 1, 2
	o := short(3)
	o.Faults.Disk = true
	o.Rooms[0].Session = 30 * time.Second
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.split(hosts(a, c), hosts(b))
	s.reboot(b)
	s.run(3 * time.Second)
	in := make([]*browser, 4)
	for i := range in {
		in[i] = s.visit(a)
	}
	s.run(time.Second)
	s.mend()
	s.split(hosts(a), hosts(b, c))
	for end := s.now + o.Cluster.Lease.Microseconds(); s.now < end; s.run(50 * time.Millisecond) {
		for _, x := range in {
			for _, h := range []int{b, c} {
				y := x.copy()
				if _, err := y.ask(h, opRefresh); err == nil && y.pass.Home != x.pass.Home {
					t.Fatalf("%s has it, %v before the lease of its home is over", s.hosts[h].name, micros(end-s.now))
				}
			}
		}
	}
	s.finish()
}
