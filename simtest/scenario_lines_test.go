package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// beside is a world whose second room never goes on without a quorum, while
// the first one does after six seconds: where nodes go on alone, it is for the
// first one's sake.
func beside(nodes int) Options {
	o := short(nodes)
	o.Rooms[0].Survivor = 6 * time.Second
	library := o.Rooms[0]
	library.Name, library.Survivor = "library", 0
	o.Rooms = append(o.Rooms, library)
	return o
}

// The second room of beside.
const library = 1

// mintedAt counts the slots that exist of a room at the nodes that run.
func (s *script) mintedAt(room int, at ...int32) (n int) {
	for _, i := range at {
		if h := &s.hosts[i]; h.up() {
			n += h.seen.rooms[room].Owned
		}
	}
	return n
}

// alone reports whether all of these hosts are on one survivors' line and act on it.
func (s *script) alone(at ...int32) bool {
	for _, i := range at {
		h := &s.hosts[i]
		if st := &h.seen.status; !s.leased(h) || st.Grade < eviction.Primary || !st.Voters.From.Founded() || len(st.List) != len(at) {
			return false
		}
	}
	return true
}

// foundOnly starts all nodes and lets them found, no more.
func (s *script) foundOnly() {
	s.t.Helper()
	for i := range s.hosts {
		s.hosts[i].expect = len(s.hosts)
	}
	s.launch()
	s.until(5*time.Second, "a founding", func() bool {
		for i := range s.hosts {
			if st := &s.hosts[i].seen.status; !st.Knows || st.Grade >= eviction.Primary {
				return false
			}
		}
		return true
	})
}

// separate cuts sides off from each other until each goes on alone.
func (s *script) separate(sides ...[]int32) {
	s.t.Helper()
	s.split(sides...)
	for _, side := range sides {
		s.until(30*time.Second, fmt.Sprintf("%v alone", side), func() bool { return s.alone(side...) })
	}
}

// slots demands that so many slots of a room exist at these hosts, once all that
// can be made has been.
func (s *script) slots(want, room int, at ...int32) {
	s.t.Helper()
	s.run(2 * s.delay())
	if n := s.mintedAt(room, at...); n != want {
		s.t.Errorf("%d slots of room %s at %v, want %d", n, s.o.Rooms[room].Name, at, want)
	}
}

// whole mends all splits and demands the limit of every room.
func (s *script) whole(at ...int32) {
	s.t.Helper()
	s.mend()
	s.until(10*time.Second, "one wave of all", func() bool { return s.together(len(at)) })
	s.run(s.delay())
	for room := range s.o.Rooms {
		s.slots(s.hosts[at[0]].seen.rooms[room].Room.Target, room, at...)
	}
	s.finish()
}

// A founding that reaches everybody, and a split before the first primary wave:
// no room has been on any line yet. Each side goes on alone for the sake of one
// room. The other one, with survivor_after 0, is not new there: whoever has a
// majority of the founders has it, and nobody else.
func TestScenarioSplitBeforeTheFirstPrimaryWave(t *testing.T) {
	for _, c := range []struct {
		sides [][]int32
		has   []int32 // the side that has the second room; nil: none
	}{
		{[][]int32{hosts(0, 1), hosts(2)}, hosts(0, 1)},
		{[][]int32{hosts(0), hosts(1, 2)}, hosts(1, 2)},
		{[][]int32{hosts(0), hosts(1), hosts(2)}, nil},
	} {
		t.Run(fmt.Sprint(c.sides), func(t *testing.T) {
			s := assemble(t, beside(3))
			s.foundOnly()
			s.split(c.sides...)
			s.run(5 * time.Second)
			for n := 0; n < 100 && !s.alone(c.sides[0]...); n++ { // all rooms are in the wave that begins a survivors' line
				for i := range s.hosts {
					for room := range s.o.Rooms {
						s.setRoom(&s.hosts[i], room, s.o.Rooms[room])
					}
				}
				s.run(50 * time.Millisecond)
			}
			for _, side := range c.sides {
				s.until(10*time.Second, fmt.Sprintf("%v alone", side), func() bool { return s.alone(side...) })
			}
			for _, side := range c.sides {
				want := 0
				if c.has != nil && side[0] == c.has[0] {
					want = 12
				}
				s.slots(want, library, side...)
				s.slots(12, 0, side...)
			}
			s.whole(0, 1, 2)
		})
	}
}

