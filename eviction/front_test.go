package eviction

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anteroom/anteroom/qpid"
	"pgregory.net/rapid"
)

// crowd is people waiting at several nodes: each node's weights, sorted.
type crowd [][]qpid.Weight

func newCrowd(rng *rand.Rand, sizes []int, spread uint64) crowd {
	c := make(crowd, len(sizes))
	for i, n := range sizes {
		for range n {
			w := qpid.Weight{Stamp: 1 + rng.Uint64N(spread)}
			for b := range w.ID {
				w.ID[b] = byte(rng.Uint32())
			}
			c[i] = append(c[i], w)
		}
		slices.SortFunc(c[i], qpid.Weight.Compare)
	}
	return c
}

func (c crowd) total() (n int) {
	for _, q := range c {
		n += len(q)
	}
	return n
}

// atMost is the slow twin of every rank: how many weigh no more than w, by node.
func (c crowd) atMost(w qpid.Weight) (counts []int, total int) {
	counts = make([]int, len(c))
	for i, q := range c {
		for _, x := range q {
			if !w.Less(x) {
				counts[i]++
				total++
			}
		}
	}
	return counts, total
}

// front merges the nodes' fronts up the tree.
func (c crowd) front(config Config, want int) Front { return c.frontUpTo(config, want, 0) }

func (c crowd) frontUpTo(config Config, want int, stamp uint64) Front {
	var up func(i int) Front
	up = func(i int) Front {
		g := Gate{kept: kept{Queue: queueOf(c[i])}}
		f := front(config, i, want, len(c[i]), g.within(RoomGather{UpTo: stamp}, len(c[i])), func(r int) qpid.Weight { return c[i][r] })
		first, end := children(i, config.Fanout, len(c))
		for j := first; j < end; j++ {
			f.merge(up(j), want)
		}
		return f
	}
	return up(0)
}

func (c crowd) choose(f Front, k int) (qpid.Weight, []int, bool) {
	return f.choose(k, c.total(), len(c), qpid.UpTo(1<<62), func(i int) int { return len(c[i]) })
}

func TestChoose(t *testing.T) {
	w := func(stamp uint64) qpid.Weight { return qpid.Weight{Stamp: stamp, ID: qpid.ItemID{1}} }
	c := crowd{{w(10), w(40), w(50)}, {w(20)}, {w(30), w(60)}}
	tests := []struct {
		k    int
		cut  qpid.Weight
		need []int
		ok   bool
	}{
		{-1, qpid.Weight{}, []int{0, 0, 0}, false},
		{0, qpid.Weight{}, []int{0, 0, 0}, false},
		{1, w(10), []int{1, 0, 0}, true},
		{3, w(30), []int{1, 1, 1}, true},
		{5, w(50), []int{3, 1, 1}, true},
		{6, qpid.UpTo(1 << 62), []int{3, 1, 2}, true},
		{99, qpid.UpTo(1 << 62), []int{3, 1, 2}, true},
	}
	for _, test := range tests {
		cut, need, ok := c.choose(c.front(Config{}.WithDefaults(), 64), test.k)
		if cut != test.cut || !slices.Equal(need, test.need) || ok != test.ok {
			t.Errorf("k=%d: cut %v, need %v, %v; want %v, %v, %v", test.k, cut, need, ok, test.cut, test.need, test.ok)
		}
	}
	if cut, _, _ := c.choose(c.front(Config{}.WithDefaults(), 2), 5); cut != w(20) {
		t.Errorf("with two weights reported the cut is %v, want the second", cut)
	}
	var nobody Front
	if _, need, ok := nobody.choose(3, 0, 2, qpid.UpTo(9), nil); ok || len(need) != 2 {
		t.Error("called someone where nobody waits")
	}
	if f := front(Config{}.WithDefaults(), 0, 0, 3, 3, nil); f.Complete || len(f.Items) > 0 {
		t.Errorf("asked for nothing, the front is %+v", f)
	}
}

// Exact or sampled, whatever the queues and the tree: never more than k, and
// never past what is certified. Exact is exact.
func TestChooseNeverTakesTooMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := Config{
			Fanout: rapid.IntRange(1, 8).Draw(t, "fanout"), Exact: rapid.IntRange(1, 60).Draw(t, "exact"),
			Samples: rapid.IntRange(2, 20).Draw(t, "samples"),
		}.WithDefaults()
		sizes := rapid.SliceOfN(rapid.IntRange(0, 80), 1, 12).Draw(t, "sizes")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		spread := rapid.SampledFrom([]uint64{1, 10, 1e6}).Draw(t, "spread")
		c := newCrowd(rng, sizes, spread)
		upTo := rapid.Uint64Range(0, spread).Draw(t, "up to")
		want := rapid.IntRange(0, 120).Draw(t, "want")
		k := rapid.IntRange(0, 150).Draw(t, "k")
		f := c.frontUpTo(config, want, upTo)
		cut, need, ok := c.choose(f, k)
		if !ok {
			if k > 0 && c.total() > 0 && (c.total() <= k || want > 0 && want <= config.Exact && upTo == 0) {
				t.Fatalf("nobody called: k %d, want %d, total %d", k, want, c.total())
			}
			return
		}
		counts, total := c.atMost(cut)
		if total > k {
			t.Fatalf("%d are no heavier than the cut, k is %d", total, k)
		}
		sum := 0
		for i, n := range need {
			sum += n
			if n < counts[i] {
				t.Fatalf("node %d is to have %d slots for %d people", i, n, counts[i])
			}
		}
		if sum > k {
			t.Fatalf("%d slots are needed, k is %d", sum, k)
		}
		_, told := c.atMost(qpid.UpTo(upTo))
		if upTo == 0 {
			told = c.total()
		}
		if want <= config.Exact && total != min(k, want, told) && total != c.total() {
			t.Fatalf("an exact front of %d calls %d of %d, k is %d", want, total, c.total(), k)
		}
	})
}

