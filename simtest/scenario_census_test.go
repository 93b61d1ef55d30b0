package simtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// All nodes die at once. From then on one of them dies again every 1.5 s, three times as often as D
// takes, and another may never come back. D after the crash everybody else has the room whole:
// whoever comes and goes has none of what was there before.
func TestScenarioWhoComesAndGoesKeepsNoRoomShut(t *testing.T) {
	for _, loops := range []int{0, 2} { // the coordinator, and another one
		for _, missing := range []bool{false, true} {
			for _, visits := range []bool{false, true} {
				t.Run(fmt.Sprintf("n%02d, one missing %t, visits on disk %t", loops, missing, visits), func(t *testing.T) {
					o := short(5) // without two of them the others are a quorum
					o.Faults.Disk, o.Faults.Visits = true, visits
					s := founded(t, o)
					s.crashOfAll(missing)
					from := s.now
					s.arriveOver(1, 30, 100*time.Millisecond)
					for s.now-from < (s.delay() + 2500*time.Millisecond).Microseconds() {
						s.run(1500 * time.Millisecond)
						s.reboot(loops)
					}
					if n := s.calls(from); n < 12-12/3 { // what is with the one that has just died is not made again yet
						t.Errorf("%d were called %v after the crash: %s%s", n, micros(s.now-from), s.statuses(), s.ledgers(0))
					}
					s.finish()
				})
			}
		}
	}
}

// crashOfAll ends all processes at once and starts them again a second later, the last one only if it
// is not missing.
func (s *script) crashOfAll(missing bool) {
	s.t.Helper()
	back := s.o.Nodes
	s.allDown()
	s.run(time.Second)
	if missing {
		back--
		s.hosts[back].gone = true
	}
	for i := range back {
		s.boot(i)
	}
	s.until(3*time.Second, "waves of all", func() bool { return s.together(back) })
}

// counting reports whether the newest commit carries a census of the first room.
func (s *script) counting() bool {
	c := s.checker.commits
	return len(c) > 0 && len(c[len(c)-1].commit.Rooms) > 0 && c[len(c)-1].commit.Rooms[0].Census != nil
}

// Everybody who was there when the slots were counted is restarted before D is over, one after the
// other: those who came since know how old the census is.
func TestScenarioACensusOutlivesWhoTookIt(t *testing.T) {
	o := short(5)
	o.Faults.Disk = true
	o.Rooms[0].Session = 6 * time.Second
	o.Net.Latency = Range{20 * time.Millisecond, 30 * time.Millisecond}
	s := founded(t, o)
	s.crashOfAll(true)
	s.until(2*time.Second, "a census", s.counting)
	from, d := s.now, s.delay().Microseconds()
	s.arriveOver(0, 30, 100*time.Millisecond)
	for i := range 4 {
		s.run(1900 * time.Millisecond)
		s.reboot(i)
	}
	s.until(3*time.Second, "a call", func() bool { return s.calls(from) > 0 })
	if took := s.now - from; took < d-100_000 || took > d+1_000_000 {
		t.Errorf("called %v after the census, D is %v", micros(took), micros(d))
	}
	s.finish()
}

// All die, and two of three are back: they count what there is, which is nothing. When the third is
// back as well, all go on with their visits, of which the census has none. Somebody who has done so is cut
// off, extends passes, and dies, before the slots are counted again: these visits are waited for from then on.
func TestScenarioVisitsThatGoOnEndACensus(t *testing.T) {
	s := founded(t, onDisks(3))
	in := s.halfFull()
	s.allDown()
	s.boot(0)
	s.boot(1)
	s.until(5*time.Second, "a census", s.counting)
	s.run(30 * time.Second)
	s.arriveOver(0, 30, 100*time.Millisecond)
	s.boot(2)
	s.until(5*time.Second, "visits to go on", func() bool { return s.hosts[1].n.WentOn() })
	s.split(hosts(1), hosts(0, 2))
	for _, b := range in {
		if before := b.pass; before.Home.Member.Name == s.hosts[1].name {
			s.until(time.Second, "a pass that is extended", func() bool { return b.must(1, opRefresh).Pass.Expires > before.Expires })
		}
	}
	s.down(1)
	s.hosts[1].gone = true
	s.run(s.delay() + 20*time.Second)
	s.finish()
}

