package simtest

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// A node that says goodbye lets go of its calls: the slots go along with the free
// ones, and whoever was called there is called at another node, not D later.
func TestScenarioWhoWasCalledByANodeThatLeavesIsCalledElsewhere(t *testing.T) {
	for _, leaver := range []int{0, 3} {
		t.Run(fmt.Sprintf("n%02d", leaver), func(t *testing.T) {
			o := short(4)
			o.Rooms[0].QueueAll, o.Rooms[0].Session, o.Rooms[0].ClaimWindow, o.Rooms[0].TicketTTL = true, time.Minute, 20*time.Second, time.Minute
			s := founded(t, o)
			called := make([]*browser, 12)
			for i := range called {
				called[i] = s.browser()
				called[i].must(leaver, opJoin)
			}
			for _, b := range called {
				s.until(5*time.Second, "call", func() bool {
					s.run(50 * time.Millisecond)
					return b.must(leaver, opCheckIn).State == node.Called
				})
			}
			s.goodbye(&s.hosts[leaver])
			in := make([]bool, len(called))
			s.until(4*time.Second, "everybody on the site", func() bool {
				s.run(100 * time.Millisecond)
				all := true
				for i, b := range called {
					if in[i] {
						continue
					}
					a, err := b.ask(1+i%2, opLeave)
					if in[i] = err == nil && a.State == node.Admitted; !in[i] {
						_, err = b.ask(1+i%2, opCheckIn)
					}
					if err != nil && !errors.Is(err, ticket.ErrUnavailable) && !errors.Is(err, errTimeout) && !errors.Is(err, errRefused) {
						t.Fatal(err)
					}
					all = all && in[i]
				}
				return all
			})
			if owned, used := s.ownedNow(); owned != 12 || used != 12 {
				t.Errorf("%d slots of which %d are used, want 12: %s", owned, used, s.ledgers(0))
			}
		})
	}
}

// The coordinator says goodbye. The next one does not wait to find out that there
// is none: waves go on at once.
func TestScenarioWavesGoOnWhenTheCoordinatorLeaves(t *testing.T) {
	o := short(4)
	o.Cluster.ExcludeAfter, o.Cluster.Lease = 2*time.Second, 4*time.Second
	s := founded(t, o)
	s.goodbye(&s.hosts[0])
	last, longest := s.now, int64(0)
	before := s.hosts[2].seen.status.Installed
	for end := s.now + 5_000_000; s.now < end; {
		s.run(10 * time.Millisecond)
		if now := s.hosts[2].seen.status.Installed; now != before {
			before, last, longest = now, s.now, max(longest, s.now-last)
		}
	}
	if two := 2 * o.Cluster.Period; time.Duration(max(longest, s.now-last))*time.Microsecond > two {
		t.Errorf("%v without a wave, want at most two periods, %v", micros(max(longest, s.now-last)), two)
	}
	s.finish()
}

// A crowd of 600 is let in by 100 at a time, for visits of two seconds.
func crowdOf(nodes int, seed uint64) Options {
	return Options{
		Seed: seed, Nodes: nodes,
		Rooms:  []eviction.Room{{Name: "shop", Target: 100, Session: 15 * time.Second, Refresh: 3 * time.Second, ClaimWindow: 8 * time.Second, TicketTTL: time.Minute}},
		Load:   Load{Sticky: true, Browse: Range{2 * time.Second, 2 * time.Second}, Timeout: 3 * time.Second},
		Faults: Faults{Detect: Range{300 * time.Millisecond, 600 * time.Millisecond}, KeepKeys: true},
	}
}

// idle watches for how long nobody is called though visitors wait and a slot is free.
type idle struct {
	*script
	last, longest int64
}

func (s *idle) run(d time.Duration) {
	for end := s.now + d.Microseconds(); s.now < end; {
		s.script.run(20 * time.Millisecond)
		if _, used := s.ownedNow(); s.checker.lastCall[0] > s.last || s.queuedNow() == 0 || used == s.o.Rooms[0].Target {
			s.last = s.now
		}
		s.longest = max(s.longest, s.now-s.last)
	}
}

// restarts is a rolling restart under a crowd.
type restarts struct {
	seed    uint64
	over    time.Duration // in which 600 people come
	refresh time.Duration
	disk    bool // a node that comes back knows from its disk alone, and waits for nobody where others call
	copies  int  // of each place
}

