package qpid

import (
	"fmt"
	"slices"

	"github.com/google/btree"
)

// Queue is a node's local queue: the weights of the items that wait here, in
// order, with exact ranks. It is not safe for concurrent use, except that any
// number of readers may share it while nobody changes it.
//
// Items lie in runs: sorted slices of at most runMax weights. A B-tree keeps
// the runs in order, each under its floor, and so answers which run a weight
// belongs to. Beside it every run has a slot, a number that grows with the
// weights of the runs, and a Fenwick tree over the slots holds the lengths: the
// rank of a weight is the sum of the runs before its own and its place inside
// the run. Arrivals are almost sorted, so most of them are appended to the last
// run and get the next slot; a late one (the place of a visitor whose node died,
// say) splits a full run, and only if the slot beside it is taken are the slots
// dealt anew. Runs that drain are merged, and emptied ones go: memory follows
// the number of items here, not the number that ever were.
type Queue struct {
	tree  *btree.BTreeG[entry]
	slots []*run  // by slot; nil if no run has it
	sums  fenwick // over the slots, with room for those not dealt yet
	count int
}

// run is a sorted slice of weights.
// Invariant: floor <= items[i] < floor of the next run.
// Invariant: a run is empty only if it is the only one.
type run struct {
	floor Weight
	slot  int
	items []Weight
}

// entry is what the B-tree sorts: the floor beside the run spares the search a
// memory access per step.
type entry struct {
	floor Weight
	run   *run
}

const (
	// runMax is a compromise between moving weights within a run (12 KiB at
	// most) and dealing the slots of all runs anew.
	runMax = 512
	// mergeMax bounds the length of a merged run, so that the next insert does
	// not split it again.
	mergeMax = runMax * 3 / 4
	// sparseLen and sparseStep say when a run that shrinks looks at its
	// neighbours: at most this long, and only every few removals.
	sparseLen  = runMax / 4
	sparseStep = 32
	// slotStep leaves room beside every run for one split.
	slotStep = 2
	slotsMin = 64
	// shiftMax is how long a run may be for the removal of its first item to
	// move the others down. In longer runs the slice moves up instead, which
	// costs the run a place of its capacity.
	shiftMax = 64
)

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	q := &Queue{tree: btree.NewG(32, func(a, b entry) bool { return a.floor.Less(b.floor) })}
	q.add(&run{})
	q.deal()
	return q
}

// Len is the number of items.
func (q *Queue) Len() int { return q.count }

// Min returns the lightest item.
func (q *Queue) Min() (Weight, bool) {
	if q.count == 0 {
		return Weight{}, false
	}
	first, _ := q.tree.Min()
	return first.run.items[0], true
}

// Has reports whether w is in the queue.
func (q *Queue) Has(w Weight) bool {
	_, found := q.find(w).search(w)
	return found
}

// Rank is the number of items lighter than w, which need not be in the queue.
func (q *Queue) Rank(w Weight) int {
	r := q.find(w)
	i, _ := r.search(w)
	return q.sums.prefix(r.slot) + i
}

// CountLE is the number of items no heavier than w.
func (q *Queue) CountLE(w Weight) int {
	r := q.find(w)
	i, found := r.search(w)
	if found {
		i++
	}
	return q.sums.prefix(r.slot) + i
}

// Select returns the item of rank i: the one with i lighter items.
func (q *Queue) Select(i int) (Weight, bool) {
	if i < 0 || i >= q.count {
		return Weight{}, false
	}
	slot, place := q.sums.find(i)
	return q.slots[slot].items[place], true
}

// Ascend calls fn with every item, lightest first, until fn returns false.
// fn must not change the queue.
func (q *Queue) Ascend(fn func(Weight) bool) {
	q.tree.Ascend(func(e entry) bool { return e.run.ascend(0, fn) })
}

// AscendAfter calls fn with every item heavier than w, lightest first, until fn
// returns false. fn must not change the queue.
func (q *Queue) AscendAfter(w Weight, fn func(Weight) bool) {
	r := q.find(w)
	i, found := r.search(w)
	if found {
		i++
	}
	q.tree.AscendGreaterOrEqual(entry{floor: r.floor}, func(e entry) bool {
		start := i
		i = 0
		return e.run.ascend(start, fn)
	})
}

// Insert adds w and reports whether it was not there yet. The weight of an
// empty queue is not an item: whoever takes weights from outside refuses it.
func (q *Queue) Insert(w Weight) bool {
	if w.IsEmpty() {
		panic(fmt.Sprintf("qpid: insert of %v, which stands for an empty queue", w))
	}
	r := q.find(w)
	i, found := r.search(w)
	if found {
		return false
	}
	if w.Less(r.floor) {
		q.lower(r)
	}
	if len(r.items) == runMax {
		r, i = q.split(r, i, w)
	}
	r.items = slices.Insert(r.items, i, w)
	q.sums.add(r.slot, 1)
	q.count++
	return true
}

// refill replaces all items by these, which it sorts.
func (q *Queue) refill(items []Weight) {
	slices.SortFunc(items, Weight.Compare)
	*q = Queue{tree: q.tree, count: len(items)}
	q.tree.Clear(false)
	for len(items) > 0 || q.tree.Len() == 0 {
		n := min(len(items), runMax-runMax/16)
		r := &run{items: append(make([]Weight, 0, runMax), items[:n]...)}
		if q.tree.Len() > 0 {
			r.floor = items[0]
		}
		q.add(r)
		items = items[n:]
	}
	q.deal()
}

