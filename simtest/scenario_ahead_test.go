package simtest

import (
	"errors"
	"fmt"
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
				s.until(20*time.Second, "both together", func() bool { return s.together(2) })
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
