package eviction

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/qpid"
)

// paceWorld is a coordinator, nodes that spend what they have, and every commit
// and loss in between.
type paceWorld struct {
	p     pacer
	q     quota
	list  []Member
	have  map[Member]*purse
	calls []int64
	now   int64
	waves uint64
	leads int    // how many have led
	deaf  Member // it replies, and hears of no commit
}

func newPaceWorld(nodes, perMinute int) *paceWorld {
	w := &paceWorld{q: quota{perMinute: perMinute, share: 1, all: 1, nodes: nodes, lately: nodes}, have: map[Member]*purse{}}
	for i := range nodes {
		m := Member{Name: qpid.NodeID(rune('a' + i)), Boot: 1}
		w.list = append(w.list, m)
		w.have[m] = &purse{}
	}
	w.takeOver(0, 0)
	return w
}

// takeOver has a coordinator lead since at that has not, or no more.
func (w *paceWorld) takeOver(at, deadline int64) {
	w.leads++
	w.q.by = qpid.NodeID(strconv.Itoa(w.leads))
	w.p.restart(at, deadline, w.waves)
}

// spend lets in up to n people at m, and returns how many.
func (w *paceWorld) spend(m Member, n int) (in int) {
	h := w.have[m]
	for in < n && h.tokens > 0 && w.now < h.tokenTo {
		h.tokens--
		h.spent++
		in++
		w.calls = append(w.calls, w.now)
	}
	return in
}

// wave asks list, lets spend happen before its commit comes, and gives each node
// what it needs.
func (w *paceWorld) wave(list []Member, need []int, between func()) {
	nodes := make([]RoomNode, len(list))
	w.q.nodes = len(list)
	for i, m := range list {
		h := w.have[m]
		nodes[i] = RoomNode{Born: 1, Spent: h.spent, Dealt: h.dealtBy()}
		if h.spentThen = h.spent; w.now < h.tokenTo {
			nodes[i].Tokens = h.tokens
		}
	}
	left := w.p.hear(w.now, w.q, list, nodes)
	deals := w.p.deal(w.now, w.q, w.p.fill(w.now, w.q), need, left, 0)
	between()
	w.waves++
	for i, m := range list {
		if m == w.deaf {
			continue
		}
		w.have[m].refill(&RoomCommit{Paced: true, Tokens: deals}, &wave{epoch: qpid.Epoch{Num: w.waves, Coordinator: w.q.by}, index: i, at: w.now}, true)
	}
}

// most returns how many came within any minute.
func (w *paceWorld) most() (most int) {
	from := 0
	for i, at := range w.calls {
		for at-w.calls[from] >= minute {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// S13: within any minute no more than the rate, whoever spends what when, and
// whoever is lost with tokens in hand.
func TestPacerHoldsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newPaceWorld(rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.SampledFrom([]int{1, 2, 6, 60, 61, 1200, 100_000}).Draw(t, "rate"))
		all := w.list
		for range rapid.IntRange(1, 120).Draw(t, "waves") {
			w.now += rapid.SampledFrom([]int64{50_000, 200_000, 1_000_000, 5_000_000}).Draw(t, "later")
			list := append([]Member{all[0]}, rapid.SampledFrom([][]Member{all[1:], nil}).Draw(t, "listed")...)
			need := make([]int, len(list))
			for i := range need {
				need[i] = rapid.SampledFrom([]int{0, 1, 3, 1 << 20}).Draw(t, "need")
			}
			w.wave(list, need, func() { w.spend(rapid.SampledFrom(all).Draw(t, "before"), rapid.IntRange(0, 50).Draw(t, "spends")) })
			w.spend(rapid.SampledFrom(all).Draw(t, "after"), rapid.SampledFrom([]int{0, 1, 1 << 20}).Draw(t, "spends"))
			if n := w.most(); n > w.q.perMinute {
				t.Fatalf("%d let in within a minute at a rate of %d", n, w.q.perMinute)
			}
			if w.p.level < -8_000_000-int64(w.q.perMinute)*50_000 {
				t.Fatalf("a debt of %d", w.p.level)
			}
		}
	})
}

