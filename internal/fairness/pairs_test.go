package fairness_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/internal/fairness"
)

// slowPairs is CountPairs by looking at every pair. It returns beside it the
// pairs that the thesis calls mistakes, in the words of its simulator.
func slowPairs(x, y []int64) (p fairness.Pairs, mistakes int64) {
	p.N = len(x)
	for i := range x {
		for j := range i {
			cx, cy := cmp.Compare(x[i], x[j]), cmp.Compare(y[i], y[j])
			if cx != cy {
				mistakes++
			}
			if cx == -cy && cx != 0 {
				p.Discordant++
			}
			if cx == 0 {
				p.TiedX++
			}
			if cy == 0 {
				p.TiedY++
			}
			if cx == 0 && cy == 0 {
				p.TiedBoth++
			}
		}
	}
	return p, mistakes
}

func checkPairs(t rapidOrTesting, x, y []int64) {
	t.Helper()
	beforeX, beforeY := slices.Clone(x), slices.Clone(y)
	got := fairness.CountPairs(x, y)
	want, mistakes := slowPairs(x, y)
	if d := diff.Diff(want, got); d != "" {
		t.Fatalf("CountPairs(%v, %v) (-want +got):\n%s", x, y, d)
	}
	if n := int64(len(x)); n > 1 {
		want := float64(mistakes) / float64(n*(n-1)/2)
		if got := got.KendallTauThesis(); got != want {
			t.Fatalf("KendallTauThesis of %v, %v = %v, want %v", x, y, got, want)
		}
	}
	if !slices.Equal(x, beforeX) || !slices.Equal(y, beforeY) {
		t.Fatalf("CountPairs changed its arguments")
	}
}

type rapidOrTesting interface {
	Helper()
	Fatalf(format string, args ...any)
}

func TestPairsOfSmallOrders(t *testing.T) {
	for _, c := range []struct {
		name        string
		x, y        []int64
		tau, thesis float64
	}{
		{"nobody", nil, nil, 0, 0},
		{"one person", []int64{1}, []int64{1}, 0, 0},
		{"in order", []int64{1, 2, 3, 4}, []int64{10, 20, 30, 40}, 0, 0},
		{"back to front", []int64{1, 2, 3, 4}, []int64{4, 3, 2, 1}, 1, 1},
		{"one swap", []int64{1, 2, 3, 4}, []int64{1, 3, 2, 4}, 1.0 / 6, 1.0 / 6},
		{"let in at once", []int64{1, 2, 3, 4}, []int64{7, 7, 7, 7}, 0, 1},
		{"joined and let in at once", []int64{5, 5}, []int64{7, 7}, 0, 0},
		{"two of four tie", []int64{1, 2, 3, 4}, []int64{1, 2, 2, 4}, 0, 1.0 / 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := fairness.CountPairs(c.x, c.y)
			if got := p.KendallTau(); got != c.tau {
				t.Errorf("KendallTau = %v, want %v", got, c.tau)
			}
			if got := p.KendallTauThesis(); got != c.thesis {
				t.Errorf("KendallTauThesis = %v, want %v", got, c.thesis)
			}
			checkPairs(t, c.x, c.y)
		})
	}
}

func TestPairsEqualTheSlowCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// A narrow range makes ties; lengths beyond 64 make several levels of merging.
		n := rapid.IntRange(0, 150).Draw(t, "n")
		value := rapid.Int64Range(-1, rapid.SampledFrom([]int64{1, 5, 40, 1000}).Draw(t, "range"))
		x := rapid.SliceOfN(value, n, n).Draw(t, "x")
		y := rapid.SliceOfN(value, n, n).Draw(t, "y")
		checkPairs(t, x, y)
	})
}

// Crowds need more levels of merging than the small orders above.
func TestPairsOfACrowdEqualTheSlowCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{127, 128, 129, 1000, 1500} {
		for _, values := range []int64{2, 300, 1 << 40} {
			x, y := make([]int64, n), make([]int64, n)
			for i := range x {
				x[i], y[i] = rng.Int64N(values), rng.Int64N(values)
			}
			checkPairs(t, x, y)
		}
	}
}

func FuzzCountPairs(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 2, 1, 3, 3, 3, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), 1000)]
		x, y := make([]int64, len(b)/2), make([]int64, len(b)/2)
		for i := range x {
			x[i], y[i] = int64(b[2*i]), int64(int8(b[2*i+1]))
		}
		checkPairs(t, x, y)
	})
}

func TestCountPairsRefusesUnequalLengths(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("CountPairs of one x and no y returned, want a panic")
		}
	}()
	fairness.CountPairs([]int64{1}, nil)
}

func BenchmarkKendallTau(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		rng := rand.New(rand.NewPCG(1, 2))
		inOrder, shuffled := make([]int64, n), make([]int64, n)
		nearly := make([]int64, n) // what skewed clocks make of an order
		for i := range n {
			inOrder[i], shuffled[i] = int64(i), int64(i)
			nearly[i] = int64(i) + rng.Int64N(50)
		}
		rng.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		x := slices.Clone(shuffled)
		rng.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for _, c := range []struct {
			name string
			x, y []int64
		}{
			{"", x, shuffled}, {"/nearly=true", inOrder, nearly},
		} {
			b.Run(fmt.Sprintf("pairs=%d%s", n, c.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					fairness.CountPairs(c.x, c.y).KendallTau()
				}
			})
		}
	}
}
