package simtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// C is cut off, and somebody starts another node under its name, which joins A
// and B: by what a name says there are three voters, by who they are there are
// four. Then A is with the new C, and B with the old one. Both pairs have two of
// three names that know; a name votes only in the latest life that a primary wave
// has seen, and B was there when that was the new one.
func TestScenarioASecondLifeOfAVoterGivesNoSecondQuorum(t *testing.T) {
	for _, disk := range []bool{false, true} {
		t.Run(fmt.Sprintf("disk %t", disk), func(t *testing.T) {
			const a, b, c = 0, 1, 2
			o := short(3)
			o.Faults.Adds, o.Faults.Disk = 1, disk
			o.Load.Browse = Range{time.Minute, time.Minute}
			s := founded(t, o)
			twin := s.addHost(0)
			twin.name = s.hosts[c].name
			d := int(twin.index)
			s.split(hosts(c), hosts(a, b, int32(d)))
			s.boot(d)
			s.until(3*time.Second, "the new c among them", func() bool { return s.sees(d, 3) && s.hosts[d].seen.status.Knows })
			s.run(time.Second)
			if disk { // b remembers whom it saw last under the name
				s.reboot(b)
				s.until(3*time.Second, "b back", func() bool { return s.sees(b, 3) })
			}
			s.mend()
			s.split(hosts(a, int32(d)), hosts(b, c))
			s.arrive(a, 30)
			s.arrive(b, 30)
			for range 120 {
				s.run(100 * time.Millisecond)
				if s.leased(&s.hosts[a]) && s.leased(&s.hosts[b]) && s.hosts[a].seen.status.Grade >= eviction.Primary &&
					s.hosts[b].seen.status.Grade >= eviction.Primary && s.now > s.checker.installs[a]-100_000 && len(s.hosts[b].seen.status.List) == 2 &&
					len(s.hosts[a].seen.status.List) == 2 {
					t.Fatalf("two primaries: %s", s.statuses())
				}
			}
			if g := s.hosts[a].seen.status.Grade; g < eviction.Primary {
				t.Errorf("a and the new c have a %v lease: %s", g, s.statuses())
			}
			s.down(c) // one of the two has to go in the end
			s.hosts[c].gone = true
			s.finish()
		})
	}
}

// C is cut off, and somebody starts another node under its name, without its disk, which
// joins A and B. Then the first one restarts with its disk, and reaches B alone. Who has
// the disk is the node, but not once others have gone on with another one of that name.
func TestScenarioALifeWithItsDiskTakesNoVoteBack(t *testing.T) {
	const a, b, c = 0, 1, 2
	o := short(3)
	o.Faults.Adds, o.Faults.Disk = 1, true
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	twin := s.addHost(0)
	twin.name = s.hosts[c].name
	d := int(twin.index)
	s.split(hosts(c), hosts(a, b, int32(d)))
	s.boot(d)
	s.until(3*time.Second, "the new c among them", func() bool { return s.sees(d, 3) && s.hosts[d].seen.status.Knows })
	s.run(time.Second)
	s.mend()
	s.split(hosts(a, int32(d)), hosts(b, c))
	s.reboot(c)
	s.arrive(a, 30)
	s.arrive(b, 30)
	s.run(10 * time.Second)
	if g := s.hosts[a].seen.status.Grade; g < eviction.Primary {
		t.Errorf("a and the new c have a %v lease: %s", g, s.statuses())
	}
	if g := s.hosts[b].seen.status.Grade; g != eviction.Side {
		t.Errorf("b and the old c have a %v lease, want side: %s", g, s.statuses())
	}
	s.down(c) // one of the two has to go in the end
	s.hosts[c].gone = true
	s.finish()
}

