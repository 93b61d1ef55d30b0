package queues

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
)

// keyedQueues are queues of which one item of a key may be leased at once, over all nodes.
func keyedQueues() []string { return []string{"keyed", "keyed/kept", "keyed/safe"} }

func isKeyed(queue string) bool { return slices.Contains(keyedQueues(), queue) }

const (
	keys     = 5 // the first one is none
	keyLease = 800 * milli
	keyMax   = second // a lease at most
)

// keyedConfig is their configuration.
func (o Options) keyedConfig(q func(string, broker.Kind) broker.Queue) []broker.Queue {
	var all []broker.Queue
	for k, name := range keyedQueues() {
		c := q(name, broker.Kind(k))
		c.Lease, c.Limits.LeaseMax, c.Limits.Exclusive, c.Limits.ItemsMax = keyLease, keyMax, true, 20
		c.FairKeys = o.Fair
		all = append(all, c)
	}
	return all
}

// useKeyed puts something into one of them, or takes something.
func (w *World) useKeyed() {
	if !w.loading {
		return
	}
	w.after(w.keyed.Int64N(2*w.o.Load), w.useKeyed)
	n, queue := w.nodes[w.keyed.IntN(len(w.nodes))], keyedQueues()[w.keyed.IntN(len(keyedQueues()))]
	kind, wait, most, key := w.keyed.IntN(5), w.keyed.Int64N(2*second), 1+w.keyed.IntN(3), w.keyed.IntN(keys)
	w.calls++
	id := fmt.Sprintf("k%d", w.calls)
	if !n.up || n.paused {
		return
	}
	if w.o.Sets && w.keyed.IntN(80) == 0 {
		n.setKeyed(queue)
		return
	}
	if kind < 2 {
		c := pqueue.Command{Op: pqueue.OpInsert, Queue: queue, ID: id, Priority: uint32(w.keyed.IntN(3)), Payload: []byte(id)}
		if key > 0 {
			c.Key = fmt.Sprint("key", key)
		}
		n.call(&client{queue: queue, op: pqueue.OpInsert, id: id}, broker.Call{Command: c})
	} else {
		if kind == 4 {
			wait = 0
		}
		w.calls++
		n.clients[w.calls] = &client{n: n, queue: queue, lasts: keyLease, began: w.now, waits: wait, until: w.now + wait + answerMax}
		n.b.Take(n.time(), broker.Take{ID: w.calls, Queue: queue, Max: most, Wait: wait, For: keyLease, Within: wait + 5*second})
	}
	n.settle()
}

// setKeyed has so many be leased at once besides, or any number.
func (n *node) setKeyed(queue string) {
	is, _ := n.b.ConfigOf(queue)
	is.Limits.InFlightMax = n.w.keyed.IntN(3)
	n.call(&client{queue: queue, op: pqueue.OpFind}, broker.Call{Command: pqueue.Command{
		Op: pqueue.OpConfigure, Queue: queue, Limits: is.Limits, Settings: is.Settings(),
	}})
	n.settle()
}

// exclusive checks that no two items of a key are leased at once, wherever their leases
// are kept: also at a node that is down, if its disk has them, or cut off.
func (o *oracle) exclusive() {
	if !o.w.o.Keys {
		return
	}
	for k, queue := range keyedQueues() {
		kind := broker.Kind(k)
		if kind == broker.Durable && o.w.o.Loses {
			continue // what a disk loses may be the end of a lease
		}
		held := map[string]string{}
		for _, l := range o.leasesOf(queue, kind) {
			if l.item.Key == "" {
				continue
			}
			this := fmt.Sprintf("%s (at %s until %d)", l.item.ID, l.at, l.item.Until)
			if other, twice := held[l.item.Key]; twice {
				o.fail("queue %s: two items of %s are leased at once, %s and %s", queue, l.item.Key, other, this)
			}
			held[l.item.Key] = this
		}
		if len(held) > 1 {
			o.w.Reached.Keyed++
		}
	}
}

// leaseAt is a lease and the node that keeps it.
type leaseAt struct {
	item pqueue.Item
	at   string
}

// leasesOf are those of a queue that have not run out.
func (o *oracle) leasesOf(queue string, kind broker.Kind) (all []leaseAt) {
	if kind == broker.Replicated {
		o.exclusives.leased(o.w.group.log, queue)
		for _, i := range o.exclusives.shard.Leases(queue) {
			all = append(all, leaseAt{i, "the log"})
		}
		return all
	}
	for _, n := range o.w.nodes {
		if !n.up && kind == broker.Memory || n.b == nil || n.b.Leased(queue) == 0 {
			continue
		}
		now := n.time().Clock
		for _, i := range n.b.Leases(queue) {
			if i.Until > now {
				all = append(all, leaseAt{i, string(n.m.Name)})
			}
		}
	}
	return all
}

// drainKeyed takes all that is left, one after the other: every item comes, so no key
// stays taken of which nothing is leased, and at one node those of a key come in order.
func (w *World) drainKeyed() {
	for _, queue := range keyedQueues() {
		last := map[string]pqueue.Item{}
		for i := 0; w.oracle.err == nil && w.ready(queue) > 0; i++ {
			n := w.nodes[i%len(w.nodes)]
			got, _ := n.wait(&client{queue: queue, lasts: keyLease}, func(id uint64) {
				n.b.Take(n.time(), broker.Take{ID: id, Queue: queue, Max: 1, Wait: 3 * second, For: keyLease, Within: 8 * second})
			})
			if got == nil || len(got.Parts) != 1 {
				w.oracle.fail("queue %s at rest has %d items, none leased, and a take at %v gets %+v", queue, w.ready(queue), n.m, got)
				return
			}
			p := got.Parts[0]
			is := p.Result.Items[0]
			at := fmt.Sprint(p.Node, is.Key)
			if before, ok := last[at]; ok && is.Key != "" && goesBefore(is, before) {
				w.oracle.fail("queue %s at rest: of %s at %s, %s (%d, %d) comes after %s (%d, %d)", queue, is.Key, p.Node,
					is.ID, is.Priority, is.Stamp, before.ID, before.Priority, before.Stamp)
			}
			last[at] = is
			w.oracle.item(queue, broker.HandleOf(p.Kind, p.Node, is.Number), is.ID).fetched = true
			w.ackFew(queue, p)
			w.until(w.now + 3*w.o.Delay*3 + 10*milli)
		}
	}
}
