package broker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

func purge(queue string) broker.Call {
	return broker.Call{Command: pqueue.Command{Op: pqueue.OpPurge, Queue: queue}}
}

func TestPurgeDropsWhatIsReadyOrDelayedAtAllNodes(t *testing.T) {
	c := newCluster(t, 3)
	for i := range 30 {
		c.insert(0, "q", fmt.Sprintf("i%02d@n%d", i, i%3+1), 1)
	}
	c.insert(1, "q", "first@n2", 0)
	held := c.take(2, broker.Take{Queue: "q", Max: 1})
	later := pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: "later@n3", NotBefore: c.now.Clock + 5_000_000}
	c.do(0, broker.Call{Command: later})
	if a := c.do(1, purge("q")); a.Result.Code != pqueue.OK || a.Result.N != 31 || len(a.Missing) > 0 {
		t.Fatalf("%+v", a)
	}
	c.pass(6_000_000)
	if a := c.take(0, broker.Take{Queue: "q", Max: 1}); len(a.Parts) > 0 {
		t.Fatalf("%v is left", names(a))
	}
	l := held.Parts[0].Result
	h := broker.HandleOf(broker.Memory, "n2", l.Number)
	if a := c.do(0, broker.Call{Handle: h, Command: pqueue.Command{Op: pqueue.OpNack, Queue: "q", Lease: l.Lease}}); a.Result.Code != pqueue.OK {
		t.Fatalf("nack of the leased one: %+v", a)
	}
	if a := c.take(0, broker.Take{Queue: "q", Max: 1}); !slices.Equal(names(a), []string{"first@n2"}) {
		t.Fatalf("what was given back is %v", names(a))
	}
	if a := c.do(1, purge("other")); a.Result.Code != pqueue.QueueUnknown {
		t.Fatalf("of a queue that is not there: %+v", a)
	}
}

// A queue of many items is dropped a part at a time, and what comes meanwhile stays.
func TestPurgeLeavesThatANodeDoesOtherThings(t *testing.T) {
	c := newCluster(t, 2)
	for i := range 500 {
		c.insert(0, "q", fmt.Sprintf("i%d@n%d", i, i%2+1), 5)
	}
	c.next++
	id := c.next
	call := purge("q")
	call.ID = id
	c.nodes[0].b.Do(c.now, call)
	c.settle()
	c.pass(broker.TickEvery)
	if _, ok := c.nodes[0].answers[id]; ok {
		t.Fatal("it was all dropped at once")
	}
	c.insert(1, "q", "urgent@n1", 0)
	c.insert(1, "q", "young@n2", 9)
	c.pass(10 * broker.TickEvery)
	if a := c.nodes[0].answers[id]; a.Result.N != 500 {
		t.Fatalf("%+v", a)
	}
	if a := c.take(0, broker.Take{Queue: "q", Max: 10}); !slices.Equal(names(a), []string{"urgent@n1", "young@n2"}) {
		t.Fatalf("left: %v", names(a))
	}
}

// Messages that come late, or once more, drop nothing that came after the purge.
func TestALatePurgeDropsNothingYounger(t *testing.T) {
	c := newCluster(t, 2)
	for i := range 3 {
		c.insert(0, "q", fmt.Sprintf("i%d@n2", i), 0)
	}
	var sent []broker.Message
	c.heard = func(m broker.Message) {
		if m.Kind == broker.MsgRequest && m.Command.Op == pqueue.OpPurge {
			sent = append(sent, m)
		}
	}
	if a := c.do(0, purge("q")); a.Result.N != 3 || len(sent) == 0 {
		t.Fatalf("%+v, by %d messages", a, len(sent))
	}
	c.insert(0, "q", "young@n2", 0)
	for _, m := range sent {
		if err := c.nodes[1].b.Step(c.now, m); err != nil {
			t.Fatal(err)
		}
		c.settle()
	}
	if a := c.take(0, broker.Take{Queue: "q", Max: 1}); !slices.Equal(names(a), []string{"young@n2"}) {
		t.Fatalf("left: %v", names(a))
	}
}

// Who could not do it, as its disk is full, is named beside those who could.
func TestPurgeSaysWhoseDiskIsFull(t *testing.T) {
	c := newCluster(t, 2)
	for i := range 4 {
		c.insert(0, "q", fmt.Sprintf("i%d@n%d", i, i%2+1), 0)
	}
	c.nodes[1].b.SetRoom(c.now, broker.Memory, broker.RoomForNone) // as if it wrote there
	if a := c.do(0, purge("q")); a.Result.Code != pqueue.OK || a.Result.N != 2 || !slices.Equal(a.Missing, []qpid.NodeID{"n2"}) {
		t.Fatalf("%+v", a)
	}
}

// What a node did not hear of it keeps, and it is named.
func TestPurgeSaysWhichNodesKeepWhatTheyHave(t *testing.T) {
	c := newCluster(t, 3)
	c.votes = []qpid.NodeID{"n1", "n2", "n3", "n4"}
	c.view()
	for i := range 9 {
		c.insert(0, "q", fmt.Sprintf("i%d@n%d", i, i%3+1), 1)
	}
	c.cut = func(_, to eviction.Member) bool { return to.Name == "n3" }
	a := c.do(0, purge("q"))
	if want := []qpid.NodeID{"n3", "n4"}; a.Result.Code != pqueue.OK || a.Result.N != 6 || !slices.Equal(a.Missing, want) {
		t.Fatalf("%+v, want %v missing", a, want)
	}
	c.cut = nil
	c.pass(2_000_000)
	if a := c.do(0, purge("q")); a.Result.N != 3 {
		t.Fatalf("again: %+v", a)
	}
}

// A payload takes room as an item does; a priority takes none.
func TestUpdateOfAPayloadNeedsRoom(t *testing.T) {
	c := newCluster(t, 1)
	c.insert(0, "q", "a@n1", 5)
	update := func(f pqueue.Fields, size int) pqueue.Code {
		return c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpUpdate, Queue: "q", ID: "a@n1", Fields: f, Payload: make([]byte, size)}}).Result.Code
	}
	if code := update(pqueue.FieldPayload, 1<<16+1); code != pqueue.Invalid {
		t.Errorf("of one that is too large: %v", code)
	}
	c.nodes[0].b.SetRoom(c.now, broker.Memory, broker.RoomToRemove) // as if it wrote there
	if payload, priority := update(pqueue.FieldPayload, 10), update(pqueue.FieldPriority, 0); payload != pqueue.StorageFull || priority != pqueue.OK {
		t.Errorf("on a disk that is nearly full: %v, and of the priority %v", payload, priority)
	}
}