// All nodes are restarted, one after the other, under a crowd. There is no time of
// more than two waves in which a slot is free and nobody is called, nobody overtakes
// anybody, and it takes no longer than if they had all stayed: nothing waits for D.
func TestScenarioARollingRestartUnderACrowd(t *testing.T) {
	const soon, later = time.Second, 12 * time.Second
	for _, r := range []restarts{
		{seed: 1, over: soon},
		{seed: 6, over: soon},
		{seed: 19, over: soon},
		{seed: 26, over: soon},
		{seed: 68, over: soon},
		{seed: 12, over: later},
		{seed: 57, over: later},  // one that has only just started thinks that it leads
		{seed: 214, over: later}, // the same, when the coordinator leaves
		{seed: 1, over: soon, refresh: 20 * time.Second, disk: true},
		{seed: 12, over: later, refresh: 20 * time.Second, disk: true},
	} {
		r.run(t)
	}
}

// The same, as it comes: one in three hundred met a node that thinks that it leads.
func TestScenarioRollingRestartsUnderACrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; left out of -short")
	}
	for seed := range uint64(15) {
		for copies := range 2 {
			restarts{seed: 1000 + seed, over: time.Second, copies: copies}.run(t)
			restarts{seed: 2000 + seed, over: 12 * time.Second, copies: copies}.run(t)
		}
	}
}

func (r restarts) run(t *testing.T) {
	t.Helper()
	o := crowdOf(5, r.seed)
	o.Cluster.Copies = r.copies
	o.Faults.Disk, o.Rooms[0].Refresh = r.disk, cmp.Or(r.refresh, o.Rooms[0].Refresh)
	s := &idle{script: founded(t, o)}
	s.arriveOver(none, 600, r.over)
	s.script.run(1500 * time.Millisecond)
	s.last = s.now
	for i := range s.hosts {
		s.goodbye(&s.hosts[i])
		s.run(1500 * time.Millisecond)
		s.hosts[i].gone = false
		s.boot(i)
		for end := s.now + 5_000_000; !s.together(5) && s.now < end; {
			s.run(100 * time.Millisecond)
		}
	}
	for s.crowd.served < 600 && s.now < 25_000_000 {
		s.run(100 * time.Millisecond)
	}
	if s.crowd.served != 600 {
		t.Errorf("seed %d: %d of 600 are served within 25 s", s.o.Seed, s.crowd.served)
	}
	if two := 2 * s.o.Cluster.Period.Microseconds(); s.longest > two+20_000 {
		t.Errorf("seed %d: %v without a call while a slot was free, want at most two waves", s.o.Seed, micros(s.longest))
	}
	if s.reached.n[reachVisitGiven] == 0 || s.reached.n[reachPlaceGiven] == 0 {
		t.Error("nothing was given away")
	}
	s.inOrder(0)
	s.finish()
}

// What a node that leaves gives away is lost on the way, or its acknowledgement is, or
// the heir dies, or the node itself is killed in the middle, or there is a split: no
// slot is there twice, no visit is lost sight of while its pass is good, nobody is
// called beyond the limit, and after D all slots are back.
func TestScenarioWhatALeavingNodeGivesMayBeLost(t *testing.T) {
	gift := func(f *flight) bool {
		switch b := f.m.Body.(type) {
		case *eviction.Slots:
			return len(b.Visits) > 0
		case *eviction.Places:
			return true
		}
		return false
	}
	loses := func(what func(*flight) bool) func(*script) {
		return func(s *script) {
			s.tap = func(f *flight) verdict {
				if what(f) {
					return lose
				}
				return pass
			}
		}
	}
	n := 0
	troubles := []struct {
		name string
		make func(*script)
	}{
		{"gifts", loses(gift)},
		{"every other gift", loses(func(f *flight) bool { n++; return n%2 == 0 && gift(f) })},
		{"acknowledgements", loses(func(f *flight) bool { return f.kind == mSlotsAck || f.kind == mSyncReply })},
		{"goodbyes", loses(ofKind(mGoodbye, none, none))},
		{"commits", loses(ofKind(mCommit, none, none))},
		{"an heir", func(s *script) { s.down(2) }},
		{"the node", func(s *script) { s.run(2 * time.Millisecond); s.down(1) }},
		{"a majority", func(s *script) { s.run(time.Millisecond); s.split(hosts(1, 2), hosts(0, 3, 4)) }},
		{"gifts kept for later", func(s *script) {
			s.tap = func(f *flight) verdict {
				if gift(f) {
					return keep
				}
				return pass
			}
			s.run(time.Second)
			s.release()
		}},
	}
	for _, trouble := range troubles {
		t.Run(trouble.name, func(t *testing.T) {
			s := founded(t, crowdOf(5, 1))
			s.strict = true
			s.arriveOver(none, 300, time.Second)
			s.run(1500 * time.Millisecond)
			s.goodbye(&s.hosts[1])
			trouble.make(s)
			s.run(2700 * time.Millisecond)
			s.tap = nil
			s.mend()
			s.run(s.delay() + 5*time.Second)
			if owned, _ := s.ownedNow(); owned != 100 {
				t.Errorf("%d slots, want 100: %s", owned, s.ledgers(0))
			}
			if s.crowd.served < 290 { // who asked a node that died may have given up
				t.Errorf("%d of 300 are served", s.crowd.served)
			}
			s.finish()
		})
	}
}

