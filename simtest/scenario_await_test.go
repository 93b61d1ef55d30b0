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

// overtaking is a world in which the first in line waits at a node that dies, and the next
// one at another, while the only slot is used. What comes back is the two of them, after a
// wave has left that node out.
func overtaking(t *testing.T, exclude, refresh time.Duration) (s *script, first, next *browser) {
	t.Helper()
	o := short(3)
	o.Cluster.ExcludeAfter, o.Cluster.Lease = exclude, 2*exclude
	o.Rooms[0].Target, o.Rooms[0].QueueAll, o.Rooms[0].Session = 1, true, 20*time.Second
	o.Rooms[0].Refresh, o.Rooms[0].ClaimWindow, o.Rooms[0].TicketTTL = refresh, 3*refresh, time.Minute
	s = founded(t, o)
	inside := s.visit(0)
	first, next = s.browser(), s.browser()
	first.must(2, opJoin)
	s.run(50 * time.Millisecond)
	next.must(1, opJoin)
	s.run(time.Second)
	s.down(2)
	s.until(3*time.Second, "two without it", func() bool { return len(s.hosts[0].seen.status.List) == 2 })
	inside.must(0, opEnd)
	return s, first, next
}

// inTurn has first ask as often as it is told to, and next all the time, until first
// is called, which is to be before next is.
func (s *script) inTurn(first, next *browser) {
	s.t.Helper()
	due, end := s.now, s.now+(15*time.Second).Microseconds()
	for s.now < end {
		if a := next.must(1, opCheckIn); a.State != node.Waiting {
			s.t.Fatalf("the next in line is %v before the first one is back", a.State)
		}
		if s.now >= due {
			a := first.patient(0, opCheckIn)
			if a.State == node.Called {
				return
			}
			due = s.now + a.Refresh.Microseconds()
		}
		s.run(10 * time.Millisecond)
	}
	s.t.Fatal("nobody is called")
}

// Who asks just before others may take them over is told to ask again as soon as they may,
// while nobody else is called: two seconds later they would have been overtaken.
func TestScenarioWhoAsksBeforeTheyCanBeTakenOverIsToldWhenTo(t *testing.T) {
	s, first, next := overtaking(t, 2*time.Second, 2*time.Second)
	s.run(1500 * time.Millisecond)
	s.inTurn(first, next)
}

// Where exclude_after is longer than people near the front of the line take to ask again,
// they are waited for until they can be taken over.
func TestScenarioWhoCanBeTakenOverLateIsWaitedFor(t *testing.T) {
	s, first, next := overtaking(t, 4*time.Second, time.Second)
	s.inTurn(first, next)
}
