package simtest

import (
	"math/rand/v2"
	"testing"
	"time"
)

// lostOne is a crowd of which one node dies and does not return: people stay for as long as
// stay says, and sessions are so long that D does not end in the test.
func lostOne(t *testing.T, copies, victim int, stay Range) *script {
	t.Helper()
	o := crowdOf(5, uint64(victim)+1)
	o.Cluster = short(5).Cluster
	o.Cluster.Copies = copies
	o.Rooms[0].Session, o.Rooms[0].TicketTTL = 5*time.Minute, 10*time.Minute
	o.Load.Browse = stay
	s := founded(t, o)
	s.arriveOver(none, 600, 2*time.Second)
	s.run(4 * time.Second)
	s.down(victim)
	return s
}

// slotsOfNobody is how many slots nobody has: neither a node that runs nor somebody on the site by
// an account of one that does not.
func (s *script) slotsOfNobody() int {
	owned, _ := s.ownedNow()
	for i := range s.checker.rooms[0].accounts {
		if a := &s.checker.rooms[0].accounts[i]; a.life == none || s.lives[a.life].over {
			owned += a.live
		}
	}
	return s.o.Rooms[0].Target - owned
}

// A node dies, and what was free of its slots is there again as soon as its lease is over:
// not after a session, as without heirs. What people use who were let in by it comes back when
// they leave, or go on at another node.
func TestScenarioALostNodesFreeSlotsComeBackWithItsLease(t *testing.T) {
	for _, victim := range []int{0, 3} {
		s := lostOne(t, 1, victim, Range{time.Second, 3 * time.Second})
		c := &s.o.Cluster
		soon := 2*c.Deadline + c.Lease + 2*c.MaxSkew + c.Margin + c.ExcludeAfter + 8*c.Period
		s.run(soon)
		if n := s.slotsOfNobody(); n > 0 {
			t.Errorf("node %d: %d slots are missing %v after it died: %s", victim, n, soon, s.ledgers(0))
		}
		if s.reached.n[reachClaimLowered] == 0 {
			t.Error("nothing was made again early: the world shows nothing")
		}
		s.until(time.Minute, "everybody served but who had a pass of the lost node", func() bool { return s.crowd.served >= 570 })

		s = lostOne(t, 0, victim, Range{time.Second, 3 * time.Second})
		s.run(soon)
		if s.slotsOfNobody() == 0 {
			t.Errorf("node %d: no slot is missing without heirs: the world shows nothing", victim)
		}
	}
}

// A node dies, and its heirs with it: how many of its slots are used is known to nobody, and
// they are waited for.
func TestScenarioALostNodeWhoseHeirsAreLostIsWaitedFor(t *testing.T) {
	s := lostOne(t, 1, 3, Range{time.Second, 3 * time.Second})
	s.down(4)
	s.run(10 * time.Second)
	if n := s.reached.n[reachClaimLowered]; n > 0 {
		t.Errorf("slots were made again %d times of which nobody knows whether they are used: %s", n, s.ledgers(0))
	}
}

// hostileToClaims is a world in which nodes die, leave, are cut off and come back, and what
// heirs are told is lost on the way: in one room that is always full, with visits that last
// for longer than a lease and for less than D.
func hostileToClaims(seed uint64) Options {
	d := dice{rand.New(rand.NewPCG(seed, 26))}
	o := short(d.pick(3, 4, 5, 6))
	o.Seed, o.Users, o.Span, o.Limit = seed, 80+d.IntN(120), 20*time.Second, 4*time.Minute
	o.Cluster.Copies, o.Cluster.Lease = 1, d.between(2*time.Second, 3*time.Second)
	o.Cluster.Period, o.Cluster.ExcludeAfter = d.between(60*time.Millisecond, 150*time.Millisecond), d.between(400*time.Millisecond, time.Second)
	o.Net = Net{Latency: Range{time.Millisecond, d.between(2*time.Millisecond, 30*time.Millisecond)}, Copies: d.pick(0, 300, 3000)}
	o.Clocks.Offset = d.upTo(30 * time.Millisecond)
	r := &o.Rooms[0]
	r.Target, r.Session, r.TicketTTL, r.ClaimWindow = 6+d.IntN(20), d.between(6*time.Second, 20*time.Second), time.Minute, 5*time.Second
	o.Load = Load{Flash: d.pick(0, 2), Browse: Range{time.Second, d.between(2*time.Second, 10*time.Second)}, Timeout: time.Second, Sticky: d.one(2)}
	o.Faults = Faults{
		Mix:   []Fault{Crash, CrashRich, CrashLead, CrashInWave, CrashAfterFirst, Leave, Leave, CutPair, CutOneWay, CutOff, Pause, PauseInAnswer, Suspicion},
		Every: d.between(2*time.Second, 6*time.Second), Last: Range{2 * time.Second, 8 * time.Second},
		Detect: Range{300 * time.Millisecond, 900 * time.Millisecond}, KeepKeys: true, Disk: d.one(2), Resessions: d.pick(0, 0, 0, 0, 1),
	}
	return o
}

// Whatever becomes of nodes and of what they tell their heirs, what is made again of a lost
// node is used by nobody.
func TestScenarioWhatIsMadeAgainOfALostNodeIsUsedByNobody(t *testing.T) {
	t.Parallel()
	lowered := int64(0)
	for seed := range uint64(100) {
		res, err := Run(hostileToClaims(seed))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		lowered += reachedIn(&res, reachClaimLowered)
	}
	t.Logf("slots were made again early %d times", lowered)
	if lowered < 40 {
		t.Errorf("slots were made again early %d times: the worlds show nothing", lowered)
	}
}