// All die, and four of five are back and count what there is: nothing. When the fifth is back the wave that
// has the visits go on is heard by nobody but its coordinator, which extends passes and is cut off: the others
// are a quorum, and what they had counted is without these visits.
func TestScenarioVisitsGoOnWhenNobodyHoldsACensus(t *testing.T) {
	s := founded(t, onDisks(5))
	in := s.halfFull()
	s.allDown()
	for i := range 4 {
		s.boot(i)
	}
	s.until(5*time.Second, "a census", s.counting)
	s.run(30 * time.Second)
	unheard := false
	s.tap = func(f *flight) verdict {
		if c, ok := f.m.Body.(*eviction.Commit); ok && len(c.Rooms) > 0 && c.Rooms[0].Resume {
			unheard = true
			return lose
		}
		return pass
	}
	s.boot(4)
	s.until(10*time.Second, "a commit that has visits go on", func() bool { return unheard })
	s.split(hosts(0), hosts(1, 2, 3, 4))
	s.tap = nil
	for _, b := range in {
		if before := b.pass; before.Home.Member.Name == s.hosts[0].name {
			s.until(time.Second, "a pass that is extended", func() bool { return b.must(0, opRefresh).Pass.Expires > before.Expires })
		}
	}
	s.arriveOver(1, 30, 100*time.Millisecond)
	s.run(s.delay() + 20*time.Second)
	s.finish()
}

// Four of seven die at once, so that nobody can tell how many slots there are, and x for good, with
// slots on the way to c, which does not hear of it, takes them, and is lost as well: what was counted
// while c might still take something has to have it.
func TestScenarioACensusWaitsUntilAllKnowOfTheLost(t *testing.T) {
	const a, c, x = 0, 2, 3
	o := short(7)
	o.Faults.Disk = true
	s := founded(t, o)
	slots, deaf := ofKind(mSlots, x, c), false
	s.tap = func(f *flight) verdict {
		switch {
		case slots(f):
			return keep
		case deaf && f.kind == mCommit && f.to == c:
			return lose
		}
		return pass
	}
	var in []*browser
	for range 12 {
		b := s.browser()
		b.must(c, opJoin)
		in = append(in, b)
	}
	stay := func(d time.Duration) { // on the site, as those who are called come
		for from := s.now; s.now-from < d.Microseconds(); s.run(100 * time.Millisecond) {
			for _, b := range in {
				if a, err := b.ask(c, opCheckIn); err == nil && a.State == node.Called {
					_, _ = b.ask(c, opLeave)
				} else if b.pass != (node.Pass{}) {
					_, _ = b.ask(c, opRefresh)
				}
			}
		}
	}
	s.until(2*time.Second, "a transfer from x to c", func() bool { return len(s.kept) > 0 })
	stay(300 * time.Millisecond)
	s.kept, deaf = s.kept[:1], true
	for _, i := range []int{1, 4, 5, 6} {
		s.reboot(i)
	}
	s.down(x)
	s.hosts[x].gone = true
	s.until(2*time.Second, "waves without x", func() bool { return s.sees(a, 6) })
	s.release()
	s.tap = nil
	stay(2800 * time.Millisecond)
	s.split(hosts(c), hosts(a, 1, 4, 5, 6))
	stay(time.Second)
	s.arrive(a, 5)
	s.run(2 * s.delay())
	s.finish()
}

// One node is lost for good, or all died and what they had has been counted. The coordinator dies and is back
// at once, and another node is not heard for a moment, nor hears who would come to it: the next wave is one of
// a quorum, but those in it that remember how many slots there are, or were, are none. What they know stands
// until that one is back, so that what was counted is there D after the crash. Where one was lost, they do not know
// that it was in no wave since: its slots are there D after that wave.
func TestScenarioWhatTooFewRememberStandsUntilOthersAreBack(t *testing.T) {
	const first, next, away, lost = 0, 1, 2, 4
	for seed := uint64(2); seed < 5; seed++ {
		for _, all := range []bool{false, true} {
			t.Run(fmt.Sprintf("all had died %t, seed %d", all, seed), func(t *testing.T) {
				o := short(5)
				o.Seed = seed
				o.Faults.Disk = true
				o.Rooms[0].Session = 6 * time.Second
				s := founded(t, o)
				if all {
					s.crashOfAll(true)
					s.until(2*time.Second, "a census", s.counting)
				} else {
					s.down(lost)
					s.hosts[lost].gone = true
				}
				from := s.now
				s.arriveOver(next, 30, 100*time.Millisecond)
				s.run(s.delay() / 2)
				unheard := ofKind(mProbeAck, away, next)
				s.tap = func(f *flight) verdict {
					if unheard(f) || f.kind == mProbeAck && f.to == away {
						return lose
					}
					return pass
				}
				had, _ := s.ownedNow()
				if !all {
					from = s.now
				}
				s.reboot(first)
				s.until(2*time.Second, "a wave of three", func() bool {
					h := &s.hosts[next].seen.status
					return h.Leading && len(h.List) == 3 && slices.Contains(h.List, s.hosts[first].member(s.world))
				})
				s.tap = nil
				s.until(2*time.Second, "all four", func() bool { return s.together(4) })
				if took := time.Duration(s.now-from) * time.Microsecond; took > s.delay()-time.Second {
					t.Fatalf("all are back only after %v", took)
				}
				s.until(2*s.delay(), "slots of the lost", func() bool { owned, _ := s.ownedNow(); return owned > had })
				if took := time.Duration(s.now-from) * time.Microsecond; took > s.delay()+time.Second {
					t.Errorf("no slot is made again for %v, D is %v", took, s.delay())
				}
				s.finish()
			})
		}
	}
}

