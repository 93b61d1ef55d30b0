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
func (c crowd) front(config Config, want int) Front {
	var up func(i int) Front
	up = func(i int) Front {
		f := front(config, i, want, len(c[i]), func(r int) qpid.Weight { return c[i][r] })
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
	if f := front(Config{}.WithDefaults(), 0, 0, 3, nil); f.Complete || len(f.Items) > 0 {
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
		c := newCrowd(rng, sizes, rapid.SampledFrom([]uint64{1, 10, 1e6}).Draw(t, "spread"))
		want := rapid.IntRange(0, 120).Draw(t, "want")
		k := rapid.IntRange(0, 150).Draw(t, "k")
		f := c.front(config, want)
		cut, need, ok := c.choose(f, k)
		if !ok {
			if k > 0 && c.total() > 0 && (c.total() <= k || want > 0 && want <= config.Exact) {
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
		if want <= config.Exact && total != min(k, want, c.total()) && total != c.total() {
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

func TestDigest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 31, 32, 33, 34, 35, 36, 40, 1000, 100_000} {
		q := qpid.NewQueue()
		c := newCrowd(rng, []int{n}, 1e12)
		for _, w := range c[0] {
			q.Insert(w)
		}
		d := digest(q)
		if len(d) > 150 {
			t.Errorf("a digest of %d weights has %d marks", n, len(d))
		}
		length := markRank(len(d)-1) + 1
		worst := 0.0
		for rank := 0; rank < n; rank += 1 + n/997 {
			for _, w := range []qpid.Weight{c[0][rank], {Stamp: c[0][rank].Stamp - 1, ID: c[0][rank].ID}} {
				want := float64(q.Rank(w))
				got := rankIn(d, length, w)
				if rank < exactMarks && got != want {
					t.Errorf("n=%d: rank of %d estimated as %v, want it exact", n, rank, got)
				}
				if e := got - want; e*e > 0.1*want*0.1*want {
					t.Errorf("n=%d: rank %v estimated as %v, more than a tenth off", n, want, got)
				}
				if want > 0 {
					worst = max(worst, (got-want)/want, (want-got)/want)
				}
			}
		}
		if n == 100_000 {
			t.Logf("worst error at %d: %.2f %%", n, 100*worst)
		}
	}
}

func TestMarkRanksGrow(t *testing.T) {
	for i := range 300 {
		if markRank(i+1) <= markRank(i) {
			t.Fatalf("marks %d and %d are at ranks %d and %d", i, i+1, markRank(i), markRank(i+1))
		}
		if i >= exactMarks && float64(markRank(i+1)-markRank(i)-1) > 0.1*float64(markRank(i)) {
			t.Fatalf("from rank %d to the next mark at %d it is more than a tenth", markRank(i), markRank(i+1))
		}
	}
}
