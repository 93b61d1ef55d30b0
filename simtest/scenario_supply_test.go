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
