package qpid

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An item queued twice could make both ends of a link the lighter one. Such a
// snapshot leaves the node frozen.
func TestSnapshotWithATieIsRefused(t *testing.T) {
	w := newNetwork(path(3))
	w.insert(0, 5)
	w.insert(2, 5)
	w.startWave()
	for v := range w.nodes {
		w.reply(v)
	}
	for v := range w.nodes {
		if err := w.install(v); err == nil || !w.nodes[v].Frozen() {
			t.Errorf("%s installed a snapshot with a tie: %v", w.ids[v], err)
		}
	}
	w.remove(2, 5) // the ghost goes, the next wave heals
	w.wave()
	w.mustHaveRoot(t, 0)
	w.mustBeQuiet(t)
}

func TestBadSnapshotsAreRefused(t *testing.T) {
	for name, nbs := range map[string][]Neighbor{
		"itself":   {{"x", item(1, 0)}},
		"nameless": {{"", item(1, 0)}},
		"twice":    {{"y", item(1, 0)}, {"z", item(2, 0)}, {"y", item(3, 0)}},
	} {
		n, err := New(Config{Self: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Install(Snapshot{Epoch: Epoch{Num: 1}, Own: Empty(0), Neighbors: nbs}); err == nil || !n.Frozen() {
			t.Errorf("%s: error %v, frozen %v", name, err, n.Frozen())
		}
	}
}

// A full buffer of early messages is a gap: the dropped one may have been the
// findRoot, so the node must not go on as if nothing had happened.
func TestEarlyMessagesBeyondTheBoundAreAGap(t *testing.T) {
	n, err := New(Config{Self: "b", EarlyMax: 2})
	if err != nil {
		t.Fatal(err)
	}
	install := func(num, messages uint64) error {
		e := Epoch{Num: num, Coordinator: "a"}
		for seq := uint64(1); seq <= messages; seq++ {
			m := Message{Kind: MsgUpdate, From: "a", To: "b", Epoch: e, Seq: seq, Weight: item(100-seq, 0)}
			if err := n.Step(m); err != nil {
				t.Fatal(err)
			}
		}
		return n.Install(Snapshot{Epoch: e, Own: item(1, 0), Neighbors: []Neighbor{{"a", Empty(0)}}})
	}
	n.Insert(item(1, 0))
	if err := install(1, 2); err != nil || n.Frozen() {
		t.Errorf("two messages: %v, frozen %v", err, n.Frozen())
	}
	n.Freeze()
	if err := install(2, 3); !errors.Is(err, ErrGap) || !n.Frozen() {
		t.Errorf("three messages: %v, frozen %v", err, n.Frozen())
	}
	if err := install(3, 0); err != nil || n.Frozen() {
		t.Errorf("next install: %v, frozen %v", err, n.Frozen())
	}
}

// Of what came before its install nothing says to whom it makes sense until then. That it did not
// is said then: the node is frozen, and whoever runs it is to ask for another wave.
func TestAnEarlyMessageThatMakesNoSenseIsAnErrorOfTheInstall(t *testing.T) {
	for name, seqs := range map[string][]uint64{"with a gap": {2}, "with a gap after the first": {1, 3}, "one after the other": {1, 2}} {
		n, err := New(Config{Self: "b"})
		if err != nil {
			t.Fatal(err)
		}
		n.Insert(item(1, 0))
		e := Epoch{Num: 1, Coordinator: "a"}
		for _, seq := range seqs {
			if err := n.Step(Message{Kind: MsgUpdate, From: "a", To: "b", Epoch: e, Seq: seq, Weight: item(100-seq, 0)}); err != nil {
				t.Fatal(err)
			}
		}
		err = n.Install(Snapshot{Epoch: e, Own: item(1, 0), Neighbors: []Neighbor{{"a", Empty(0)}}})
		if gap := seqs[len(seqs)-1] != uint64(len(seqs)); errors.Is(err, ErrGap) != gap || n.Frozen() != gap {
			t.Errorf("%s: %v, frozen %v", name, err, n.Frozen())
		}
	}
}

// A deleteMin is answered by the first full buffer it meets.
func TestDeleteMinsBeyondTheBoundAreRefused(t *testing.T) {
	n, err := New(Config{Self: "a", PendingMax: 1})
	if err != nil {
		t.Fatal(err)
	}
	n.DeleteMin(OpID{"a", 1})
	n.DeleteMin(OpID{"a", 2})
	if err := n.Step(Message{Kind: MsgDeleteMin, From: "b", To: "a", Op: OpID{"b", 1}, Hops: 1}); err != nil {
		t.Fatal(err)
	}
	want := Ready{
		Messages: []Message{{Kind: MsgTaken, From: "a", To: "b", Op: OpID{"b", 1}, Outcome: Refused}},
		Answers:  []Answer{{Op: OpID{"a", 2}, Outcome: Refused, Home: "a"}},
	}
	if diff := cmp.Diff(want, n.Ready()); diff != "" {
		t.Errorf("Ready() (-want +got):\n%s", diff)
	}
}

// A deleteMin that goes round is refused in the end.
func TestDeleteMinBeyondTheHopBoundIsRefused(t *testing.T) {
	w := installed(path(3), []uint64{10}, nil, nil)
	if err := w.nodes[1].Step(Message{Kind: MsgDeleteMin, From: "c", To: "b", Op: OpID{"c", 1}, Hops: 64}); err != nil {
		t.Fatal(err)
	}
	w.collect(1)
	w.settle()
	want := []Answer{{Op: OpID{"c", 1}, Outcome: Refused, Home: "b"}}
	if diff := cmp.Diff(want, w.answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// A repeated deleteMin gets the same answer and takes nothing, as long as it is
// among the last AnsweredMax.
func TestRepeatedDeleteMinTakesOneItem(t *testing.T) {
	n, err := New(Config{Self: "a", AnsweredMax: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Install(Snapshot{Epoch: Epoch{Num: 1}, Own: Empty(0)}); err != nil {
		t.Fatal(err)
	}
	for s := uint64(1); s <= 5; s++ {
		n.Insert(item(s, 0))
	}
	var got []uint64
	for _, seq := range []uint64{1, 1, 2, 1, 3, 1} { // 3 pushes the answer to 1 out
		n.DeleteMin(OpID{"a", seq})
		got = append(got, n.Ready().Answers[0].Weight.Stamp)
	}
	if diff := cmp.Diff([]uint64{1, 1, 2, 1, 3, 4}, got); diff != "" {
		t.Errorf("items taken (-want +got):\n%s", diff)
	}
}

func TestNewRefusesBadConfigs(t *testing.T) {
	for _, c := range []Config{{}, {Self: "a", PendingMax: -1}, {Self: "a", EarlyMax: -1}, {Self: "a", AnsweredMax: -1}} {
		if n, err := New(c); err == nil {
			t.Errorf("New(%+v) = %v, nil", c, n)
		}
	}
}

// The root is where the parent pointer leads, so a findRoot comes from there.
// One from elsewhere would make a second root; the node stops instead.
func TestFindRootFromElsewhereFreezes(t *testing.T) {
	w := installed(star(3), []uint64{10}, []uint64{5}, []uint64{20})
	w.mustHaveRoot(t, 1)
	m := Message{Kind: MsgFindRoot, From: "c", To: "a", Epoch: w.epoch, Seq: 1, Weight: item(20, 0)}
	if err := w.nodes[0].Step(m); err == nil || !w.nodes[0].Frozen() {
		t.Errorf("Step(%v) = %v, frozen %v", m, err, w.nodes[0].Frozen())
	}
	w.mustHaveRoot(t, 1)
}

// With an item queued twice the root has no reason to move, and does not go
// back and forth.
func TestTieLeavesTheRootWhereItIs(t *testing.T) {
	w := installed(path(2), []uint64{5}, []uint64{20})
	w.insert(1, 5)
	w.settle()
	w.mustHaveRoot(t, 0)
	w.mustHaveSent(t, 1, 0)
	w.mustBeQuiet(t)
}

// An update that still waits for Ready is replaced only by one of its epoch: to
// the receiver, an older epoch's says nothing.
func TestUpdateIsNotReplacedAcrossEpochs(t *testing.T) {
	w := installed(path(2), []uint64{10}, []uint64{20})
	w.nodes[1].Insert(item(15, 0))
	w.startWave()
	w.reply(0)
	w.reply(1)
	if err := w.install(0); err != nil {
		t.Fatal(err)
	}
	if err := w.nodes[1].Install(w.snapshot(1, w.epoch, w.weights)); err != nil {
		t.Fatal(err)
	}
	w.nodes[1].Insert(item(12, 0))
	w.collect(1)
	w.mustHaveSent(t, 2, 0)
	w.settle()
	w.mustBeQuiet(t)
}

func TestBrokenUsePanics(t *testing.T) {
	for name, use := range map[string]func(n *Node){
		"deleteMin in another's name":     func(n *Node) { n.DeleteMin(OpID{"b", 1}) },
		"queue changed behind the node":   func(n *Node) { n.queue.Insert(item(1, 0)); n.DeleteMin(OpID{"a", 1}) },
		"insert of an empty queue's name": func(n *Node) { n.Insert(Empty(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			use(installed(path(1), []uint64{10}).nodes[0])
		})
	}
}
