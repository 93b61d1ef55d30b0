package simtest

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// As in TestScenarioAVoidThatTheNextVotersHaveNotHeardOf, but the proposal takes force in the first wave in which a coordinator
// that does not have the room asks about it: what a wave asks by lead.asks is neither in the gates of the coordinator yet, nor
// Busy.
//
// So it is with a version that does not tell how many rooms there are, and where the rooms take turns: n03 hears who votes, and counts as
// one who knows, by a wave that does not speak of the room, or it would lead none.
func TestScenarioVotersChangeAndARoomIsAskedForTheFirstTime(t *testing.T) {
	t.Parallel()
	for after := time.Second; after < 2*time.Second; after += 50 * time.Millisecond {
		t.Run(after.String(), func(t *testing.T) { asksAnew(t, after) })
	}
}

func asksAnew(t *testing.T, after time.Duration) {
	t.Helper()
	const a, b, d, x = 0, 1, 2, 3
	o := short(2)
	o.Cluster.Copies, o.Faults.Adds, o.Faults.Disk = 1, 2, true
	o.Cluster.WaveBytes = 1 // the rooms take turns
	o.Rooms[0].Session, o.Load.Browse = time.Minute, Range{50 * time.Second, 50 * time.Second}
	lib := o.Rooms[0]
	lib.Name = "library"
	o.Rooms = append(o.Rooms, lib)
	s := assemble(t, o)
	s.unmade = 1
	s.addHost(0)
	s.addHost(0)
	s.split(hosts(x), hosts(a, b, d))
	alone := s.splits
	s.splits = nil
	s.boot(x) // the most senior
	s.run(100 * time.Millisecond)
	s.boot(a)
	s.run(100 * time.Millisecond)
	s.boot(b)
	s.until(10*time.Second, "two voters", func() bool { return s.sees(a, 2) && s.sees(b, 2) && s.hosts[b].seen.status.Grade == eviction.Unanimous })
	s.run(time.Second)
	s.setRoom(&s.hosts[a], library, o.Rooms[library])
	s.until(5*time.Second, "slots of the library", func() bool {
		return len(s.hosts[b].seen.rooms) > library && s.hosts[b].seen.rooms[library].Owned > 0 && s.hosts[a].seen.rooms[library].Owned > 0
	})
	s.run(time.Second)
	s.split(hosts(a), hosts(b))
	s.until(20*time.Second, "all slots at a", func() bool { return s.hosts[a].seen.rooms[library].Owned == o.Rooms[library].Target })
	for range o.Rooms[library].Target {
		s.visitTo(library, a)
	}
	s.tap = func(f *flight) verdict {
		c, ok := f.m.Body.(*eviction.Commit)
		if ok && f.to != a && slices.ContainsFunc(c.Rooms, func(r eviction.RoomCommit) bool { return r.Room == "library" }) {
			return lose
		}
		if ok {
			f.m.Body = older(c)
		}
		return pass
	}
	s.mend()
	s.boot(d)
	s.until(5*time.Second, "d proposed to all", func() bool {
		return !slices.ContainsFunc(s.hosts[:x], func(h host) bool { return len(h.seen.status.Voters.Next) != 3 })
	})
	s.run(after) // in some of them the first wave of x speaks of the room that x has
	s.splits = alone
	s.mend()
	for range 300 {
		s.run(10 * time.Millisecond)
		if !slices.ContainsFunc(s.hosts[b:x], func(h host) bool { return len(h.seen.status.Voters.Names) != 3 }) {
			break
		}
	}
	s.split(hosts(a, x), hosts(b, d))
	s.tap = nil
	s.run(3 * time.Second)
	if s.hosts[b].seen.status.Grade >= eviction.Primary {
		for range 3 {
			s.visitTo(library, b)
		}
	}
	s.finish()
}

// cutOffAndFull are three nodes of which n02 is cut off, and the others have made its free slots again: all are in use at n00. Visits are long, so n02's
// account is open for a minute yet.
func cutOffAndFull(t *testing.T) *script {
	t.Helper()
	o := short(3)
	o.Cluster.Copies = 1
	o.Rooms[0].Session, o.Load.Browse = time.Minute, Range{50 * time.Second, 50 * time.Second}
	s := founded(t, o)
	s.split(hosts(0, 1), hosts(2))
	s.until(20*time.Second, "all slots at n00 and n01", func() bool { owned, _ := s.ownedNow(0, 1); return owned == o.Rooms[0].Target })
	s.arrive(0, o.Rooms[0].Target)
	s.run(2 * time.Second)
	return s
}

