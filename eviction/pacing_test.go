package eviction

import (
	"maps"
	"math"
	"slices"
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
	have  map[Member]*tokenHolder
	calls []int64
	now   int64
}

type tokenHolder struct {
	n     int
	until int64
	spent uint64
}

func newPaceWorld(nodes, perMinute int) *paceWorld {
	w := &paceWorld{q: quota{perMinute: perMinute, share: 1, all: 1, nodes: nodes, lately: nodes}, have: map[Member]*tokenHolder{}}
	for i := range nodes {
		m := Member{Name: qpid.NodeID(rune('a' + i)), Boot: 1}
		w.list = append(w.list, m)
		w.have[m] = &tokenHolder{}
	}
	w.p.restart(0, 0)
	return w
}

// spend lets in up to n people at m, and returns how many.
func (w *paceWorld) spend(m Member, n int) (in int) {
	h := w.have[m]
	for in < n && h.n > 0 && w.now < h.until {
		h.n--
		h.spent++
		in++
		w.calls = append(w.calls, w.now)
	}
	return in
}

// wave asks list, lets spend happen before its commit comes, and gives each node
// what it needs.
func (w *paceWorld) wave(list []Member, need []int, between func()) {
	nodes, then := make([]RoomNode, len(list)), make([]uint64, len(list))
	for i, m := range list {
		h := w.have[m]
		nodes[i] = RoomNode{Born: 1, Spent: h.spent}
		if then[i] = h.spent; w.now < h.until {
			nodes[i].Tokens = h.n
		}
	}
	w.q.nodes = len(list)
	left := w.p.hear(w.now, w.q, list, nodes)
	deals := w.p.deal(w.now, w.q, w.p.fill(w.now, w.q), need, left, 0)
	between()
	for i, m := range list {
		h := w.have[m]
		h.n, h.until = 0, w.now+tokenLife
		for _, d := range deals {
			if d.Index == i {
				h.n = max(0, d.N-int(h.spent-then[i]))
			}
		}
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
				if h := w.have[m]; w.now+second >= h.until {
					w.spend(m, 1<<20)
				}
			}
			if len(lost) > 0 && w.now > lost[0] {
				lost = lost[1:]
				away = rapid.IntRange(0, len(all)-1).Draw(t, "away")
				alone := w.now - rapid.Int64Range(0, 8).Draw(t, "alone")*second // it has led a side of its own since
				for w.p.restart(alone, 0); alone < w.now; alone += second {
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

// S13 where sides with a coordinator each come apart and meet again, nodes are lost, and
// their slots are made again when nobody else is away: before, while and after a crowd
// comes to where all was quiet. Those who were lost let in what they may as late as they may.
func TestPacersOfSidesHoldTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSidesWorld(rapid.IntRange(2, 6).Draw(t, "nodes"), rapid.SampledFrom([]int{6, 60, 61, 1200}).Draw(t, "rate"))
		for range 2 {
			for range rapid.IntRange(0, 3).Draw(t, "before") {
				w.happens(t)
			}
			w.run(t, 60*second, 0)
			for range rapid.IntRange(1, 4).Draw(t, "while") {
				w.run(t, rapid.Int64Range(0, 10).Draw(t, "later")*second, rapid.SampledFrom([]int{0, 1, 1 << 20, 1 << 20}).Draw(t, "come"))
				w.happens(t)
			}
			w.run(t, 62*second, 1<<20)
		}
	})
}

// lately notes that list is in a wave, and returns how many were ever in one with any of it, as
// far as these have heard.
func (w *sidesWorld) lately(list []Member) int {
	heard := map[Member]int64{}
	for _, m := range list {
		for o, at := range w.met[m] {
			heard[o] = max(heard[o], at)
		}
	}
	for _, m := range list {
		heard[m] = w.now
	}
	for _, m := range list {
		w.met[m] = maps.Clone(heard)
	}
	return len(heard)
}

