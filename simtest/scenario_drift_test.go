package simtest

import (
	"testing"
	"time"
)

// The sessions are long, and machines' boot clocks run as far apart as they may:
// fast where D is waited out, slow where the lost node honours its lease and its
// last pass. A term for that in D grows with the session; twice max_skew does not.
func TestScenarioDReckonsWithClocksThatDrift(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs for five of its world's hours")
	}
	const x = 2 // so junior that it leads no wave of its own before its lease is over
	o := short(3)
	o.Cluster.Period, o.Cluster.ExcludeAfter, o.Cluster.Lease = 250*time.Millisecond, 750*time.Millisecond, 1500*time.Millisecond
	o.Rooms[0].Session = 4 * time.Hour
	o.Load.Browse = Range{10 * time.Hour, 10 * time.Hour}
	s := assemble(t, o)
	for i := range s.hosts {
		s.hosts[i].clock.drift = 200
	}
	s.hosts[x].clock.drift = -200
	s.launch()
	s.until(time.Minute, "one wave of all", func() bool { return s.together(3) })
	s.run(time.Second)
	b := s.visit(x)
	s.run(500 * time.Millisecond)
	s.tap = func(f *flight) verdict { // gossip notices nothing
		if f.from == x || f.to == x {
			return lose
		}
		return pass
	}
	h := &s.hosts[x]
	s.until(5*time.Second, "the end of the lease", func() bool { return h.seen.rooms[0].LeaseUntil-h.clock.boot(s.now) < 20_000 })
	before := b.pass.Expires
	b.must(x, opRefresh)
	if b.pass.Expires == before {
		t.Fatal("not extended")
	}
	s.arrive(0, 30)
	s.until(5*time.Hour, "all the slots", func() bool { n, _ := s.ownedNow(0, 1); return n == 12 })
	if left := b.pass.Expires - s.clockOf(0); left > 0 {
		t.Errorf("the lost node's slots are made again %v before its last pass ends", micros(left))
	}
	s.run(time.Second)
}
