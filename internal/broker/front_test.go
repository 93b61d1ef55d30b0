package broker

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// sides finds by search who is on each side of a position in a tree of n.
func sides(at, n int) map[int][]int {
	in := map[int]int{at: at}
	found := map[int][]int{at: {at}}
	near := func(p int) []int {
		var all []int
		for o := range n {
			if o > 0 && (o-1)/fanout == p || p > 0 && (p-1)/fanout == o {
				all = append(all, o)
			}
		}
		return all
	}
	for _, first := range near(at) {
		for todo := []int{first}; len(todo) > 0; {
			p := todo[0]
			todo = todo[1:]
			if _, seen := in[p]; seen {
				continue
			}
			in[p] = first
			found[first] = append(found[first], p)
			todo = append(todo, near(p)...)
		}
	}
	return found
}

// What a node is told of each side is the lightest that anybody there has, in
// trees of up to four levels.
func TestASnapshotKnowsTheLightestOfEachSide(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 9, 10, 73, 74, 700} {
		weights := make([]qpid.Weight, n)
		round := round{made: qpid.Epoch{Num: 1}}
		var heard []Front
		for p := range n {
			round.list = append(round.list, eviction.Member{Name: qpid.NodeID(fmt.Sprint("n", p))})
			if weights[p] = qpid.Empty(p); r.IntN(3) == 0 {
				weights[p] = pqueue.WeightOf(0, r.Int64N(1000), uint32(p), uint64(p+1))
				heard = append(heard, Front{Queue: "q", At: p, Weight: weights[p]}, Front{Queue: "other", At: p, Weight: pqueue.WeightOf(0, 0, 0, uint64(p+1))})
			}
		}
		round.fronts = merge(heard)
		for range 50 {
			at := r.IntN(n)
			got := map[string]qpid.Weight{}
			s := round.snapshot("q", at)
			for _, nb := range append(s.Neighbors, qpid.Neighbor{ID: round.list[at].Name, Weight: s.Own}) {
				got[string(nb.ID)] = nb.Weight
			}
			all := sides(at, n)
			if len(got) != len(all) {
				t.Fatalf("%d of %d: %d sides, want %d", at, n, len(got), len(all))
			}
			for first, there := range all {
				want := weights[there[0]]
				for _, p := range there {
					want = lighter(want, weights[p])
				}
				if got[string(round.list[first].Name)] != want {
					t.Fatalf("%d of %d: side %d weighs %v, want %v", at, n, first, got[string(round.list[first].Name)], want)
				}
			}
		}
	}
}

// While a log changes hands two members may have the same items: no table can be
// made of them, so that queue begins empty, at everybody.
func TestTwoMembersWithOneItemHaveNoFront(t *testing.T) {
	w := pqueue.WeightOf(0, 5, 0, 7)
	got := merge([]Front{{"twice", 1, w}, {"once", 0, w}, {"twice", 2, w}, {"twice", 3, pqueue.WeightOf(0, 6, 0, 8)}, {"none", 1, qpid.Empty(1)}})
	if len(got) != 1 || got[0].Queue != "once" {
		t.Errorf("%+v, want the one of queue once", got)
	}
}
