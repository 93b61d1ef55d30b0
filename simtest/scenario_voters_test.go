package simtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// A quorum is of nodes that know. A and B go on without C, void it and make
// its slots again; B restarts and forgets all that. Now it meets C, which knows
// nothing of it either, and A is cut off: two of three voters, and neither
// knows whom A lets in. They must not act as a majority.
func TestScenarioAmnesiacVoterDoesNotFlipTheMajority(t *testing.T) {
	s := founded(t, short(3))
	const a, b, c = 0, 1, 2
	s.split(hosts(c), hosts(a, b))
	s.run(2 * s.delay())
	if owned, _ := s.ownedNow(a, b); owned != 12 {
		t.Fatalf("a and b own %d slots, want 12: c's should have been made again", owned)
	}
	s.o.Load.Browse = Range{time.Minute, time.Minute}
	s.arrive(a, 12)
	s.run(time.Second)
	from := s.now
	s.mend()
	s.split(hosts(a), hosts(b, c))
	s.reboot(b)
	s.arrive(c, 5)
	s.arrive(b, 5)
	s.run(10 * time.Second)
	for _, i := range []int{b, c} {
		if g := s.hosts[i].seen.status.Grade; g != eviction.Side {
			t.Errorf("%s has a %v lease with a voter that has forgotten everything, want side", s.hosts[i].name, g)
		}
	}
	if n := s.calls(from, b, c); n != 0 {
		t.Fatalf("%d visitors were called by a side that does not know who is on the site", n)
	}
	s.finish()
}

// Voters change one name at a time, while nodes join, die for good, say goodbye
// and lose sight of each other in the middle of the change. Any two quorums of
// neighbouring versions meet, so two sides never both go on; in the end the
// voters are exactly the nodes that are there.
func TestScenarioVotersGrowAndShrink(t *testing.T) {
	for step := range 8 { // what happens this many waves into each change
		for _, trouble := range []string{"nothing", "crash of the coordinator", "split", "lost commits", "restart of the newcomer"} {
			if trouble == "nothing" && step > 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d waves in", trouble, step), func(t *testing.T) { growAndShrink(t, trouble, step) })
		}
	}
}

func growAndShrink(t *testing.T, trouble string, step int) {
	o := short(3)
	o.Faults.Adds = 3
	o.Faults.Disk = true // a voter that forgets while another is gone is one too many of four
	s := founded(t, o)
	watch := &voterWatch{s: s, seen: map[uint64][]qpid.NodeID{}}
	s.tap = watch.look
	for i := 3; i < 6; i++ {
		s.arriveOver(none, 10, time.Second)
		s.addNode()
		s.until(3*time.Second, "a proposal", func() bool { return s.proposed() })
		s.run(time.Duration(step) * s.o.Cluster.Period / 2)
		s.voterTrouble(trouble, i, watch)
		s.until(12*time.Second, "the newcomer among the voters", func() bool { return s.voters() == i+1 })
	}
	for i := 5; i > 2; i-- {
		s.arriveOver(none, 10, time.Second)
		if i == 4 {
			s.goodbye(&s.hosts[i])
		} else {
			s.down(i)
			s.hosts[i].gone = true
		}
		s.run(time.Duration(step) * s.o.Cluster.Period / 2)
		s.voterTrouble(trouble, 1, watch)
		s.until(2*s.delay()+5*time.Second, "voters without the lost one", func() bool { return s.voters() == i })
	}
	s.run(time.Second)
	watch.check(t)
	s.finish()
}

// proposed reports whether a node has installed a proposal of other voters.
func (s *script) proposed() bool {
	for i := range s.hosts {
		if h := &s.hosts[i]; h.up() && h.seen.status.Voters.Next != nil {
			return true
		}
	}
	return false
}

// voters is how many there are of the newest version; 0 in the middle of a change.
func (s *script) voters() int {
	var newest eviction.Voters
	for i := range s.hosts {
		if h := &s.hosts[i]; h.up() && h.seen.status.Voters.Version > newest.Version {
			newest = h.seen.status.Voters
		}
	}
	if newest.Next != nil {
		return 0
	}
	return len(newest.Names)
}

func (s *script) voterTrouble(trouble string, newcomer int, watch *voterWatch) {
	switch trouble {
	case "crash of the coordinator":
		i := s.coordinator()
		s.down(i)
		s.run(1500 * time.Millisecond)
		s.boot(i)
	case "split":
		s.split(hosts(0, 1), hosts(2, 3, 4, 5)[:len(s.hosts)-2])
		s.run(1500 * time.Millisecond)
		s.mend()
	case "lost commits":
		watch.lossy = true
		s.run(500 * time.Millisecond)
		watch.lossy = false
	case "restart of the newcomer":
		if s.hosts[newcomer].up() {
			s.reboot(newcomer)
		}
	}
}

// voterWatch looks at the voters of all commits.
type voterWatch struct {
	s     *script
	lossy bool
	seen  map[uint64][]qpid.NodeID // version → names
	wrong []string
}

