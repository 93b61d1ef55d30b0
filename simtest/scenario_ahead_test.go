package simtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// Of two nodes the one that is a quorum by itself is restarted while its wall clock is
// ahead, and goes on alone by it: of two clocks it takes the other one for wrong, and waves
// of its own keep what its clock timed alive. When its wall clock is set right that bears the
// other out: once nothing is left that it timed it goes back to it, and takes the other one in.
// Until then a room whose sides share its slots waits for the other. Seed 96015305 of the swarm.
func TestScenarioOneOfTwoThatBeganAheadGoesByItsWallClock(t *testing.T) {
	for _, ahead := range []time.Duration{500 * time.Millisecond, 5 * time.Second, time.Minute} {
		for _, sides := range []eviction.Policy{eviction.Majority, eviction.Share} {
			t.Run(fmt.Sprintf("%v, %v", ahead, sides), func(t *testing.T) {
				s := beganAhead(t, ahead, sides)
				s.arriveOver(0, 60, 20*time.Second)
				s.hosts[0].clock.set(s.now, 0)
				s.until(ahead+30*time.Second, "both together", func() bool { return s.together(2) })
				s.finish()
			})
		}
	}
}

// As before, but people are let in by the clock that is ahead. It does not go back while a
// pass of theirs would be good again: their slots are others' by then.
func TestScenarioAClockThatBeganAheadBringsNoPassBack(t *testing.T) {
	for _, ahead := range []time.Duration{500 * time.Millisecond, 5 * time.Second, time.Minute} {
		t.Run(ahead.String(), func(t *testing.T) {
			s := beganAhead(t, ahead, eviction.Majority)
			b := s.visit(0)
			s.hosts[0].clock.set(s.now, 0)
			s.until(ahead+5*time.Second, "both together", func() bool { return s.together(2) })
			s.arrive(0, 30) // they take every slot
			for end := s.now + 3_000_000; s.now < end; s.run(100 * time.Millisecond) {
				for i := range 2 {
					if _, err := b.ask(i, opVisit); !errors.Is(err, ticket.ErrPassExpired) {
						t.Fatalf("n%02d on a pass that was over: %v", i, err)
					}
				}
			}
			s.finish()
		})
	}
}

// beganAhead are two nodes of which the one that is a quorum by itself has begun anew with its
// wall clock ahead, and goes on alone.
func beganAhead(t *testing.T, ahead time.Duration, sides eviction.Policy) *script {
	t.Helper()
	o := short(2)
	o.Faults.Disk = true
	o.Rooms[0].OnPartition = sides
	s := founded(t, o)
	s.down(0)
	s.hosts[0].clock.set(s.now, ahead.Microseconds())
	s.boot(0)
	s.until(10*time.Second, "one that is alone", func() bool { return s.sees(0, 1) && s.hosts[1].seen.status.Quarantined })
	if s.run(5 * time.Second); !s.sees(0, 1) { // its slots are made again
		t.Fatalf("together with a clock that is off: %s", s.statuses())
	}
	return s
}

// An earlier life of the node has let people in by the clock that is ahead. The next one, which is
// ahead still, has given no pass itself, and does not go back while those would be good again.
func TestScenarioAClockThatBeganAheadBringsNoPassOfAnEarlierLifeBack(t *testing.T) {
	const ahead = time.Minute
	s := letsInAhead(t, ahead)
	for range 12 {
		s.visit(0)
	}
	s.run(500 * time.Millisecond)
	s.reboot(0)
	s.until(10*time.Second, "one that is alone", func() bool { return s.sees(0, 1) && s.hosts[1].seen.status.Quarantined })
	s.run(500 * time.Millisecond)
	s.hosts[0].clock.set(s.now, 0)
	s.until(ahead+20*time.Second, "both together", func() bool { return s.together(2) })
	s.run(2 * s.delay())
	s.arrive(0, 30)
	s.run(5 * time.Second)
	s.finish()
}

