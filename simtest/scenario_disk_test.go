package simtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// onDisks is a cluster whose nodes have their visits on disks, with sessions so long that D is
// not over in any of these tests.
func onDisks(nodes int) Options {
	o := short(nodes)
	o.Faults.Disk, o.Faults.Visits = true, true
	o.Rooms[0].Session, o.Rooms[0].TicketTTL = 2*time.Minute, time.Hour
	return o
}

// allDown ends all processes at once.
func (s *script) allDown() {
	for i := range s.o.Nodes {
		s.down(i)
	}
}

// powerCut ends all processes at once, and starts them again.
func (s *script) powerCut(away time.Duration) {
	s.allDown()
	s.run(away)
	for i := range s.o.Nodes {
		s.boot(i)
	}
}

// halfFull brings as many on the site as half of the limit, and returns them.
func (s *script) halfFull() (in []*browser) {
	for i := range 6 {
		in = append(in, s.visit(i%s.o.Nodes))
	}
	s.run(500 * time.Millisecond)
	return in
}

// All nodes die at once, and are back. Nobody waits until the passes of before have run out: as
// soon as those who waited had the time to come back, what is free of the limit is used, in order,
// and who was on the site goes on.
func TestScenarioVisitsGoOnAfterACrashOfEverything(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3, 5} {
		for _, copies := range []int{0, 1} {
			t.Run(fmt.Sprintf("%d nodes, copies %d", nodes, copies), func(t *testing.T) {
				o := onDisks(nodes)
				o.Cluster.Copies = copies
				s := founded(t, o)
				in := s.halfFull()
				s.powerCut(time.Second)
				from := s.now
				s.arriveOver(none, 10, 100*time.Millisecond)
				s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
				t.Logf("what is free of the limit was used %v after the last was back", time.Duration(s.now-from)*time.Microsecond)
				if n := s.calls(from); n > 6 {
					t.Errorf("%d were called, and 6 of 12 are on the site", n)
				}
				s.inOrder(from)
				for i, b := range in {
					before := b.pass
					a := b.must((i+1)%nodes, opRefresh)
					if a.Pass.Expires <= before.Expires || a.Pass.Home == before.Home {
						t.Errorf("the pass of visitor %d does not go on: %+v, before %+v", i, a.Pass, before)
					}
				}
				b := in[0]
				b.must(0, opEnd)
				s.until(2*time.Second, "a call for who has left", func() bool { return s.calls(from) >= 7 })
				s.finish()
			})
		}
	}
}

// One of three does not come back: what it had is waited for, as without disks.
func TestScenarioVisitsOfOneThatDoesNotComeBackAreWaitedFor(t *testing.T) {
	o := onDisks(3)
	o.Rooms[0].Session = 10 * time.Second
	s := founded(t, o)
	s.halfFull()
	s.allDown()
	from := s.now
	s.boot(0)
	s.boot(1)
	s.arriveOver(0, 10, 100*time.Millisecond)
	s.run(s.delay() - 2*time.Second)
	if n := s.calls(from); n > 0 {
		t.Errorf("%d were called before D was over", n)
	}
	s.until(5*time.Second, "calls after D", func() bool { return s.calls(from) > 0 })
	s.finish()
}

// The last of three is back long after the others, within D: then all go on.
func TestScenarioVisitsGoOnWhenTheLastIsBack(t *testing.T) {
	s := founded(t, onDisks(3))
	s.halfFull()
	s.allDown()
	s.boot(0)
	s.boot(1)
	s.run(20 * time.Second)
	s.reboot(0) // it has two earlier lives now
	s.run(10 * time.Second)
	from := s.now
	s.boot(2)
	s.arriveOver(0, 10, 100*time.Millisecond)
	s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
	s.finish()
}

// A node alone dies again and again.
func TestScenarioVisitsGoOnThroughManyLives(t *testing.T) {
	s := founded(t, onDisks(1))
	in := s.halfFull()
	for i := range 5 {
		s.down(0)
		s.run(300 * time.Millisecond)
		s.boot(0)
		s.run([]time.Duration{0, 100 * time.Millisecond, 150 * time.Millisecond, time.Second, 3 * time.Second}[i])
	}
	from := s.now
	s.arriveOver(0, 10, 100*time.Millisecond)
	s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
	for i, b := range in {
		if a := b.must(0, opRefresh); a.Pass.Home.Member != s.hosts[0].member(s.world) {
			t.Errorf("the pass of visitor %d does not go on: %+v", i, a.Pass)
		}
	}
	s.finish()
}

