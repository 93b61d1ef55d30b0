package qpid

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tests in this file each guard against a fault that an earlier
// implementation of a waiting room on QPID had. Comments say what went wrong
// there; the numbers are those of the project's list of faults.

// B3: expired items left the queue without a change of the weight table. An
// empty root with a stale low weight then swallowed every deleteMin for ever.
func TestRemovingTheFrontForAnyReasonMovesTheRoot(t *testing.T) {
	for _, where := range []int{0, 1, 2} {
		t.Run(fmt.Sprintf("front at %c", 'a'+where), func(t *testing.T) {
			w := installed(path(3), []uint64{20}, []uint64{30}, []uint64{40})
			w.insert(where, 5)
			w.settle()
			w.mustHaveRoot(t, where)
			if !w.remove(where, 5) {
				t.Fatal("Remove(5) = false")
			}
			w.settle()
			w.mustHaveRoot(t, 0)
			w.mustBeQuiet(t)
			w.deleteMin(2)
			w.settle()
			if got := w.answers[0]; got.Weight != item(20, 0) {
				t.Fatalf("deleteMin gave %v, want 20", got)
			}
		})
	}
}

// B3 again, away from the root: when a node's front goes, its parent must hear
// that the node's side is heavier now, or the root is sent there for nothing.
func TestRemovingTheFrontCorrectsTheParentsEntry(t *testing.T) {
	w := installed(path(3), []uint64{10}, []uint64{50}, []uint64{20, 60})
	w.remove(2, 20)
	w.settle()
	w.mustHaveSent(t, 2, 0)
	w.mustBeQuiet(t)
	w.remove(2, 60)
	w.settle()
	w.mustHaveSent(t, 3, 0) // b reports its own 50 either way
	w.mustBeQuiet(t)
}

// Removing many fronts between two calls of Ready costs one update.
func TestManyRemovalsAreOneUpdate(t *testing.T) {
	w := installed(path(2), []uint64{1}, []uint64{10, 11, 12, 13})
	for _, s := range []uint64{10, 11, 12} {
		w.nodes[1].Remove(item(s, 0))
	}
	w.collect(1)
	w.mustHaveSent(t, 1, 0)
	w.settle()
	w.mustBeQuiet(t)
}

// B4: a node that lost a link picked its parent at once, from entries of the
// parent's side that are lazily out of date. Two nodes became root, for seconds.
func TestOneRootAfterTheTreeChanges(t *testing.T) {
	w := installed(path(4), []uint64{10}, []uint64{20}, []uint64{30}, []uint64{40})
	for _, s := range []uint64{9, 8, 7} { // nobody is told about these
		w.insert(0, s)
	}
	w.remove(0, 7) // nor about this

	// Node b goes; c hangs on a instead.
	v := &network{topology: topology{
		ids: []NodeID{"a", "c", "d"},
		adj: [][]int{{1}, {0, 2}, {1}},
	}, links: map[[2]int][]Message{}, weights: make([]Weight, 3), sent: map[Kind]int{}, epoch: w.epoch}
	v.nodes = []*Node{w.nodes[0], w.nodes[2], w.nodes[3]}
	v.startWave()
	for x := range v.nodes {
		v.reply(x)
	}
	v.insert(2, 1) // while d is frozen
	for _, x := range []int{2, 0, 1} {
		if err := v.install(x); err != nil {
			t.Fatal(err)
		}
		if found := roots(v.nodes); len(found) > 1 {
			t.Fatalf("roots %v", found)
		}
	}
	v.settle()
	v.mustHaveRoot(t, 2)
	v.mustBeQuiet(t)
}

// B11: a join was queued before the QPID insert could fail for want of a
// parent. The item was in the queue and in no weight table.
func TestItemsInsertedBeforeTheFirstInstallCount(t *testing.T) {
	w := newNetwork(path(3))
	w.startWave()
	w.insert(2, 10) // before the reply
	for v := range w.nodes {
		w.reply(v)
	}
	w.insert(1, 5) // after it
	for v := range w.nodes {
		if err := w.install(v); err != nil {
			t.Fatal(err)
		}
	}
	w.settle()
	w.mustHaveRoot(t, 1)
	w.mustBeQuiet(t)
}

// B12: the root handed over to whoever sent a message lighter than its own
// front, also when the table already knew better. Here b's 5 is gone by the
// time it is repeated; the repetition must not move the root.
func TestStaleMessageDoesNotWinTheRoot(t *testing.T) {
	w := installed(star(3), []uint64{10}, []uint64{20}, []uint64{30})
	w.insert(1, 5)
	stale := w.links[[2]int{1, 0}][0]
	w.nodes[1].Remove(item(5, 0))
	w.collect(1) // 5 and 20 are both on their way
	w.settle()
	w.mustHaveRoot(t, 0)
	w.mustBeQuiet(t)

	if err := w.nodes[0].Step(stale); err != nil {
		t.Fatal(err)
	}
	w.collect(0)
	w.mustHaveRoot(t, 0)
	w.mustBeQuiet(t)
}

