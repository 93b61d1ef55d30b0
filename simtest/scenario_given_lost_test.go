package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// n01 leaves, and gives visits to n02, whose account is covered: they are lost on the way, and n02 dies. n01 counts them as n02's. Then it
// is out of the waves for a moment, and its account is void: it is back with another one, and counts them still, as their passes are good. It
// has not left yet, as visits of another room are on their way.
func TestScenarioWhoGaveVisitsToALostNodeBeginsAnew(t *testing.T) {
	const g, x = 1, 2
	o := short(5)
	o.Cluster.Copies = 1
	o.Cluster.Lease, o.Cluster.ExcludeAfter = 1100*time.Millisecond, 200*time.Millisecond
	o.Cluster.Deadline, o.Cluster.MaxSkew, o.Cluster.Margin = 100*time.Millisecond, 10*time.Millisecond, 10*time.Millisecond
	o.Cluster.Period, o.Cluster.Urgent = 50*time.Millisecond, 10*time.Millisecond
	o.Faults.Detect = Range{50 * time.Millisecond, 100 * time.Millisecond}
	o.Rooms[0].Session, o.Load.Browse = time.Minute, Range{50 * time.Second, 50 * time.Second}
	lib := o.Rooms[0]
	lib.Name = "library"
	o.Rooms = append(o.Rooms, lib)
	s := founded(t, o)
	s.arrive(g, o.Rooms[0].Target)
	s.visitTo(library, g)
	s.run(3 * time.Second)
	deaf := false
	s.arriveOver(0, 100, 3*time.Second) // waves speak of the room
	s.tap = func(f *flight) verdict {
		m, ok := f.m.Body.(*eviction.Slots)
		if ok && f.from == g && (f.to == x || m.Room == "library") || deaf && f.kind == mGather && f.to == g {
			return lose
		}
		return pass
	}
	s.stopped(g)
	s.run(20 * time.Millisecond)
	s.down(x)
	s.hosts[x].gone = true
	s.until(time.Second, "n02 void", func() bool { return s.sees(0, 4) })
	s.run(250 * time.Millisecond)
	deaf = true
	s.until(time.Second, "n01 out", func() bool { return s.sees(0, 3) })
	s.run(250 * time.Millisecond)
	deaf = false
	s.run(600 * time.Millisecond)
	s.tap = nil
	s.run(10 * time.Second)
	s.finish()
}
