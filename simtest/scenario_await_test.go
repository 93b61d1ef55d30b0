package simtest

import (
	"slices"
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

// Whoever it is and whenever they ask, until their home can be taken for lost: not so soon
// that they would do nothing but ask. How long that takes is spread by the ticket's id, and
// there is one whose share of it is next to nothing.
func TestScenarioNobodyIsAskedBackWithinAMoment(t *testing.T) {
	o := short(3)
	o.Rooms[0].Target, o.Rooms[0].QueueAll, o.Rooms[0].Session, o.Rooms[0].TicketTTL = 1, true, 20*time.Second, time.Minute
	s := founded(t, o)
	s.visit(0)
	b := s.browser()
	for b.must(2, opJoin); b.ticket.ID[0] > 1; b.must(2, opJoin) {
		b = s.browser()
	}
	s.run(time.Second)
	s.down(2)
	s.until(3*time.Second, "two without it", func() bool { return s.together(2) })
	asked := 0
	for b.ticket.Home.Name == s.hosts[2].name {
		b.patient(0, opCheckIn) // L7 looks
		s.run(time.Millisecond)
		asked++
	}
	if asked < 100 {
		t.Errorf("the place was taken over after %d check-ins: that cannot tell much", asked)
	}
}

// Where exclude_after is longer than people near the front of the line take to ask again,
// they are waited for until they can be taken over.
func TestScenarioWhoCanBeTakenOverLateIsWaitedFor(t *testing.T) {
	s, first, next := overtaking(t, 4*time.Second, time.Second)
	s.inTurn(first, next)
}

// stoodStill is a world in which the first in line waits at a node that dies, and some of the
// three others stand still when it has just been left out, so that nobody has a majority. A
// slot is free all the time, and the next in line has asked when it is over.
func stoodStill(t *testing.T, still ...int) (s *script, first, next *browser) {
	t.Helper()
	o := short(4)
	o.Cluster.ExcludeAfter, o.Cluster.Lease = 1500*time.Millisecond, 3*time.Second // a node alone has a wave each second
	o.Rooms[0].Target, o.Rooms[0].QueueAll, o.Rooms[0].Session, o.Rooms[0].TicketTTL = 1, true, 20*time.Second, time.Minute
	s = founded(t, o)
	inside := s.visit(0)
	first, next = s.browser(), s.browser()
	first.must(3, opJoin)
	s.run(50 * time.Millisecond)
	next.must(0, opJoin)
	s.run(time.Second)
	s.down(3)
	s.until(3*time.Second, "three without it", func() bool { return s.together(3) })
	if s.coordinator() != 0 {
		t.Fatalf("host %d leads, want the first", s.coordinator())
	}
	inside.must(0, opEnd)
	for _, i := range still {
		s.stall(i, 6*time.Second)
	}
	s.run(6 * time.Second)
	s.until(3*time.Second, "three again", func() bool { return s.together(3) })
	next.must(0, opCheckIn)
	s.run(700 * time.Millisecond) // some waves, in which somebody could be called
	return s, first, next
}

// The time that a coordinator stood still, or was without a majority, is none in which people
// could come back: it waits for the first in line, who is called before the next one.
func TestScenarioTheLostAreWaitedForByACoordinatorThatStoodStill(t *testing.T) {
	s, first, next := stoodStill(t, 0)
	s.inTurn(first, next)
}

func TestScenarioTheLostAreWaitedForWhileThereIsNoMajority(t *testing.T) {
	s, first, next := stoodStill(t, 1, 2)
	s.inTurn(first, next)
}

// Nor does anybody walk in before them, if nobody else waits: their node dies, everybody
// else stands still at once, and a newcomer comes as soon as it is over.
func TestScenarioNobodyWalksInBeforeTheLostAfterAStandstill(t *testing.T) {
	o := short(3)
	o.Rooms[0].Target, o.Rooms[0].Session, o.Rooms[0].TicketTTL, o.Rooms[0].Refresh = 1, 20*time.Second, time.Minute, 2*time.Second
	s := founded(t, o)
	inside := s.visit(0)
	first := s.browser()
	first.must(2, opJoin)
	s.run(time.Second)
	s.down(2)
	s.until(3*time.Second, "two without it", func() bool { return s.together(2) })
	inside.must(0, opEnd)
	for _, i := range []int{0, 1} {
		s.stall(i, 6*time.Second)
	}
	s.run(6 * time.Second)
	s.until(3*time.Second, "two again", func() bool { return s.together(2) })
	s.run(400 * time.Millisecond)
	if a := s.browser().patient(0, opJoin); a.State != node.Waiting {
		t.Errorf("a newcomer is %v before the first one is back", a.State)
	}
	s.until(3*time.Second, "the call of the first in line", func() bool { return first.patient(1, opCheckIn).State == node.Called })
	first.must(1, opLeave)
	s.run(3 * time.Second) // the newcomer's turn
}

// Nor does anybody walk in before those of a lost node who are farther back, and ask again after as
// long as refresh_interval.
func TestScenarioNobodyWalksInBeforeWhoAsksLater(t *testing.T) {
	o := short(3)
	o.Rooms[0].Target, o.Rooms[0].Session, o.Rooms[0].TicketTTL, o.Rooms[0].Refresh = 3, 30*time.Second, time.Minute, 10*time.Second
	s := founded(t, o)
	inside := []*browser{s.visit(0), s.visit(0), s.visit(0)}
	waits := s.browser()
	waits.must(2, opJoin)
	s.run(time.Second)
	s.down(2)
	s.until(3*time.Second, "two without it", func() bool { return s.together(2) })
	for _, b := range inside {
		b.must(0, opEnd)
	}
	s.run(8 * time.Second)
	if a := s.browser().patient(0, opJoin); a.State != node.Waiting {
		t.Errorf("a newcomer is %v before everybody has had time to ask again", a.State)
	}
	s.until(3*time.Second, "the call of who waited", func() bool { return waits.patient(1, opCheckIn).State == node.Called })
	waits.must(1, opLeave)
	s.run(3 * time.Second) // the newcomer's turn
}

// What the live test of that name does: a node is killed, then the coordinator, then one of
// the three that are left stands still for longer than a lease, which leaves no majority.
// Nobody overtakes anybody.
func TestScenarioFaultsUnderACrowd(t *testing.T) {
	for seed := range uint64(4) {
		s := founded(t, Options{
			Seed: seed, Nodes: 5,
			Cluster: eviction.Config{Lease: 4 * time.Second},
			Rooms: []eviction.Room{{
				Name: "shop", Target: 40, Session: 12 * time.Second, Refresh: 3 * time.Second, ClaimWindow: 8 * time.Second, TicketTTL: time.Minute,
			}},
			Load:   Load{Browse: Range{2 * time.Second, 6 * time.Second}, Timeout: 5 * time.Second},
			Faults: Faults{Detect: Range{300 * time.Millisecond, 900 * time.Millisecond}, KeepKeys: true},
		})
		s.arriveOver(none, 400, 12*time.Second)
		s.run(3 * time.Second)
		s.down((s.coordinator() + 1 + int(seed)%3) % 5)
		s.until(5*time.Second, "the other four", func() bool { return s.together(4) })
		dead := s.coordinator()
		s.down(dead)
		s.until(5*time.Second, "the other three", func() bool { return s.together(3) })
		still := s.coordinator()
		if seed%2 == 1 {
			still = slices.IndexFunc(s.hosts, func(h host) bool { return h.up() && h.index != int32(still) })
		}
		s.stall(still, 5*time.Second)
		s.run(5 * time.Second)
		s.until(5*time.Second, "the three again", func() bool { return s.together(3) })
		s.boot(dead)
		s.run(75 * time.Second)
		if n := s.inOrder(0); n < 300 {
			t.Errorf("seed %d: %d people waited, want a crowd", seed, n)
		}
		s.finish()
	}
}