// A room that is made while two nodes of five go on alone, at both sides: the
// majority has it, and the two do not, with survivor_after 0. Nor do they when it
// is deleted and made again.
func TestScenarioARoomIsMadeOnASurvivorsLine(t *testing.T) {
	o := beside(5)
	s := assemble(t, o)
	s.unmade = 1
	s.begin()
	s.split(hosts(0, 1, 2), hosts(3, 4))
	s.until(30*time.Second, "two nodes alone", func() bool { return s.alone(3, 4) })
	both := func(mode eviction.Mode) {
		room := o.Rooms[library]
		room.Mode = mode
		s.setRoom(&s.hosts[4], library, room)
		s.setRoom(&s.hosts[0], library, room)
		s.run(time.Second)
	}
	for range 2 {
		both(eviction.Normal)
		s.slots(0, library, 3, 4)
		s.slots(12, library, 0, 1, 2)
		both(eviction.Deleted)
		s.run(2 * s.delay())
	}
	both(eviction.Normal)
	s.whole(0, 1, 2, 3, 4)
}

// The same at a node that was never on the line that the others have the room on:
// it joined survivors, all of whom have left since.
func TestScenarioANewcomerInheritsASurvivorsLine(t *testing.T) {
	o := beside(3)
	o.Faults.Adds = 2
	s := assemble(t, o)
	s.unmade = 1
	s.begin()
	s.addHost(0)
	s.addHost(0)
	s.split(hosts(0, 1), hosts(2, 3, 4))
	s.until(30*time.Second, "one node alone", func() bool { return s.alone(2) })
	for _, with := range [][]int32{hosts(2, 3), hosts(2, 3, 4)} { // one after the other: the voters change between them
		s.boot(len(with) + 1)
		s.until(10*time.Second, "a newcomer", func() bool { return s.alone(with...) })
		s.run(2 * time.Second)
	}
	for _, without := range [][]int32{hosts(3, 4), hosts(4)} {
		s.goodbye(&s.hosts[without[0]-1])
		s.until(10*time.Second, "one less", func() bool { return s.alone(without...) })
		s.run(2 * time.Second)
	}
	s.setRoom(&s.hosts[4], library, o.Rooms[library])
	s.setRoom(&s.hosts[0], library, o.Rooms[library])
	s.slots(0, library, 4)
	s.slots(12, library, 0, 1)
	s.whole(0, 1, 4)
}

// Three sides, none with a quorum, go on alone with one room. Two of them meet: a
// majority of the line that all of them left, so both have the other room, and the
// third does not. It makes no difference whether that room had slots before the
// split, was founded and no more, or was made while it lasted; nor that the nodes
// are started anew from their disks.
func TestScenarioSurvivorsOfOneLineMeet(t *testing.T) {
	for _, c := range []string{"founded", "slots", "made later", "slots, restarted"} {
		t.Run(c, func(t *testing.T) {
			o := beside(5)
			o.Faults.Disk = c == "slots, restarted"
			s := assemble(t, o)
			if c == "made later" {
				s.unmade = 1
			}
			if c == "founded" {
				s.foundOnly()
			} else {
				s.begin()
			}
			s.separate(hosts(0, 1), hosts(2, 3), hosts(4))
			if c == "made later" {
				for _, i := range hosts(0, 3, 4) {
					s.setRoom(&s.hosts[i], library, o.Rooms[library])
				}
			}
			if o.Faults.Disk {
				for i := range s.hosts {
					s.reboot(i)
				}
				s.until(10*time.Second, "the sides back", func() bool { return s.alone(0, 1) && s.alone(2, 3) && s.alone(4) })
			}
			for _, side := range [][]int32{hosts(0, 1), hosts(2, 3), hosts(4)} {
				s.slots(0, library, side...)
			}
			s.mend()
			s.split(hosts(0, 1, 2, 3), hosts(4))
			s.until(10*time.Second, "two sides together", func() bool { return s.alone(0, 1, 2, 3) })
			s.slots(12, library, 0, 1, 2, 3)
			s.slots(0, library, 4)
			s.whole(0, 1, 2, 3, 4)
		})
	}
}