// The first of two nodes of a name goes on alone, on a line of its own, by the
// survivor_after of one room, and a voter comes to it that has heard of the second one
// long ago. The other room has no survivor_after: there is a quorum of its line without
// them, of which the second one is part. What the first one has done since on its own
// line is no reason to vote on this one.
func TestScenarioASurvivorVotesOnItsOldLineAsItLeftIt(t *testing.T) {
	o := short(4)
	o.Faults.Adds = 1
	o.Load.Browse = Range{time.Minute, time.Minute}
	library := o.Rooms[0]
	library.Name = "library"
	o.Rooms[0].Survivor = time.Second
	o.Rooms = append(o.Rooms, library)
	s := founded(t, o)
	twin := s.addHost(0)
	twin.name = s.hosts[0].name
	d := int(twin.index)
	s.split(hosts(0), hosts(1, 2, 3, int32(d)))
	s.boot(d)
	s.until(3*time.Second, "the new one among them", func() bool { return s.sees(d, 4) && s.hosts[d].seen.status.Knows })
	first := s.hosts[0].seen.status.Line
	s.until(20*time.Second, "a survivor", func() bool { return s.hosts[0].seen.status.Line != first })
	s.mend()
	s.split(hosts(0, 1), hosts(2, 3, int32(d)))
	s.until(10*time.Second, "another one with the survivor", func() bool { return s.sees(1, 2) && s.hosts[1].seen.status.Line == s.hosts[0].seen.status.Line })
	for i := range 60 {
		s.arrive(i%4, 2)
		s.run(200 * time.Millisecond)
	}
	for r, room := range s.hosts[1].seen.rooms {
		if on := room.Line == first; on != (r == 1) {
			t.Errorf("room %s of the survivors is on the first line: %t", room.Room.Name, on)
		}
	}
	if g := s.hosts[2].seen.status.Grade; g < eviction.Primary {
		t.Errorf("those with the second one have a %v lease: %s", g, s.statuses())
	}
	s.down(0)
	s.hosts[0].gone = true
	s.finish()
}

// Two nodes of one name are in one wave, the first for the second one, and after it each is with one of the two other voters. Both remember it, and the second one
// has the vote of their name, as it comes after the other. It still does when that one is restarted with its disk, in lives that
// come after both: none of them was in the wave. Nor do they take a room that is still on that line, when those
// with them go on alone.
func TestScenarioALaterLifeWithADiskTakesNoVoteOfAWaveBefore(t *testing.T) {
	for _, c := range []struct {
		name     string
		restarts int
		room     bool
		seed     uint64 // draws in which order the lives come
	}{{"restarted", 1, false, 3}, {"restarted twice", 2, false, 3}, {"restarted often", eviction.LivesMax + 8, false, 3}, {"a room, restarted", 1, true, 3}, {"a room, restarted twice", 2, true, 3}, {"a room, restarted often", eviction.LivesMax + 8, true, 3}} {
		t.Run(c.name, func(t *testing.T) {
			const one, two, first = 0, 1, 2
			o := short(3)
			o.Seed, o.Faults.Adds, o.Faults.Disk = c.seed, 1, true
			o.Load.Browse = Range{time.Minute, time.Minute}
			if c.room {
				library := o.Rooms[0]
				library.Name = "library"
				o.Rooms[0].Survivor = 3 * time.Second
				o.Rooms = append(o.Rooms, library)
			}
			s := founded(t, o)
			twin := s.addHost(0)
			twin.name = s.hosts[first].name
			second := int(twin.index)
			s.arriveOver(one, 200*len(o.Rooms), time.Second) // so each wave speaks of each room: the second one need wait for none to vote
			s.boot(second)
			s.until(3*time.Second, "both in a wave", func() bool { return s.sees(first, 4) && s.sees(two, 4) && s.sees(second, 4) })
			line := s.hosts[second].seen.status.Line
			s.split(hosts(one, int32(second)), hosts(two, first))
			if a, b := s.hosts[first].disk.kept, s.hosts[second].disk.kept; a.Forgot || b.Forgot || a.Since != b.Since {
				t.Fatalf("not both remember that wave: %t in %d, %t in %d", !a.Forgot, a.Since, !b.Forgot, b.Since)
			}
			s.reboot(one) // it has asked the first one in no later wave
			if c.room {
				s.until(20*time.Second, "survivors", func() bool {
					return s.hosts[first].seen.status.Line != line && s.hosts[two].seen.status.Line == s.hosts[first].seen.status.Line
				})
			}
			for range c.restarts {
				s.reboot(first)
			}
			var boots []uint64
			for _, l := range s.lives {
				if l.member.Name == twin.name {
					boots = append(boots, l.member.Boot)
				}
			}
			if !slices.IsSorted(boots[:3]) {
				t.Fatalf("the lives do not come in this order: %d", boots)
			}
			for i := range 60 {
				s.arrive(i%3, 2)
				s.run(200 * time.Millisecond)
			}
			if st := s.hosts[one].seen.status; st.Grade < eviction.Primary || st.Line != line {
				t.Errorf("those with the second one have a %v lease: %s", st.Grade, s.statuses())
			}
			if g := s.hosts[two].seen.status.Grade; g != eviction.Side && !c.room {
				t.Errorf("those with the first one have a %v lease, want side: %s", g, s.statuses())
			}
			if on := s.hosts[two].seen.rooms[len(o.Rooms)-1].Line; on != line {
				t.Errorf("the room of those with the first one is on the line %v, want %v", on, line)
			}
			s.down(first) // one of the two has to go in the end
			s.hosts[first].gone = true
			s.finish()
		})
	}
}

