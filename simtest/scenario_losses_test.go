package simtest

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var losses = flag.Uint64("losses", 4, "how many seeds TestScenarioEveryLossHasItsOwnD runs")

// losing is a world of five in which one node after the other is killed and is
// back soon, one down at a time, for as long as many D.
type losing struct {
	*script
	lost []lostAccount
}

// lostAccount is that of a node that was killed at a time.
type lostAccount struct {
	at      int64
	account int32
	slots   int // the most that it may have had: its own, and those under way to or from it
}

func losingWorld(t *testing.T, disk bool, seed uint64) *losing {
	o := short(5)
	o.Seed = seed
	o.Rooms[0].Target = 20
	o.Faults.Disk = disk
	o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
	return &losing{script: founded(t, o)}
}

// kill ends a node and starts it again 800 ms later.
func (l *losing) kill(i int) {
	a := l.checker.rooms[0].accountOf(l.hosts[i].seen.rooms[0].Account)
	l.down(i)
	l.lost = append(l.lost, lostAccount{at: l.now, account: a})
	l.agenda.push(l.now+800_000, evStart, int32(i), 0)
}

// usable counts the slots of the nodes that run, and those under way between two of
// them, which are nobody's and not lost.
func (l *losing) usable() (n int) {
	accounts := l.checker.rooms[0].accounts
	for i := range accounts {
		if !l.runs(int32(i)) {
			continue
		}
		n += accounts[i].owned
		for j := range accounts {
			if l.runs(int32(j)) {
				n += l.underWay(int32(i), int32(j))
			}
		}
	}
	return n
}

// runs reports whether account i is that of a node that runs, or is about to be.
func (l *losing) runs(i int32) bool {
	a := &l.checker.rooms[0].accounts[i]
	return !l.lives[l.lifeOf(a.Member)].over && !a.closed
}

// underWay counts what account i has sent to j and j has not received.
func (l *losing) underWay(i, j int32) int {
	a, b := &l.checker.rooms[0].accounts[i], &l.checker.rooms[0].accounts[j]
	for _, p := range a.peers {
		if p.Account == b.Account {
			return max(0, p.Sent-b.receivedFrom(a.Account))
		}
	}
	return 0
}

// follow notes what the lost accounts may have: until others hear of the loss, slots
// are still sent to them.
func (l *losing) follow() {
	accounts := l.checker.rooms[0].accounts
	for i := range l.lost {
		k := &l.lost[i]
		n := accounts[k.account].owned
		for j := range accounts {
			if l.runs(int32(j)) {
				n += l.underWay(k.account, int32(j)) + l.underWay(int32(j), k.account)
			}
		}
		k.slots = max(k.slots, n)
	}
}

// due is how many slots there should be by now: all but what was lost within D, and
// noticed since. Nothing is minted while a loss is not known to all, and the newest may
// be one of just now. Until then it takes
//
//	exclude_after + 2 × deadline + 6 × period
//
// A coordinator leaves out whom its waves have lacked for exclude_after, at the end of
// one of them: a deadline. If it is lost itself, the next one takes over after
// exclude_after, asks for a deadline who is there, and its first wave may lack somebody
// for another one. (It voids nobody of its view for exclude_after, but in this world
// views have let go of who is lost by then.) The waves are one that was under way, and
// those that void, that find that all know it, that bring the supply to all, that do so
// once more when the lost node has come back in another life meanwhile, and that mint.
func (l *losing) due() int {
	c := &l.o.Cluster
	noticed := c.ExcludeAfter + 2*c.Deadline + 6*c.Period
	missing := 0
	for _, k := range l.lost {
		if l.now-k.at < (l.delay() + noticed).Microseconds() {
			missing += k.slots
		}
	}
	return l.o.Rooms[0].Target - missing
}

// poorest is the node with the fewest slots, of those that run.
func (l *losing) poorest() (host int) {
	fewest := l.o.Rooms[0].Target + 1
	for i := range l.hosts {
		if h := &l.hosts[i]; h.up() && h.seen.rooms[0].Owned < fewest {
			host, fewest = i, h.seen.rooms[0].Owned
		}
	}
	return host
}

