package simtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// goes is for which line a host has given its vote on the second room.
func (s *script) goes(host int) eviction.Line {
	r := s.hosts[host].disk.kept.Rooms
	return r[slices.IndexFunc(r, func(r eviction.RoomRecord) bool { return r.Room.Name == "library" })].Goes.To
}

// leavesByAQuorum has six nodes become four on a line of which the voters have changed more often than those of the next, and n01
// and n02 go on alone, until n00 is with them: a quorum with which the library leaves that line for theirs. It returns when n01 has heard of it.
func leavesByAQuorum(t *testing.T) (s *script, first eviction.Line) {
	o := beside(6)
	o.Faults.Disk = true
	s = founded(t, o)
	for _, i := range []int{5, 4} {
		s.goodbye(&s.hosts[i])
		s.run(3 * time.Second)
	}
	first = s.hosts[0].seen.status.Line
	s.down(0)
	s.down(3)
	s.until(30*time.Second, "two alone", func() bool { return s.alone(1, 2) })
	s.boot(0)
	s.until(10*time.Second, "the room on their line", func() bool { return s.hosts[1].seen.rooms[library].Line != first })
	return s, first
}

// One of those with whom a room has left its line is with one who was not there, and both go on alone by the survivor_after of
// another room. They are half of the voters of the line that the room left, and have the lowest name; but those who have it
// are elsewhere.
func TestScenarioARoomDoesNotLeaveALineTwice(t *testing.T) {
	s, _ := leavesByAQuorum(t)
	s.run(3 * time.Second)
	s.split(hosts(1, 2), hosts(0, 3))
	s.boot(3)
	s.until(30*time.Second, "two alone", func() bool { return s.alone(0, 3) })
	s.arrive(0, 30)
	s.arrive(3, 30)
	s.run(5 * time.Second)
	s.slots(12, library, 1, 2)
	s.whole(0, 1, 2, 3)
}

// The same, where the node that made the quorum has not heard that the room has left: it has given its vote, also when it
// is restarted.
func TestScenarioAVoteForWhereARoomGoesIsGivenOnce(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %t", restarted), func(t *testing.T) {
			s, first := leavesByAQuorum(t)
			s.split(hosts(1, 2), hosts(0, 3))
			s.boot(3)
			if restarted {
				s.reboot(0)
			}
			s.until(30*time.Second, "two alone", func() bool { return s.alone(0, 3) })
			if on := s.hosts[0].seen.rooms[library].Line; on != first {
				t.Fatalf("n00 has heard that the room is on %v", on)
			}
			s.arrive(0, 30)
			s.arrive(3, 30)
			s.run(5 * time.Second)
			s.slots(0, library, 3)
			s.slots(12, library, 1, 2)
			s.whole(0, 1, 2, 3)
		})
	}
}

// Three nodes have gone on alone, each for the sake of one room. Two meet, and have given their votes for where the other one goes
// when one of them is with the third before it went: all are on a line that nobody has voted for. Then it goes there.
func TestScenarioAVoteForALineThatAllHaveLeft(t *testing.T) {
	o := beside(3)
	o.Faults.Disk = true
	s := founded(t, o)
	s.separate(hosts(0), hosts(1), hosts(2))
	s.mend()
	s.split(hosts(0), hosts(1, 2))
	s.until(10*time.Second, "two votes", func() bool { return s.goes(1).Founded() && s.goes(2).Founded() })
	s.split(hosts(1), hosts(0, 2))
	s.run(5 * time.Second)
	s.whole(0, 1, 2)
}

