package qpid

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// installed returns a network after its first wave, with items as given: the
// i-th node has those of items[i].
func installed(t topology, items ...[]uint64) *network {
	w := newNetwork(t)
	for v, stamps := range items {
		for _, s := range stamps {
			w.insert(v, s)
		}
	}
	w.wave()
	clear(w.sent)
	w.trace.Reset()
	return w
}

func (w *network) mustBeQuiet(t *testing.T) {
	t.Helper()
	if links := w.busy(); len(links) > 0 {
		t.Fatalf("messages travel on %v\n%s", links, w.trace.String())
	}
	if err := checkQuiet(w.topology, w.nodes); err != nil {
		t.Fatalf("%v\n%s", err, w.trace.String())
	}
}

func (w *network) mustHaveRoot(t *testing.T, want int) {
	t.Helper()
	if got := w.root(); got != want {
		t.Fatalf("root is %d, want %d\n%s", got, want, w.trace.String())
	}
}

// mustHaveSent compares the messages sent since the first wave.
func (w *network) mustHaveSent(t *testing.T, updates, findRoots int) {
	t.Helper()
	if w.sent[MsgUpdate] != updates || w.sent[MsgFindRoot] != findRoots {
		t.Fatalf("sent %d updates and %d findRoots, want %d and %d\n%s",
			w.sent[MsgUpdate], w.sent[MsgFindRoot], updates, findRoots, w.trace.String())
	}
}

// An item that is not the lightest of its node changes no weight table, so
// inserting it costs no message.
//
// Reference: [QPID] insert.
func TestInsertBehindTheFrontSendsNothing(t *testing.T) {
	w := installed(path(3), nil, []uint64{10}, []uint64{20})
	w.insert(1, 11)
	w.insert(2, 21)
	w.mustHaveSent(t, 0, 0)
	w.mustBeQuiet(t)
}

// An item that becomes the lightest of the network makes its node the root:
// updates run up to the old root, a findRoot comes back along the same path and
// turns the pointers round.
//
// Reference: [QPID] insert, update, findRoot.
func TestLightestItemMakesItsNodeTheRoot(t *testing.T) {
	w := installed(path(4), []uint64{10}, []uint64{20}, []uint64{30}, []uint64{40})
	w.mustHaveRoot(t, 0)
	w.insert(3, 5)
	w.settle()
	w.mustHaveRoot(t, 3)
	w.mustHaveSent(t, 3, 3)
	w.mustBeQuiet(t)
}

// Updates are lazy: one that does not change what a node reports to its parent
// goes no further.
//
// Reference: [QPID] update.
func TestUpdateStopsWhereTheReportStaysTheSame(t *testing.T) {
	w := installed(path(4), []uint64{10}, []uint64{20}, nil, []uint64{40})
	w.insert(3, 30) // c's side was 40 and is 30 now; b still reports its own 20
	w.settle()
	w.mustHaveRoot(t, 0)
	w.mustHaveSent(t, 2, 0)
	w.mustBeQuiet(t)
}

// Nothing is sent away from the root, so what a node knows of its parent's side
// may be out of date; the findRoot that turns the pointer brings it up to date.
//
// Reference: [QPID] update, findRoot.
func TestParentsEntryIsLazyAndFindRootRefreshesIt(t *testing.T) {
	w := installed(path(2), []uint64{10}, []uint64{20})
	w.insert(0, 5)
	w.mustHaveSent(t, 0, 0)
	if got := w.nodes[1].Table()[0].Weight.Stamp; got != 10 {
		t.Fatalf("b thinks that a has %d, want the old 10", got)
	}
	w.insert(1, 1)
	w.settle()
	w.mustHaveRoot(t, 1)
	if got := w.nodes[1].Table()[0].Weight.Stamp; got != 5 {
		t.Fatalf("b thinks that a has %d, want 5", got)
	}
	w.mustBeQuiet(t)
}

// A deleteMin may be called anywhere. It follows the pointers to the root and
// takes the item there: items never move between nodes.
//
// Reference: [QPID] deleteMin, item locality.
func TestDeleteMinTakesTheLightestWhereItIs(t *testing.T) {
	w := installed(path(4), []uint64{40}, []uint64{30}, []uint64{20}, []uint64{10})
	op := w.deleteMin(0)
	w.settle()
	want := Answer{Op: op, Outcome: Taken, Home: "d", Weight: item(10, 0)}
	if !slices.Equal(w.answers, []Answer{want}) {
		t.Fatalf("answers %v, want %v", w.answers, want)
	}
	if got := w.nodes[3].queue.Len(); got != 0 {
		t.Fatalf("d still has %d items", got)
	}
	w.mustBeQuiet(t)
}