// Each loss has its own D. A node is killed every 2 s, which is less than half of
// D, and its slots are back when its own D is over, whatever else was lost since:
// those of the coordinator, and of the nodes that were there when an earlier one
// was lost, too.
//
// How many a node has is not bounded by its share: they go where visitors wait, and stay
// there until somebody has less than half of theirs (see spread in package eviction).
// But the poorest of five has a fifth at most. So if it is always that one, at most
// 4 + 3 + 2 of 20 are waited for, three losses being within D, and half stays usable.
func TestScenarioEveryLossHasItsOwnD(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		disk  bool
		kills []int // in turn; nil: always the poorest
		least int
	}{
		{"each in turn", false, []int{3, 1, 4, 0, 2}, 0},
		{"each in turn, with disks", true, []int{3, 1, 4, 0, 2}, 0},
		{"always the same", false, []int{3}, 0},
		{"always the first", false, []int{0}, 0},
		{"always the poorest", false, nil, 10},
	} {
		for seed := range *losses {
			t.Run(fmt.Sprintf("%s, seed %d", c.name, seed+1), func(t *testing.T) {
				s := losingWorld(t, c.disk, seed+1)
				s.arriveOver(none, 600, 30*time.Second)
				s.run(time.Second)
				if least := s.losses(12, c.kills); least < c.least {
					t.Errorf("%d of 20 slots were usable at one time, want half of the limit at all times", least)
				}
				s.finish()
			})
		}
	}
}

// losses kills n nodes, 2 s apart, and returns how many slots were usable at least.
func (l *losing) losses(n int, kills []int) (least int) {
	l.t.Helper()
	least = l.o.Rooms[0].Target
	for i := range n {
		if kills == nil {
			l.kill(l.poorest())
		} else {
			l.kill(kills[i%len(kills)])
		}
		for end := l.now + 2_000_000; l.now < end; {
			l.run(100 * time.Millisecond)
			l.follow()
			usable := l.usable()
			least = min(least, usable)
			if usable < l.due() {
				l.t.Fatalf("%d slots %v after kill %d, want %d: %s", usable, micros(l.now-(end-2_000_000)), i+1, l.due(), l.ledgers(0))
			}
		}
	}
	return least
}

// A node is cut off with few slots, is back under a new account where many wait, and
// is cut off again with many slots, while the D of its first loss lasts. What is known
// of the first account says nothing of the second: none of its slots is made anew until
// its own D is over.
func TestScenarioTheSecondLossOfALifeHasItsOwnD(t *testing.T) {
	o := short(3)
	o.Rooms[0].Session = 5 * time.Second
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	cut := func() { s.split(hosts(0, 1), hosts(2)) }
	others := func() int { owned, _ := s.ownedNow(0, 1); return owned }
	cut()
	first := s.now
	s.run(3 * time.Second) // the others know what it had: of a quiet room each second, void first, then claimed
	few := o.Rooms[0].Target - others()
	s.mend()
	s.arrive(2, 30)
	s.until(2*time.Second, "more slots at the node that was cut off", func() bool { owned, _ := s.ownedNow(2); return owned > few+2 })
	cut()
	second, left := s.now, others()
	if second-first > s.delay().Microseconds()*3/4 {
		t.Fatalf("the first D is nearly over, %v after the loss", micros(second-first))
	}
	s.arrive(0, 30)
	s.arrive(1, 30)
	for s.now < first+s.delay().Microseconds() {
		s.run(100 * time.Millisecond)
		if owned := others(); owned > left {
			t.Fatalf("%d slots where %d were, %v after the second loss: %s", owned, left, micros(s.now-second), s.ledgers(0))
		}
	}
	s.until(s.delay()+2*time.Second, "all slots at the others", func() bool { return others() == o.Rooms[0].Target })
	s.finish()
}

// A raised limit is there at once, while a lost node's D lasts: all of it but what
// that node can own.
func TestScenarioARaisedLimitWaitsForNobodyElsesD(t *testing.T) {
	s := losingWorld(t, false, 1)
	s.arriveOver(none, 2000, 20*time.Second)
	s.run(time.Second)
	s.down(3)
	s.hosts[3].gone = true
	s.run(1200 * time.Millisecond)
	before, _ := s.ownedNow()
	room := s.hosts[1].seen.rooms[0].Room
	room.Target = 60
	s.setRoom(&s.hosts[1], 0, room)
	s.run(800 * time.Millisecond)
	if owned, _ := s.ownedNow(); owned != before+40 {
		t.Errorf("%d slots while a lost node may use %d of 60, want %d: %s", owned, 20-before, before+40, s.ledgers(0))
	}
	s.finish()
}