// Two of the three voters of a line have left it once, with their votes for it, and are back there when the room goes over to
// it, of which they do not hear. So they have not left it for good, and may go on there: their votes are not asked for again by
// those of an older line, though one of them goes over to that.
func TestScenarioAVoteForALineThatItsVotersAreBackOn(t *testing.T) {
	const c, a, b, d = 3, 4, 5, 6
	o := beside(7)
	o.Faults.Disk = true
	s := founded(t, o)
	older := hosts(0, 1, 2)
	s.split(older, hosts(c, a, b, d))
	s.run(time.Second)
	s.down(d)
	s.until(30*time.Second, "three alone", func() bool { return s.alone(older...) })
	s.until(30*time.Second, "three more alone", func() bool { return s.alone(c, a, b) })
	first, line := s.hosts[0].seen.status.Line, s.hosts[c].seen.status.Line
	s.boot(d)
	s.until(10*time.Second, "four votes", func() bool { return s.goes(c) == line && s.goes(a) == line && s.goes(b) == line && s.goes(d) == line })
	s.down(d)
	s.until(20*time.Second, "three voters", func() bool { return len(s.hosts[c].seen.status.Voters.Names) == 3 && s.alone(c, a, b) })
	for _, i := range []int32{a, b} {
		s.mend()
		s.split(append(hosts(i), older...), hosts(c, a+b-i))
		s.until(10*time.Second, "one who goes over", func() bool { return s.hosts[i].seen.status.Line == first })
		s.mend()
		s.split(older, hosts(c, a, b))
		s.until(10*time.Second, "one who is back", func() bool { return s.alone(c, a, b) })
	}
	s.tap = func(f *flight) verdict {
		if ofKind(mCommit, none, a)(f) || ofKind(mCommit, none, b)(f) {
			return lose
		}
		return pass
	}
	s.mend()
	s.split(older, hosts(c, a, b, d))
	s.boot(d)
	s.until(10*time.Second, "the room on their line", func() bool { return s.hosts[c].seen.rooms[library].Line == line })
	s.tap = func(f *flight) verdict {
		if ofKind(mCommit, none, a)(f) || ofKind(mCommit, none, b)(f) && len(s.hosts[0].seen.status.List) < 5 {
			return lose
		}
		return pass
	}
	s.mend()
	s.split(append(hosts(a, b), older...), hosts(c, d))
	s.until(10*time.Second, "one who goes over", func() bool { return s.hosts[b].seen.status.Line == first })
	s.run(1500 * time.Millisecond) // in which the room is in a wave
	s.tap = nil
	s.mend()
	s.split(append(hosts(b), older...), hosts(c, a, d))
	s.run(time.Second)
	s.slots(12, library, c, a, d)
	s.slots(0, library, append(hosts(b), older...)...)
	s.whole(0, 1, 2, c, a, b, d)
}

// votesAnew are five of whom n00, n01 and n03 are together: n00 and n01 had votes for a line of which nothing came, and n00 has voted
// anew. n01 has not heard that it should.
func votesAnew(t *testing.T) *script {
	t.Helper()
	o := beside(5)
	o.Faults.Disk = true
	s := founded(t, o)
	s.split(hosts(3), hosts(0, 1, 2, 4))
	s.run(time.Second)
	s.down(2)
	s.down(4)
	s.until(30*time.Second, "one alone", func() bool { return s.alone(3) })
	s.until(30*time.Second, "two alone", func() bool { return s.alone(0, 1) })
	first, line := s.hosts[3].seen.status.Line, s.hosts[0].seen.status.Line
	s.boot(2)
	s.until(10*time.Second, "three votes", func() bool { return s.goes(0) == line && s.goes(1) == line && s.goes(2) == line })
	s.down(2)
	s.until(20*time.Second, "two voters", func() bool { return len(s.hosts[0].seen.status.Voters.Names) == 2 && s.alone(0, 1) })
	s.mend()
	s.tap = func(f *flight) verdict {
		if ofKind(mCommit, none, 1)(f) && s.hosts[1].seen.status.Line == first {
			return lose
		}
		return pass
	}
	s.until(20*time.Second, "a vote anew", func() bool { return s.goes(0) != line })
	s.run(50 * time.Millisecond)
	s.tap = nil
	if s.goes(0) != first || s.goes(1) != line {
		t.Fatalf("votes for %v and %v", s.goes(0), s.goes(1))
	}
	return s
}

// Two nodes have left a line with their votes for it, which nothing came of, and are with a third: so all are asked for their votes
// anew. One of them does not hear of that. It is asked again, though the other one says nothing of that line any more, and two of the
// five are away.
func TestScenarioAVoteThatOneIsNotAskedForAnew(t *testing.T) {
	s := votesAnew(t)
	s.slots(12, library, 0, 1, 3)
	s.boot(2)
	s.boot(4)
	s.whole(0, 1, 2, 3, 4)
}

// The same, and all of them are started again once one has voted anew: also whoever found the line to be over.
func TestScenarioALineThatIsOverIsSoAfterRestarts(t *testing.T) {
	s := votesAnew(t)
	for _, i := range []int{0, 1, 3} {
		s.reboot(i)
	}
	s.until(10*time.Second, "three together", func() bool { return s.together(3) })
	s.slots(12, library, 0, 1, 3)
	s.boot(2)
	s.boot(4)
	s.whole(0, 1, 2, 3, 4)
}