// The places that a node gives away are lost on the way until its name is no voter's
// any more, or for longer, as on a machine that is busy. It still stays until a wave has
// counted nobody there, or everybody would wait for visitors who are lost to nobody.
func TestScenarioGoodbyeWaitsUntilAWaveCountsNobody(t *testing.T) {
	for _, late := range []time.Duration{300 * time.Millisecond, 1400 * time.Millisecond} {
		s, inside := full(t, 3, 4*time.Second)
		for _, h := range []int{2, 1} {
			s.browser().must(h, opJoin)
			s.run(300 * time.Millisecond)
		}
		s.tap = func(f *flight) verdict {
			if _, places := f.m.Body.(*eviction.Places); places {
				return lose
			}
			return pass
		}
		s.goodbye(&s.hosts[2])
		s.run(late)
		s.tap = nil
		s.until(600*time.Millisecond, "a wave without it", func() bool { return len(s.hosts[0].seen.status.List) == 2 })
		for _, b := range inside[:2] { // for who waited there, and for the next
			s.callsWithin(b, 250*time.Millisecond)
		}
		s.finish()
	}
}

// The coordinator has taken in a newcomer, at which visitors wait, and leaves. The next
// one lists the newcomer too, though its gossip has not told it of that one yet.
func TestScenarioTheNextCoordinatorListsWhomItHasNotSeen(t *testing.T) {
	const newcomer = 3
	s, inside := full(t, 4, 500*time.Millisecond)
	s.down(newcomer)
	s.until(3*time.Second, "waves without it", func() bool { return s.together(3) })
	for _, o := range []int32{1, 2} {
		s.gossip.suspect[o*s.gossip.places+newcomer]++
	}
	s.boot(newcomer)
	s.until(3*time.Second, "waves with it", func() bool { return s.together(4) })
	s.browser().must(newcomer, opJoin)
	s.run(300 * time.Millisecond)
	s.goodbye(&s.hosts[0])
	s.until(time.Second, "the next coordinator", func() bool { return s.coordinator() == 1 })
	s.callsWithin(inside[1], 250*time.Millisecond)
	for _, o := range []int32{1, 2} {
		s.gossip.suspect[o*s.gossip.places+newcomer]--
	}
	s.finish()
}

// A node starts and hears of the coordinator alone, which does not hear of it yet. It
// leaves the lead to that one: it takes nobody out of the waves of the others.
func TestScenarioANodeThatStartsLeavesTheLead(t *testing.T) {
	const lead, starts = 0, 3
	s, _ := full(t, 4, 500*time.Millisecond)
	s.down(starts)
	s.until(3*time.Second, "waves without it", func() bool { return s.together(3) })
	pairs := []int32{lead*s.gossip.places + starts, starts*s.gossip.places + 1, starts*s.gossip.places + 2}
	for _, p := range pairs {
		s.gossip.suspect[p]++
	}
	s.boot(starts)
	for end := s.now + 3_000_000; s.now < end; {
		s.run(10 * time.Millisecond)
		if st := &s.hosts[lead].seen.status; st.Grade < eviction.Primary || string(st.Installed.Coordinator) != st.Self.String() {
			t.Fatalf("the coordinator is in a %v wave of %s", st.Grade, st.Installed.Coordinator)
		}
	}
	for _, p := range pairs {
		s.gossip.suspect[p]--
	}
	s.topology()
	s.until(3*time.Second, "waves with it", func() bool { return s.together(4) })
	s.finish()
}

// full is a room in which every slot is used, by visitors who stay, at the first two nodes.
func full(t *testing.T, nodes int, refresh time.Duration) (s *script, inside []*browser) {
	o := short(nodes)
	o.Rooms[0].Refresh = refresh
	o.Rooms[0].QueueAll, o.Rooms[0].Session, o.Rooms[0].TicketTTL, o.Rooms[0].ClaimWindow = true, 2*time.Minute, 2*time.Minute, 2*time.Minute
	s = founded(t, o)
	for i := range o.Rooms[0].Target {
		inside = append(inside, s.visit(i%2))
	}
	return s, inside
}