// The coordinator raises the limit, and none of its commits arrives. It must not
// make the slots: the others do not know that they may exist, and make them too,
// when it is cut off and they are told of the limit.
func TestScenarioNoSlotIsMadeThatOthersDoNotKnowOf(t *testing.T) {
	o := short(5)
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	raise := func(i int) {
		room := s.hosts[i].seen.rooms[0].Room
		room.Target = 24
		s.setRoom(&s.hosts[i], 0, room)
	}
	commit := ofKind(mCommit, 0, none)
	s.tap = func(f *flight) verdict {
		if commit(f) {
			return lose
		}
		return pass
	}
	raise(0)
	s.arrive(0, 30)
	s.run(600 * time.Millisecond)
	s.tap = nil
	s.split(hosts(0), hosts(1, 2, 3, 4))
	raise(1)
	for i := 1; i < 5; i++ {
		s.arrive(i, 10)
	}
	s.run(2 * s.delay())
	if owned, _ := s.ownedNow(1, 2, 3, 4); owned != 24 {
		t.Errorf("the four own %d slots, want 24: %s", owned, s.ledgers(0))
	}
	s.finish()
}

// X dies, and y is cut off before everybody has heard of that: nobody can tell who
// of the two has which slots, so none are made before the later D is over.
func TestScenarioThoseLostTogetherAreWaitedForTogether(t *testing.T) {
	const a, z, x, y = 0, 2, 3, 4
	o := short(5)
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.arrive(y, 8)
	s.run(400 * time.Millisecond)
	s.down(x)
	commits := ofKind(mCommit, a, z)
	s.tap = func(f *flight) verdict {
		if commits(f) {
			return lose
		}
		return pass
	}
	s.run(1600 * time.Millisecond)
	s.split(hosts(y), hosts(0, 1, z))
	s.tap = nil
	for i := range 3 {
		s.arrive(i, 5)
	}
	before, _ := s.ownedNow(0, 1, z)
	s.run(s.delay() - 200*time.Millisecond)
	if owned, _ := s.ownedNow(0, 1, z); owned != before {
		t.Errorf("%d slots with y's D not over, want %d as before: %s", owned, before, s.ledgers(0))
	}
	s.run(time.Second)
	if owned, _ := s.ownedNow(0, 1, z); owned != 12 {
		t.Errorf("%d slots after both, want 12: %s", owned, s.ledgers(0))
	}
	s.finish()
}

// X dies with slots on the way to c, which does not hear of it, takes them, and is
// lost later itself: they are c's then, and not x's.
func TestScenarioSlotsTakenFromTheLostBeforeOneKnewOfIt(t *testing.T) {
	const a, c, x = 0, 2, 3
	o := short(4)
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	slots, commits := ofKind(mSlots, x, c), ofKind(mCommit, a, c)
	deaf := false
	s.tap = func(f *flight) verdict {
		switch {
		case slots(f):
			return keep
		case deaf && commits(f):
			return lose
		}
		return pass
	}
	s.arrive(c, 12)
	s.until(2*time.Second, "a transfer from x to c", func() bool { return len(s.kept) > 0 })
	s.run(300 * time.Millisecond)
	s.kept, deaf = s.kept[:1], true
	s.down(x)
	s.run(1200 * time.Millisecond)
	s.release()
	s.tap = nil
	s.run(time.Second)
	if owned, _ := s.ownedNow(c); owned != 12 {
		t.Fatalf("c has %d slots, want all 12: %s", owned, s.ledgers(0))
	}
	s.split(hosts(c), hosts(a, 1))
	s.arrive(a, 5)
	s.run(2 * s.delay())
	s.finish()
}

// The third of three, c, is away for nearly D. Now b starts again from its disk and
// meets c, and a is cut off: c has not seen a for long, and b cannot say when it
// last did. For all it knows that was just before it started.
func TestScenarioARestoredNodesGuessCountsWhereItIsNeeded(t *testing.T) {
	const a, b, c = 0, 1, 2
	o := short(3)
	o.Faults.Disk = true
	s := founded(t, o)
	s.split(hosts(c), hosts(a, b))
	s.run(s.delay() - 1500*time.Millisecond)
	s.o.Load.Browse = Range{time.Minute, time.Minute}
	s.arrive(a, 12)
	s.run(time.Second)
	s.down(b)
	s.mend()
	s.split(hosts(a), hosts(b, c))
	s.boot(b)
	s.arrive(b, 5)
	s.arrive(c, 5)
	s.run(3 * time.Second)
	if owned, _ := s.ownedNow(b, c); owned != 0 {
		t.Errorf("b and c own %d slots while a may have all: %s", owned, s.ledgers(0))
	}
	s.finish()
}