// n07 has gone on alone, and so have n04, n05 and n06, a little later. n00 and n01 come to those: five of eight, with whom the library goes
// there; n02 and n03 come, too. No commit of the wave by which it goes, nor one after that, gets to n04, n05 or n06. Then these three are
// with n07, on its line, which is older, and then all are. Nobody is lost.
func TestScenarioThoseWhoHeardGoBackWithTheRest(t *testing.T) {
	o := beside(8)
	o.Faults.Disk = true
	s := founded(t, o)
	voters := hosts(4, 5, 6)
	s.split(hosts(7), hosts(0, 1, 2, 3, 4, 5, 6))
	s.run(time.Second)
	for i := range 4 {
		s.down(i)
	}
	s.until(30*time.Second, "n07 alone", func() bool { return s.alone(7) })
	s.until(30*time.Second, "three alone", func() bool { return s.alone(voters...) })
	line, first := s.hosts[4].seen.status.Line, s.hosts[4].seen.rooms[library].Line
	s.split(voters, hosts(0, 1, 2, 3))
	s.boot(0)
	s.boot(1)
	s.run(time.Second)
	for _, i := range voters {
		s.reboot(int(i)) // so that they do not lead
	}
	lost := map[int32]bool{}
	s.tap = func(f *flight) verdict {
		if c, ok := f.m.Body.(*eviction.Commit); ok && slices.Contains(voters, f.to) {
			for i := range c.Rooms {
				if r := &c.Rooms[i]; len(lost) > 0 || r.From == first && r.Line == line {
					lost[f.to] = true
					return lose
				}
			}
		}
		return pass
	}
	s.mend()
	s.split(hosts(7), hosts(0, 1, 2, 3, 4, 5, 6))
	has := func(at ...int32) bool {
		return !slices.ContainsFunc(at, func(i int32) bool { return s.hosts[i].seen.rooms[library].Line != line })
	}
	s.until(20*time.Second, "the room on their line", func() bool { return has(0, 1) })
	s.boot(2)
	s.boot(3)
	s.until(20*time.Second, "two more who have heard", func() bool { return has(0, 1, 2, 3) })
	s.tap = nil
	s.mend()
	s.split(hosts(4, 5, 6, 7), hosts(0, 1, 2, 3))
	s.until(20*time.Second, "the three with n07", func() bool { return s.alone(4, 5, 6, 7) })
	s.mend()
	for i := range s.hosts {
		s.reboot(i)
	}
	s.until(20*time.Second, "all together", func() bool { return s.together(8) })
	s.whole(0, 1, 2, 3, 4, 5, 6, 7)
}

// The library has gone with three of five to the line that two of them began, and all three have heard. One of them is with the others, on
// an older line: a majority of where the room was. It goes nowhere with them, but stays where it is.
func TestScenarioOneWhoLeavesARoomWhereItWentTakesItNowhere(t *testing.T) {
	o := beside(5)
	o.Faults.Disk = true
	s := founded(t, o)
	s.split(hosts(0, 1), hosts(2, 3, 4))
	s.run(time.Second)
	s.down(4)
	s.until(30*time.Second, "two alone", func() bool { return s.alone(0, 1) })
	s.until(30*time.Second, "two more alone", func() bool { return s.alone(2, 3) })
	older, line := s.hosts[0].seen.status.Line, s.hosts[2].seen.status.Line
	s.boot(4)
	s.until(10*time.Second, "three who have heard", func() bool {
		return !slices.ContainsFunc([]int{2, 3, 4}, func(i int) bool { return s.hosts[i].seen.rooms[library].Line != line })
	})
	s.run(time.Second)
	s.mend()
	s.split(hosts(0, 1, 4), hosts(2, 3))
	s.until(10*time.Second, "one who goes over", func() bool { return s.hosts[4].seen.status.Line == older })
	s.arrive(0, 30)
	s.arrive(2, 30)
	s.run(5 * time.Second)
	s.slots(0, library, 0, 1, 4)
	s.slots(12, library, 2, 3)
	s.whole(0, 1, 2, 3, 4)
}

// Two of five go on alone with one room. The other one stays on the line of the majority, which is told of a higher
// limit meanwhile. What the two say of its slots when they are with two of those is no later than what those say, though
// their waves are: the third has slots, too.
func TestScenarioARoomThatStaysBehindSaysNothingNewOfItsSlots(t *testing.T) {
	o := beside(5)
	o.Faults.Disk = true
	s := founded(t, o)
	s.split(hosts(0, 1, 2), hosts(3, 4))
	s.until(30*time.Second, "two alone", func() bool { return s.alone(3, 4) })
	room := o.Rooms[library]
	room.Target = 20
	s.setRoom(&s.hosts[0], library, room)
	s.reboot(3) // their numbers are higher after it
	s.reboot(4)
	s.until(30*time.Second, "two alone", func() bool { return s.alone(3, 4) })
	s.run(s.delay())
	s.slots(20, library, 0, 1, 2)
	s.mend()
	s.split(hosts(0), hosts(1, 2, 3, 4))
	s.until(10*time.Second, "a majority with the two", func() bool { return s.sees(2, 4) && s.hosts[2].seen.status.Grade >= eviction.Primary })
	s.slots(20, library, 1, 2, 3, 4)
	s.whole(0, 1, 2, 3, 4)
}
