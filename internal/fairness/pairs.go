package fairness

import (
	"cmp"
	"slices"
)

// Pairs says how two orders of the same n things agree, pair by pair.
//
// Invariant: TiedBoth <= min(TiedX, TiedY).
type Pairs struct {
	N          int
	Discordant int64 // x and y order the pair in opposite ways, no tie in either
	TiedX      int64 // x ties, whatever y does
	TiedY      int64 // y ties, whatever x does
	TiedBoth   int64 // both tie
}

// Total is the number of pairs, n(n-1)/2.
func (p Pairs) Total() int64 { return total(p.N) }

// KendallTau is the share of discordant pairs, 0 to 1. Ties are not discordant.
func (p Pairs) KendallTau() float64 { return share(p.Discordant, p.Total()) }

// KendallTauThesis is the share of pairs with cmp(x_i, x_j) != cmp(y_i, y_j), in
// which a tie on one side only counts as a mistake.
//
// Reference: [Koopmans] Section 6.1, and the simulator published with it.
func (p Pairs) KendallTauThesis() float64 {
	oneSided := p.TiedX + p.TiedY - 2*p.TiedBoth
	return share(p.Discordant+oneSided, p.Total())
}

// CountPairs compares the orders that x and y give to the same things. The
// slices have equal length and are left alone.
//
// Reference: [Knight].
func CountPairs(x, y []int64) Pairs {
	if len(x) != len(y) {
		panic("fairness: CountPairs of slices of different length")
	}
	points := make([]point, len(x))
	for i := range points {
		points[i] = point{x[i], y[i]}
	}
	byXThenY := func(a, b point) int {
		if a.x != b.x {
			return cmp.Compare(a.x, b.x)
		}
		return cmp.Compare(a.y, b.y)
	}
	slices.SortFunc(points, byXThenY)

	p := Pairs{N: len(x)}
	ys := make([]int64, len(points))
	for i, q := range points {
		ys[i] = q.y
	}
	p.TiedX = tiedPairs(points, func(a, b point) bool { return a.x == b.x })
	p.TiedBoth = tiedPairs(points, func(a, b point) bool { return a == b })
	// Pairs that tie in x stand in the order of y and so need no exchange.
	p.Discordant = sortCountingExchanges(ys)
	p.TiedY = tiedPairs(ys, func(a, b int64) bool { return a == b })
	return p
}

type point struct{ x, y int64 }

// tiedPairs counts the pairs within runs of equal neighbours.
func tiedPairs[T any](sorted []T, equal func(a, b T) bool) int64 {
	var pairs int64
	start := 0
	for i := 1; i <= len(sorted); i++ {
		if i == len(sorted) || !equal(sorted[start], sorted[i]) {
			pairs += total(i - start)
			start = i
		}
	}
	return pairs
}

// insertionRun is the length of the runs that insertion sort prepares for
// merging: short enough for its quadratic cost to be less than merging's.
const insertionRun = 16

// sortCountingExchanges sorts a and returns how many exchanges of neighbours
// bubble sort would have needed: the number of pairs with a[i] > a[j], i < j.
// Sorted input costs one pass per level.
func sortCountingExchanges(a []int64) int64 {
	var exchanges int64
	for start := 0; start < len(a); start += insertionRun {
		run := a[start:min(start+insertionRun, len(a))]
		for i := 1; i < len(run); i++ {
			v, j := run[i], i
			for ; j > 0 && run[j-1] > v; j-- {
				run[j] = run[j-1]
			}
			run[j] = v
			exchanges += int64(i - j)
		}
	}
	spare := make([]int64, (len(a)+1)/2+insertionRun)
	for width := insertionRun; width < len(a); width *= 2 {
		for start := 0; start+width < len(a); start += 2 * width {
			end := min(start+2*width, len(a))
			exchanges += mergeCountingExchanges(a[start:end], width, spare)
		}
	}
	return exchanges
}

// mergeCountingExchanges merges the sorted a[:mid] and a[mid:] in place, with
// the help of spare, and counts the pairs that stood in the wrong order.
func mergeCountingExchanges(a []int64, mid int, spare []int64) int64 {
	if a[mid-1] <= a[mid] {
		return 0
	}
	// From the back, so that only the right half, never the longer one, moves out.
	right := spare[:copy(spare, a[mid:])]
	var exchanges int64
	i, j, k := mid-1, len(right)-1, len(a)-1
	for i >= 0 && j >= 0 {
		if a[i] > right[j] {
			exchanges += int64(j + 1) // a[i] passes right[0..j]
			a[k] = a[i]
			i--
		} else {
			a[k] = right[j]
			j--
		}
		k--
	}
	copy(a, right[:j+1])
	return exchanges
}

// total is the number of pairs among n things.
func total(n int) int64 { return int64(n) * int64(n-1) / 2 }

// share is part/whole, and 0 of nothing.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