// B12: a findRoot that came before a parent was chosen was dropped, and the
// root with it. It must wait for the install.
func TestFindRootBeforeTheInstallIsKept(t *testing.T) {
	w := newNetwork(path(2))
	w.insert(0, 10)
	w.insert(1, 5)
	w.startWave()
	w.reply(0)
	w.reply(1)
	if err := w.install(1); err != nil {
		t.Fatal(err)
	}
	w.mustHaveRoot(t, 1)
	w.remove(1, 5)
	if kind := w.links[[2]int{1, 0}][0].Kind; kind != MsgFindRoot {
		t.Fatalf("b sent a %v", kind)
	}
	w.settle()
	w.mustHaveRoot(t, -1) // a has the findRoot, but not the install
	if err := w.install(0); err != nil {
		t.Fatal(err)
	}
	w.mustHaveRoot(t, 0)
	w.mustBeQuiet(t)
}

// B14: after a restart under the same name a node's counters began at 0 again,
// and its neighbours ignored it until they had caught up with the old ones.
func TestCountersStartAnewWithTheEpoch(t *testing.T) {
	w := installed(path(2), []uint64{1}, nil)
	for s := uint64(100); s > 50; s-- { // fifty updates from b
		w.insert(1, s)
	}
	w.settle()
	fresh, err := New(Config{Self: "b"})
	if err != nil {
		t.Fatal(err)
	}
	w.nodes[1] = fresh
	w.wave()
	w.insert(1, 10)
	w.settle()
	if got := w.nodes[0].Table()[1].Weight; got != item(10, 0) {
		t.Fatalf("a thinks that b has %v, want 10", got)
	}
	w.mustBeQuiet(t)
}

// B15: a tree older than the present one brought removed members back.
func TestOldInstallsAndMessagesChangeNothing(t *testing.T) {
	w := newNetwork(path(3))
	w.startWave()
	first := w.epoch
	for v := range w.nodes {
		w.reply(v)
	}
	old := w.snapshot(1, first, slices.Clone(w.weights))
	for v := range w.nodes {
		if err := w.install(v); err != nil {
			t.Fatal(err)
		}
	}
	w.insert(2, 5)
	late := w.links[[2]int{2, 1}][0] // of the first epoch
	w.wave()
	before := w.nodes[1].Table()

	if err := w.nodes[1].Install(old); err != nil {
		t.Fatal(err)
	}
	if err := w.nodes[1].Step(late); err != nil {
		t.Fatal(err)
	}
	w.insert(0, 1) // a's table is newer than the snapshot now
	clear(w.sent)
	if err := w.install(0); err != nil {
		t.Fatal(err)
	}
	w.mustHaveSent(t, 0, 0) // of a second install of the same epoch
	if diff := cmp.Diff(before, w.nodes[1].Table()); diff != "" {
		t.Errorf("table changed (-before +after):\n%s", diff)
	}
	if got := w.nodes[1].Epoch(); got != w.epoch {
		t.Errorf("epoch %v, want %v", got, w.epoch)
	}
	w.settle()
	w.mustHaveRoot(t, 0)
	w.mustBeQuiet(t)
}

// A coordinator that shares its number with another does not share its epoch.
func TestEqualEpochNumbersAreOrderedByCoordinator(t *testing.T) {
	n, err := New(Config{Self: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		epoch Epoch
		want  Epoch
	}{
		{Epoch{3, "b"}, Epoch{3, "b"}},
		{Epoch{3, "a"}, Epoch{3, "b"}},
		{Epoch{3, "c"}, Epoch{3, "c"}},
		{Epoch{2, "z"}, Epoch{3, "c"}},
	} {
		if err := n.Install(Snapshot{Epoch: tt.epoch, Own: Empty(0)}); err != nil {
			t.Fatal(err)
		}
		if got := n.Epoch(); got != tt.want {
			t.Errorf("after install of %v: epoch %v, want %v", tt.epoch, got, tt.want)
		}
	}
}

// B13: messages were taken from anyone. A node that is no neighbour in the
// installed epoch cannot change the table or become root.
func TestStrangersCannotChangeTheTable(t *testing.T) {
	w := installed(path(3), []uint64{10}, []uint64{20}, []uint64{30})
	before := w.nodes[0].Table()
	for _, m := range []Message{
		{Kind: MsgUpdate, From: "c", To: "a", Epoch: w.epoch, Seq: 1, Weight: item(1, 0)},
		{Kind: MsgFindRoot, From: "z", To: "a", Epoch: w.epoch, Seq: 1, Weight: item(1, 0)},
		{Kind: MsgUpdate, From: "b", To: "c", Epoch: w.epoch, Seq: 1, Weight: item(1, 0)},
		{Kind: MsgTaken, From: "b", To: "a", Op: OpID{"c", 1}, Outcome: Taken, Weight: item(1, 0)},
		{Kind: MsgTaken, From: "b", To: "a", Op: OpID{"a", 1}, Weight: item(1, 0)},
		{Kind: MsgDeleteMin, From: "b", To: "a"},
		{Kind: 99, From: "b", To: "a"},
	} {
		if err := w.nodes[0].Step(m); err == nil {
			t.Errorf("Step(%v) = nil", m)
		}
	}
	if diff := cmp.Diff(before, w.nodes[0].Table()); diff != "" {
		t.Errorf("table changed (-before +after):\n%s", diff)
	}
	if r := w.nodes[0].Ready(); len(r.Messages)+len(r.Answers)+len(r.Removed) > 0 {
		t.Errorf("Ready() = %+v", r)
	}
	w.mustBeQuiet(t)
}