// sidesWorld is a paceWorld of sides that share slots between them. Those of the lost are
// made again when all that are left are one side.
type sidesWorld struct {
	*paceWorld
	sides  []*pacedSide
	lost   []Member
	gone   int  // slots of the lost
	remake bool // make them again
	met    map[Member]map[Member]int64
}

type pacedSide struct {
	pacer pacer
	list  []Member
	slots int
	late  int // waves that its coordinator makes yet as if nobody had left it
	had   int // slots, then
}

func newSidesWorld(nodes, perMinute int) *sidesWorld {
	w := &sidesWorld{paceWorld: newPaceWorld(nodes, perMinute), met: map[Member]map[Member]int64{}}
	w.q.all, w.q.sides, w.q.underWay = 12, true, 400_000
	w.sides = []*pacedSide{{list: slices.Clone(w.list), slots: w.q.all}}
	w.sides[0].pacer.restart(0, 0)
	return w
}

// happens changes who is a side with whom.
func (w *sidesWorld) happens(t *rapid.T) {
	switch rapid.SampledFrom([]string{"split", "split", "meet", "whole", "loss", "lead"}).Draw(t, "what") {
	case "split":
		w.split(t)
	case "meet":
		w.meet(t)
	case "whole":
		for len(w.sides) > 1 {
			w.meet(t)
		}
		w.remake = w.gone > 0
	case "loss":
		w.lose(t)
	case "lead":
		s := rapid.SampledFrom(w.sides).Draw(t, "led")
		s.late = 0
		s.pacer.restart(w.now, 0)
	}
}

// split has some nodes of a side go on by themselves, with their slots.
func (w *sidesWorld) split(t *rapid.T) {
	s := rapid.SampledFrom(w.sides).Draw(t, "side")
	if len(s.list) < 2 {
		return
	}
	k := rapid.IntRange(1, len(s.list)-1).Draw(t, "stay")
	off := &pacedSide{list: slices.Clone(s.list[k:]), slots: rapid.IntRange(0, s.slots).Draw(t, "slots")}
	off.pacer.restart(w.now, 0)
	s.late, s.had = rapid.IntRange(0, int(w.q.underWay/200_000)).Draw(t, "late"), s.slots
	s.list, s.slots = s.list[:k:k], s.slots-off.slots
	w.sides = append(w.sides, off)
}

// meet has two sides go on as one, under either's coordinator.
func (w *sidesWorld) meet(t *rapid.T) {
	if len(w.sides) < 2 {
		return
	}
	w.sides = rapid.Permutation(w.sides).Draw(t, "order")
	n := len(w.sides) - 1
	to, from := w.sides[n-1], w.sides[n]
	to.late = 0
	to.list, to.slots, w.sides = append(to.list, from.list...), to.slots+from.slots, w.sides[:n]
	w.waveOf(to, 1) // in which nobody is let in: slots pass between those alone who are in one
}

// lose ends a node, and its side's coordinator if it is that.
func (w *sidesWorld) lose(t *rapid.T) {
	i := rapid.IntRange(0, len(w.sides)-1).Draw(t, "of")
	s := w.sides[i]
	j := rapid.IntRange(0, len(s.list)-1).Draw(t, "lost")
	if len(w.sides) == 1 && len(s.list) == 1 {
		return
	}
	w.lost = append(w.lost, s.list[j])
	s.list = slices.Delete(slices.Clone(s.list), j, j+1)
	slots := rapid.IntRange(0, s.slots).Draw(t, "slots")
	if len(s.list) == 0 {
		slots = s.slots
	}
	w.gone, s.slots = w.gone+slots, s.slots-slots
	switch {
	case len(s.list) == 0:
		w.sides = slices.Delete(w.sides, i, i+1)
	case j == 0:
		s.late = 0
		s.pacer.restart(w.now, 0)
	}
}

