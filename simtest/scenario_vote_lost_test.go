package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// A second node under the name of n01, h03, has its vote while n01 is cut off; with n00 it makes the session longer, of which n02 does not hear.
// h03 goes. Longer than twice D after that, as n02 knows D, both are back. The commit of a wave with both is lost on the way to n01, which
// does not hear that another one had its vote; n02 installs it. It remembers h03 all the same: else n01 would vote again, and the two are a
// quorum of which nobody knows how long the passes of n00 last.
func TestScenarioAVoteIsNotGivenBackAsItsLastLifeIsForgotten(t *testing.T) {
	o := short(3)
	o.Cluster.Copies, o.Faults.Adds = 1, 1
	o.Load.Browse = Range{50 * time.Second, 50 * time.Second}
	s := founded(t, o)
	s.addHost(0).name = s.hosts[1].name
	s.split(hosts(1), hosts(0, 2, 3))
	s.boot(3)
	s.until(2*s.delay(), "all slots at three nodes", func() bool { owned, _ := s.ownedNow(0, 2, 3); return owned == o.Rooms[0].Target && s.sees(3, 3) })
	s.run(time.Second)
	s.split(hosts(2), hosts(0, 3))
	s.until(20*time.Second, "all slots at two nodes", func() bool { owned, _ := s.ownedNow(0, 3); return owned == o.Rooms[0].Target })
	longer := o.Rooms[0]
	longer.Session = time.Minute
	s.setRoom(&s.hosts[0], 0, longer)
	s.run(2 * time.Second)
	s.arrive(0, o.Rooms[0].Target)
	s.run(2 * time.Second)
	s.down(3)
	s.hosts[3].gone = true
	s.run(2*s.delay() + 2*time.Second)
	s.tap = func(f *flight) verdict {
		if c, ok := f.m.Body.(*eviction.Commit); ok && (f.to == 1 || f.to == 2 && len(c.Rooms) > 0) || f.kind == mGather && f.from == 2 {
			return lose
		}
		return pass
	}
	s.mend()
	s.until(5*time.Second, "n02 back", func() bool { return s.sees(2, 3) && s.sees(0, 3) })
	s.split(hosts(0), hosts(1, 2))
	s.tap = nil
	s.arrive(2, o.Rooms[0].Target)
	s.run(2 * s.delay())
	s.finish()
}

// The same of five, and n01 has not been listed by a primary wave at all: it was on the side of n02 and n04, whose waves have higher numbers
// than those that h03 was in. These two are back without it, and then with it again.
func TestScenarioAVoteIsNotGivenBackToWhoWasOnASide(t *testing.T) {
	o := short(5)
	o.Cluster.Copies, o.Faults.Adds = 1, 1
	o.Load.Browse = Range{50 * time.Second, 50 * time.Second}
	s := founded(t, o)
	s.addHost(0).name = s.hosts[1].name
	s.split(hosts(1), hosts(0, 2, 3, 4, 5))
	s.boot(5)
	s.until(5*time.Second, "the second one among them", func() bool { return s.sees(5, 5) && s.hosts[5].seen.status.Knows })
	s.run(2 * time.Second)
	s.mend()
	s.split(hosts(1, 2, 4), hosts(0, 3, 5))
	s.run(3 * time.Second) // their slots are free again, and they are voters still
	longer := o.Rooms[0]
	longer.Session = time.Minute
	s.setRoom(&s.hosts[0], 0, longer)
	s.run(2 * time.Second)
	s.arrive(0, 8)
	s.run(2 * time.Second)
	s.down(5)
	s.hosts[5].gone = true
	s.run(2*s.delay() + 2*time.Second)
	s.tap = func(f *flight) verdict {
		back := f.from == 2 || f.from == 4
		if c, ok := f.m.Body.(*eviction.Commit); ok && f.to != 0 && f.to != 3 && len(c.Rooms) > 0 || f.kind == mGather && back {
			return lose
		}
		return pass
	}
	s.mend()
	s.split(hosts(1), hosts(0, 2, 3, 4))
	s.until(5*time.Second, "n02 and n04 back", func() bool { return s.sees(2, 4) && s.sees(4, 4) })
	s.mend()
	s.split(hosts(0, 3), hosts(1, 2, 4))
	s.tap = nil
	s.arrive(2, o.Rooms[0].Target)
	s.run(2 * s.delay())
	s.finish()
}
