package qpid

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sortedSlice is the queue's slow, obvious twin.
type sortedSlice []Weight

func (s sortedSlice) search(w Weight) (int, bool) {
	return slices.BinarySearchFunc(s, w, Weight.Compare)
}

func (s *sortedSlice) insert(w Weight) bool {
	i, found := s.search(w)
	if !found {
		*s = slices.Insert(*s, i, w)
	}
	return !found
}

func (s *sortedSlice) delete(w Weight) bool {
	i, found := s.search(w)
	if found {
		*s = slices.Delete(*s, i, i+1)
	}
	return found
}

func item(stamp, id uint64) Weight {
	w := Weight{Stamp: stamp}
	binary.BigEndian.PutUint64(w.ID[:], id)
	return w
}

// checkRuns panics with the state if the queue's own invariants are broken.
func (q *Queue) checkRuns() error {
	count, slot := 0, -1
	var floor, last Weight
	var err error
	first := true
	q.tree.Ascend(func(e entry) bool {
		r := e.run
		switch {
		case e.floor != r.floor:
			err = fmt.Errorf("entry's floor %v, run's %v", e.floor, r.floor)
		case !first && !floor.Less(r.floor):
			err = fmt.Errorf("floor %v after %v", r.floor, floor)
		case r.slot <= slot || q.slots[r.slot] != r:
			err = fmt.Errorf("run %v has slot %d after %d, which is %p", r.floor, r.slot, slot, q.slots[r.slot])
		case len(r.items) == 0 && q.tree.Len() > 1:
			err = fmt.Errorf("run %v is empty", r.floor)
		case len(r.items) > runMax:
			err = fmt.Errorf("run %v has %d items", r.floor, len(r.items))
		case q.sums.prefix(r.slot) != count:
			err = fmt.Errorf("%d items before run %v, want %d", q.sums.prefix(r.slot), r.floor, count)
		}
		for i, w := range r.items {
			if w.Less(r.floor) || !(first && i == 0) && !last.Less(w) {
				err = fmt.Errorf("%v after %v in run %v", w, last, r.floor)
			}
			last = w
		}
		first, floor, slot = false, r.floor, r.slot
		count += len(r.items)
		return err == nil
	})
	if err == nil && count != q.count {
		err = fmt.Errorf("%d items, Len %d", count, q.count)
	}
	return err
}

func compareWithTwin(t rapid.TB, q *Queue, twin sortedSlice, probes ...Weight) {
	t.Helper()
	if err := q.checkRuns(); err != nil {
		t.Fatal(err)
	}
	if q.Len() != len(twin) {
		t.Fatalf("Len() = %d, want %d", q.Len(), len(twin))
	}
	if w, ok := q.Min(); ok != (len(twin) > 0) || ok && w != twin[0] {
		t.Fatalf("Min() = %v, %v; want the first of %v", w, ok, twin)
	}
	for _, w := range probes {
		i, found := twin.search(w)
		after := i
		if found {
			after++
		}
		if got := q.Has(w); got != found {
			t.Fatalf("Has(%v) = %v, want %v", w, got, found)
		}
		if got := q.Rank(w); got != i {
			t.Fatalf("Rank(%v) = %d, want %d", w, got, i)
		}
		if got := q.CountLE(w); got != after {
			t.Fatalf("CountLE(%v) = %d, want %d", w, got, after)
		}
		var next, want []Weight
		q.AscendAfter(w, func(w Weight) bool { next = append(next, w); return len(next) < 3 })
		want = append(want, twin[after:min(after+3, len(twin))]...)
		if diff := cmp.Diff(want, next); diff != "" {
			t.Fatalf("AscendAfter(%v) (-want +got):\n%s", w, diff)
		}
	}
}

func compareAll(t rapid.TB, q *Queue, twin sortedSlice) {
	t.Helper()
	var got []Weight
	q.Ascend(func(w Weight) bool { got = append(got, w); return true })
	if !slices.Equal(got, twin) {
		t.Fatalf("Ascend gave %d items, want %d in order", len(got), len(twin))
	}
	for i, want := range twin {
		if w, ok := q.Select(i); !ok || w != want {
			t.Fatalf("Select(%d) = %v, %v; want %v", i, w, ok, want)
		}
		if r := q.Rank(want); r != i {
			t.Fatalf("Rank(%v) = %d, want %d", want, r, i)
		}
	}
	for _, i := range []int{-1, len(twin)} {
		if w, ok := q.Select(i); ok {
			t.Fatalf("Select(%d) of %d = %v", i, len(twin), w)
		}
	}
}

func TestQueueAgreesWithSortedSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := NewQueue()
		var twin sortedSlice
		weight := rapid.Custom(func(t *rapid.T) Weight {
			return item(rapid.Uint64Range(0, 60).Draw(t, "stamp"), rapid.Uint64Range(0, 40).Draw(t, "id"))
		})
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				w := weight.Draw(t, "w")
				if got, want := q.Insert(w), twin.insert(w); got != want {
					t.Fatalf("Insert(%v) = %v, want %v", w, got, want)
				}
			},
			"insert a block": func(t *rapid.T) {
				w := weight.Draw(t, "first")
				for range rapid.IntRange(1, 2*runMax).Draw(t, "length") {
					q.Insert(w)
					twin.insert(w)
					w.ID[15]++
					if w.ID[15] == 0 {
						w.ID[14]++
					}
				}
			},
			"delete": func(t *rapid.T) {
				w := weight.Draw(t, "w")
				if got, want := q.Delete(w), twin.delete(w); got != want {
					t.Fatalf("Delete(%v) = %v, want %v", w, got, want)
				}
			},
			"delete a block": func(t *rapid.T) {
				if len(twin) == 0 {
					return
				}
				i := rapid.IntRange(0, len(twin)-1).Draw(t, "from")
				j := rapid.IntRange(i, min(len(twin), i+2*runMax)).Draw(t, "to")
				for _, w := range slices.Clone(twin[i:j]) {
					q.Delete(w)
					twin.delete(w)
				}
			},
			"refill": func(t *rapid.T) {
				mirror := func(w Weight) Weight { w.Stamp ^= 7; return w } // another order, as a draw makes
				line := make([]Weight, len(twin))
				for i, w := range twin {
					line[i] = mirror(w)
				}
				twin = slices.Clone(line)
				slices.SortFunc(twin, Weight.Compare)
				q.refill(line)
			},
			"": func(t *rapid.T) {
				compareWithTwin(t, q, twin, weight.Draw(t, "probe"), Weight{}, UpTo(30), Empty(0))
			},
		})
		compareAll(t, q, twin)
	})
}

// TestQueueUnderLongLoads drives the shapes of load that the runs are made for,
// long enough for runs to split, merge and be numbered anew many times.
func TestQueueUnderLongLoads(t *testing.T) {
	loads := map[string]func(r *rand.Rand, i int, twin sortedSlice) (w Weight, remove bool){
		"first in first out": func(r *rand.Rand, i int, twin sortedSlice) (Weight, bool) {
			if len(twin) > 3000 {
				return twin[0], true
			}
			return item(uint64(i), r.Uint64()), false
		},
		"arrivals a little out of order, abandons anywhere": func(r *rand.Rand, i int, twin sortedSlice) (Weight, bool) {
			if n := len(twin); r.IntN(n+3000) > 3000 {
				return twin[r.IntN(n)], true
			}
			return item(uint64(i)+r.Uint64N(50), r.Uint64()), false
		},
		"a head that never leaves": func(r *rand.Rand, i int, twin sortedSlice) (Weight, bool) {
			if len(twin) > 100 {
				return twin[1], true
			}
			return item(uint64(i), r.Uint64()), false
		},
		"late entries take over the front": func(r *rand.Rand, i int, twin sortedSlice) (Weight, bool) {
			return item(uint64(100_000-i), r.Uint64()), false
		},
		"any order": func(r *rand.Rand, i int, twin sortedSlice) (Weight, bool) {
			if n := len(twin); n > 0 && (i/10_000%2 == 1) {
				return twin[r.IntN(n)], true
			}
			return item(r.Uint64N(1000), r.Uint64()), false
		},
	}
	for name, next := range loads {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			q := NewQueue()
			var twin sortedSlice
			for i := range 30_000 {
				w, remove := next(r, i, twin)
				if remove {
					q.Delete(w)
					twin.delete(w)
				} else {
					q.Insert(w)
					twin.insert(w)
				}
				if i%1000 == 0 {
					compareWithTwin(t, q, twin, w, item(uint64(i/2), 0))
				}
			}
			compareAll(t, q, twin)
		})
	}
}

// TestQueueMemoryFollowsItsLength fails if the queue keeps what has gone: runs,
// slots, or runs with next to nothing in them.
func TestQueueMemoryFollowsItsLength(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	q := NewQueue()
	stay := item(0, 1)
	q.Insert(stay)
	var live []Weight
	for i := range 400_000 {
		w := item(uint64(i+1), r.Uint64())
		q.Insert(w)
		live = append(live, w)
		if len(live) > 2000 { // any of them leaves, so that long-stayers thin out
			j := r.IntN(len(live))
			q.Delete(live[j])
			live[j] = live[len(live)-1]
			live = live[:len(live)-1]
		}
	}
	if runs := q.tree.Len(); runs > 200 {
		t.Errorf("%d runs for %d items", runs, q.Len())
	}
	if slots := len(q.slots); slots > 1000 {
		t.Errorf("%d slots for %d items", slots, q.Len())
	}
	for _, w := range live {
		q.Delete(w)
	}
	if got, _ := q.Min(); q.Len() != 1 || got != stay || q.tree.Len() != 1 {
		t.Errorf("%d items in %d runs, lightest %v; want only %v", q.Len(), q.tree.Len(), got, stay)
	}
}

// TestSparseRunsAreMerged leaves one item in four hundred, less than two a run.
func TestSparseRunsAreMerged(t *testing.T) {
	q := NewQueue()
	const n = 100_000
	for i := range uint64(n) {
		q.Insert(item(i, 0))
	}
	for i := range uint64(n) {
		if i%400 > 0 {
			q.Delete(item(i, 0))
		}
	}
	if err := q.checkRuns(); err != nil {
		t.Fatal(err)
	}
	if runs := q.tree.Len(); runs > 10 {
		t.Errorf("%d runs for %d items", runs, q.Len())
	}
}