// All nodes die, and one is restarted over and over while it is alone, in more lives than it tells of. It
// is a voter all the same: with one of the others it is a quorum.
func TestScenarioAVoterThatIsRestartedOftenStillVotes(t *testing.T) {
	for seed := range uint64(4) { // draws in which order the lives come
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := short(3)
			o.Seed, o.Faults.Disk = seed, true
			s := founded(t, o)
			s.run(time.Second)
			s.allDown()
			for range eviction.LivesMax + 2 {
				s.reboot(0)
				s.run(300 * time.Millisecond)
			}
			s.boot(1)
			s.until(10*time.Second, "a primary lease", func() bool { return s.hosts[0].seen.status.Grade >= eviction.Primary })
			s.check()
		})
	}
}

// The same, where another one has seen it in many waves that its disk does not have, and has run ever since.
func TestScenarioAVoterThatIsRestartedOftenIsNotItsOwnRival(t *testing.T) {
	o := short(3)
	o.Faults.Disk = true
	s := founded(t, o)
	s.run(10 * time.Second)
	s.down(2)
	s.split(hosts(0), hosts(1))
	for range eviction.LivesMax + 2 {
		s.reboot(0)
		s.run(300 * time.Millisecond)
	}
	s.mend()
	s.until(10*time.Second, "a primary lease", func() bool { return s.hosts[0].seen.status.Grade >= eviction.Primary })
	s.check()
}

// Two nodes of one name are restarted at once, cut off from all others and from each other, and go on alone at the
// same moment. The lines that they begin are two.
func TestScenarioTwoNodesOfANameBeginTwoLinesAtOnce(t *testing.T) {
	o := short(3)
	o.Faults.Adds, o.Faults.Disk = 1, true
	o.Rooms[0].Survivor = time.Second
	s := founded(t, o)
	twin := s.addHost(0)
	twin.name = s.hosts[2].name
	d := int(twin.index)
	s.split(hosts(2), hosts(0, 1, int32(d)))
	s.boot(d)
	s.until(3*time.Second, "the new one among them", func() bool { return s.sees(d, 3) && s.hosts[d].seen.status.Knows })
	first := s.hosts[d].seen.status.Line
	s.mend()
	s.split(hosts(0, 1), hosts(2), hosts(int32(d)))
	s.reboot(2)
	s.reboot(d)
	s.until(20*time.Second, "two survivors", func() bool {
		return s.hosts[2].seen.status.Line != first && s.hosts[d].seen.status.Line != first
	})
	a, b := s.hosts[2].seen.status.Line, s.hosts[d].seen.status.Line
	if a.Stamp != b.Stamp {
		t.Fatalf("they have not begun at once: %s", s.statuses())
	}
	if a == b {
		t.Errorf("both are on the line %v", a)
	}
	s.arrive(2, 12)
	s.arrive(d, 12)
	s.run(3 * time.Second)
	s.down(2)
	s.hosts[2].gone = true
	s.finish()
}
