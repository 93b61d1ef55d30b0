package simtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// Three nodes are told to begin as soon as two are together. A and B found a
// cluster, and B does not hear of it; then it is with C, and they found another.
// A alone is half of the first cluster's voters, with the lowest name, and B and C
// are all of the second's. B is a founder of both, so the first may not begin
// without it: not before B is known to be on its line.
func TestScenarioTwoFoundingsThatShareANode(t *testing.T) {
	o := short(3)
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := assemble(t, o)
	for i := range s.hosts {
		s.hosts[i].expect = 2
	}
	commit := ofKind(mCommit, 0, 1)
	s.tap = func(f *flight) verdict {
		if commit(f) {
			return lose
		}
		return pass
	}
	s.boot(0)
	s.run(50 * time.Millisecond)
	s.boot(1)
	s.until(3*time.Second, "a founding", func() bool { return s.hosts[0].seen.status.Line.Founded() })
	s.split(hosts(0), hosts(1, 2))
	s.boot(2)
	s.until(3*time.Second, "another", func() bool { return s.sees(1, 2) && s.sees(2, 2) })
	s.arrive(0, 30)
	s.arrive(1, 30)
	s.run(6 * time.Second)
	if st := s.hosts[0].seen.status; st.Grade >= eviction.Primary {
		t.Errorf("the first founding went on: %s", s.statuses())
	}
	s.finish()
}

// A founder dies between the founding and the first wave of which it could take
// part: nobody can tell what it had heard of. As soon as as many nodes as a
// founding takes are together again they begin anew, and wait for D, since it may
// have been the one that had begun.
func TestScenarioAFounderDiesBeforeTheBeginning(t *testing.T) {
	for _, disk := range []bool{false, true} {
		o := short(3)
		o.Faults.Disk = disk
		s := assemble(t, o)
		s.launch()
		s.until(3*time.Second, "a founding", func() bool { return s.hosts[0].seen.status.Line.Founded() })
		s.down(2)
		s.run(3 * time.Second)
		s.boot(2)
		s.until(3*time.Second, "a cluster of three", func() bool { return s.together(3) })
		s.arrive(0, 30)
		s.until(2*s.delay(), "all the slots", func() bool { n, _ := s.ownedNow(); return n == 12 })
		s.finish()
	}
}

// Three of five are told to begin as soon as three are together, and so they did. Then
// these three are killed at once, come back without anything but their keys, and cannot
// reach the others, whose visitors are on the site: as many as a founding takes have
// forgotten the cluster, and begin anew. They wait for D, since keys from before may be
// on passes that are good. Without any (no data, no signing_keys) they would not, and the
// others' visitors would come on top of the limit: operating.md says so.
func TestScenarioFoundersThatForgotWaitForD(t *testing.T) {
	o := short(5)
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := assemble(t, o)
	for i := range s.hosts {
		s.hosts[i].expect = 3
	}
	s.begin()
	s.arrive(3, 10)
	s.arrive(4, 10)
	s.run(time.Second)
	if _, used := s.ownedNow(3, 4); used != 12 {
		t.Fatalf("%d visitors are at the two, want 12: %s", used, s.ledgers(0))
	}
	s.split(hosts(0, 1, 2), hosts(3, 4))
	for i := range 3 {
		s.reboot(i)
	}
	s.arrive(0, 30)
	s.until(3*time.Second, "another cluster", func() bool { return s.sees(0, 3) && s.sees(1, 3) })
	s.run(s.delay() - time.Second)
	if owned, _ := s.ownedNow(0, 1, 2); owned != 0 {
		t.Errorf("the three have %d slots before D is over, want none: %s", owned, s.ledgers(0))
	}
	s.until(3*time.Second, "slots", func() bool { owned, _ := s.ownedNow(0, 1, 2); return owned == 12 })
	s.finish()
}

// Three of four nodes have no disks and no keys, and are restarted while the links of the
// fourth are so slow that it is in no wave. It answers, and has visitors on the site: as
// many as a founding takes do not begin beside it, and do as soon as it is gone.
func TestScenarioFoundersWaitForASlowNodeThatKnows(t *testing.T) {
	o := short(4)
	o.Expect, o.Faults.KeepKeys = 3, false
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.arrive(0, 12)
	s.run(time.Second)
	s.turnGray(&s.hosts[0])
	s.checker.gray.judged = false // it is not all that goes wrong
	s.until(10*time.Second, "waves without it", func() bool { return !s.sees(1, 4) })
	for i := 1; i < 4; i++ {
		s.reboot(i)
	}
	s.run(20 * time.Second)
	for i := 1; i < 4; i++ {
		if st := &s.hosts[i].seen.status; st.Line.Founded() {
			t.Errorf("%s is on line %v beside a node that knows of a cluster: %s", s.hosts[i].name, st.Line, s.statuses())
		}
	}
	if !slices.ContainsFunc(s.hosts, func(h host) bool { return h.seen.status.Holdout.Name == "n00" }) {
		t.Error("nobody says who holds the founding up")
	}
	s.down(0)
	s.until(5*time.Second, "a founding", func() bool { return s.sees(1, 3) && s.hosts[1].seen.status.Grade >= eviction.Primary })
	s.arrive(none, 30)
	s.finish()
}