// Neither rounding nor the memory of a minute lets a rate be lost while people wait.
func TestPacerLosesLittle(t *testing.T) {
	for _, rate := range []int{1, 6, 7, 60, 1200} {
		w := newPaceWorld(3, rate)
		for w.now < 3600*second {
			w.now += 200_000
			w.wave(w.list, []int{0, 0, 1 << 20}, func() {})
			w.spend(w.list[2], 1<<20)
		}
		if n := len(w.calls); n < 60*rate*98/100-4 || n > 60*rate {
			t.Errorf("%d let in within an hour at %d a minute", n, rate)
		}
	}
}

// After quiet each node has a token, and still has it when the next wave comes.
func TestPacerKeepsTokensReady(t *testing.T) {
	w := newPaceWorld(3, 6)
	for w.now < 120*second {
		w.now += second
		w.wave(w.list, []int{1, 1, 1}, func() {})
	}
	for w.now < 240*second {
		w.now += second - 1
		if w.now%(20*second) < second && w.spend(w.list[w.now/second%3], 1) == 0 {
			t.Fatalf("no token for a newcomer at %d s", w.now/second)
		}
		w.now++
		w.wave(w.list, []int{1, 1, 1}, func() {})
	}
}

// S13 where one coordinator takes over from another, now and then, while people wait: those
// who were not listed then spend what they had been dealt as late as they may.
func TestPacersHoldTheRateOneAfterAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newPaceWorld(rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.SampledFrom([]int{6, 60, 61, 1200}).Draw(t, "rate"))
		all, away := w.list, 0
		quiet := rapid.Int64Range(0, 40).Draw(t, "quiet") * second
		lost := []int64{quiet + rapid.Int64Range(0, 3).Draw(t, "first")*second, quiet + rapid.Int64Range(3, 60).Draw(t, "second")*second}
		for w.now < quiet+70*second {
			w.now += rapid.SampledFrom([]int64{200_000, 200_000, 1_000_000}).Draw(t, "later")
			for _, m := range all[len(all)-away:] {
				if h := w.have[m]; w.now+second >= h.tokenTo {
					w.spend(m, 1<<20)
				}
			}
			if len(lost) > 0 && w.now > lost[0] {
				lost = lost[1:]
				away = rapid.IntRange(0, len(all)-1).Draw(t, "away")
				alone := w.now - rapid.Int64Range(0, 8).Draw(t, "alone")*second // it has led a side of its own since
				for w.takeOver(alone, 0); alone < w.now; alone += second {
					w.p.hear(alone, w.q, []Member{{Name: "x"}}, []RoomNode{{}})
					w.p.fill(alone, w.q)
				}
			}
			list := all[:len(all)-away]
			need := make([]int, len(list))
			for i := range need {
				need[i] = 1 << 20
			}
			w.wave(list, need, func() {})
			for _, m := range list {
				if w.now > quiet {
					w.spend(m, rapid.SampledFrom([]int{0, 1, 1 << 20, 1 << 20}).Draw(t, "spends"))
				}
			}
			if n := w.most(); n > w.q.perMinute {
				t.Fatalf("%d let in within a minute at a rate of %d", n, w.q.perMinute)
			}
		}
	})
}

// At a slow rate each node has a token after quiet. They are all spent, and most of the nodes
// are lost with their coordinator: the next one owes for all of them.
func TestPacerOwesForThoseWhoWereLost(t *testing.T) {
	w := newPaceWorld(5, 6)
	for w.now < 130*second {
		w.now += second
		w.wave(w.list, []int{1, 1, 1, 1, 1}, func() {})
	}
	for _, m := range w.list {
		w.spend(m, 1)
	}
	w.now += 2 * second
	w.takeOver(w.now, 0)
	for w.now < 200*second {
		w.wave(w.list[2:], []int{1, 1, 1}, func() {})
		w.spend(w.list[2], 1)
		w.now += 200_000
	}
	if n := w.most(); n > 6 {
		t.Errorf("%d let in within a minute at a rate of 6", n)
	}
}

