package queues

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
)

// repeats are queues whose items are seldom acknowledged: they come again, and wait
// before that.
func repeats() []string { return []string{"again", "again/kept", "again/safe"} }

func isAgain(queue string) bool { return slices.Contains(repeats(), queue) }

// backoff is that of all of them.
func backoff() pqueue.Backoff {
	return pqueue.Backoff{Base: 200 * milli, Factor: 2500, Max: 2 * second}
}

// waits are what that comes to after so many leases, the last one after all others.
func waits() []int64 { return []int64{200 * milli, 500 * milli, 1250 * milli, 2 * second} }

// againQueues are their configuration.
func againQueues(q func(string, broker.Kind) broker.Queue) []broker.Queue {
	var all []broker.Queue
	for k, name := range repeats() {
		a := q(name, broker.Kind(k))
		a.Limits.Backoff = backoff()
		all = append(all, a)
	}
	return all
}

// tryAgain puts something into one of them, or takes something.
func (w *World) tryAgain() {
	if !w.loading {
		return
	}
	w.after(w.again.Int64N(4*w.o.Load), w.tryAgain)
	n, queue := w.nodes[w.again.IntN(len(w.nodes))], repeats()[w.again.IntN(len(repeats()))]
	kind, wait := w.again.IntN(4), w.again.Int64N(2*second)
	w.calls++
	id := fmt.Sprintf("a%d", w.calls)
	if !n.up || n.paused {
		return
	}
	if kind == 0 {
		n.call(&client{queue: queue, op: pqueue.OpInsert, id: id}, broker.Call{Command: pqueue.Command{
			Op: pqueue.OpInsert, Queue: queue, ID: id, Priority: uint32(w.again.IntN(3)), Payload: []byte(id),
		}})
	} else {
		w.calls++
		n.clients[w.calls] = &client{n: n, queue: queue, lasts: leaseFor, began: w.now, waits: wait, until: w.now + wait + answerMax}
		n.b.Take(n.time(), broker.Take{ID: w.calls, Queue: queue, Max: kind, Wait: wait, For: leaseFor, Within: wait + 5*second})
	}
	n.settle()
}

// workAgain gives most items back, with a delay or as the queue says, and lets some
// leases lapse.
func (n *node) workAgain(l *lease) {
	w := n.w
	c, after := pqueue.Command{Op: pqueue.OpNack, Queue: l.queue, Lease: l.number}, w.again.Int64N(second)
	switch w.again.IntN(8) {
	case 0:
		c.Op = pqueue.OpAck
	case 1, 2:
		return
	case 3:
		c.For = []int64{-1, 100 * milli}[w.again.IntN(2)]
	}
	w.after(after, func() {
		o := w.nodes[w.again.IntN(len(w.nodes))]
		if !o.up || o.paused || l.over {
			return
		}
		l.own = c.For != 0
		o.call(&client{queue: l.queue, op: c.Op, lease: l}, broker.Call{Handle: l.handle, Command: c})
		w.oracle.settling(l, c.Op)
		o.settle()
	})
}

// waited checks that an item has not come before its time, after the lease before
// this one. A disk that has lost the end of its log counts leases anew.
func (o *oracle) waited(i *item, old, l *lease) {
	if !isAgain(i.queue) || old.own || l.leases != old.leases+1 || o.w.o.Loses && i.handle.Kind == broker.Durable {
		return
	}
	o.w.Reached.Waited++
	ended := old.until
	if old.back != 0 {
		ended = min(ended, old.back)
	}
	if least := ended + waits()[min(int(old.leases), len(waits()))-1]; l.granted < least {
		o.fail("%s of %s (%v), leased %d times, comes again %d ms too early", i.id, i.queue, i.handle, old.leases, (least-l.granted)/milli)
	}
}