// callsWithin ends a visit and demands that somebody is called for it in time.
func (s *script) callsWithin(b *browser, d time.Duration) {
	s.t.Helper()
	b.must(1, opEnd)
	ended := s.now
	s.until(5*time.Second, "call", func() bool { return s.calls(ended+1) > 0 })
	if took := micros(s.now - ended); took > d {
		s.t.Errorf("the slot that came free is used after %v, want at most %v", took, d)
	}
}

// All nodes are restarted, one after the other, and visitors who did not ask meanwhile
// come with tickets of the first. Each place went from node to node, past nodes that
// are younger than it; it is at one only, and that one is asked.
func TestScenarioAPlaceGivenOnSeveralTimesIsAtOneNode(t *testing.T) {
	s, _ := full(t, 3, 500*time.Millisecond)
	visitors := make([]*browser, 16)
	for i := range visitors {
		visitors[i] = s.browser()
		visitors[i].must(0, opJoin)
	}
	s.run(300 * time.Millisecond)
	for i := range s.hosts {
		s.goodbye(&s.hosts[i])
		s.run(1100 * time.Millisecond)
		s.hosts[i].gone = false
		s.boot(i)
		s.until(5*time.Second, "waves of all", func() bool { return s.together(3) })
	}
	for i, b := range visitors {
		if a := b.patient(i%3, opCheckIn); a.State != node.Waiting {
			t.Errorf("%v, want everybody to wait", a.State)
		}
	}
	places := 0
	for i := range s.hosts {
		places += s.hosts[i].seen.rooms[0].Queued + s.hosts[i].seen.rooms[0].Parked
	}
	if places != len(visitors) {
		t.Errorf("%d places of %d visitors", places, len(visitors))
	}
}

// twoCopies is a world in which two nodes have taken the place of a lost one over, since one
// of them was away when the other was asked: with the tickets of each, and where they are.
func twoCopies(t *testing.T, tap func(*flight) verdict) (s *script, first, second *browser, away, kept int) {
	t.Helper()
	o := short(4)
	o.Rooms[0].QueueAll, o.Rooms[0].Session, o.Rooms[0].TicketTTL = true, 2*time.Minute, 4*time.Second
	s = founded(t, o)
	s.tap = tap
	for i := range o.Rooms[0].Target {
		s.visit(i % 3)
	}
	b := s.browser()
	b.must(3, opJoin)
	s.run(300 * time.Millisecond)
	other := b.copy()
	s.down(3)
	takenOver := func(b *browser) int {
		s.until(5*time.Second, "take-over", func() bool {
			s.run(100 * time.Millisecond)
			for h := range 3 {
				if s.hosts[h].running() && b.ticket.Gen == 0 {
					_, _ = b.ask(h, opCheckIn)
				}
			}
			return b.ticket.Gen == 1
		})
		for h := range 3 {
			if s.hosts[h].up() && s.lives[s.hosts[h].life].member == b.ticket.Home {
				return h
			}
		}
		t.Fatal("nobody has it")
		return none
	}
	away = takenOver(b)
	s.stall(away, 3*time.Second)
	kept = takenOver(other)
	if kept == away {
		t.Fatal("one node has both copies")
	}
	s.until(4*time.Second, "waves of all", func() bool { return s.together(3) })
	return s, b, other, away, kept
}

// Two nodes have taken the place of a lost one over. One of the two copies is given up, and
// whoever asks with either ticket has the other.
func TestScenarioOfTwoCopiesOneGoesOn(t *testing.T) {
	s, b, other, away, kept := twoCopies(t, nil)
	s.until(10*time.Second, "end of one copy", func() bool {
		s.run(300 * time.Millisecond)
		other.must(kept, opCheckIn)
		places := 0
		for i := range s.hosts {
			if h := &s.hosts[i]; h.up() {
				places += h.seen.rooms[0].Queued + h.seen.rooms[0].Parked
			}
		}
		return places == 1
	})
	for _, at := range []int{away, kept} {
		for _, b := range []*browser{b, other} {
			if a, err := b.ask(at, opCheckIn); err != nil || a.State != node.Waiting {
				t.Errorf("at n%02d: %v, %v, want to wait", at, a.State, err)
			}
		}
	}
}