// Who ran the waves decides once more, for itself, after a new coordinator has decided for
// the others: it had asked them before that one did.
func TestPacerOwesForADecisionUnderWay(t *testing.T) {
	w := newPaceWorld(3, 1200)
	w.q.underWay = 500_000
	rich := []int{1 << 20, 1 << 20, 1 << 20}
	for w.now < 130*second {
		w.now += 100_000
		w.wave(w.list, rich, func() {})
	}
	w.spend(w.list[0], 1<<20)
	old, by := w.p, w.q.by
	for decided := w.now + 100_000; w.now < decided+70*second; {
		w.now += 100_000
		if w.now == decided {
			w.takeOver(w.now, w.q.underWay)
		}
		w.wave(w.list[1:], rich[1:], func() {})
		for _, m := range w.list[1:] {
			w.spend(m, 1<<20)
		}
		if w.now <= decided+w.q.underWay {
			last, is := w.p, w.q.by
			w.p, w.q.by = old, by
			w.wave(w.list[:1], rich[:1], func() {})
			w.p, w.q.by, old = last, is, w.p
			w.spend(w.list[0], 1<<20)
		}
	}
	if n := w.most(); n > 1200 || n < 1150 {
		t.Errorf("%d let in within a minute at a rate of 1200", n)
	}
}

// A new coordinator deals nothing for a second when it hears of those to whom another dealt,
// and where it hears of none nothing before all dealt before has lapsed: for fifty tokens, half a
// second more.
func TestPacerRestarts(t *testing.T) {
	for dealt, from := range map[qpid.Epoch]int64{
		{Num: 3, Coordinator: "b"}: 103*second + 410_000,
		{Num: 9, Coordinator: "a"}: 103*second + 410_000, // of this one's lead before
		{}:                         103*second + 410_000, // of a version that does not say
		{Coordinator: "-"}:         104*second + 510_000,
	} {
		p, q := pacer{}, quota{perMinute: 6000, share: 1, all: 1, nodes: 1, by: "a"}
		p.restart(102*second, 500_000, 9)
		p.hear(102*second+400_000, q, []Member{{Name: "a"}}, []RoomNode{{Born: 1, Dealt: dealt}})
		p.known = true
		for at := 102*second + 400_000; at < from; at += 100_000 {
			if got := p.fill(at, q); got != 0 {
				t.Fatalf("where %v dealt last a new coordinator deals %d tokens after %d ms, and should begin at %d", dealt, got, at/1000-102_000, from/1000-102_000)
			}
		}
		if got := p.fill(from+500_000, q); got < 45 || got > 50 {
			t.Errorf("where %v dealt last a new coordinator has %d tokens half a second after %d ms, want nearly 50", dealt, got, from/1000-102_000)
		}
	}
}

// Nobody deals before all know: a node that replies and hears of no commit holds that up.
func TestPacerDealsWhenAllKnow(t *testing.T) {
	w := newPaceWorld(3, 6000)
	w.deaf = w.list[2]
	run := func(until int64) {
		for w.now < until {
			w.now += 200_000
			w.wave(w.list, []int{0, 100, 0}, func() {})
		}
	}
	if run(20 * second); w.have[w.list[1]].tokens > 0 {
		t.Errorf("%d tokens at a node, and another one knows of nobody who deals", w.have[w.list[1]].tokens)
	}
	w.deaf = Member{}
	if run(20*second + 400_000); w.have[w.list[1]].tokens == 0 {
		t.Error("no tokens, and all know who deals")
	}
	w.deaf = w.list[2]
	if run(25 * second); w.have[w.list[1]].tokens == 0 {
		t.Error("no tokens, and all know who deals: commits that are lost are no matter")
	}
}

// A node that is away again and again, and has nothing of another, costs nobody anything.
func TestPacerGoesOnWhileANodeComesAndGoes(t *testing.T) {
	for _, rate := range []int{6, 12, 60} {
		w := newPaceWorld(5, rate)
		for w.now < 3600*second {
			w.now += 200_000
			list := w.list
			if w.now%(30*second) < 3*second {
				list = w.list[:4]
			}
			need := make([]int, len(list))
			need[1] = 1 << 20
			w.wave(list, need, func() {})
			w.spend(w.list[1], 1<<20)
		}
		if n := len(w.calls); n < 60*rate*95/100 {
			t.Errorf("%d let in within an hour at %d a minute", n, rate)
		}
	}
}

