package simtest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// TestAgendaIsASortedList compares the heap with the obvious list.
func TestAgendaIsASortedList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var g agenda
	var list []event
	for i := range int32(20_000) {
		if len(list) > 0 && rng.IntN(3) == 0 {
			slices.SortFunc(list, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
			if got := g.pop(); got != list[0] {
				t.Fatalf("pop = %+v, want %+v", got, list[0])
			}
			list = list[1:]
			continue
		}
		at := rng.Int64N(50)
		g.push(at, evTick, i, 0)
		list = append(list, event{at: at, seq: g.seq, a: i, kind: evTick})
		if len(list) > 40 {
			list = list[:0]
			g = agenda{seq: g.seq}
		}
	}
}

// TestClockWhenIsTheFirstMoment checks that a Tick is never early and never
// later than it must be, however a boot clock drifts.
func TestClockWhenIsTheFirstMoment(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		c := clock{since: rng.Int64N(1e9), base: rng.Int64N(1e12), drift: rng.Int64N(401) - 200}
		b := c.base + rng.Int64N(1e10)
		at := c.when(b)
		if c.boot(at) < b || c.boot(at-1) >= b {
			t.Fatalf("%+v: when(%d) = %d, where it shows %d, and %d before", c, b, at, c.boot(at), c.boot(at-1))
		}
	}
}

// TestSessionsEndInOrder checks the heap of expiries.
func TestSessionsEndInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	var c roomCheck
	for range 500 {
		c.pushExpiry(expiry{at: rng.Int64N(100)})
	}
	for last := int64(-1); len(c.expiries) > 0; {
		e := c.popExpiry()
		if e.at < last {
			t.Fatalf("%d after %d", e.at, last)
		}
		last = e.at
	}
}

// quiet is a world of two nodes in which nothing happens by itself.
func quiet(net Net) *world {
	w := newWorld(Options{Seed: 1, Nodes: 2, Net: net}.withDefaults())
	w.start(&w.hosts[0])
	w.start(&w.hosts[1])
	w.agenda = agenda{}
	return w
}

// arrivals runs the agenda off and lists which of the probes arrived, in order.
// Whatever the nodes answer is lost.
func (w *world) arrivals() (sent []int64) {
	for len(w.agenda.heap) > 0 {
		e := w.agenda.pop()
		if e.kind != evMessage {
			continue
		}
		w.now = e.at
		f := w.wires.flights.at[e.a]
		l := w.wires.link(f.from, f.to)
		if p, ok := f.m.Body.(*eviction.Probe); ok && f.to == 1 && f.gen == l.gen && l.cut == 0 && (l.due == 0 || f.freed) {
			sent = append(sent, p.Sent)
		}
		if f.to == 1 {
			w.arrive(e.a)
		}
	}
	return sent
}

func (w *world) probe(n int64) {
	m := eviction.Message{From: w.lives[0].member, To: w.lives[1].member, Body: &eviction.Probe{Lead: w.lives[0].peer, Sent: n}}
	w.send(&w.hosts[0], m, mProbe)
}

func TestLinkKeepsOrder(t *testing.T) {
	w := quiet(Net{Latency: Range{time.Millisecond, 50 * time.Millisecond}})
	for i := range int64(100) {
		w.now = i
		w.probe(i)
	}
	got := w.arrivals()
	if len(got) != 100 || !slices.IsSorted(got) {
		t.Fatalf("%d of 100 arrived, as %v", len(got), got)
	}
}

func TestCutLinkLosesWhatIsInFlight(t *testing.T) {
	w := quiet(Net{})
	w.probe(1)
	w.wires.cut(0, 1)
	w.probe(2)
	w.mend(0, 1)
	w.probe(3)
	if got := w.arrivals(); !slices.Equal(got, []int64{3}) {
		t.Fatalf("%v arrived, want 3 alone", got)
	}
}

func TestHeldLinkDeliversInOrderWhenMended(t *testing.T) {
	w := quiet(Net{Held: true, Latency: Range{time.Millisecond, 20 * time.Millisecond}})
	w.wires.cut(0, 1)
	for i := range int64(20) {
		w.probe(i)
	}
	w.arrivals() // they wait at the link
	w.mend(0, 1)
	for i := range int64(20) {
		w.probe(20 + i)
	}
	got := w.arrivals()
	if len(got) != 40 || !slices.IsSorted(got) {
		t.Fatalf("%d of 40 arrived, as %v", len(got), got)
	}
}

// TestGossipGoesAroundADeadLink checks who can hear of whom.
func TestGossipGoesAroundADeadLink(t *testing.T) {
	w := newWorld(Options{Seed: 1, Nodes: 4}.withDefaults())
	for i := range w.hosts {
		w.start(&w.hosts[i])
	}
	w.wires.cut(0, 1)
	w.findSides()
	if w.gossip.side[0] != w.gossip.side[1] {
		t.Error("nodes 0 and 1 do not hear of each other through 2 and 3")
	}
	for _, other := range []int32{1, 2, 3} {
		w.wires.cut(0, other)
	}
	w.findSides()
	if w.gossip.side[0] == w.gossip.side[1] || w.gossip.side[1] != w.gossip.side[3] {
		t.Errorf("sides %v, want node 0 alone", w.gossip.side[:4])
	}
}