// Two of three nodes have no disks and no keys, and are restarted while nobody reaches the
// third. Somebody starts another node under a name of one of the two: three nodes are there,
// and three are told to expect each other, but not by name. They do not begin.
func TestScenarioTwoLivesOfANameDoNotFoundAsTwo(t *testing.T) {
	o := short(3)
	o.Expect, o.Faults.KeepKeys, o.Faults.Twins = 3, false, 1
	s := founded(t, o)
	s.split(hosts(0), hosts(1, 2))
	s.reboot(1)
	s.reboot(2)
	twin := s.addHost(3)
	twin.name = s.hosts[1].name
	s.split(hosts(0), hosts(twin.index))
	s.start(twin)
	s.run(10 * time.Second)
	for i := 1; i < 4; i++ {
		if st := &s.hosts[i].seen.status; st.Line.Founded() {
			t.Errorf("%s is on line %v without a node that knows of another: %s", s.hosts[i].name, st.Line, s.statuses())
		}
	}
	s.mend()
	s.until(10*time.Second, "a cluster", func() bool { return s.hosts[2].seen.status.Line.Founded() })
	s.finish()
}

// Three of four nodes have no disks and no keys, and found a cluster anew while nobody
// reaches the fourth: as many as are told to expect each other. The fourth is back, and
// remembers their earlier lives from waves of its own line, whose numbers are higher than
// those of a new one. They say nothing of who votes on that one.
func TestScenarioAFoundingMeetsAnOlderLine(t *testing.T) {
	o := short(4)
	o.Expect, o.Faults.KeepKeys = 3, false
	s := founded(t, o)
	s.run(10 * time.Second)
	s.split(hosts(0), hosts(1, 2, 3))
	for i := 1; i < 4; i++ {
		s.reboot(i)
	}
	s.until(5*time.Second, "a founding", func() bool { return s.sees(1, 3) && s.hosts[1].seen.status.Grade >= eviction.Primary })
	line := s.hosts[1].seen.status.Line
	s.tap = func(f *flight) verdict {
		if f.kind == mGather && f.from != 0 { // the next wave is one of the fourth
			return lose
		}
		return pass
	}
	s.mend()
	before := s.hosts[0].seen.status.Installed
	s.until(5*time.Second, "a wave of all", func() bool {
		st := &s.hosts[0].seen.status
		return st.Installed != before && len(st.List) == 4 && st.List[0] == s.lives[s.hosts[0].life].member
	})
	s.tap = nil
	s.until(5*time.Second, "a primary wave of all", func() bool { return s.together(4) })
	for i := range s.hosts {
		if got := s.hosts[i].seen.status.Line; got != line {
			t.Errorf("%s is on line %v, want %v, which has a quorum", s.hosts[i].name, got, line)
		}
	}
	s.arrive(none, 30)
	s.finish()
}

// A gather is under way to a node when everybody else is restarted, without disks and keys,
// and founds a cluster with it, whose waves are numbered from the beginning. The gather
// arrives after that, with its high number, and lists lives that are over: they would take
// the votes of their names for good, since no wave of the new line comes near that number.
// Seed 90009841 of the swarm.
func TestScenarioAGatherFromBeforeTheFounding(t *testing.T) {
	o := short(3)
	o.Expect, o.Faults.KeepKeys = 2, false
	s := founded(t, o)
	s.run(10 * time.Second)
	const a, b, x = 0, 1, 2
	gathers := ofKind(mGather, a, x)
	s.reboot(x)
	s.tap = func(f *flight) verdict {
		if gathers(f) && f.m.To == s.lives[s.hosts[x].life].member {
			return keep
		}
		return pass
	}
	s.until(5*time.Second, "a gather", func() bool { return len(s.kept) > 0 })
	s.down(a)
	s.reboot(b)
	s.until(5*time.Second, "another cluster", func() bool { return s.together(2) && s.hosts[x].seen.status.Installed.Num < 50 })
	s.run(time.Second)
	s.release()
	s.tap = nil
	s.run(2 * time.Second)
	if !s.together(2) {
		t.Errorf("the two do not go on: %s", s.statuses())
	}
	s.arrive(b, 20)
	s.boot(a)
	s.finish()
}

