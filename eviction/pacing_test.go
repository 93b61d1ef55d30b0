package eviction

import (
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
	w := &paceWorld{q: quota{perMinute: perMinute, share: 1, all: 1, nodes: nodes, lately: nodes, lost: never}, have: map[Member]*purse{}}
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
	w.waves++
	v := wave{epoch: qpid.Epoch{Num: w.waves, Coordinator: w.q.by}, at: w.now}
	for i, m := range list {
		h := w.have[m]
		h.asks(&v, w.now)
		nodes[i] = RoomNode{Index: i, Born: 1, Spent: h.spent, Dealt: h.dealtBy(), DealtAge: h.dealtAge(w.now), Left: h.left(&v, w.now)}
		h.spentThen = h.spent
		if w.now < h.tokenTo {
			nodes[i].Tokens = h.tokens
		}
	}
	w.q.wave = w.waves
	left := w.p.hear(w.now, w.q, list, nodes)
	deals := w.p.deal(w.now, w.q, w.p.fill(w.now, w.q), need, left, 0)
	bucket := w.p.leave(w.now, w.q)
	between()
	for i, m := range list {
		if m == w.deaf {
			continue
		}
		v.index = i
		w.have[m].refill(&RoomCommit{Pace: Pace{Paced: true, Tokens: deals, Stay: !w.p.known, Bucket: bucket}}, &v)
	}
}

// lead makes waves of list, in which each needs all that there is, and has those at let in as
// many as they may.
func (w *paceWorld) lead(list []Member, long int64, at ...Member) {
	need := make([]int, len(list))
	for i := range need {
		need[i] = 1 << 20
	}
	for end := w.now + long; w.now < end; {
		w.now += 200_000
		w.wave(list, need, func() {})
		for _, m := range at {
			w.spend(m, 1<<20)
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
		all, away, seen := w.list, 0, map[Member]int64{}
		quiet := rapid.Int64Range(0, 40).Draw(t, "quiet") * second
		lost := []int64{quiet + rapid.Int64Range(0, 3).Draw(t, "first")*second, quiet + rapid.Int64Range(3, 60).Draw(t, "second")*second}
		for w.now < quiet+70*second {
			w.now += rapid.SampledFrom([]int64{200_000, 200_000, 1_000_000}).Draw(t, "later")
			for _, m := range all[len(all)-away:] {
				if h := w.have[m]; w.now+200_000 >= h.tokenTo {
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
			for _, m := range list {
				seen[m] = w.now
			}
			w.q.late = 0
			for _, m := range all[len(all)-away:] {
				w.q.late = max(w.q.late, drifted(tokenLife)-(w.now-seen[m]))
			}
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
	run(20 * second)
	if w.have[w.list[1]].tokens > 0 {
		t.Errorf("%d tokens at a node, and another one knows of nobody who deals", w.have[w.list[1]].tokens)
	}
	w.deaf = Member{}
	run(20*second + 400_000)
	if w.have[w.list[1]].tokens == 0 {
		t.Error("no tokens, and all know who deals")
	}
	w.deaf = w.list[2]
	run(25 * second)
	if w.have[w.list[1]].tokens == 0 {
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

func TestTokensInHandLapse(t *testing.T) {
	for _, tt := range []struct {
		p    purse
		now  int64
		want int
	}{
		{purse{tokens: 3, tokenTo: 100}, 50, -1},
		{purse{paced: true, tokens: 3, tokenTo: 100}, 99, 3},
		{purse{paced: true, tokens: 3, tokenTo: 100}, 100, 0},
	} {
		if got := tt.p.Tokens(tt.now); got != tt.want {
			t.Errorf("%+v has %d tokens at %d, want %d", tt.p, got, tt.now, tt.want)
		}
	}
}
