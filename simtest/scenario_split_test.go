package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// A partition of 50 seconds, which is longer than gossip alone survives, with
// visitors waiting and arriving on both sides all the while. What each side may do
// is the room's policy. Afterwards all who waited get in, those of either side
// in one order.
func TestScenarioSplitOf50s(t *testing.T) {
	t.Parallel()
	const limit = 12
	for _, c := range []struct {
		name         string
		policy       eviction.Policy
		survivor     time.Duration
		large, small bool // the side goes on
		sides        int
	}{
		{"majority", eviction.Majority, 0, true, false, 0},
		{"share", eviction.Share, 0, true, true, 0},
		{"stop", eviction.Stop, 0, false, false, 0},
		{"majority with survivors", eviction.Majority, 10 * time.Second, true, true, 1},
	} {
		left := 0
		for seed, small := range [][]int32{hosts(3, 4), hosts(0, 1), hosts(0, 1), hosts(0, 2), hosts(0, 4)} { // with the coordinator, or without
			if seed > 1 && c.small == c.large && c.sides == 0 {
				continue // which line goes on, or who is back first, is a question of who hears of whom first
			}
			t.Run(fmt.Sprintf("%s, %v away, seed %d", c.name, small, seed+1), func(t *testing.T) {
				o := short(5)
				o.Seed = uint64(seed + 1)
				o.Rooms[0].OnPartition, o.Rooms[0].Survivor = c.policy, c.survivor
				if c.policy == eviction.Stop {
					o.Rooms[0].Session = time.Minute // after D the voters would do without the missing
				}
				s := founded(t, o)
				line := s.hosts[0].seen.status.Line
				large := hosts(0, 1, 2, 3, 4)
				for _, i := range small {
					large = without(large, i)
				}
				s.arriveOver(none, 60, time.Second)
				s.run(time.Second)
				s.split(small, large)
				s.run(3 * time.Second) // leases are over
				from := s.now
				for range 12 {
					s.arrive(int(small[0]), 2)
					s.arrive(int(large[0]), 2)
					s.run(4 * time.Second)
				}
				if n := s.calls(from, large...); c.large != (n > 0) {
					t.Errorf("the side of three called %d visitors", n)
				}
				if n := s.calls(from, small...); c.small != (n > 0) {
					t.Errorf("the side of two called %d visitors", n)
				}
				s.mend()
				s.until(5*time.Second, "one wave of all", func() bool { return s.together(5) })
				for i := range s.hosts {
					if got := s.hosts[i].seen.status.Line; got != line {
						t.Errorf("%s is on line %v, the older one is %v", s.hosts[i].name, got, line)
					}
				}
				s.run(time.Second) // every node has heard who was taken over
				healed := s.now
				s.finish()
				left += s.inOrder(healed)
				if got := s.checker.rooms[0].activeMax; got > limit*(1+c.sides) || s.checker.rooms[0].sides != c.sides {
					t.Errorf("at most %d visitors at once on %d sides of %d", got, 1+s.checker.rooms[0].sides, limit)
				}
				if s.queuedNow() != 0 {
					t.Errorf("%d visitors still wait", s.queuedNow())
				}
			})
		}
		if left == 0 && !c.small { // a node that is back first may let the cut pass all who wait at the other
			t.Errorf("%s: nobody was left to call when the sides met", c.name)
		}
	}
}

// With survivor_after a side without a quorum goes on alone after it: here every
// node but one dies, one after the other, and the last one serves. When the
// others return they have forgotten everything and follow the survivor.
func TestScenarioLastNodeStandingServes(t *testing.T) {
	for last := range 3 {
		t.Run(fmt.Sprintf("n%02d", last), func(t *testing.T) {
			o := short(3)
			o.Rooms[0].Survivor = 6 * time.Second
			s := founded(t, o)
			for i := range 3 {
				if i != last {
					s.down(i)
					s.run(300 * time.Millisecond)
				}
			}
			from := s.now
			s.arrive(last, 30)
			s.run(5 * time.Second)
			if n := s.calls(from + 3_000_000); last != 0 && n != 0 {
				t.Errorf("%d visitors were called by one node of three before survivor_after", n)
			}
			s.until(20*time.Second, "a survivor that has called everybody", func() bool { return s.calls(from) >= 30 })
			for i := range 3 {
				if i != last {
					s.boot(i)
				}
			}
			s.until(5*time.Second, "one wave of all", func() bool { return s.together(3) })
			for i := range s.hosts {
				if got, want := s.hosts[i].seen.status.Line, s.hosts[last].seen.status.Line; got != want {
					t.Errorf("%s is on line %v, the survivor on %v", s.hosts[i].name, got, want)
				}
			}
			s.finish()
		})
	}
}