// A node founds with one other, who crashes; a third hears of that line, and not who its founders are. Then
// the first founds again, with another life of that one and with a fourth, and so once more when that life is
// over. The line of which the third has heard is over by then, though nobody knows who founded it.
// Seed 98002300 of the swarm.
func TestScenarioALineOfWhichOneHasOnlyHeardIsOver(t *testing.T) {
	s := assemble(t, short(4))
	for i := range s.hosts {
		s.hosts[i].expect = 2
	}
	const a, b, c, d = 0, 1, 2, 3
	s.tap = func(f *flight) verdict { // of each founding only its coordinator hears
		if m, ok := f.m.Body.(*eviction.Commit); ok && m.Founding {
			return lose
		}
		return pass
	}
	s.split(hosts(a, b), hosts(c), hosts(d))
	s.launch()
	line := func(i int) eviction.Line { return s.hosts[i].seen.status.Line }
	s.until(3*time.Second, "a founding", func() bool { return line(a).Founded() })
	heard := line(a)
	s.down(b)
	s.mend()
	s.split(hosts(a, c), hosts(b), hosts(d))
	s.until(3*time.Second, "who has heard of it", func() bool { return line(c) == heard && !s.hosts[c].seen.status.Knows })
	s.mend()
	s.split(hosts(a, b, d), hosts(c))
	s.boot(b)
	s.until(5*time.Second, "another founding", func() bool { return line(a) != heard })
	s.down(b)
	s.mend()
	s.until(5*time.Second, "waves of the others", func() bool {
		return slices.Equal(s.hosts[a].seen.status.List, s.hosts[c].seen.status.List) && len(s.hosts[a].seen.status.List) == 3
	})
	s.tap = nil
	s.boot(b)
	s.until(10*time.Second, "one wave of all", func() bool { return s.together(4) })
	s.arrive(a, 20)
	s.finish()
}

// Four of five are told to begin together. Two foundings of four have three nodes in common,
// and neither has begun when all five crash; some have a disk that knows of one, some have
// forgotten. Nobody else can have begun either, so they found again. Seed 90017840 of the
// swarm.
func TestScenarioFoundersOfTwoLinesAreOver(t *testing.T) {
	o := short(5)
	o.Faults.Disk = true
	s := assemble(t, o)
	for i := range s.hosts {
		s.hosts[i].expect = 4
	}
	const a, b, c, d, e = 0, 1, 2, 3, 4
	commits := func(f *flight) bool { return f.kind == mCommit }
	s.tap = func(f *flight) verdict { // of each founding only its coordinator hears
		if commits(f) {
			return lose
		}
		return pass
	}
	s.split(hosts(a, b, c, d), hosts(e))
	s.launch()
	s.until(3*time.Second, "a founding", func() bool { return s.hosts[a].seen.status.Line.Founded() })
	s.mend()
	s.split(hosts(a), hosts(b, c, d, e))
	s.until(3*time.Second, "another", func() bool { return s.hosts[b].seen.status.Line.Founded() })
	if s.hosts[a].seen.status.Line == s.hosts[b].seen.status.Line {
		t.Fatal("both are on one line")
	}
	for i := range s.hosts {
		s.down(i)
	}
	s.hosts[c].disk, s.hosts[d].disk = disk{}, disk{} // they come back without
	s.tap = nil
	s.mend()
	for i := range s.hosts {
		s.boot(i)
	}
	s.until(10*time.Second, "one wave of all", func() bool { return s.together(5) })
	s.arrive(a, 20)
	s.finish()
}

// A founder leaves a line and comes back to it, as others have chosen the older one: it has not left it any more. A
// split that takes it from all others then ends no process.
func TestScenarioAFounderComesBackToALineThatItLeft(t *testing.T) {
	for _, begun := range []bool{false, true} {
		t.Run(fmt.Sprintf("begun %v", begun), func(t *testing.T) { founderReturns(t, begun) })
	}
}

func founderReturns(t *testing.T, begun bool) {
	const y, f, z, g, h = 0, 1, 2, 3, 4
	s := assemble(t, short(5))
	for i := range s.hosts {
		s.hosts[i].expect = 3
	}
	s.hosts[g].expect, s.hosts[h].expect = 2, 2
	deaf := map[int32]bool{z: true}
	lead := none
	s.tap = func(fl *flight) verdict {
		if m, ok := fl.m.Body.(*eviction.Commit); ok && (deaf[fl.to] || !m.Founding) {
			return lose
		}
		if fl.kind == mGather && lead != none && int(fl.from) != lead {
			return lose
		}
		return pass
	}
	line := func(i int) eviction.Line { return s.hosts[i].seen.status.Line }
	s.split(hosts(f, y, z), hosts(g, h))
	s.launch()
	s.until(3*time.Second, "two foundings", func() bool { return line(f).Founded() && line(y) == line(f) && line(g).Founded() && line(h) == line(g) })
	l1 := line(f)
	s.down(h)
	s.mend()
	deaf = map[int32]bool{y: true, z: true}
	lead = f
	s.boot(h)
	s.until(5*time.Second, "founded again", func() bool { return line(f) != l1 && line(g) == line(f) && line(h) == line(f) })
	deaf = map[int32]bool{z: true, g: true, h: true}
	lead = y
	s.until(5*time.Second, "back on the first", func() bool { return line(f) == l1 })
	lead = none
	if begun {
		s.tap = nil
		s.until(10*time.Second, "one wave of all", func() bool { return s.together(5) })
		s.run(5 * time.Second)
	}
	s.split(hosts(f), hosts(y, z, g, h))
	s.run(5 * time.Second)
	s.mend()
	s.tap = nil
	s.until(10*time.Second, "one wave of all", func() bool { return s.together(5) })
	s.finish()
}
