package broker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
)

func TestItemsComeInOrderFromWhereverTheyAre(t *testing.T) {
	for _, n := range []int{1, 2, 3, 12} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := newCluster(t, n)
			var want []string
			for i := range 50 {
				id := fmt.Sprintf("i%02d@n%d", i, i%n+1)
				c.insert((i*7)%n, "q", id, uint32(i/10))
				want = append(want, id)
				c.now.Clock++
			}
			var got []string
			for i := range 50 {
				a := c.take(i%n, broker.Take{Queue: "q", Max: 1})
				got = append(got, names(a)...)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("got %v", got)
			}
			if a := c.take(0, broker.Take{Queue: "q", Max: 1}); a.Result.Code != pqueue.Empty {
				t.Fatalf("an empty queue gave %+v", a)
			}
		})
	}
}

func TestManyAtOnce(t *testing.T) {
	c := newCluster(t, 3)
	for i := range 100 {
		c.insert(i%3, "q", fmt.Sprintf("i%03d", i), 0)
		c.now.Clock++
	}
	got := names(c.take(1, broker.Take{Queue: "q", Max: 70}))
	if len(got) != 70 || !slices.IsSorted(got) {
		t.Fatalf("got %d: %v", len(got), got)
	}
	if got = names(c.take(2, broker.Take{Queue: "q", Max: 70})); len(got) != 30 {
		t.Fatalf("then %d: %v", len(got), got)
	}
}

func TestARepeatedInsertMeetsTheSameItem(t *testing.T) {
	c := newCluster(t, 3)
	h := c.insert(0, "q", "job", 1)
	for at := range 3 {
		a := c.do(at, broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: "job"}})
		if !a.Result.Exists || a.Handle != h {
			t.Fatalf("at %d: %+v, want %v", at, a, h)
		}
	}
}

func TestAckComesToTheNodeThatHasTheItem(t *testing.T) {
	c := newCluster(t, 3)
	c.insert(0, "q", "job@n2", 1)
	a := c.take(2, broker.Take{Queue: "q", Max: 1})
	if len(a.Parts) != 1 || a.Parts[0].Node != "n2" {
		t.Fatalf("take: %+v", a)
	}
	r := a.Parts[0].Result
	h, lease, err := broker.ParseReceipt(broker.Handle{Node: "n2", Number: r.Number}.Receipt(r.Lease))
	if err != nil {
		t.Fatal(err)
	}
	ack := broker.Call{Handle: h, Command: pqueue.Command{Op: pqueue.OpAck, Queue: "q", Lease: lease}}
	for range 2 {
		if a := c.do(0, ack); a.Result.Code != pqueue.OK {
			t.Fatalf("ack: %+v", a)
		}
	}
	if a := c.do(1, broker.Call{Command: pqueue.Command{Op: pqueue.OpCancel, Queue: "q", ID: "job@n2"}}); a.Result.Code != pqueue.ItemFinished {
		t.Fatalf("cancel: %+v", a)
	}
	if a := c.do(1, broker.Call{Command: pqueue.Command{Op: pqueue.OpCancel, Queue: "q", ID: "other"}}); a.Result.Code != pqueue.ItemUnknown {
		t.Fatalf("cancel of another: %+v", a)
	}
}

func TestALongPollIsWoken(t *testing.T) {
	c := newCluster(t, 3)
	id := c.begin(1, broker.Take{Queue: "q", Max: 1, Wait: 20_000_000})
	c.pass(3_000_000)
	began := c.now.Boot
	c.insert(0, "q", "job@n3", 0)
	for range 100 {
		if a, ok := c.nodes[1].answers[id]; ok {
			if len(a.Parts) != 1 || c.now.Boot-began > broker.TickEvery {
				t.Fatalf("after %d µs: %+v", c.now.Boot-began, a)
			}
			return
		}
		c.pass(broker.TickEvery)
	}
	t.Fatal("it still waits")
}

func TestWaitersAreServedInTheirOrder(t *testing.T) {
	c := newCluster(t, 2)
	var ids []uint64
	for range 5 {
		ids = append(ids, c.begin(1, broker.Take{Queue: "q", Max: 1, Wait: 20_000_000}))
		c.pass(100_000)
	}
	for i := range 5 {
		c.insert(0, "q", fmt.Sprint("job", i), 0)
		c.pass(100_000)
	}
	for i, id := range ids {
		if a := c.nodes[1].answers[id]; !slices.Equal(names(a), []string{fmt.Sprint("job", i)}) {
			t.Fatalf("waiter %d got %+v", i, a)
		}
	}
	id := c.begin(1, broker.Take{Queue: "q", Max: 1, Wait: 1_000_000})
	c.pass(1_100_000)
	if a, ok := c.nodes[1].answers[id]; !ok || a.Result.Code != pqueue.Empty {
		t.Fatalf("after its wait: %v %+v", ok, a)
	}
}

func TestPositionCountsAllNodes(t *testing.T) {
	c := newCluster(t, 3)
	for i := range 30 {
		c.insert(i%3, "q", fmt.Sprint("job", i), 0)
		c.now.Clock++
	}
	for _, i := range []int{0, 7, 29} {
		a := c.do(1, broker.Call{Command: pqueue.Command{Op: pqueue.OpRank, Queue: "q", ID: fmt.Sprint("job", i)}})
		if a.Result.Code != pqueue.OK || a.Result.N != uint64(i+1) {
			t.Fatalf("job %d: %+v", i, a.Result)
		}
	}
}

// An answer that its caller refuses as too large would leave all that is in it
// leased to nobody.
func TestManyLargeItemsAreNoMoreThanAnAnswerHolds(t *testing.T) {
	c := newCluster(t, 1)
	for i := range 100 {
		a := c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: fmt.Sprint("i", i), Payload: make([]byte, 60_000)}})
		if a.Result.Code != pqueue.OK {
			t.Fatalf("insert: %+v", a)
		}
	}
	a, size := c.take(0, broker.Take{Queue: "q", Max: 100}), 0
	for _, p := range a.Parts {
		size += len(p.Result.Items[0].Payload)
	}
	if size < 3<<20 || size > 3<<20+1<<16 {
		t.Errorf("%d items of %d bytes together, want a little over 3 MiB", len(a.Parts), size)
	}
}