// What a disk has of visits is damaged: they are waited for, as without disks.
func TestScenarioVisitsThatAreDamagedAreWaitedFor(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		o := onDisks(nodes)
		o.Rooms[0].Session = 10 * time.Second
		s := founded(t, o)
		s.halfFull()
		for i := range nodes {
			s.down(i)
		}
		s.hosts[nodes-1].disk.visits.damaged = true
		from := s.now
		for i := range nodes {
			s.boot(i)
		}
		s.arriveOver(0, 10, 100*time.Millisecond)
		s.run(s.delay() - 2*time.Second)
		if n := s.calls(from); n > 0 {
			t.Errorf("%d were called before D was over", n)
		}
		s.until(5*time.Second, "calls after D", func() bool { return s.calls(from) > 0 })
		s.finish()
	}
}

// The session of a room is shorter when all are back: passes of before are as good as they were,
// and none is renewed for longer than the longest there is.
func TestScenarioVisitsGoOnWithAnotherSession(t *testing.T) {
	for _, session := range []time.Duration{20 * time.Second, 4 * time.Minute} {
		s := founded(t, onDisks(3))
		in := s.halfFull()
		for i := range 3 {
			s.down(i)
		}
		s.o.Rooms[0].Session = session
		for i := range 3 {
			s.boot(i)
		}
		from := s.now
		s.arriveOver(0, 10, 100*time.Millisecond)
		s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
		for i, b := range in {
			b.must(i%3, opRefresh)
		}
		s.finish()
	}
}

// The disk has a visit for longer than its pass is good. A later life goes on with it for no
// longer than a pass of before can be: who has gone is not waited for.
func TestScenarioAVisitGoesOnForNoLongerThanItsPass(t *testing.T) {
	o := onDisks(1)
	o.Rooms[0].Session = 20 * time.Second
	s := founded(t, o)
	s.halfFull()
	s.powerCut(100 * time.Millisecond)
	back := s.now
	s.run(10 * time.Second)
	s.until(20*time.Second, "all to be over", func() bool { _, used := s.ownedNow(); return used == 0 })
	if after := time.Duration(s.now-back) * time.Microsecond; after > 20*time.Second+500*time.Millisecond {
		t.Errorf("who has gone had a slot for %v", after)
	}
	s.finish()
}

// A node alone cannot save that it has begun anew, and dies once more. That life had no slots for the
// visits of before: the one after it knows nothing of it.
func TestScenarioALifeThatNobodyKnowsHasNoVisits(t *testing.T) {
	s := founded(t, onDisks(1))
	s.halfFull()
	s.down(0)
	s.hosts[0].disk.failing = true
	s.boot(0)
	s.run(2 * time.Second)
	s.hosts[0].disk.renamed = nil // the directory was never synced
	s.down(0)
	s.hosts[0].disk.failing = false
	s.boot(0)
	from := s.now
	s.arriveOver(0, 10, 100*time.Millisecond)
	s.until(4*time.Second, "calls", func() bool { return s.calls(from) >= 6 })
	s.finish()
}

// A node alone whose record cannot be saved, and whose visits can: after D it lets people in. No later
// life knows of that one but by its visits, and has none go on as long as their passes may be good.
func TestScenarioALifeThatIsOnNoRecordIsWaitedFor(t *testing.T) {
	o := onDisks(1)
	o.Rooms[0].Session = 10 * time.Second
	s := founded(t, o)
	s.halfFull()
	s.down(0)
	disk := &s.hosts[0].disk
	disk.failing, disk.spares = true, true
	s.boot(0)
	s.until(2*time.Minute, "slots", func() bool { owned, _ := s.ownedNow(); return owned > 0 })
	s.fill(0)
	s.down(0)
	disk.failing, disk.spares, disk.renamed = false, false, nil
	s.boot(0)
	from := s.now
	s.arrive(0, 12)
	s.until(2*time.Minute, "somebody to be called", func() bool { return s.calls(from) > 0 })
	if took := time.Duration(s.now-from) * time.Microsecond; took < o.Rooms[0].Session {
		t.Errorf("called %v after the start, and passes of a minute before were good for 10 s", took)
	}
	s.check()
}

