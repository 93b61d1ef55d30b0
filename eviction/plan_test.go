package eviction

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPlan(t *testing.T) {
	tests := []struct {
		name       string
		free, need []int
		want       []Move
	}{
		{"nothing anywhere", []int{0, 0}, []int{0, 0}, nil},
		{"everyone has enough", []int{3, 2}, []int{1, 2}, nil},
		{"nobody has any to spare", []int{1, 0}, []int{3, 3}, nil},
		{"one gives to one", []int{5, 0}, []int{2, 2}, []Move{{0, 1, 2}}},
		{"the richest gives first", []int{2, 0, 6}, []int{0, 7, 0}, []Move{{2, 1, 6}, {0, 1, 1}}},
		{"the neediest gets first", []int{9, 0, 0}, []int{0, 2, 5}, []Move{{0, 2, 5}, {0, 1, 2}}},
		{"equals by place in the list", []int{0, 3, 3, 0}, []int{3, 0, 0, 3}, []Move{{1, 0, 3}, {2, 3, 3}}},
		{"a debt is paid", []int{4, -2}, []int{0, 0}, []Move{{0, 1, 2}}},
	}
	for _, test := range tests {
		if got := plan(test.free, test.need); !slices.Equal(got, test.want) {
			t.Errorf("%s: plan(%v, %v) = %v, want %v", test.name, test.free, test.need, got, test.want)
		}
	}
}

// A plan moves as much as can be of use, nothing twice, in fewer transfers than
// there are nodes.
func TestPlanMovesWhatHelps(t *testing.T) {
	ints := func(low, high int) *rapid.Generator[[]int] { return rapid.SliceOfN(rapid.IntRange(low, high), 8, 8) }
	rapid.Check(t, func(t *rapid.T) {
		free, need := ints(-3, 20).Draw(t, "free"), ints(0, 20).Draw(t, "need")
		moves := plan(free, need)
		surplus, deficit := 0, 0
		for i := range free {
			if d := free[i] - need[i]; d > 0 && free[i] > 0 {
				surplus += d
			} else if d < 0 {
				deficit -= d
			}
		}
		moved, after := 0, slices.Clone(free)
		for _, m := range moves {
			if m.Slots <= 0 || m.From == m.To {
				t.Fatalf("senseless move %v", m)
			}
			after[m.From] -= m.Slots
			after[m.To] += m.Slots
			moved += m.Slots
		}
		for i := range after {
			if after[i] < min(free[i], need[i]) || after[i] > max(free[i], need[i]) {
				t.Fatalf("node %d has %d after having %d and needing %d", i, after[i], free[i], need[i])
			}
		}
		if moved != min(surplus, deficit) || len(moves) >= len(free) {
			t.Fatalf("%d moved in %d transfers, of %d to spare and %d wanted", moved, len(moves), surplus, deficit)
		}
	})
}

func TestSpread(t *testing.T) {
	tests := []struct {
		name     string
		free     []int
		arrivals []float64
		want     []int
	}{
		{"nothing", []int{0, 0}, []float64{1, 1}, []int{0, 0}},
		{"all at one node", []int{10, 0}, []float64{0, 0}, []int{5, 5}},
		{"all at one node, all arrive at the other", []int{12, 0}, []float64{0, 3}, []int{3, 9}},
		{"near enough: nothing moves", []int{6, 4}, []float64{0, 0}, []int{0, 0}},
		{"half a share is enough", []int{8, 3}, []float64{0, 0}, []int{0, 0}},
		{"fewer than nodes", []int{2, 0, 0}, []float64{0, 0, 0}, []int{1, 1, 0}},
		{"fewer than nodes, and spread", []int{0, 1, 1}, []float64{0, 0, 0}, []int{0, 0, 0}},
		{"one is left, and all arrive at the other", []int{1, 0}, []float64{0, 1}, []int{0, 1}},
		{"one is left, and a few more arrive at the other", []int{1, 0}, []float64{0.9, 1}, []int{0, 0}},
	}
	for _, test := range tests {
		if got := spread(test.free, test.arrivals); !slices.Equal(got, test.want) {
			t.Errorf("%s: spread(%v, %v) = %v, want %v", test.name, test.free, test.arrivals, got, test.want)
		}
	}
}

func TestSpreadGivesOutNoMoreThanThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "nodes")
		free := rapid.SliceOfN(rapid.IntRange(-2, 50), n, n).Draw(t, "free")
		arrivals := rapid.SliceOfN(rapid.Float64Range(0, 100), n, n).Draw(t, "arrivals")
		total, sum := 0, 0
		for i, need := range spread(free, arrivals) {
			total, sum = total+max(0, free[i]), sum+need
			if need < 0 {
				t.Fatalf("node %d is to have %d", i, need)
			}
		}
		if sum > total {
			t.Fatalf("%d given out of %d", sum, total)
		}
	})
}

func TestDeal(t *testing.T) {
	tests := []struct {
		n, offset int
		need      []int
		want      []Deal
	}{
		{0, 0, []int{3, 3}, nil},
		{5, 0, []int{0, -1}, nil},
		{2, 0, []int{3, 3}, []Deal{{0, 2}}},
		{5, 0, []int{3, 3}, []Deal{{0, 3}, {1, 2}}},
		{5, 1, []int{3, 3}, []Deal{{1, 3}, {0, 2}}},
		{9, 2, []int{1, 0, 3}, []Deal{{2, 3}, {0, 1}}},
	}
	for _, test := range tests {
		if got := deal(test.n, test.need, test.offset); !slices.Equal(got, test.want) {
			t.Errorf("deal(%d, %v, %d) = %v, want %v", test.n, test.need, test.offset, got, test.want)
		}
	}
}
