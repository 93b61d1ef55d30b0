package simtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// A clock jumps back five seconds, its node is restarted, and nobody measures
// it: the node is cut off, and is in no wave, or where it remembers its voters
// in waves of its own alone. Elsewhere a pass runs out, and its slot goes to
// somebody else. To the node's clock it is good for five seconds more: a clock
// for which nobody has vouched in this life judges no pass. Seed 90001076 of the
// swarm.
func TestScenarioARestartedNodesClockJudgesNoPass(t *testing.T) {
	for _, disk := range []bool{false, true} {
		t.Run(fmt.Sprintf("disk %t", disk), func(t *testing.T) {
			const bad = 4
			o := short(5)
			o.Faults.Disk = disk
			o.Load.Browse = Range{time.Minute, time.Minute}
			s := founded(t, o)
			b := s.visit(1)
			s.down(bad)
			s.hosts[bad].clock.set(s.now, -5_000_000)
			s.split(hosts(bad), hosts(0, 1, 2, 3))
			s.arrive(0, 30)
			s.until(6*time.Second, "a pass that is about to end", func() bool { return s.clockOf(0) >= b.pass.Expires-1_000_000 })
			s.boot(bad)
			s.until(6*time.Second, "its end", func() bool { return s.clockOf(0) >= b.pass.Expires+500_000 })
			if _, err := b.ask(0, opVisit); !errors.Is(err, ticket.ErrPassExpired) {
				t.Fatalf("%s says %v of a pass that is over", s.hosts[0].name, err)
			}
			for _, o := range []op{opVisit, opRefresh, opEnd} {
				if _, err := b.ask(bad, o); !errors.Is(err, ticket.ErrUnavailable) {
					t.Errorf("%v at a node whose clock nobody has vouched for: %v", o, err)
				}
			}
			s.run(3 * time.Second)
			s.finish()
		})
	}
}

// A machine's clock runs slow by a twentieth, while its wall clock shows nothing
// of it, and its node is left out. Once a coordinator that has a quorum of
// clocks with it says that the clock is off, the node honours no pass any more:
// by its clock they would be good for ever longer. It may not wait for its own
// lease, nor for the passes that its clock timed, to be over.
func TestScenarioAClockThatIsOffHonoursNoPass(t *testing.T) {
	const bad = 4
	o := short(5)
	o.Rooms[0].Session = 6 * time.Second
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.hosts[bad].clock.run(s.now, -50_000)
	s.hosts[bad].mishaps++
	probe := ofKind(mProbe, bad, none)
	s.tap = func(f *flight) verdict { // it cannot measure others, and find out by itself
		if probe(f) {
			return lose
		}
		return pass
	}
	s.until(10*time.Second, "four without it", func() bool { return s.sees(0, 4) })
	b := s.visit(1)
	s.arrive(0, 30)
	s.until(5*time.Second, "its quarantine", func() bool { return s.hosts[bad].seen.status.Quarantined })
	h := &s.hosts[bad]
	off := wallAt(s.now) - (h.seen.status.Clock + h.clock.boot(s.now) - h.seen.status.ClockAt)
	if most := 2 * o.Cluster.MaxSkew.Microseconds(); off > most { // by then any probe would tell
		t.Errorf("its clock is %v behind when it is told", micros(off))
	}
	if until := s.hosts[bad].seen.status.LeaseUntil; until > s.hosts[bad].clock.boot(s.now) {
		t.Errorf("its lease goes on for %v", micros(until-s.hosts[bad].clock.boot(s.now)))
	}
	if _, err := b.ask(bad, opVisit); !errors.Is(err, ticket.ErrUnavailable) {
		t.Errorf("a pass at a node whose clock is off: %v", err)
	}
	s.run(8 * time.Second)
	s.hosts[bad].clock.run(s.now, 0)
	s.finish()
}