// n02 is cut off, and n00 and n01 make its free slots again. It is back before its account lapses, and n01 is restarted without a disk:
// it has forgotten that n02's account is void. Neither hears a commit that speaks of the room, but n01 hears others, and so
// counts as one who knows again. With n02 it is a quorum of which nobody knows it.
func TestScenarioAVoterThatForgotHearsOfNoRoom(t *testing.T) {
	s := cutOffAndFull(t)
	s.tap = func(f *flight) verdict {
		if c, ok := f.m.Body.(*eviction.Commit); ok && f.to != 0 && len(c.Rooms) > 0 {
			return lose
		}
		return pass
	}
	s.mend()
	s.until(5*time.Second, "n02 back", func() bool { return s.sees(2, 3) })
	s.reboot(1)
	s.until(5*time.Second, "n01 back", func() bool { return s.sees(1, 3) && s.sees(2, 3) && s.hosts[1].seen.status.Voters.Version > 0 })
	s.run(300 * time.Millisecond)
	s.split(hosts(0), hosts(1, 2))
	s.tap = nil
	s.arrive(2, s.o.Rooms[0].Target)
	s.run(5 * time.Second)
	s.finish()
}

// The same, and no message is lost: n01 is started again as n02 comes back, the first wave with both speaks of no room, and after
// it there is a split.
func TestScenarioAVoterThatForgotIsBackWithOneThatWasCutOff(t *testing.T) {
	t.Parallel()
	for after := time.Duration(0); after < time.Second; after += 50 * time.Millisecond {
		t.Run(after.String(), func(t *testing.T) {
			s := cutOffAndFull(t)
			s.down(1)
			s.run(3*time.Second + after)
			s.mend()
			s.boot(1)
			s.until(5*time.Second, "n01 knows", func() bool { return s.hosts[1].seen.status.Voters.Version > 0 })
			s.split(hosts(0), hosts(1, 2))
			s.arrive(2, s.o.Rooms[0].Target)
			s.run(5 * time.Second)
			s.finish()
		})
	}
}

// One node is the cluster, and another one comes whose name is lower. The commit that proposes it as a voter is lost: then the one is no
// quorum of the next voters, and the other one does not know.
func TestScenarioTheCommitThatProposesALowerNameIsLost(t *testing.T) {
	for _, c := range []struct{ nodes, lose int }{{1, 0}, {1, 1}, {1, 2}, {3, 1}} {
		o := short(c.nodes)
		o.Faults.Adds, o.Faults.Disk = 1, true
		s := founded(t, o)
		h := s.addHost(0)
		h.name = "a00"
		lost := 0
		s.tap = func(f *flight) verdict {
			if m, ok := f.m.Body.(*eviction.Commit); ok && lost < c.lose && int(f.to) == c.nodes && m.Voters.Next != nil {
				lost++
				return lose
			}
			return pass
		}
		s.boot(c.nodes)
		s.run(60 * time.Second)
		if g := s.hosts[0].seen.status.Grade; g < eviction.Primary {
			t.Errorf("of %d nodes, %d commits lost: a minute later nobody is called: %s", c.nodes, lost, s.statuses())
		}
	}
}

// Of three nodes the first one, whose name is the lowest, is gone for good, and another one is started in its place. The commit that proposes that as a voter
// is lost on the way to it.
func TestScenarioTheCommitThatProposesAReplacementIsLost(t *testing.T) {
	for _, loses := range []int{0, 1} {
		o := short(3)
		o.Faults.Adds, o.Faults.Disk = 1, true
		s := founded(t, o)
		s.addHost(0)
		lost := 0
		s.tap = func(f *flight) verdict {
			if m, ok := f.m.Body.(*eviction.Commit); ok && lost < loses && f.to == 3 && m.Voters.Next != nil {
				lost++
				return lose
			}
			return pass
		}
		s.down(0)
		s.hosts[0].gone = true
		s.run(2 * time.Second)
		s.boot(3)
		s.run(60 * time.Second)
		if g := s.hosts[1].seen.status.Grade; g < eviction.Primary {
			t.Errorf("%d commits lost: a minute later nobody is called: %s", lost, s.statuses())
		}
	}
}

// older returns a commit as of a version that does not say how many rooms there are: who has forgotten votes at once.
func older(c *eviction.Commit) *eviction.Commit {
	old := *c
	old.Known = 0
	return &old
}
