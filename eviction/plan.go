package eviction

import (
	"cmp"
	"slices"
)

// plan matches nodes that have more slots than they need with nodes that need
// more than they have: at most one transfer fewer than there are nodes.
func plan(free, need []int) []Move {
	type side struct{ index, n int }
	var from, to []side
	for i := range free {
		switch d := free[i] - need[i]; {
		case d > 0 && free[i] > 0:
			from = append(from, side{i, d})
		case d < 0:
			to = append(to, side{i, -d})
		}
	}
	byNeed := func(a, b side) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.index, b.index)) }
	slices.SortFunc(from, byNeed)
	slices.SortFunc(to, byNeed)
	var moves []Move
	for len(from) > 0 && len(to) > 0 {
		f, t := &from[0], &to[0]
		n := min(f.n, t.n)
		moves = append(moves, Move{f.index, t.index, n})
		f.n -= n
		if f.n == 0 {
			from = from[1:]
		}
		t.n -= n
		if t.n == 0 {
			to = to[1:]
		}
	}
	return moves
}

// spare adds to need, where every node has what it needs, an even part of the slots beyond
// that: else most of them could be at one node, and be lost for a time with it.
func spare(free, need []int) []int {
	rest, all := make([]int, len(free)), slices.Clone(need)
	for i := range free {
		rest[i] = free[i] - need[i]
		if rest[i] < 0 {
			return need
		}
	}
	for i, n := range spread(rest, make([]float64, len(rest))) {
		all[i] += n
	}
	return all
}

// spread returns how many slots each node should hold while nobody waits: an
// even part, and a part by recent arrivals. What is left over when shares are
// rounded down goes to the largest remainders: with fewer slots than nodes that is
// everything. A node that has at least half of its share keeps what it has, and who
// has a left-over slot keeps it unless another's claim is clearly larger, so that
// slots do not travel for nothing.
func spread(free []int, arrivals []float64) (need []int) {
	total, rate := 0, 0.0
	for i, f := range free {
		total += max(0, f)
		rate += arrivals[i]
	}
	need = make([]int, len(free))
	if total == 0 {
		return need
	}
	n, left := len(free), total
	claims := make([]float64, n)
	order := make([]int, n)
	for i := range free {
		share := float64(total) / float64(n)
		if rate > 0 {
			share = share/2 + float64(total)/2*arrivals[i]/rate
		}
		need[i], order[i] = int(share), i
		left -= need[i]
		claims[i] = share - float64(need[i])
		if free[i] > need[i] {
			claims[i] += 0.25
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(claims[b], claims[a]) })
	for _, i := range order[:max(0, min(left, n))] {
		need[i]++
	}
	settled := true
	for i := range free {
		settled = settled && 2*free[i] >= need[i]
	}
	if settled {
		clear(need)
	}
	return need
}

// deal splits n among nodes by their need, as far as it goes, in list order
// from offset on.
func deal(n int, need []int, offset int) (deals []Deal) {
	for j := range need {
		i := (j + offset) % len(need)
		if k := min(n, need[i]); k > 0 {
			deals = append(deals, Deal{i, k})
			n -= k
		}
	}
	return deals
}

// atMost caps each of ns.
func atMost(ns []int, n int) []int {
	capped := make([]int, len(ns))
	for i := range ns {
		capped[i] = min(ns[i], n)
	}
	return capped
}