// An heir is left out of a wave, and its home dies right after that: what that heir kept is
// kept by nobody, and the wave says so.
func TestScenarioAnHeirIsLostJustBeforeItsHome(t *testing.T) {
	o := crowdOf(5, 7)
	o.Cluster = short(5).Cluster
	o.Cluster.Copies = 1
	o.Rooms[0].Session, o.Rooms[0].TicketTTL = 5*time.Minute, 10*time.Minute
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.arriveOver(none, 600, 2*time.Second)
	s.run(4 * time.Second)
	const x, heir = 3, 4
	s.down(heir)
	s.until(3*time.Second, "a wave without the heir", func() bool { return len(s.hosts[x].seen.status.List) == 4 })
	s.down(x)
	s.run(10 * time.Second)
	if n := s.reached.n[reachClaimLowered]; n > 0 {
		t.Errorf("slots were made again %d times of which nobody knows whether they are used: %s", n, s.ledgers(0))
	}
}

// A node is out of the waves for a moment, so that its account is void, and goes on with another one, of which nobody has a pass. Then an heir is
// lost, and its home after it: passes of the first account are good whose visits nobody keeps any more, and no slot is made for them. The heirs
// answer all the time: else the room would be copied nowhere for a while, and its account not be covered.
func TestScenarioAnHeirOfTheAccountBeforeIsLost(t *testing.T) {
	const lead, x, heir = 0, 2, 3
	o := short(5)
	o.Cluster.Copies = 1
	o.Rooms[0].Session, o.Load.Browse = time.Minute, Range{50 * time.Second, 50 * time.Second}
	s := founded(t, o)
	s.arrive(x, o.Rooms[0].Target)
	s.run(3 * time.Second)
	first := s.hosts[x].seen.rooms[0].Account
	s.arriveOver(lead, 100, 20*time.Second) // waves speak of the room
	s.tap = func(f *flight) verdict {
		if ofKind(mGather, none, x)(f) {
			return lose
		}
		return pass
	}
	s.until(2*time.Second, "a wave that has n02 void", func() bool { return len(s.hosts[lead].seen.rooms[0].Voided) > 0 })
	s.tap = nil
	s.until(time.Second, "n02 in the waves again", func() bool { return s.sees(lead, 5) })
	s.run(time.Second)
	s.down(heir)
	s.until(2*time.Second, "a wave without the heir", func() bool { return s.sees(lead, 4) })
	s.run(2 * time.Second)
	if r := &s.hosts[x].seen.rooms[0]; r.Account.Born <= first.Born || r.Bare < 0 {
		t.Fatalf("n02 has %v after %v, and its room is copied: %t: the world shows nothing", r.Account, first, r.Bare >= 0)
	}
	s.down(x)
	s.run(10 * time.Second)
	if n := s.reached.n[reachClaimLowered]; n > 0 {
		t.Errorf("slots were made again %d times of which nobody knows whether they are used: %s", n, s.ledgers(0))
	}
}

// A node is out of the waves, as it cannot be reached by who runs them, and its heir can.
// Somebody ends their visit by the heir, and another copy of their pass is shown at the node,
// whose lease is not over: it goes on with nothing that the heir has ended.
func TestScenarioAVisitThatMayGoOnIsNotEnded(t *testing.T) {
	const lead, heir, home = 0, 1, 2
	ended := 0
	for phase := range 10 {
		o := short(3)
		o.Cluster.Copies = 1
		o.Load.Browse = Range{time.Minute, time.Minute}
		s := founded(t, o)
		var inside, copies []*browser
		for range 4 {
			inside = append(inside, s.visit(home))
		}
		s.run(time.Second + time.Duration(phase)*20*time.Millisecond)
		for _, b := range inside {
			copies = append(copies, b.copy())
		}
		s.oneWay(lead, home)
		s.oneWay(home, lead)
		s.until(5*time.Second, "a wave without it", func() bool { return len(s.hosts[heir].seen.status.List) == 2 })
		for i, b := range inside {
			if _, err := b.ask(heir, opEnd); err == nil {
				ended++
			}
			_, _ = copies[i].ask(home, opRefresh)
			s.run(50 * time.Millisecond)
			_, _ = copies[i].ask(home, opRefresh)
		}
		s.check()
	}
	t.Logf("%d visits were ended", ended)
}

// A node is cut off, and its heir is not. Somebody ends their visit by the heir, as soon as it does that, and another
// copy of their pass is shown at the node, whose lease is not over: it has heard nothing of the heir for so long that it gives no pass any more.
func TestScenarioAPassIsNotGivenByAWordOfLongAgo(t *testing.T) {
	const lead, heir, home = 0, 1, 2
	ended := 0
	for phase := range 10 {
		o := short(3)
		o.Cluster.Copies = 1
		o.Load.Browse = Range{time.Minute, time.Minute}
		s := founded(t, o)
		var inside, copies []*browser
		for range 4 {
			inside = append(inside, s.visit(home))
		}
		s.run(time.Second + time.Duration(phase)*20*time.Millisecond)
		for _, b := range inside {
			copies = append(copies, b.copy())
		}
		s.split(hosts(home), hosts(lead, heir))
		s.until(5*time.Second, "a wave without it", func() bool { return len(s.hosts[heir].seen.status.List) == 2 })
		for range 40 {
			for i, b := range inside {
				if _, err := b.ask(heir, opEnd); err == nil {
					ended++
				}
				_, _ = copies[i].ask(home, opRefresh)
			}
			s.run(50 * time.Millisecond)
		}
		s.check()
	}
	if ended == 0 {
		t.Error("the heir has ended no visit")
	}
}