// The rate is low for a moment, in which another coordinator takes over: what it owes of
// before is not cheaper for that.
func TestPacerOwesForAHigherRate(t *testing.T) {
	for _, low := range []int64{200_000, 400_000, 800_000, 2_000_000} {
		w := newPaceWorld(3, 60_000)
		rich := []int{1 << 20, 1 << 20, 1 << 20}
		for w.now < 90*second {
			w.now += 200_000
			w.wave(w.list, rich, func() {})
		}
		w.spend(w.list[0], 1<<20)
		w.takeOver(w.now, 0)
		w.q.perMinute = 6
		for end := w.now + low; w.now < end+70*second; {
			if w.now += 200_000; w.now > end {
				w.q.perMinute = 60_000
			}
			w.wave(w.list[1:], rich[1:], func() {})
			w.spend(w.list[1], 1<<20)
		}
		if n := w.most(); n > 60_000 || n < 55_000 {
			t.Errorf("%d let in within a minute at a rate of 60,000 that was low for %d ms", n, low/1000)
		}
	}
}

// Slots are made again an hour after somebody was lost: nothing is owed of then.
func TestPacerOwesForNobodyLongGone(t *testing.T) {
	w := newPaceWorld(5, 6)
	for w.now < 3700*second {
		w.now += second
		w.q.sides, w.q.lost, w.q.remade = true, w.now < 100*second, w.now == 3690*second
		w.wave(w.list, []int{1, 1, 1, 1, 1}, func() {})
	}
	if n := w.have[w.list[0]].tokens; n != 1 {
		t.Errorf("%d tokens at a node, want 1", n)
	}
}

// A coordinator that stood still goes on as one that takes over: another may have run waves
// meanwhile, with one of those whom it named last and one who is lost since.
func TestPacerOwesAfterAPause(t *testing.T) {
	w := newPaceWorld(3, 1200)
	rich := []int{1 << 20, 1 << 20, 1 << 20}
	for w.now < 30*second {
		w.now += 200_000
		w.wave(w.list, rich, func() {})
	}
	stood, by := w.p, w.q.by
	w.takeOver(w.now, 0)
	for w.now < 88*second {
		w.now += 200_000
		w.wave(w.list[1:], rich[1:], func() {})
		w.spend(w.list[2], 1<<20)
	}
	w.p, w.q.by = stood, by
	for w.now < 160*second {
		w.now += 200_000
		w.wave(w.list[:2], rich[:2], func() {})
		w.spend(w.list[0], 1<<20)
	}
	if n := w.most(); n > 1200 {
		t.Errorf("%d let in within a minute at a rate of 1200", n)
	}
}

// A coordinator stands still for less time than tokens live, and so do those that it dealt.
// Another one leads meanwhile, and deals to a node that is lost.
func TestPacerOwesForWhoLedWhileItStoodStill(t *testing.T) {
	w := newPaceWorld(4, 60_000)
	rich := []int{1 << 20, 1 << 20, 1 << 20, 1 << 20}
	for w.now < 90*second {
		w.now += 100_000
		w.wave(w.list, rich, func() {})
	}
	stood, by := w.p.clone(), w.q.by
	w.takeOver(w.now, 0)
	for end := w.now + tokenLife - 200_000; w.now < end; {
		w.now += 100_000
		w.wave(w.list[1:], []int{0, 0, 1 << 20}, func() {})
		w.spend(w.list[3], 1<<20)
	}
	w.p, w.q.by = stood, by
	for w.now < 170*second {
		w.now += 100_000
		w.wave(w.list[:3], rich[:3], func() {})
		w.spend(w.list[0], 1<<20)
	}
	if n := w.most(); n > 60_000 || n < 55_000 {
		t.Errorf("%d let in within a minute at a rate of 60,000", n)
	}
}

