package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// voteOf is who n01 is, whose vote another one takes.
type voteOf int

const (
	voteFounder voteOf = iota
	voteAdded          // it began after the cluster
	voteLater          // and after the other one
)

// voteTaken are three nodes and a second one under the name of n01, h03, that has the vote while n01 is cut off. Then n02 is cut
// off, too, and the others have made its free slots again: all are in use at n00. Visits are long, so n02's account is open for a minute yet.
func voteTaken(t *testing.T, n01 voteOf, seed uint64) *script {
	t.Helper()
	o := short(3)
	o.Seed = seed
	o.Cluster.Copies, o.Faults.Adds = 1, 1
	o.Rooms[0].Session, o.Load.Browse = time.Minute, Range{50 * time.Second, 50 * time.Second}
	s := founded(t, o)
	s.addHost(0).name = s.hosts[1].name
	if n01 == voteLater {
		s.split(hosts(3), hosts(0, 1, 2))
		s.boot(3)
	}
	if n01 != voteFounder {
		s.reboot(1)
		s.until(20*time.Second, "n01 back", func() bool { return s.sees(0, 3) && s.sees(1, 3) })
		s.run(time.Second)
	}
	s.mend()
	s.split(hosts(1), hosts(0, 2, 3))
	if n01 != voteLater {
		s.boot(3)
	}
	s.until(2*s.delay(), "all slots at three nodes", func() bool { owned, _ := s.ownedNow(0, 2, 3); return owned == o.Rooms[0].Target && s.sees(3, 3) })
	s.split(hosts(2), hosts(0, 3))
	s.until(20*time.Second, "all slots at two nodes", func() bool { owned, _ := s.ownedNow(0, 3); return owned == o.Rooms[0].Target })
	s.arrive(0, o.Rooms[0].Target)
	s.run(2 * time.Second)
	return s
}

// The second node under a name goes, and the first one has the vote again. Neither it nor n02, which both were cut off, hears a commit that
// speaks of the room, so neither knows that n02's account is void; and they are a quorum.
func TestScenarioAVoteComesBackToOneThatHearsOfNoRoom(t *testing.T) {
	for _, n01 := range []voteOf{voteFounder, voteAdded, voteLater} {
		s := voteTaken(t, n01, 1)
		s.down(3)
		s.hosts[3].gone = true
		s.tap = func(f *flight) verdict {
			if c, ok := f.m.Body.(*eviction.Commit); ok && f.to != 0 && len(c.Rooms) > 0 {
				return lose
			}
			return pass
		}
		s.mend()
		s.until(5*time.Second, "n01 and n02 back", func() bool { return s.sees(1, 3) && s.sees(2, 3) })
		s.run(300 * time.Millisecond)
		s.split(hosts(0), hosts(1, 2))
		s.tap = nil
		s.arrive(2, s.o.Rooms[0].Target)
		s.run(5 * time.Second)
		s.finish()
	}
}

// The same, and no message is lost: after the first primary wave with both, which speaks of no room, there is a split.
func TestScenarioAVoteComesBackWithOneThatWasCutOff(t *testing.T) {
	s := voteTaken(t, voteFounder, 1)
	s.down(3)
	s.hosts[3].gone = true
	s.run(3 * time.Second)
	s.mend()
	s.until(5*time.Second, "n01 and n02 back", func() bool { return s.sees(1, 3) && s.sees(2, 3) })
	s.split(hosts(0), hosts(1, 2))
	s.arrive(2, s.o.Rooms[0].Target)
	s.run(5 * time.Second)
	s.finish()
}

// The other one is still there when the first one is back, and all are in one wave: from then on the name votes in whoever's boot is the higher.
func TestScenarioAVoteComesBackToOneOfTwo(t *testing.T) {
	higher := 0
	for seed := uint64(1); seed <= 6; seed++ {
		s := voteTaken(t, voteFounder, seed)
		s.tap = func(f *flight) verdict {
			if c, ok := f.m.Body.(*eviction.Commit); ok && f.to != 0 && f.to != 3 && len(c.Rooms) > 0 {
				return lose
			}
			return pass
		}
		s.mend()
		s.until(5*time.Second, "all four back", func() bool { return s.sees(1, 4) && s.sees(2, 4) })
		s.until(time.Second, "no wave at n01 and n02", func() bool {
			a, b := &s.hosts[1].seen.status, &s.hosts[2].seen.status
			return a.Epoch == a.Installed && b.Epoch == b.Installed
		})
		if s.hosts[1].seen.status.Self.Compare(s.hosts[3].seen.status.Self) > 0 {
			higher++
		}
		s.split(hosts(0, 3), hosts(1, 2))
		s.tap = nil
		s.arrive(2, s.o.Rooms[0].Target)
		s.run(5 * time.Second)
		s.down(3)
		s.hosts[3].gone = true
		s.finish()
	}
	if higher == 0 {
		t.Error("it was the other one in all worlds")
	}
}

// Two nodes of one name that are together cost no more waves than others: the one that does not vote does not ask to hear of rooms again, as
// each wave would make it forget them.
func TestScenarioTwoOfANameCostNoMoreWaves(t *testing.T) {
	waves := func(name qpid.NodeID) (n int) {
		o := short(3)
		o.Faults.Adds = 1
		o.Cluster.WaveBytes = 1 // the rooms take turns
		for _, name := range []string{"library", "museum", "theatre"} {
			room := o.Rooms[0]
			room.Name = name
			o.Rooms = append(o.Rooms, room)
		}
		s := founded(t, o)
		h := s.addHost(0)
		if name != "" {
			h.name = name
		}
		s.boot(3)
		s.until(5*time.Second, "all four in a wave", func() bool { return s.sees(3, 4) })
		s.run(5 * time.Second)
		s.tap = func(f *flight) verdict {
			if f.kind == mGather && f.to == 3 {
				n++
			}
			return pass
		}
		s.run(20 * time.Second)
		s.tap = nil
		s.finish()
		return n
	}
	if other, twin := waves(""), waves("n01"); twin > other+other/10 {
		t.Errorf("%d waves in 20s with two nodes of one name, %d with nodes of different ones", twin, other)
	}
}