// The room has a session_max when all are back, or a shorter one. Passes of before are as good as
// they were: those who have them have slots.
func TestScenarioVisitsGoOnWithAShorterSessionMax(t *testing.T) {
	for _, before := range []time.Duration{0, time.Hour} {
		o := onDisks(3)
		o.Rooms[0].SessionMax = before
		s := founded(t, o)
		in := s.halfFull()
		for i := range 3 {
			s.down(i)
		}
		s.run(time.Second)
		s.o.Rooms[0].SessionMax, s.o.Rooms[0].Session = 500*time.Millisecond, 400*time.Millisecond
		for i := range 3 {
			s.boot(i)
		}
		s.until(5*time.Second, "visits to go on", func() bool { _, used := s.ownedNow(); return used == len(in) })
		s.o.Load.Browse = Range{time.Hour, time.Hour}
		s.arriveOver(0, 20, time.Second)
		s.run(8 * time.Second)
		for i, b := range in {
			was := b.pass.Expires
			if a := b.must(i%3, opRefresh); a.Pass.Expires < was {
				t.Errorf("the pass of visitor %d is good until %d, and was until %d", i, a.Pass.Expires, was)
			}
		}
		s.check()
	}
}

// A node leaves that goes on with visits. Who has the pass of before is told who has them now, or is
// let in: nobody is thrown out.
func TestScenarioAPassOfBeforeIsGoodWhileItsNodeLeaves(t *testing.T) {
	s := founded(t, onDisks(3))
	in := s.halfFull()
	s.powerCut(time.Second)
	s.until(5*time.Second, "all to go on", func() bool {
		return s.hosts[0].n.WentOn() && s.hosts[1].n.WentOn() && s.hosts[2].n.WentOn()
	})
	s.run(3 * time.Second)
	s.goodbye(&s.hosts[2])
	for range 40 {
		s.run(50 * time.Millisecond)
		for i, b := range in {
			for h := range 3 {
				if _, err := b.copy().ask(h, opRefresh); errors.Is(err, ticket.ErrPassExpired) {
					t.Fatalf("%v: the pass of visitor %d has ended at %s", time.Duration(s.now)*time.Microsecond, i, s.hosts[h].name)
				}
			}
		}
	}
	s.finish()
}

// A visit of an earlier life that is ended before its node goes on with it: its pass is good no more,
// and to end it again changes nothing.
func TestScenarioAVisitIsEndedBeforeItGoesOn(t *testing.T) {
	s := founded(t, onDisks(3))
	in := s.halfFull()
	s.allDown()
	s.boot(0)
	s.boot(1)
	s.run(3 * time.Second)
	for _, b := range in {
		for h := range 2 {
			_, _ = b.copy().ask(h, opEnd)
		}
	}
	s.boot(2)
	s.until(5*time.Second, "visits to go on", func() bool { return s.hosts[0].n.WentOn() && s.hosts[1].n.WentOn() })
	s.run(time.Second)
	spent := func() (n int) {
		for i := range 3 {
			n += s.hosts[i].seen.rooms[0].Spent
		}
		return n
	}
	before := spent()
	for range 10 {
		for _, b := range in {
			_, _ = b.copy().ask(0, opEnd)
		}
	}
	s.run(time.Second)
	if n := spent(); n > before+len(in) {
		t.Errorf("%d visits are remembered as over, %d before %d passes were ended again and again", n, before, len(in))
	}
	s.check()
}