// run has each side make waves, after each of which up to come people are let in at each node.
func (w *sidesWorld) run(t *rapid.T, long int64, come int) {
	for end := w.now + long; w.now < end; {
		w.now += 200_000
		for _, m := range w.lost {
			if w.now+second >= w.have[m].until {
				w.spend(m, come)
			}
		}
		for _, s := range w.sides {
			w.waveOf(s, max(1, come))
			for _, m := range s.list {
				w.spend(m, come)
			}
		}
		if n := w.most(); n > w.q.perMinute {
			t.Fatalf("%d let in within a minute at a rate of %d", n, w.q.perMinute)
		}
	}
}

// waveOf makes a wave of a side, each node of which needs so many tokens.
func (w *sidesWorld) waveOf(s *pacedSide, needs int) {
	w.p, w.q.remade, w.q.lost = s.pacer, w.remake && len(w.sides) == 1, w.gone > 0
	if w.q.remade {
		s.slots, w.gone, w.remake, w.q.lost = s.slots+w.gone, 0, false, false
	}
	w.q.share, w.q.lately = s.slots, w.lately(s.list)
	if s.late > 0 {
		w.q.share, s.late = s.had, s.late-1
	}
	need := make([]int, len(s.list))
	for i := range need {
		need[i] = needs
	}
	w.wave(s.list, need, func() {})
	s.pacer = w.p
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
	w.p.restart(w.now, 0)
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
	old := w.p
	for decided := w.now + 100_000; w.now < decided+70*second; {
		w.now += 100_000
		if w.now == decided {
			w.p.restart(w.now, w.q.underWay)
		}
		w.wave(w.list[1:], rich[1:], func() {})
		for _, m := range w.list[1:] {
			w.spend(m, 1<<20)
		}
		if w.now <= decided+w.q.underWay {
			last := w.p
			w.p = old
			w.wave(w.list[:1], rich[:1], func() {})
			w.p, old = last, w.p
			w.spend(w.list[0], 1<<20)
		}
	}
	if n := w.most(); n > 1200 || n < 1150 {
		t.Errorf("%d let in within a minute at a rate of 1200", n)
	}
}

// A new coordinator deals a burst less than it would from when it hears of those who were
// in the waves of another, and where it hears of none nothing before all dealt before has lapsed.
func TestPacerRestarts(t *testing.T) {
	for born, from := range []int64{104*second + 500_000, 103*second + 400_000} {
		p, q := pacer{}, quota{perMinute: 6000, share: 1, all: 1, nodes: 1}
		p.restart(102*second, 500_000)
		p.hear(102*second+400_000, q, []Member{{Name: "a"}}, []RoomNode{{Born: uint64(born)}})
		for at := 102*second + 400_000; at <= from; at += 100_000 {
			if got := p.fill(at, q); got != 0 {
				t.Fatalf("a new coordinator deals %d tokens after %d ms, and should begin at %d", got, at/1000-102_000, from/1000-102_000)
			}
		}
		if got := p.fill(from+500_000, q); got < 45 || got > 50 {
			t.Errorf("a new coordinator has %d tokens half a second after that, want nearly 50", got)
		}
	}
}

// A side deals in proportion to its slots, and nothing without any.
func TestPacerOfASide(t *testing.T) {
	p := pacer{}
	p.fill(0, quota{perMinute: 6000, share: 1, all: 4, nodes: 1})
	if got := p.fill(second, quota{perMinute: 6000, share: 1, all: 4, nodes: 1}); got != 25 {
		t.Errorf("%d tokens for a quarter of the slots at 100 a second, want 25", got)
	}
	if got := p.fill(2*second, quota{perMinute: 6000, all: 4, nodes: 1}); got != 0 {
		t.Errorf("%d tokens for a share of nothing", got)
	}
}

// What a node let in at another side, of that one's share, is no dearer for this side's
// being small.
func TestPacerCountsWhatAnotherSideLetIn(t *testing.T) {
	p, q, at := pacer{}, quota{perMinute: 6000, share: 1, all: 100, nodes: 1}, []Member{{Name: "a"}}
	p.hear(0, q, at, []RoomNode{{Born: 1, Spent: 3}})
	p.hear(second, q, at, []RoomNode{{Born: 1, Spent: 13}})
	if want := 10 * (quota{perMinute: 6000, share: 100, all: 100, nodes: 1}).parts(); len(p.spent) != 1 || p.spent[0].parts != want {
		t.Errorf("10 who were let in at another side are %+v, want %d parts", p.spent, want)
	}
}