// Two of seven die for good, and two more are restarted: three remember, and would be a quorum with the two. One
// comes and goes from then on, so that somebody is always lost. What the two remember is waited for until they are
// taken for lost, and no longer: then slots are counted, and D later all are there but those of who has died last.
func TestScenarioWhatTooFewRememberIsGivenUpWithThoseWhoAreLost(t *testing.T) {
	const loops, forgets, next = 0, 2, 1
	o := short(7)
	o.Faults.Disk = true
	s := founded(t, o)
	for _, i := range []int{5, 6} {
		s.down(i)
		s.hosts[i].gone = true
	}
	s.reboot(forgets)
	s.reboot(loops)
	from := s.now
	s.arriveOver(next, 30, 100*time.Millisecond)
	for s.now-from < (s.delay() + o.Cluster.ExcludeAfter + 2*time.Second).Microseconds() {
		s.run(1500 * time.Millisecond)
		s.reboot(loops)
	}
	if owned, _ := s.ownedNow(); owned < 12-12/3 {
		t.Errorf("%d slots %v after two died for good: %s%s", owned, micros(s.now-from), s.statuses(), s.ledgers(0))
	}
	s.finish()
}

// Two of five nodes that have no disks are restarted, and two more die: the one that is left of those who remember
// how many slots there are would be a quorum with the two, so that a wave leaves what it knows as it is. It
// sends the restarted ones slots, and dies when one of the two is back, before any of the others has been in a
// wave of theirs that asks about this room: those know all the same that there may be as many slots as before, and
// call nobody under a lower limit.
//
// So it is with a version that does not tell how many rooms there are: who has forgotten votes at once.
func TestScenarioWhoRemembersNoSupplyHearsOfTheNewest(t *testing.T) {
	const a, b, c, d, e = 0, 1, 2, 3, 4
	o := short(5)
	o.Seed = 1005
	o.Cluster.ExcludeAfter, o.Cluster.Lease = 2500*time.Millisecond, 6*time.Second
	o.Cluster.WaveBytes = 1 // the rooms take turns
	o.Rooms[0].Session = 6 * time.Second
	o.Load.Browse = Range{20 * time.Second, 20 * time.Second}
	other := o.Rooms[0]
	other.Name = "tickets"
	o.Rooms = append(o.Rooms, other)
	s := founded(t, o)
	stood := false
	s.tap = func(f *flight) verdict {
		if m, ok := f.m.Body.(*eviction.Commit); ok {
			f.m.Body = older(m)
			for i := range m.Rooms {
				stood = stood || m.Rooms[i].Room == "shop" && m.Rooms[i].Stands != nil
			}
		}
		return pass
	}
	for _, h := range []int{a, b, d} {
		s.arrive(h, 2)
	}
	s.run(1097 * time.Millisecond)
	s.reboot(c)
	s.reboot(e)
	s.run(276 * time.Millisecond)
	s.down(b)
	s.down(d)
	stood = false
	s.until(1500*time.Millisecond, "a wave that leaves what is known", func() bool { return stood })
	s.arrive(c, 2)
	s.arrive(e, 2)
	s.run(486 * time.Millisecond)
	s.boot(b)
	s.until(3*time.Second, "b in a wave of four", func() bool {
		return len(s.hosts[b].seen.status.List) == 4 && len(s.hosts[c].seen.status.List) == 4 && len(s.hosts[e].seen.status.List) == 4
	})
	s.down(a)
	s.limit(c, 5)
	from := s.now
	s.arrive(c, 5)
	s.run(6 * time.Second)
	if n := s.calls(from); n > 0 {
		t.Errorf("%d were called, and more slots may exist than the limit%s", n, s.ledgers(0))
	}
	s.check()
}