// Somebody who is called asks to come in, and everything dies before they have a pass. Their visit goes on with the slot of the call: whichever
// node they ask they come in on that one, and are not called again. Who waited there is in line again.
func TestScenarioWhoWasCalledBeforeACrashComesInOnThatCall(t *testing.T) {
	for h := range 3 {
		t.Run(fmt.Sprintf("asks n%02d", h), func(t *testing.T) {
			o := onDisks(3)
			o.Rooms[0].Target = 1
			s := founded(t, o)
			b, next := s.browser(), s.browser()
			b.must(1, opJoin)
			s.until(time.Second, "a call", func() bool { return b.must(1, opCheckIn).State == node.Called })
			b.must(1, opLeave) // they hear that they are called, until the disk has the visit
			next.must(1, opJoin)
			s.run(500 * time.Millisecond)
			s.powerCut(time.Second)
			s.until(5*time.Second, "visits to go on", func() bool { return s.hosts[1].n.WentOn() && s.together(3) })
			s.run(500 * time.Millisecond) // until all have heard of it
			a := b.patient(h, opCheckIn)
			if home := a.Pass.Home.Member; a.State != node.Admitted || home != s.hosts[1].member(s.world) {
				t.Errorf("%v, with a pass of %v: want one of n01", a.State, home)
			}
			if a := next.patient(h, opCheckIn); a.State != node.Waiting {
				t.Errorf("who waited is %v", a.State)
			}
			if _, used := s.ownedNow(); used != 1 {
				t.Errorf("%d slots are used by one", used)
			}
			ticketAgain := b.copy()
			b.must(h, opEnd)
			s.until(2*time.Second, "a call for who waited", func() bool { return next.must(h, opCheckIn).State == node.Called })
			next.must(h, opAbandon)
			s.reboot(1)
			s.until(5*time.Second, "all three", func() bool { return s.together(3) })
			s.run(time.Second)
			if a, err := ticketAgain.ask(h, opCheckIn); !errors.Is(err, ticket.ErrUsed) {
				t.Errorf("the ticket of who was in is %v, %v", a.State, err)
			}
			s.finish()
		})
	}
}

// Somebody was called before everything died, and has never come in. Their node goes on with that call, and is cut off until
// its account is void: they wait again at their place, and are not told that their ticket was used.
func TestScenarioWhoWasCalledBeforeACrashWaitsAgainWhenTheirNodeIsCutOff(t *testing.T) {
	o := onDisks(3)
	o.Rooms[0].Target, o.Rooms[0].ClaimWindow = 1, time.Minute
	s := founded(t, o)
	b := s.browser()
	b.must(1, opJoin)
	s.until(time.Second, "a call", func() bool { return b.must(1, opCheckIn).State == node.Called })
	b.must(1, opLeave) // they hear that they are called, until the disk has the visit
	s.run(500 * time.Millisecond)
	s.powerCut(time.Second)
	s.until(5*time.Second, "visits to go on", func() bool { return s.hosts[1].n.WentOn() && s.together(3) })
	before := s.hosts[1].seen.rooms[0].Account
	s.split(hosts(1), hosts(0, 2))
	s.run(5 * time.Second)
	s.mend()
	s.until(3*time.Second, "another account", func() bool {
		a := s.hosts[1].seen.rooms[0].Account
		return s.together(3) && a != before && a.Born > 0
	})
	s.run(time.Second)
	for h := range 3 {
		if a, err := b.copy().ask(h, opCheckIn); err != nil || a.State != node.Waiting {
			t.Errorf("who was called is %v at n%02d, %v", a.State, h, err)
		}
	}
	s.check()
}

// Somebody came in just before everything died, and no disk has yet that their ticket is used. They go on with their pass, and
// their node dies again: their ticket is no good.
func TestScenarioATicketIsUsedOfWhoGoesOnWithAPassOfBeforeACrash(t *testing.T) {
	s := founded(t, onDisks(3))
	b := s.visit(1)
	s.hosts[1].disk.used = nil
	s.powerCut(time.Second)
	s.until(5*time.Second, "visits to go on", func() bool { return s.hosts[1].n.WentOn() && s.together(3) })
	s.run(500 * time.Millisecond)
	b.must(1, opRefresh)
	s.run(time.Second)
	s.down(1)
	s.run(5 * time.Second)
	if a, err := b.copy().ask(0, opCheckIn); !errors.Is(err, ticket.ErrUsed) {
		t.Errorf("the ticket of who is in is %v, %v", a.State, err)
	}
	s.check()
}