// A token that a node brought from another side takes as much of the minute as one of the
// whole rate.
func TestPacerCountsTheTokensOfAnotherSide(t *testing.T) {
	p, q, at := pacer{}, quota{perMinute: 6000, share: 1, all: 2, nodes: 1, lately: 1}, []Member{{Name: "a"}}
	left := p.hear(0, q, at, []RoomNode{{Born: 1, Tokens: 1}})
	p.deal(0, q, p.fill(0, q), []int{1}, left, 0)
	p.hear(second, q, at, []RoomNode{{Born: 1, Spent: 1}})
	if want := q.whole().parts(); len(p.spent) != 1 || p.spent[0].parts != want {
		t.Errorf("one who was let in by it is %+v, want %d parts", p.spent, want)
	}
}

// The debt covers the bursts of sides of which one is a node with all slots, and another all
// the other nodes.
func TestPacerOwesForEachSide(t *testing.T) {
	all := quota{perMinute: 1200, share: 12, all: 12, nodes: 1, lately: 1}.burst() + quota{perMinute: 1200, all: 12, nodes: 5, lately: 5}.burst()
	if debt := (quota{perMinute: 1200, share: 12, all: 12, nodes: 6, lately: 6}).debt(); debt < all {
		t.Errorf("two sides let in %d at once, and the debt is %d", all, debt)
	}
}

// A side gets the share of one that is over, which may have let in what it could: that is
// owed. It is not when the share is one that it had before.
func TestPacerOwesForASideThatIsOver(t *testing.T) {
	for _, remade := range []bool{false, true} {
		p := pacer{dueTo: never}
		q := quota{perMinute: 6000, share: 1, all: 2, nodes: 1, lately: 1, lost: true}
		for now := int64(0); now <= 10*second; now += second {
			p.fill(now, q)
		}
		q.share, q.lost, q.remade = 2, false, remade
		if got := p.fill(10*second, q); (got == 0) != remade {
			t.Errorf("remade %v: %d tokens", remade, got)
		}
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
	stood := w.p
	w.p.restart(w.now, 0)
	for w.now < 88*second {
		w.now += 200_000
		w.wave(w.list[1:], rich[1:], func() {})
		w.spend(w.list[2], 1<<20)
	}
	w.p = stood
	for w.now < 160*second {
		w.now += 200_000
		w.wave(w.list[:2], rich[:2], func() {})
		w.spend(w.list[0], 1<<20)
	}
	if n := w.most(); n > 1200 {
		t.Errorf("%d let in within a minute at a rate of 1200", n)
	}
}

// A large side of few nodes and a small one of many are apart for longer than a minute, and
// let in what they may at once. Then the small one ends, and its slots are made again.
func TestPacerOwesForASideThatWasLongAway(t *testing.T) {
	w := newSidesWorld(9, 60)
	few := w.sides[0]
	many := &pacedSide{list: few.list[5:], slots: 3}
	run := func(d int64, come int) {
		for end := w.now + d; w.now < end; {
			w.now += 200_000
			for _, s := range w.sides {
				w.waveOf(s, max(1, come))
				for _, m := range s.list {
					w.spend(m, come)
				}
			}
		}
	}
	run(20*second, 0)
	few.list, few.slots = few.list[:5], 9
	many.pacer.restart(w.now, 0)
	w.sides = append(w.sides, many)
	run(150*second, 0)
	run(200_000, 1<<20)
	w.sides, w.gone = w.sides[:1], 3
	run(800_000, 1<<20)
	w.remake = true
	run(70*second, 1<<20)
	if n := w.most(); n > 60 {
		t.Errorf("%d let in within a minute at a rate of 60", n)
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