// Neither hears of the other. The copy that nobody asks for is given up, and where the
// other copy is kept its node says so.
func TestScenarioTheCopyThatIsKeptCounts(t *testing.T) {
	s, _, other, away, kept := twoCopies(t, func(f *flight) verdict {
		if f.kind == mSyncReply {
			return lose
		}
		return pass
	})
	s.until(10*time.Second, "end of the other copy", func() bool {
		s.run(300 * time.Millisecond)
		other.must(kept, opCheckIn)
		r := s.hosts[away].seen.rooms[0]
		return r.Queued+r.Parked == 0
	})
	if a, err := other.ask(away, opCheckIn); err != nil || a.State != node.Waiting || s.lives[s.lifeOf(a.Ticket.Home)].host != int32(kept) {
		t.Errorf("%v at %v, %v, want to wait at n%02d", a.State, a.Ticket.Home, err, kept)
	}
}

// A node leaves as another has just come, which has not heard that it has an account: the commit was lost. The visits are not given
// to that account, as nobody would have their slots when the next wave opens another.
func TestScenarioANodeLeavesToOneThatHasNotBegun(t *testing.T) {
	o := short(1)
	o.Faults.Adds = 1
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.addHost(0)
	s.arrive(0, o.Rooms[0].Target)
	s.run(time.Second)
	lost := 0
	s.tap = func(f *flight) verdict {
		if _, ok := f.m.Body.(*eviction.Commit); !ok || f.to != 1 || lost == 2 {
			return pass
		}
		lost++
		if lost == 2 {
			s.goodbye(&s.hosts[0])
		}
		return lose
	}
	s.boot(1)
	s.until(5*time.Second, "n00 gone", func() bool { return s.hosts[0].gone && !s.hosts[0].up() })
	s.arrive(1, 24)
	s.run(10 * time.Second)
	if in := s.checker.rooms[0].live; in != o.Rooms[0].Target {
		t.Errorf("%d are on the site", in)
	}
	s.finish()
}

// A node that hears no commit still answers, and so has an account that will lapse any moment when another one leaves. It takes none of
// its visits: by its lease it would be taken to be over before their passes are.
func TestScenarioVisitsAreNotGivenToOneWhoseLeaseIsOver(t *testing.T) {
	for after := 1800 * time.Millisecond; after <= 3200*time.Millisecond; after += 100 * time.Millisecond {
		t.Run(after.String(), func(t *testing.T) {
			o := short(3)
			o.Load.Browse = Range{time.Minute, time.Minute}
			s := founded(t, o)
			s.arrive(2, o.Rooms[0].Target/2)
			s.run(time.Second)
			deaf := true
			s.tap = func(f *flight) verdict {
				if c, ok := f.m.Body.(*eviction.Commit); ok && deaf && f.to == 1 && len(c.Rooms) > 0 {
					return lose
				}
				return pass
			}
			s.run(after)
			s.goodbye(&s.hosts[2])
			s.run(300 * time.Millisecond)
			deaf = false
			s.arrive(0, 24)
			s.run(6 * time.Second)
			s.finish()
		})
	}
}

// A survivor with slots of its own, and one of the line that it left, are on a side: until it is sure that nobody has a quorum elsewhere, no
// line goes on. Slots of one are no slots of the other, also when one of them leaves.
func TestScenarioANodeThatLeavesGivesNothingToAnotherLine(t *testing.T) {
	o := short(3)
	o.Faults.Disk, o.Rooms[0].Survivor, o.Load.Browse = true, time.Second, Range{time.Minute, time.Minute}
	o.Cluster.Lease = 6 * time.Second // for as long as that it is not sure
	s := founded(t, o)
	s.split(hosts(0, 1), hosts(2))
	s.reboot(2) // into a life that the others have not heard of, and so do not hold for void
	s.until(60*time.Second, "n02 alone, with all slots", func() bool {
		r := &s.hosts[2].seen.rooms[0]
		return r.Line != s.hosts[1].seen.rooms[0].Line && r.Owned == o.Rooms[0].Target
	})
	s.reboot(1) // nor n02 of this
	s.until(5*time.Second, "its account", func() bool { return s.hosts[1].seen.rooms[0].Account.Born > 1<<20 })
	s.arrive(1, 3)
	s.until(20*time.Second, "slots at n01", func() bool { return s.hosts[1].seen.rooms[0].Owned > 0 })
	s.mend()
	s.split(hosts(0), hosts(1, 2))
	s.until(5*time.Second, "n01 on a side with n02", func() bool {
		return s.sees(1, 2) && s.sees(2, 2) && s.hosts[1].seen.status.Grade == eviction.Side && s.hosts[2].seen.status.Grade == eviction.Side
	})
	s.goodbye(&s.hosts[1])
	s.until(5*time.Second, "n01 gone", func() bool { return !s.hosts[1].up() })
	s.arrive(2, 24)
	s.run(3 * time.Second)
	s.mend()
	s.finish()
}