// Both clocks are ahead, and agree. One of the nodes lets people in, ends, and comes back with its clock
// right, as is the other one's wall clock. Passes that were over stay so.
func TestScenarioAClockThatBeganAheadBringsNoPassOfOthersBack(t *testing.T) {
	const ahead = time.Minute
	o := short(2)
	o.Faults.Disk = true
	o.Rooms[0].NoRenewal = true
	o.Load.Browse = Range{2 * time.Minute, 2 * time.Minute}
	s := assemble(t, o)
	for i := range s.hosts {
		s.hosts[i].clock.set(s.now, ahead.Microseconds())
	}
	s.begin()
	in := make([]*browser, 6)
	for i := range in {
		in[i] = s.visit(1)
	}
	s.run(500 * time.Millisecond)
	s.down(1)
	s.run(2 * s.delay())
	if _, err := in[0].ask(0, opVisit); !errors.Is(err, ticket.ErrPassExpired) {
		t.Fatal(err)
	}
	for i := range s.hosts {
		s.hosts[i].clock.set(s.now, 0)
	}
	s.boot(1)
	s.until(ahead+20*time.Second, "both together", func() bool { return s.together(2) })
	for _, b := range in {
		for i := range 2 {
			if a, err := b.ask(i, opVisit); !errors.Is(err, ticket.ErrPassExpired) {
				t.Errorf("at %v n%02d on a pass that was over: %v %v, its node was lost %v ago, D is %v", micros(s.now), i, a.State, err, 2*s.delay(), s.delay())
			}
		}
	}
	s.run(2 * s.delay())
	s.arrive(0, 30)
	s.run(5 * time.Second)
	s.finish()
}

// People wait whom the clock has stamped that is ahead. It does not go back as long as who joins would be
// stamped before them.
func TestScenarioAClockThatBeganAheadOvertakesNobody(t *testing.T) {
	const ahead = time.Minute
	s := beganAhead(t, ahead, eviction.Majority)
	room := s.o.Rooms[0]
	room.Mode = eviction.Held
	s.setRoom(&s.hosts[0], 0, room)
	s.run(time.Second)
	for s.now < (ahead + 20*time.Second).Microseconds() {
		s.run(time.Second)
	}
	first := make([]*browser, 20)
	for i := range first {
		first[i] = s.browser()
		first[i].must(0, opJoin)
	}
	s.run(time.Second)
	s.hosts[0].clock.set(s.now, 0)
	for end := s.now + (ahead + 30*time.Second).Microseconds(); !s.together(2) && s.now < end; s.run(100 * time.Millisecond) {
		for _, b := range first {
			_, _ = b.ask(0, opCheckIn)
		}
	}
	if !s.together(2) {
		t.Fatal("not together", s.statuses())
	}
	later := make([]*browser, 6)
	for i := range later {
		later[i] = s.browser()
		later[i].must(i%2, opJoin)
	}
	room.Mode = eviction.Normal
	s.setRoom(&s.hosts[0], 0, room)
	ask := func(d time.Duration) {
		for end := s.now + d.Microseconds(); s.now < end; s.run(100 * time.Millisecond) {
			for _, b := range slices.Concat(first, later) {
				_, _ = b.ask(0, opCheckIn)
			}
		}
	}
	called := func(bs []*browser) (n int) {
		for _, b := range bs {
			if s.crowd.tickets[s.ticketOf(b.ticket.ID)].calledAt > 0 {
				n++
			}
		}
		return n
	}
	ask(1500 * time.Millisecond)
	if a, b := called(first), called(later); a < 12 || b > 0 {
		t.Errorf("of those who came first %d were called, want 12; and of those who came later %d", a, b)
	}
	ask(4 * time.Second) // nobody comes: who misses their call is stamped anew, and later
	s.finish()
}

// The wall clock is set right, and the process stands still until nothing is left by the boot clock that
// it timed: it may then go by the wall clock, but not to where its passes are good again.
func TestScenarioAClockThatBeganAheadBringsNoPassBackAfterAPause(t *testing.T) {
	const ahead = time.Minute
	s := letsInAhead(t, ahead)
	in := make([]*browser, 12)
	for i := range in {
		in[i] = s.visit(0)
	}
	s.run(500 * time.Millisecond)
	s.hosts[0].clock.set(s.now, 0)
	s.stall(0, 2*s.delay())
	s.run(2*s.delay() + 2*time.Second)
	s.run(2 * s.delay())
	later := make([]*browser, 12)
	for i := range later {
		later[i] = s.visit(0)
	}
	s.run(500 * time.Millisecond)
	good := 0
	for _, b := range slices.Concat(later, in) {
		if _, err := b.ask(0, opVisit); err == nil {
			good++
		}
	}
	if good > 12 {
		t.Errorf("at %v %d passes are good, and the limit is 12", micros(s.now), good)
	}
	s.finish()
}

// letsInAhead is as beganAhead, with visits that outlast what the clock is ahead, and are not renewed.
func letsInAhead(t *testing.T, ahead time.Duration) *script {
	t.Helper()
	o := short(2)
	o.Faults.Disk = true
	o.Rooms[0].NoRenewal = true
	o.Load.Browse = Range{2 * time.Minute, 2 * time.Minute}
	s := founded(t, o)
	s.down(0)
	s.hosts[0].clock.set(s.now, ahead.Microseconds())
	s.boot(0)
	s.until(10*time.Second, "one that is alone", func() bool { return s.sees(0, 1) && s.hosts[1].seen.status.Quarantined })
	s.run(5 * time.Second)
	return s
}