// A coordinator stands still, asks once, and stands still again while another one leads: a
// node that hears of no commit meanwhile replies to both. The other one deals as that node
// knows, and is lost.
func TestPacerOwesUntilAllKnow(t *testing.T) {
	w := newPaceWorld(4, 6000)
	rich := []int{1 << 20, 1 << 20, 1 << 20, 1 << 20}
	lead := func(list []Member, long int64, at ...Member) {
		for end := w.now + long; w.now < end; {
			w.now += 200_000
			w.wave(list, rich[:len(list)], func() {})
			for _, m := range at {
				w.spend(m, 1<<20)
			}
		}
	}
	lead(w.list, 90*second)
	first, by := w.p.clone(), w.q.by
	w.takeOver(w.now, 0)
	lead(w.list[1:], 70*second)
	w.deaf = w.list[2]
	other, otherBy := w.p.clone(), w.q.by
	w.p, w.q.by = first, by
	lead([]Member{w.list[0], w.deaf}, 200_000)
	first = w.p.clone()
	w.p, w.q.by = other, otherBy
	lead(w.list[1:], 3*second, w.list[1], w.list[3])
	w.p, w.q.by, w.deaf = first, by, Member{}
	lead([]Member{w.list[0], w.list[2]}, 70*second, w.list[0], w.list[2])
	if n := w.most(); n > 6000 || n < 5500 {
		t.Errorf("%d let in within a minute at a rate of 6,000", n)
	}
}

// A debt counts for a minute: nothing of before is in any then, however slow the rate is.
func TestPacerForgetsADebtAfterAMinute(t *testing.T) {
	w := newPaceWorld(5, 6)
	w.q.share, w.q.all = 3, 100
	for w.now < 63*second {
		w.now += 200_000
		w.wave(w.list, make([]int, 5), func() {})
	}
	if w.p.level < 0 {
		t.Errorf("a minute after nodes were heard of that are not known, %d are owed", w.p.level)
	}
}

// Of who is not listed those may have had a token who were in a wave within the minute, and
// a wave that they were in goes on for what is left of a deadline.
func TestADecisionKnowsWhoMayHaveTokens(t *testing.T) {
	d := &decision{list: []Member{{Name: "a", Boot: 1}, {Name: "b", Boot: 2}}, reckons: Bounds{Deadline: 500_000}}
	if got := d.underWay(); d.lately(true) != 2 || got != 0 {
		t.Errorf("with nobody away: %d nodes, %d µs", d.lately(true), got)
	}
	d.met = []Sighting{
		{Member: Member{Name: "c", Boot: 1}, Age: 59 * second},
		{Member: Member{Name: "d", Boot: 1}, Age: 61 * second},
		{Member: Member{Name: "b", Boot: 1}, Age: 30 * second, Left: true}, // it is back
		{Member: Member{Name: "e", Boot: 1}, Age: 200_000},
	}
	if got := d.underWay(); d.lately(false) != 4 || got < 300_000 || got > 301_000 {
		t.Errorf("%d nodes, %d µs, want 4 and 300,000", d.lately(false), got)
	}
	// Where they share d may have gone on since, and so may an earlier life of a until this one began.
	d.met, d.up = append(d.met, Sighting{Member: Member{Name: "a"}, Age: 90 * second}), []int64{50 * second, 0}
	if d.lately(true) != 6 || d.lately(false) != 4 {
		t.Errorf("%d and %d nodes, want 6 where they share and 4 else", d.lately(true), d.lately(false))
	}
	if d.up[0] = 70 * second; d.lately(true) != 5 {
		t.Errorf("%d nodes, want 5: what an earlier life let in is longer ago", d.lately(true))
	}
}

func TestMeter(t *testing.T) {
	var m meter
	if got := m.rate(5 * second); got != 0 {
		t.Errorf("rate %v of nothing", got)
	}
	now := 10 * second
	for range 6000 { // ten a second
		now += 100_000
		m.add(now)
		if got := m.rate(now); now > 30*second && math.Abs(got-10) > 0.6 {
			t.Fatalf("rate %v at %d s, want 10", got, now/second)
		}
	}
	if got := m.rate(now + 60*second); math.Abs(got-5) > 0.3 {
		t.Errorf("rate %v a half-life after the last event, want half", got)
	}
	if got := m.rate(now - second); math.IsNaN(got) || got < 0 {
		t.Errorf("rate %v at an earlier time", got)
	}
}