// Three sides, none with a quorum, all go on after survivor_after. When they
// meet, the oldest of their lines goes on, the other ledgers are void, and
// nobody who waited is lost.
func TestScenarioSidesThatSurvivedMeet(t *testing.T) {
	for seed, order := range [][3][]int32{
		{hosts(0, 1), hosts(2, 3), hosts(4)},
		{hosts(4), hosts(0, 3), hosts(1, 2)},
		{hosts(3, 4), hosts(2), hosts(0, 1)},
		{hosts(0, 1), hosts(2, 3), hosts(4)},
		{hosts(0, 4), hosts(1, 2), hosts(3)},
	} {
		t.Run(fmt.Sprintf("%v, seed %d", order, seed), func(t *testing.T) {
			o := short(5)
			o.Seed = uint64(seed)
			o.Rooms[0].Survivor = 6 * time.Second
			s := founded(t, o)
			s.split(order[0], order[1], order[2])
			for i := range s.hosts {
				s.arrive(i, 8)
			}
			s.until(30*time.Second, "three sides that go on", func() bool {
				for i := range s.hosts {
					if s.hosts[i].seen.status.Grade < eviction.Primary || !s.leased(&s.hosts[i]) {
						return false
					}
				}
				return s.checker.rooms[0].sides == 3
			})
			oldest := s.hosts[0].seen.status.Line
			for i := range s.hosts {
				if l := s.hosts[i].seen.status.Line; l.Stamp < oldest.Stamp {
					oldest = l
				}
			}
			for i := range s.hosts {
				s.arrive(i, 8)
			}
			s.run(2 * time.Second)
			s.mend()
			s.until(10*time.Second, "one wave of all", func() bool { return s.together(5) })
			for i := range s.hosts {
				if got := s.hosts[i].seen.status.Line; got != oldest {
					t.Errorf("%s is on line %v, the oldest is %v", s.hosts[i].name, got, oldest)
				}
			}
			s.finish()
		})
	}
}

// Two clusters that were founded apart meet: the younger voids its ledgers and
// joins the older. Until its passes have run out there may be two limits' worth
// of visitors, afterwards one, and everybody in either line gets in.
func TestScenarioTwoClustersMeet(t *testing.T) {
	o := short(6)
	s := assemble(t, o)
	for i := range s.hosts {
		s.hosts[i].expect = 3
		s.agenda.push(int64(i)*100_000+int64(i/3)*1_000_000, evStart, int32(i), 0)
	}
	s.split(hosts(0, 1, 2), hosts(3, 4, 5))
	s.checker.rooms[0].sides = 1
	s.until(5*time.Second, "two clusters", func() bool { return s.sees(0, 3) && s.sees(3, 3) })
	older, younger := s.hosts[0].seen.status.Line, s.hosts[3].seen.status.Line
	if older == younger {
		t.Fatalf("both are on line %v", older)
	}
	s.run(time.Second)
	s.arriveOver(none, 80, time.Second)
	s.run(3 * time.Second)
	if a, b := s.calls(0, 0, 1, 2), s.calls(0, 3, 4, 5); a == 0 || b == 0 {
		t.Errorf("the clusters called %d and %d visitors", a, b)
	}
	s.mend()
	s.until(10*time.Second, "one cluster", func() bool { return s.together(6) })
	for i := range s.hosts {
		if got := s.hosts[i].seen.status.Line; got != older {
			t.Errorf("%s is on line %v, the older one is %v", s.hosts[i].name, got, older)
		}
	}
	s.run(2 * s.delay())
	s.checker.rooms[0].sides = 0
	s.arrive(0, 30)
	s.run(5 * time.Second)
	s.finish()
}
