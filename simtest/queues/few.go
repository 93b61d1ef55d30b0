package queues

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
)

// fews are queues of which only so many items may be leased at once, over all nodes.
func fews() []string { return []string{"few", "few/kept", "few/safe"} }

func isFew(queue string) bool { return slices.Contains(fews(), queue) }

const (
	fewMany  = 3
	fewLease = 800 * milli
	fewMax   = second // a lease at most: with what is added, less than some nodes are away
)

// fewQueues are their configuration.
func fewQueues(q func(string, broker.Kind) broker.Queue) []broker.Queue {
	var all []broker.Queue
	for k, name := range fews() {
		f := q(name, broker.Kind(k))
		f.Lease, f.Limits.LeaseMax, f.Limits.InFlightMax, f.Limits.ItemsMax = fewLease, fewMax, fewMany, 20
		all = append(all, f)
	}
	return all
}

// useFew puts something into one of them, or takes something.
func (w *World) useFew() {
	if !w.loading {
		return
	}
	w.after(w.few.Int64N(2*w.o.Load), w.useFew)
	n, queue := w.nodes[w.few.IntN(len(w.nodes))], fews()[w.few.IntN(len(fews()))]
	kind, wait, most := w.few.IntN(5), w.few.Int64N(2*second), 1+w.few.IntN(3)
	w.calls++
	id := fmt.Sprintf("f%d", w.calls)
	if !n.up || n.paused {
		return
	}
	if w.o.Sets && w.few.IntN(40) == 0 {
		n.setFew(queue)
		return
	}
	if kind < 2 {
		n.call(&client{queue: queue, op: pqueue.OpInsert, id: id}, broker.Call{Command: pqueue.Command{
			Op: pqueue.OpInsert, Queue: queue, ID: id, Priority: uint32(w.few.IntN(3)), Payload: []byte(id),
		}})
	} else {
		if kind == 4 {
			wait = 0
		}
		w.calls++
		n.clients[w.calls] = &client{n: n, queue: queue, lasts: fewLease, began: w.now, waits: wait, until: w.now + wait + answerMax}
		n.b.Take(n.time(), broker.Take{ID: w.calls, Queue: queue, Max: most, Wait: wait, For: fewLease, Within: wait + 5*second})
	}
	n.settle()
}

// setFew changes how many items may be leased at once.
func (n *node) setFew(queue string) {
	w := n.w
	is, _ := n.b.ConfigOf(queue)
	is.Limits.InFlightMax = 1 + w.few.IntN(fewMany)
	n.call(&client{queue: queue, op: pqueue.OpFind}, broker.Call{Command: pqueue.Command{
		Op: pqueue.OpConfigure, Queue: queue, Limits: is.Limits, Settings: is.Settings(),
	}})
	n.settle()
}

// inFlight checks that no more items of a queue are leased than may be, wherever
// their leases are kept: also at a node that is down, if its disk has them, or cut off.
func (o *oracle) inFlight() {
	if !o.w.o.Few {
		return
	}
	for k, queue := range fews() {
		kind := broker.Kind(k)
		if kind == broker.Durable && o.w.o.Loses {
			continue // what a disk loses may be the end of a lease
		}
		if n := o.leases(queue, kind); n > fewMany {
			o.fail("queue %s: %d items are leased at once, %d may be", queue, n, fewMany)
		} else if n == fewMany {
			o.w.Reached.InFlight++
		}
	}
}

// leases counts those that have not run out.
func (o *oracle) leases(queue string, kind broker.Kind) int {
	if kind == broker.Replicated {
		return o.safe.leased(o.w.group.log, queue)
	}
	count := 0
	for _, n := range o.w.nodes {
		if !n.up && kind == broker.Memory {
			continue
		}
		if n.b == nil || n.b.Leased(queue) == 0 {
			continue
		}
		now := n.time().Clock
		for _, i := range n.b.Leases(queue) {
			if i.Until > now {
				count++
			}
		}
	}
	return count
}

// follower is what a log comes to.
type follower struct {
	shard   *pqueue.Shard
	applied int
}

func (f *follower) leased(log [][]byte, queue string) int {
	if f.shard == nil {
		f.shard = pqueue.New(0)
	}
	for ; f.applied < len(log); f.applied++ {
		if c, err := pqueue.DecodeCommand(log[f.applied]); err == nil {
			f.shard.Apply(c)
		}
	}
	return f.shard.Leased(queue)
}

// drainFew takes all that is left, one after the other: every item comes, and in
// the end no slot is missing.
func (w *World) drainFew() {
	for _, queue := range fews() {
		for i := 0; w.oracle.err == nil && w.ready(queue) > 0; i++ {
			n := w.nodes[i%len(w.nodes)]
			got, _ := n.wait(&client{queue: queue, lasts: fewLease}, func(id uint64) {
				n.b.Take(n.time(), broker.Take{ID: id, Queue: queue, Max: 1, Wait: 3 * second, For: fewLease, Within: 8 * second})
			})
			if got == nil || len(got.Parts) != 1 {
				w.oracle.fail("queue %s at rest has %d items, none leased, and a take at %v gets %+v", queue, w.ready(queue), n.m, got)
				return
			}
			w.oracle.drained(queue, got.Parts)
			w.ackFew(queue, got.Parts[0])
			w.until(w.now + 3*w.o.Delay*3 + 10*milli)
		}
		if queue == "few/safe" {
			continue
		}
		have, want := 0, w.mayBeLeased(queue)
		for _, n := range w.nodes {
			have += n.b.Slots(queue)
		}
		if have != want && w.oracle.err == nil {
			w.oracle.fail("queue %s at rest: the nodes have %d slots, not %d", queue, have, want)
		}
	}
}

// mayBeLeased is what all nodes take for the bound in the end.
func (w *World) mayBeLeased(queue string) int {
	is, _ := w.nodes[0].b.ConfigOf(queue)
	for _, n := range w.nodes {
		if o, _ := n.b.ConfigOf(queue); o.Limits.InFlightMax != is.Limits.InFlightMax {
			w.oracle.fail("queue %s at rest: %v lets %d be leased at once, and %v %d", queue, w.nodes[0].m, is.Limits.InFlightMax, n.m, o.Limits.InFlightMax)
		}
	}
	return is.Limits.InFlightMax
}

// ackFew acknowledges an item, at the next node if one has heard of two leaders of the
// log in the wrong order.
func (w *World) ackFew(queue string, p broker.Part) {
	h := broker.HandleOf(p.Kind, p.Node, p.Result.Number)
	for _, n := range w.nodes {
		a, _ := n.wait(&client{queue: queue, op: pqueue.OpFind}, func(id uint64) {
			n.b.Do(n.time(), broker.Call{ID: id, Handle: h, Command: pqueue.Command{Op: pqueue.OpAck, Queue: queue, Lease: p.Result.Lease}})
		})
		if a != nil && a.Result.Code == pqueue.OK {
			return
		}
	}
}
