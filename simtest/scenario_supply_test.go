package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// An event raises the limit, and is over. The one of two nodes that may go on alone is restarted
// meanwhile, with its disk: how many slots may exist is on it, so that nobody is called while those
// of its earlier life are in use, with the free ones of the other node (S1).
func TestScenarioTheLimitWasRaisedByAnEventBeforeARestart(t *testing.T) {
	o := short(2)
	o.Faults.Disk = true
	o.Rooms[0].Target, o.Rooms[0].Session, o.Rooms[0].TicketTTL = 4, 20*time.Second, time.Hour
	o.Rooms[0].Events = []eviction.Event{
		from(5*time.Second, 6*time.Second, 20*time.Second, eviction.Event{Set: eviction.SetTarget, Target: 40}),
	}
	o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
	s := founded(t, o)
	s.run(time.Duration(max(0, 8_000_000-s.now)) * time.Microsecond)
	s.arriveOver(1, 20, time.Second)
	s.run(2 * time.Second) // and are gone
	s.o.Load.Browse = Range{time.Minute, time.Minute}
	s.arriveOver(0, 20, time.Second)
	s.run(time.Duration(max(0, 18_000_000-s.now)) * time.Microsecond)
	s.down(0)
	s.run(time.Duration(max(0, 21_000_000-s.now)) * time.Microsecond)
	s.boot(0)
	s.arriveOver(1, 30, time.Second)
	s.run(30 * time.Second)
	s.finish()
}

// An event that raised the limit was over two minutes ago. Of two nodes the one that may go on alone is
// killed and back at once: nobody waits as if those of the event could be there still.
func TestScenarioALimitThatIsLoweredAgainHoldsNobodyUp(t *testing.T) {
	o := short(2)
	o.Faults.Disk = true
	o.Rooms[0].Target, o.Rooms[0].Session, o.Rooms[0].TicketTTL = 10, time.Minute, time.Hour
	o.Rooms[0].Events = []eviction.Event{
		from(5*time.Second, 6*time.Second, 9*time.Second, eviction.Event{Set: eviction.SetTarget, Target: 40}),
	}
	s := founded(t, o)
	s.run(time.Duration(max(0, 130_000_000-s.now)) * time.Microsecond)
	s.reboot(0)
	s.run(3 * time.Second)
	s.visit(1)
	s.finish()
}

// A node that is a quorum by itself cannot save its record. It ends visits of the other, which is cut off, and
// makes no slots of theirs: after a restart it would not know that the other's account is void.
func TestScenarioAVoidThatIsNotOnDiskMakesNoSlots(t *testing.T) {
	o := short(2)
	o.Faults.Disk = true
	o.Cluster.Copies = 1
	o.Rooms[0].Session, o.Rooms[0].TicketTTL = 30*time.Second, time.Hour
	s := founded(t, o)
	in := make([]*browser, 12)
	for i := range in {
		in[i] = s.visit(i % 2)
	}
	s.run(2 * time.Second)
	s.hosts[0].disk.failing = true
	s.split(hosts(0), hosts(1))
	s.run(8 * time.Second)
	for _, b := range in {
		if s.lives[s.lifeOf(b.pass.Home.Member)].host == 1 {
			_, _ = b.copy().ask(0, opEnd) // which may be refused
		}
	}
	s.run(2 * time.Second)
	for range 6 {
		b := s.browser()
		b.must(0, opJoin)
		s.run(300 * time.Millisecond)
		if _, err := b.ask(0, opLeave); err != nil {
			_, _ = b.ask(0, opAbandon)
		}
	}
	s.hosts[0].disk.renamed = nil // the directory was never synced
	s.down(0)
	s.hosts[0].disk.failing = false
	s.mend()
	s.boot(0)
	s.until(5*time.Second, "waves of both", func() bool { return s.together(2) })
	for _, b := range in {
		if s.lives[s.lifeOf(b.pass.Home.Member)].host == 1 {
			_, _ = b.ask(1, opEnd)
		}
	}
	s.arriveOver(1, 12, time.Second)
	s.run(5 * time.Second)
	s.finish()
}

// An event raises the limit while a node is a quorum by itself, and cannot save what it has to remember. It
// makes none of the new slots: if it were restarted, nobody would know of who is in by them.
func TestScenarioALimitThatIsNotOnDiskMakesNoSlots(t *testing.T) {
	o := short(2)
	o.Faults.Disk = true
	o.Rooms[0].Target, o.Rooms[0].Session, o.Rooms[0].TicketTTL = 4, 20*time.Second, time.Hour
	o.Rooms[0].Events = []eviction.Event{
		from(8*time.Second, 9*time.Second, 30*time.Second, eviction.Event{Set: eviction.SetTarget, Target: 40}),
	}
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.down(1)
	s.run(3 * time.Second)
	s.hosts[0].disk.failing = true
	s.arriveOver(0, 30, time.Second)
	s.run(time.Duration(max(0, 12_000_000-s.now)) * time.Microsecond)
	if owned, _ := s.ownedNow(); owned > 4 {
		t.Errorf("there are %d slots, and by the disk 4", owned)
	}
	s.hosts[0].disk.failing = false
	s.until(2*time.Second, "the slots of the event", func() bool { owned, _ := s.ownedNow(); return owned > 30 })
	s.finish()
}
