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

// deads are the queues for their dead letters, of which there is little room.
func deads() []string { return []string{"dead", "dead/kept", "dead/safe"} }

func isDead(queue string) bool { return slices.Contains(deads(), queue) }

// originOf is where the items of a queue were put: nobody puts any into one for dead
// letters. Empty: there.
func originOf(queue string) string {
	if k := slices.Index(deads(), queue); k >= 0 {
		return repeats()[k]
	}
	return ""
}

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
		a.Limits.Backoff, a.Limits.AttemptsMax, a.Limits.DeadTo = backoff(), 4, deads()[k]
		d := q(deads()[k], broker.Kind(k))
		d.Limits.ItemsMax = deadMax
		all = append(all, a, d)
	}
	return all
}

// deadMax is how many dead letters there is room for.
const deadMax = 12

// tryAgain puts something into one of them, or takes something.
func (w *World) tryAgain() {
	if !w.loading {
		return
	}
	w.after(w.again.Int64N(4*w.o.Load), w.tryAgain)
	n, queue := w.nodes[w.again.IntN(len(w.nodes))], repeats()[w.again.IntN(len(repeats()))]
	kind, wait := w.again.IntN(4), w.again.Int64N(2*second)
	if kind > 0 && w.again.IntN(12) == 0 {
		queue = deads()[w.again.IntN(len(deads()))]
	}
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
		n.clients[w.calls] = &client{n: n, queue: queue, most: kind, lasts: leaseFor, began: w.now, epoch: n.epoch(queue), waits: wait, until: w.now + wait + answerMax}
		n.b.Take(n.time(), broker.Take{ID: w.calls, Queue: queue, Max: kind, Wait: wait, For: leaseFor, Within: wait + 5*second})
	}
	n.settle()
}

// workAgain gives most items back, with a delay or as the queue says, and lets some
// leases lapse.
func (n *node) workAgain(l *lease) {
	w := n.w
	c, after := pqueue.Command{Op: pqueue.OpNack, Queue: l.queue, Lease: l.number}, w.again.Int64N(second)
	switch kind := w.again.IntN(12); {
	case kind == 0, isDead(l.queue) && kind < 6:
		c.Op = pqueue.OpAck
	case kind < 4:
		return
	case kind == 4:
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

// letter notes that an item has come from a dead letter queue, or checks that it has
// not when it comes from the queue before.
func (o *oracle) letter(l *lease) {
	i := l.item
	if o.w.o.Loses && l.handle.Kind == broker.Durable {
		return // its log may begin again before the item was dead
	}
	for k, queue := range repeats() {
		switch at, dead := o.letters[entry{id: i.id, node: l.handle.Node}]; {
		case i.queue == deads()[k] && !dead:
			o.letters[entry{id: i.id, node: l.handle.Node}] = l.granted
			o.w.Reached.Died++
		case i.queue == queue && dead && l.granted > at:
			o.fail("%s of %s (%v) is a dead letter, and comes again from where it was", i.id, queue, i.handle)
		}
	}
}

// places checks that whatever was put into a queue with a dead letter queue is in
// one of them, once, until it is acknowledged.
func (w *World) places() {
	for k, queue := range repeats() {
		gone, left := map[string]bool{}, map[string]bool{}
		for _, i := range w.oracle.all {
			if i.queue == queue || i.queue == deads()[k] {
				gone[i.id] = gone[i.id] || i.acked
				left[i.id] = left[i.id] || i.left
			}
		}
		for _, i := range slices.Clone(w.oracle.all) {
			if i.queue != queue || w.oracle.err != nil {
				continue
			}
			n := w.stands(queue, i.id) + w.stands(deads()[k], i.id)
			loses := w.o.Loses && i.handle.Kind == broker.Durable
			switch {
			case n > 1, n > 0 && gone[i.id] && !loses:
				w.oracle.fail("%s of %s (%v) is in %d places, acknowledged: %v", i.id, queue, i.handle, n, gone[i.id])
			case n == 0 && i.put && !gone[i.id] && !left[i.id]:
				w.oracle.fail("%s of %s (%v) is in no place", i.id, queue, i.handle)
			}
		}
	}
}

// stands is in how many places of a queue an item stands: none or one.
func (w *World) stands(queue, id string) int {
	for _, n := range w.nodes {
		got, _ := n.wait(&client{queue: queue, op: pqueue.OpFind}, func(call uint64) {
			n.b.Do(n.time(), broker.Call{ID: call, Command: pqueue.Command{Op: pqueue.OpFind, Queue: queue, ID: id}})
		})
		switch {
		case got == nil || got.Result.Code == pqueue.Unavailable:
		case got.Result.Code == pqueue.OK:
			if got.Result.State == pqueue.Dead {
				w.Reached.Crowded++
			}
			return 1
		default:
			return 0
		}
	}
	w.oracle.fail("nobody says where %s of %s is", id, queue)
	return 0
}