func (v *voterWatch) look(f *flight) verdict {
	c, ok := f.m.Body.(*eviction.Commit)
	if !ok || c.Grade < eviction.Primary || c.Voters.Version == 0 { // the same as before
		return pass
	}
	if names, ok := v.seen[c.Voters.Version]; ok && !slices.Equal(names, c.Voters.Names) {
		v.wrong = append(v.wrong, fmt.Sprintf("version %d is %v and %v", c.Voters.Version, names, c.Voters.Names))
	}
	v.seen[c.Voters.Version] = c.Voters.Names
	if next := c.Voters.Next; next != nil && apart(next, c.Voters.Names) != 1 {
		v.wrong = append(v.wrong, fmt.Sprintf("from %v to %v in one step", c.Voters.Names, next))
	}
	if v.lossy && f.to%2 == 0 {
		return lose
	}
	return pass
}

// apart counts the names that only one of two lists has.
func apart(a, b []qpid.NodeID) (n int) {
	for _, x := range a {
		if !slices.Contains(b, x) {
			n++
		}
	}
	for _, x := range b {
		if !slices.Contains(a, x) {
			n++
		}
	}
	return n
}

func (v *voterWatch) check(t *testing.T) {
	t.Helper()
	for _, w := range v.wrong {
		t.Error(w)
	}
	for version := uint64(2); version <= uint64(len(v.seen)); version++ {
		if n := apart(v.seen[version-1], v.seen[version]); n != 1 {
			t.Errorf("versions %d and %d are %d names apart: %v, %v", version-1, version, n, v.seen[version-1], v.seen[version])
		}
	}
	if len(v.seen) < 7 {
		t.Errorf("%d versions of voters, want 7 or more: %v", len(v.seen), v.seen)
	}
}

// A node is a quorum by itself, and its disk is bad since the other one came back with a
// number that is far higher. It goes on alone above that, crashes, and begins again below:
// nobody has ever heard of the numbers between. It knows of that life all the same, and
// waits for its passes. Seed 90010878 of the swarm.
func TestScenarioALonersNumbersThatItsDiskDoesNotHave(t *testing.T) {
	o := short(2)
	o.Faults.Disk = true
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	h := &s.hosts[0]
	h.disk.saveAt = 1 << 60 // no save is even tried
	s.reboot(1)
	s.until(5*time.Second, "one that goes on alone", func() bool {
		return s.sees(0, 1) && h.seen.status.Grade >= eviction.Primary && h.seen.status.Installed.Num > 1<<20
	})
	s.arrive(0, 12)
	s.run(2 * time.Second)
	alone := h.seen.status.Installed.Num
	s.down(1)
	s.down(0)
	s.boot(0)
	s.arrive(0, 30)
	s.until(time.Second, "its next life", func() bool { return h.seen.status.Grade >= eviction.Primary })
	if began := h.seen.status.Installed.Num; began >= alone {
		t.Fatalf("it begins at %d, and had been at %d", began, alone)
	}
	s.run(5 * time.Second)
	s.boot(1)
	s.finish()
}

// n00 and n01 are the voters, and n01 is cut off: n00 is a quorum by itself, and makes n01's free slots again when its lease
// is over, as others keep all visits of it. n01 is back before its account lapses, with n02, which is new, and neither hears a commit
// that speaks of the room. They do not become a quorum without n00, until they have: n01 would go on with the slots that it had.
//
// So it is with a version that does not tell how many rooms there are: who has never known votes at once.
func TestScenarioAVoidThatTheNextVotersHaveNotHeardOf(t *testing.T) {
	o := short(2)
	o.Cluster.Copies, o.Faults.Adds, o.Faults.Disk = 1, 1, true
	o.Rooms[0].Session, o.Load.Browse = time.Minute, Range{50 * time.Second, 50 * time.Second}
	s := founded(t, o)
	s.addHost(0)
	s.split(hosts(0), hosts(1))
	s.until(20*time.Second, "all slots at n00", func() bool { return s.hosts[0].seen.rooms[0].Owned == o.Rooms[0].Target })
	s.arrive(0, o.Rooms[0].Target)
	s.run(time.Second)
	s.tap = func(f *flight) verdict {
		c, ok := f.m.Body.(*eviction.Commit)
		if ok && f.to != 0 && len(c.Rooms) > 0 {
			return lose
		}
		if ok {
			f.m.Body = older(c)
		}
		return pass
	}
	s.mend()
	s.boot(2)
	s.until(5*time.Second, "n02 proposed to all", func() bool {
		return !slices.ContainsFunc(s.hosts, func(h host) bool { return len(h.seen.status.Voters.Next) != 3 })
	})
	s.run(2 * time.Second)
	s.split(hosts(0), hosts(1, 2))
	s.tap = nil
	s.arrive(1, 12)
	s.run(10 * time.Second)
	if g := s.hosts[1].seen.status.Grade; g >= eviction.Primary {
		t.Errorf("n01 and n02 are a quorum: %s", s.statuses())
	}
	s.mend()
	s.until(5*time.Second, "three voters", func() bool { return s.voters() == 3 })
	s.finish()
}