// Delete removes w and reports whether it was there.
func (q *Queue) Delete(w Weight) bool {
	r := q.find(w)
	i, found := r.search(w)
	if !found {
		return false
	}
	if i == 0 && len(r.items) > shiftMax {
		r.items = r.items[1:]
	} else {
		r.items = slices.Delete(r.items, i, i+1)
	}
	q.sums.add(r.slot, -1)
	q.count--
	switch n := len(r.items); {
	case n == 0 && q.tree.Len() > 1:
		q.drop(r)
	case n > 0 && n <= sparseLen && n%sparseStep == 0:
		q.mergeAround(r)
	}
	return true
}

// find returns the run that w belongs to: the last whose floor is no heavier,
// or the first of all.
func (q *Queue) find(w Weight) *run {
	var r *run
	q.tree.DescendLessOrEqual(entry{floor: w}, func(e entry) bool { r = e.run; return false })
	if r == nil {
		first, _ := q.tree.Min()
		r = first.run
	}
	return r
}

// search returns the place of w in the run, and whether it is there. It is where
// a check-in's time goes, most of it waiting for memory, so it looks first where
// w would stand if stamps grew evenly, as they nearly do, and from there on in
// ever longer steps. The binary search of what is left is written out: stamps
// alone decide almost always, and sort.Search takes half as long again.
func (r *run) search(w Weight) (int, bool) {
	n := len(r.items)
	if n == 0 || r.items[n-1].Less(w) {
		return n, false
	}
	i, left := r.near(w)
	for left > 0 {
		half := left / 2
		if m := &r.items[i+half]; m.Stamp < w.Stamp || m.Stamp == w.Stamp && m.Less(w) {
			i += half + 1
			left -= half + 1
		} else {
			left = half
		}
	}
	return i, r.items[i] == w
}

// near returns i and left so that w belongs somewhere from i to i+left. The last
// item is not lighter than w.
func (r *run) near(w Weight) (i, left int) {
	last := len(r.items) - 1
	from, to := r.items[0].Stamp, r.items[last].Stamp
	if w.Stamp <= from || to <= from {
		return 0, last
	}
	at := min(int(float64(w.Stamp-from)/float64(to-from)*float64(last)), last)
	if r.items[at].Less(w) {
		for step := searchStep; ; step *= 4 {
			next := min(at+step, last)
			if next == last || !r.items[next].Less(w) {
				return at + 1, next - at - 1
			}
			at = next
		}
	}
	for step := searchStep; ; step *= 4 {
		next := max(at-step, 0)
		if next == 0 || r.items[next].Less(w) {
			return next, at - next
		}
		at = next
	}
}

// searchStep is how far off the first guess may be for the second to be enough:
// a few cache lines.
const searchStep = 4

func (r *run) ascend(start int, fn func(Weight) bool) bool {
	for _, w := range r.items[start:] {
		if !fn(w) {
			return false
		}
	}
	return true
}

func (q *Queue) add(r *run) { q.tree.ReplaceOrInsert(entry{r.floor, r}) }

// lower gives the first run the least floor there is, for an item lighter than
// its present one.
func (q *Queue) lower(r *run) {
	q.tree.Delete(entry{floor: r.floor})
	r.floor = Weight{}
	q.add(r)
}

// drop takes an emptied run away.
func (q *Queue) drop(r *run) {
	q.tree.Delete(entry{floor: r.floor})
	q.slots[r.slot] = nil
}

// split makes room in a full run for w, whose place is i, and returns the run
// and the place that w then has. Behind the last item of all it starts a new
// run. The last run, which arrivals fill, keeps most of its items, so that
// arrivals which are out of order by little do not leave half-full runs behind.
func (q *Queue) split(r *run, i int, w Weight) (*run, int) {
	at := runMax / 2
	if last, _ := q.tree.Max(); last.run == r {
		at = runMax - runMax/16
		if i == runMax {
			at = runMax
		}
	}
	right := &run{floor: w, items: make([]Weight, 0, runMax)}
	if at < runMax {
		right.items = append(right.items, r.items[at:]...)
		right.floor = right.items[0]
		r.items = r.items[:at]
	}
	q.add(right)
	if slot := r.slot + 1; slot < len(q.slots) && q.slots[slot] == nil {
		right.slot = slot
		q.slots[slot] = right
		q.move(r, right, len(right.items))
	} else {
		q.deal()
	}
	if w.Less(right.floor) {
		return r, i
	}
	return right, i - at
}

// mergeAround joins a run that has become sparse with a neighbour, if one is
// sparse as well.
func (q *Queue) mergeAround(r *run) {
	var before, after *run
	q.tree.AscendGreaterOrEqual(entry{floor: r.floor}, func(e entry) bool {
		after = e.run
		return after == r
	})
	q.tree.DescendLessOrEqual(entry{floor: r.floor}, func(e entry) bool {
		before = e.run
		return before == r
	})
	switch {
	case after != r && len(r.items)+len(after.items) <= mergeMax:
		q.merge(r, after)
	case before != r && len(before.items)+len(r.items) <= mergeMax:
		q.merge(before, r)
	}
}

// merge moves the items of a run to the one before it.
func (q *Queue) merge(left, right *run) {
	q.move(right, left, len(right.items))
	left.items = append(left.items, right.items...)
	q.drop(right)
}

// move tells the Fenwick tree that n items have changed runs.
func (q *Queue) move(from, to *run, n int) {
	q.sums.add(from.slot, -n)
	q.sums.add(to.slot, n)
}

// deal numbers the runs anew, with room beside and behind them.
func (q *Queue) deal() {
	size := max(slotsMin, 2*slotStep*q.tree.Len())
	q.slots = make([]*run, size)
	row := make([]int, size)
	slot := 0
	q.tree.Ascend(func(e entry) bool {
		e.run.slot = slot
		q.slots[slot] = e.run
		row[slot] = len(e.run.items)
		slot += slotStep
		return true
	})
	q.sums = newFenwick(row)
}
