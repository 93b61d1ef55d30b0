package broker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// everyMessage has one of each kind, with all its fields.
func everyMessage() []broker.Message {
	e := qpid.Epoch{Num: 7, Coordinator: "a"}
	pace := broker.Pace{Grants: []broker.Grant{{ID: 5, Age: 9}}, Blocked: 3}
	states := []broker.State{{Queue: "q", Mode: pqueue.ModeSetting{Mode: pqueue.Paused, Stamp: 4, By: "b"}, Pace: pace}}
	fronts := []broker.Front{{Queue: "q", At: 2, Weight: pqueue.WeightOf(1, 2, 3, 4)}}
	item := pqueue.Item{Number: 3, ID: "x", Priority: 1, Payload: []byte("p")}
	result := pqueue.Result{Number: 3, Items: []pqueue.Item{item}}
	slots := []broker.Slots{{Queue: "q", Have: -2, Lost: 3, Left: 5, Of: []qpid.NodeID{"c"}, Taken: 1, Sure: true, Most: 4, Longest: 9, Dealt: 7}, {Queue: "r", Have: 1}}
	return []broker.Message{
		{Kind: broker.MsgGather, Epoch: e, List: []eviction.Member{{Name: "a", Boot: 1}, {Name: "b", Boot: 2}}},
		{Kind: broker.MsgFrozen, Epoch: e, States: states, Fronts: fronts, Whole: true, Known: true},
		{Kind: broker.MsgCommit, Epoch: e, States: states, Fronts: fronts, Whole: true},
		{Kind: broker.MsgBroken, Epoch: e},
		{Kind: broker.MsgVouch, Epoch: e, Seq: 9},
		{Kind: broker.MsgVouched, Epoch: e, Seq: 9},
		{Kind: broker.MsgQPID, Queue: "q", QPID: qpid.Message{Kind: qpid.MsgFindRoot, Epoch: e, Seq: 2, Weight: qpid.Empty(3)}, Pace: pace},
		{Kind: broker.MsgQPID, Queue: "q", QPID: qpid.Message{Kind: qpid.MsgDeleteMin, Op: qpid.OpID{Caller: "a", Seq: 8}, Hops: 4}, For: 30},
		{Kind: broker.MsgGranted, Queue: "q", Seq: 8, Result: result, For: 20},
		{Kind: broker.MsgRequest, Seq: 8, Command: pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: "x"}},
		{Kind: broker.MsgResponse, Seq: 8, Result: result},
		{Kind: broker.MsgWaiting, Queue: "q", For: 5},
		{Kind: broker.MsgWake, Queue: "q"},
		{Kind: broker.MsgWatch, Queue: "q", For: 5},
		{Kind: broker.MsgChange, Change: pqueue.Change{Queue: "q", Kind: pqueue.WasAcked, At: 5, Item: item}},
		{Kind: broker.MsgFreed, Epoch: e, Seq: 3, Slots: slots[1:]},
		{Kind: broker.MsgOffice, Epoch: e, Seq: 4, Slots: slots[:1]},
		{Kind: broker.MsgReport, Epoch: e, Made: qpid.Epoch{Num: 6, Coordinator: "b"}, Slots: slots},
		{Kind: broker.MsgShares, Epoch: e, Slots: slots},
		{Kind: broker.MsgKeyAsk, Epoch: e, Seq: 5},
		{Kind: broker.MsgKeyHeld, Epoch: e, Seq: 5, For: 1, Whole: true, Keys: []broker.KeyLock{{Queue: "q", Key: "k", Seq: 3}, {Queue: "q", Key: "l", Seq: 4}}},
		{Kind: broker.MsgKeyWant, Epoch: e, Keys: []broker.KeyLock{{Queue: "q", Key: "k", Seq: 3}}},
		{Kind: broker.MsgKeyLend, Epoch: e, Keys: []broker.KeyLock{{Queue: "q", Key: "k", Seq: 3}}},
		{Kind: broker.MsgKeyBack, Epoch: e, Keys: []broker.KeyLock{{Queue: "q", Key: "k", Seq: 3}}},
	}
}

func TestEveryMessageComesBackFromItsEncoding(t *testing.T) {
	for _, m := range everyMessage() {
		got, err := broker.Decode(m.Encode())
		if err != nil || cmp.Diff(m, got) != "" {
			t.Errorf("%v: %v\n%s", m.Kind, err, cmp.Diff(m, got))
		}
		for cut := range len(m.Encode()) {
			if _, err := broker.Decode(m.Encode()[:cut]); err == nil {
				t.Errorf("%v cut after %d bytes is taken for whole", m.Kind, cut)
			}
		}
	}
}

// FuzzMessage: no bytes make a broker panic, whoever they come from.
func FuzzMessage(f *testing.F) {
	for _, m := range everyMessage() {
		f.Add(m.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := broker.Decode(b)
		if err != nil {
			return
		}
		if again, err := broker.Decode(m.Encode()); err != nil || cmp.Diff(m, again) != "" {
			t.Fatalf("%+v became %+v (%v)", m, again, err)
		}
		c := newCluster(t, 3)
		c.insert(0, "q", "x@n2", 0)
		for _, at := range []int{0, 1} {
			m.From, m.To = c.nodes[2].m, c.nodes[at].m
			_ = c.nodes[at].b.Step(c.now, m)
			c.nodes[at].b.Tick(c.now)
			c.nodes[at].b.Ready()
		}
	})
}

func TestHandlesAndReceipts(t *testing.T) {
	for _, h := range []broker.Handle{{Kind: broker.Memory, Node: "a.b-c", Number: 1 << 60}, {Kind: broker.Durable, Node: "n", Number: 1}, {Kind: broker.Replicated, Number: 9}} {
		got, err := broker.ParseHandle(h.String())
		if err != nil || got != h {
			t.Errorf("%v: %v, %v", h, got, err)
		}
		back, lease, err := broker.ParseReceipt(h.Receipt(77))
		if err != nil || back != h || lease != 77 {
			t.Errorf("receipt of %v: %v, %d, %v", h, back, lease, err)
		}
	}
	for _, s := range []string{"", "m", "m.1", "m.1.", "x.1.n", "m.0.n", "m.!.n", "r.1.n", "mm.1.n", "m.1"} {
		if h, err := broker.ParseHandle(s); err == nil {
			t.Errorf("%q is taken for %v", s, h)
		}
		if h, _, err := broker.ParseReceipt("5." + s); err == nil {
			t.Errorf("receipt 5.%q is taken for %v", s, h)
		}
	}
	if _, _, err := broker.ParseReceipt("0.m.1.n"); err == nil {
		t.Error("a lease of number 0")
	}
}
