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
	t.Parallel()
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
	t.Parallel()
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
