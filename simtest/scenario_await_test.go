package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// A room stops while a node is missing, and the first in line waited there. The
// time that they have to check in elsewhere begins when others may take them
// over, and that is when all voters are together again: until then nobody may.
// Then they are called before the next in line, although that one asks first.
func TestScenarioAStoppedRoomWaitsForTheFirstInLine(t *testing.T) {
	o := short(3)
	o.Rooms[0].Target, o.Rooms[0].QueueAll, o.Rooms[0].OnPartition = 1, true, eviction.Stop
	o.Rooms[0].Session = 8 * time.Second
	o.Faults.Disk = true
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
	s.run(2 * time.Second) // longer than the first in line has to come back
	s.boot(2)
	s.until(5*time.Second, "all three", func() bool { return s.hosts[0].seen.status.Grade == eviction.Unanimous && s.together(3) })
	for range 8 {
		if a := next.must(1, opCheckIn); a.State != node.Waiting {
			t.Fatalf("the next in line is %v while the first may still come back", a.State)
		}
		s.run(50 * time.Millisecond)
	}
	s.until(time.Second, "the call of the first in line", func() bool { return first.patient(0, opCheckIn).State == node.Called })
	first.must(0, opLeave)
	s.finish()
}