// One sampled round with 64 samples calls at least nine in ten of those that an
// exact one would.
func TestSampledFrontIsNearlyExact(t *testing.T) {
	config := Config{}.WithDefaults()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, nodes := range []int{1, 3, 8, 16} {
		for _, k := range []int{600, 2000, 10_000} {
			worst := 1.0
			for trial := range 6 {
				sizes := make([]int, nodes)
				for i := range sizes {
					sizes[i] = 2 * k / nodes
					if trial%2 == 1 {
						sizes[i] = 2 * k * (i + 1) * 2 / nodes / (nodes + 1) // uneven
					}
				}
				c := newCrowd(rng, sizes, 1e9)
				f := c.front(config, k+k/4+64)
				if !f.Sampled || len(f.Samples) > nodes*config.Samples {
					t.Fatalf("sampled %v, %d samples", f.Sampled, len(f.Samples))
				}
				cut, _, _ := c.choose(f, k)
				_, total := c.atMost(cut)
				worst = min(worst, float64(total)/float64(min(k, c.total())))
			}
			if worst < 0.9 {
				t.Errorf("%d nodes, k %d: calls only %.1f %%", nodes, k, 100*worst)
			}
		}
	}
}

// A room of many nodes gets about as many tickets as it wants, by its digest, not as
// many from each node; and where the digest is of people who have left, all the same
// the next time.
func TestAGatherAsksForAsManyAsItWants(t *testing.T) {
	config := Config{}.WithDefaults()
	rng := rand.New(rand.NewPCG(9, 10))
	sizes := make([]int, 16)
	for i := range sizes {
		sizes[i] = 1250
	}
	c := newCrowd(rng, sizes, 1e9)
	all := slices.Concat(c...)
	slices.SortFunc(all, qpid.Weight.Compare)
	for _, called := range []int{0, 300, 5000} {
		g := Gate{positions: positions{digest: c.together(8)}, turn: turn{hint: 200}}
		rest := make(crowd, len(c))
		if called > 0 {
			g.cut.Value = all[called-1]
		}
		for i, q := range c {
			rest[i] = slices.DeleteFunc(slices.Clone(q), func(w qpid.Weight) bool { return !g.cut.Value.Less(w) })
		}
		told := 0
		for i := range rest {
			told += len(rest[i:i+1].frontUpTo(config, g.hint, g.upTo()).Items)
		}
		if told < g.hint*9/10 || told > g.hint*5/4+called/20 { // where marks are a twenty-fifth apart
			t.Errorf("after %d calls nodes report %d tickets, and %d are wanted", called, told, g.hint)
		}
		if f := rest.frontUpTo(config, g.hint, g.upTo()); len(f.Items) < g.hint*9/10 || f.Items[100].Weight != all[called+100] {
			t.Errorf("after %d calls the front has %d tickets, the hundredth %v, want %v", called, len(f.Items), f.Items[100].Weight, all[called+100])
		}
		g.short = true
		if g.upTo() != 0 {
			t.Error("who got too few asks with a bound again")
		}
	}
}

// A sampled front of which somebody's first sample is not their lightest: as many as may be before
// it are reckoned with.
func TestChooseReckonsWithWhoIsBeforeTheFirstSample(t *testing.T) {
	w := func(stamp uint64) qpid.Weight { return qpid.Weight{Stamp: stamp, ID: qpid.ItemID{1}} }
	f := Front{Sampled: true, Samples: []Sample{{Weight: w(10), Index: 0, Rank: 3}, {Weight: w(5), Index: 1, Rank: 1}}}
	choose := func(k int) (qpid.Weight, []int, bool) {
		return f.choose(k, 9, 2, qpid.UpTo(1<<62), func(int) int { return 5 })
	}
	if cut, _, ok := choose(2); ok {
		t.Errorf("of two the cut is %v: two may be before it elsewhere", cut)
	}
	if cut, need, ok := choose(3); !ok || cut != w(5) || !slices.Equal(need, []int{2, 1}) {
		t.Errorf("of three the cut is %v, need %v, %v", cut, need, ok)
	}
}