// After a deleteMin the old root finds the new one: the root follows the
// lightest item, and there is none while the findRoot travels.
//
// Reference: [QPID] deleteMin, findRoot.
func TestRootFollowsTheLightestItem(t *testing.T) {
	w := installed(path(3), []uint64{10}, nil, []uint64{20})
	w.deleteMin(0)
	for len(w.busy()) > 0 {
		w.mustHaveRoot(t, -1)
		if err := w.deliver(w.busy()[0]); err != nil {
			t.Fatal(err)
		}
	}
	w.mustHaveRoot(t, 2)
	w.mustHaveSent(t, 0, 2)
	w.mustBeQuiet(t)
}

// As long as the lightest items are at one node, its own deleteMins cost no
// message. Only the one after which another node is lighter sends a findRoot.
//
// Reference: [QPID] item locality.
func TestDeleteMinsAtTheRootAreFree(t *testing.T) {
	w := installed(star(4), []uint64{90}, []uint64{1, 2, 3, 100}, []uint64{50}, []uint64{60})
	w.deleteMin(1)
	w.deleteMin(1)
	w.mustHaveSent(t, 0, 0)
	w.deleteMin(1)
	if got := len(w.removed); got != 3 {
		t.Fatalf("%d removed, want 3", got)
	}
	w.settle()
	w.mustHaveSent(t, 0, 2)
	w.mustHaveRoot(t, 2)
	w.mustBeQuiet(t)
}

// There is at most one root at any moment, whatever the order in which the
// links deliver.
//
// Reference: [QPID] findRoot.
func TestAtMostOneRootWhileMessagesTravel(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	w := installed(star(5))
	for i := range 2000 {
		switch links := w.busy(); {
		case len(links) > 0 && r.IntN(8) > 0:
			if err := w.deliver(links[r.IntN(len(links))]); err != nil {
				t.Fatal(err)
			}
		case r.IntN(2) == 0:
			w.insert(r.IntN(5), uint64(r.IntN(1_000_000)))
		default:
			w.deleteMin(r.IntN(5))
		}
		if found := roots(w.nodes); len(found) > 1 {
			t.Fatalf("step %d: roots %v", i, found)
		}
	}
	w.settle()
	w.mustBeQuiet(t)
}

// The weight-table invariant: the entry for a child is the lightest weight in
// the subtree behind it, whatever was inserted or removed.
//
// Reference: [QPID] Eq. 1.
func TestEntriesForChildrenAreSubtreeMinima(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	w := installed(newTopology(7, [2]int{0, 1}, [2]int{0, 2}, [2]int{1, 3}, [2]int{1, 4}, [2]int{2, 5}, [2]int{2, 6}))
	live := map[uint64]int{}
	for range 300 {
		stamp, v := r.Uint64N(40), r.IntN(7)
		if at, ok := live[stamp]; ok {
			w.remove(at, stamp)
			delete(live, stamp)
		} else {
			w.insert(v, stamp)
			live[stamp] = v
		}
		w.settle()
		w.mustBeQuiet(t)
	}
}

// DeleteMins one after another give all items of the network in order, from
// wherever they are called.
//
// Reference: [QPID] deleteMin.
func TestDeleteMinsGiveItemsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	w := installed(path(5))
	for i := range 100 {
		w.insert(r.IntN(5), uint64(i*37%100))
	}
	w.settle()
	for i := range 100 {
		w.deleteMin(r.IntN(5))
		w.settle()
		if got := w.answers[i].Weight.Stamp; got != uint64(i) {
			t.Fatalf("answer %d is %v", i, w.answers[i])
		}
	}
	w.mustBeQuiet(t)
}

// A deleteMin that finds nothing is answered, and the root stays.
//
// Deviation: empty weights have an order, so that the root of an empty network
// is no special case.
//
// Reference: [QPID] deleteMin.
func TestDeleteMinOnEmptyNetworkIsAnswered(t *testing.T) {
	w := installed(path(3))
	w.mustHaveRoot(t, 0)
	op := w.deleteMin(2)
	w.settle()
	want := Answer{Op: op, Outcome: NothingWaits, Home: "a"}
	if !slices.Equal(w.answers, []Answer{want}) {
		t.Fatalf("answers %v, want %v", w.answers, want)
	}
	w.mustHaveSent(t, 0, 0)
	w.mustHaveRoot(t, 0)
}