// TestWorldRefusesNonsense checks that options are judged before a run.
func TestWorldRefusesNonsense(t *testing.T) {
	for _, o := range []Options{
		{Nodes: 300},
		{Nodes: -1},
		{Users: -1},
		{Span: -time.Second},
		{Rooms: []eviction.Room{{Name: "shop", Target: -1}}},
		{Cluster: eviction.Config{Lease: time.Second, ExcludeAfter: time.Second}},
	} {
		if _, err := Run(o); err == nil {
			t.Errorf("Run(%+v) ran", o)
		}
	}
}

// TestNothingIsSentBeforeItIsSaved holds messages while a disk fails, and lets them go
// in order.
func TestNothingIsSentBeforeItIsSaved(t *testing.T) {
	w := quiet(Net{})
	w.o.Faults.Disk = true
	h, record := &w.hosts[0], &eviction.Record{Epoch: 7}
	say := func(i int64) []eviction.Message {
		return []eviction.Message{{Body: &eviction.Probe{Sent: i}}}
	}
	h.disk.failing = true
	if out := w.passOn(h, &node.Ready{Save: record, Messages: say(1)}); out != nil || h.disk.kept == record {
		t.Fatalf("%d messages go out of a node that cannot save", len(out))
	}
	w.now += saveAgain
	if out := w.passOn(h, &node.Ready{Messages: say(2)}); out != nil {
		t.Fatalf("%d messages go out of a node that still cannot save", len(out))
	}
	h.disk.failing = false
	w.now += saveAgain
	var sent []int64
	for _, m := range w.passOn(h, &node.Ready{Messages: say(3)}) {
		sent = append(sent, m.Body.(*eviction.Probe).Sent)
	}
	if !slices.Equal(sent, []int64{1, 2, 3}) || h.disk.kept != record {
		t.Fatalf("%v is sent when the record is saved, want 1, 2 and 3", sent)
	}
}

// TestACrashInASaveLeavesOneRecordOrTheOther crashes a node before each step.
func TestACrashInASaveLeavesOneRecordOrTheOther(t *testing.T) {
	for step := writeFile; step <= sendAll; step++ {
		found := map[uint64]bool{}
		for seed := range uint64(20) {
			w := quiet(Net{})
			w.o.Faults.Disk = true
			w.rngFaults = rand.New(rand.NewPCG(seed, 1))
			h := &w.hosts[0]
			h.disk.kept = &eviction.Record{Epoch: 1}
			w.nemesis.traps = []trap{{fault: CrashInSave, when: inSave, step: step, count: 1, last: 1_000_000}}
			if out := w.passOn(h, &node.Ready{Save: &eviction.Record{Epoch: 2}, Messages: make([]eviction.Message, 1)}); out != nil || h.up() {
				t.Fatalf("step %d: up %t, and sends %d messages", step, h.up(), len(out))
			}
			found[h.disk.kept.Epoch] = true
		}
		if before, after := step <= syncDirectory, step >= syncDirectory; found[1] != before || found[2] != after {
			t.Errorf("after crashes before step %d the records found are %v, want the old one %t and the new one %t", step, found, before, after)
		}
	}
}

// TestASuspectedNodeMayTakePlacesOver from homes to which nothing has happened, and so it may
// for a while after the others have heard of it again. Nobody else may.
func TestASuspectedNodeMayTakePlacesOver(t *testing.T) {
	w := quiet(Net{})
	home, suspected := &w.hosts[0], &w.hosts[1]
	allowed := func() int32 {
		w.now += 1000
		w.checker.installs[home.index], w.checker.installs[suspected.index] = w.now, w.now
		p := place{}
		p.settle(w, home)
		return w.partedFrom(&p, suspected)
	}
	w.now = 60_000_000
	for _, step := range []struct {
		what string
		do   func()
		want int32
	}{
		{"nothing", func() {}, 0},
		{"all others hold it for dead", func() { w.afflict(suspected.index, 1) }, 1},
		{"no more, a moment ago", func() { w.afflict(suspected.index, -1) }, 1},
		{"no more, and waves list it", func() { w.now += w.settleTime() }, 0},
	} {
		step.do()
		if allowed() != step.want {
			t.Errorf("%s: it may take over %d places of a home that is well, want %d", step.what, allowed(), step.want)
		}
	}
}

// TestANodeMayTakePlacesOverFromAHomeThatItsWavesGoOnWithout for exclude_after, but for a
// wave's deadline, and from no other one that is well.
func TestANodeMayTakePlacesOverFromAHomeThatItsWavesGoOnWithout(t *testing.T) {
	w := quiet(Net{})
	h, home := &w.hosts[0], &w.hosts[1]
	of := func(h *host) eviction.Member { return h.member(w) }
	c := w.o.slowest()
	least := (c.ExcludeAfter - c.Deadline).Microseconds()
	w.now = 60_000_000
	lists := func(ms ...eviction.Member) {
		h.seen.status.List = ms
		w.metIn(h, ms)
	}
	for _, step := range []struct {
		what string
		do   func()
		want bool
	}{
		{"they never met", func() { lists(of(h)) }, false},
		{"it is in its waves", func() { lists(of(h), of(home)) }, false},
		{"it is, and there was none for long", func() { w.now += 2 * least }, false},
		{"it is in none from now on", func() { lists(of(h), of(home)); lists(of(h)) }, false},
		{"not for long enough", func() { w.now += least - 1; lists(of(h)) }, false},
		{"for long enough", func() { w.now++ }, true},
		{"it is again", func() { lists(of(h), of(home)) }, false},
	} {
		step.do()
		if w.without(h, home.index) != step.want || w.without(h, h.index) {
			t.Errorf("%s: without it is %t, want %t", step.what, w.without(h, home.index), step.want)
		}
	}
}