// A room follows the nodes to a survivors' line after its own survivor_after, not
// after that of the room whose time is up first: also one that was never on a
// line, and at nodes that were started anew meanwhile.
func TestScenarioARoomSurvivesInItsOwnTime(t *testing.T) {
	for _, c := range []string{"founded", "slots", "slots, restarted"} {
		t.Run(c, func(t *testing.T) {
			o := beside(3)
			o.Rooms[library].Survivor = 20 * time.Second
			o.Faults.Disk = c == "slots, restarted"
			s := assemble(t, o)
			if c == "founded" {
				s.foundOnly()
			} else {
				s.begin()
			}
			s.split(hosts(0, 1), hosts(2))
			from := s.now
			s.run(time.Second)
			if o.Faults.Disk {
				s.reboot(2)
				from = s.now
			}
			s.until(10*time.Second, "one node alone", func() bool { return s.alone(2) })
			s.run(time.Duration(from-s.now)*time.Microsecond + 18*time.Second)
			if n := s.mintedAt(library, 2); n != 0 {
				t.Errorf("%d slots of the second room before its time", n)
			}
			s.slots(12, library, 2)
			s.whole(0, 1, 2)
		})
	}
}

// Nodes that have each gone on alone meet. Meanwhile the limit was lowered at those whose
// line ends: on the one that goes on there are more slots than that, whatever the others
// say of theirs, so nobody is called. Seeds 90012359 and 90016297 of the swarm.
func TestScenarioALineThatGoesOnHasItsOwnSupply(t *testing.T) {
	o := short(3)
	o.Rooms[0].Survivor = 6 * time.Second
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.separate(hosts(0), hosts(1), hosts(2))
	s.run(s.delay())
	oldest := 0
	for i := range s.hosts {
		if s.hosts[i].seen.status.Line.Stamp < s.hosts[oldest].seen.status.Line.Stamp {
			oldest = i
		}
	}
	s.arrive(oldest, 4)
	s.run(time.Second)
	lower := s.hosts[oldest].seen.rooms[0].Room
	lower.Target = 3
	for i := range s.hosts {
		if i != oldest {
			s.setRoom(&s.hosts[i], 0, lower)
		}
	}
	s.run(time.Second)        // the others have installed it, in later waves than any of the oldest
	s.arrive((oldest+1)%3, 8) // of whom most wait, where the line will be one with slots to spare
	s.run(time.Second)
	s.mend()
	s.until(10*time.Second, "one wave of all", func() bool { return s.together(3) })
	s.run(time.Second)
	if line := s.hosts[oldest].seen.rooms[0].Line; line != s.hosts[(oldest+1)%3].seen.rooms[0].Line || s.hosts[oldest].seen.rooms[0].Now.Target != 3 {
		t.Fatalf("the others are not on line %v with a limit of 3: %s", line, s.ledgers(0))
	}
	s.finish()
}

// One of three, b, starts again cut off, and goes on alone for the sake of one room. The
// others go on with the line that it left, let people into the room with survivor_after 0,
// and end. One of them comes back with its disk and meets b, which remembers, and is a quorum
// of its own line: but not when those who are lost were last in a wave of the first line.
// For all that is known that was just before the one with the disk started, and the room, of
// which these two are a quorum, has no slots before D is over from there. Seed 5000011 of
// the swarm.
func TestScenarioASurvivorDoesNotKnowWhenOthersMetOnTheLineThatItLeft(t *testing.T) {
	const a, b, c = 0, 1, 2
	o := beside(3)
	o.Faults.Disk = true
	o.Load.Browse = Range{time.Minute, time.Minute}
	o.Rooms[library].Session, o.Rooms[library].NoRenewal = 10*time.Second, true
	s := founded(t, o)
	s.split(hosts(a, c), hosts(b))
	s.reboot(b)
	from := s.now
	s.until(10*time.Second, "b alone", func() bool { return s.alone(b) })
	s.run(time.Duration(from-s.now)*time.Microsecond + 11*time.Second) // b still votes on the first line; D, 12.45 s, will be over since it started when it meets the other one
	for range 8 {                                                      // the other four are still waited for
		s.visitTo(library, a)
	}
	s.down(c)
	s.down(a)
	s.boot(a)
	last := s.now
	s.mend()
	s.until(6*time.Second, "a with b", func() bool { return s.alone(a, b) })
	s.run(time.Duration(last-s.now)*time.Microsecond + 12*time.Second)
	if n := s.mintedAt(library, a, b); n != 0 {
		t.Errorf("%d slots of the second room while those who are lost may have all", n)
	}
	s.slots(12, library, a, b)
	s.boot(c)
	s.whole(a, b, c)
}
