package queues

import (
	"fmt"
	"math/rand/v2"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// client is one call at one node.
type client struct {
	n     *node
	queue string
	op    pqueue.Op // 0: a deleteMin
	id    string
	lease *lease
	purge *purge
	mark  int   // of a change of settings
	lasts int64 // of a deleteMin: the lease that it asks for
	until int64 // by which it must have been answered
	began int64
	epoch qpid.Epoch // in which a deleteMin began
	waits int64      // of a deleteMin: for how long it waits; 0: not
	most  int        // of a deleteMin: items
}

func names() []string { return []string{"q", "q", "kept", "safe", "slow", "slow/safe"} }

// client has somebody do something, somewhere.
func (w *World) client() {
	if !w.loading {
		return
	}
	w.after(w.load.Int64N(2*w.o.Load), w.client)
	n := w.nodes[w.load.IntN(len(w.nodes))]
	queue := names()[w.load.IntN(len(names()))]
	kind, wait, most := w.load.IntN(20), w.load.Int64N(2*second), 1+w.load.IntN(3)
	w.calls++
	id := fmt.Sprintf("i%d", w.calls)
	if w.load.IntN(2) == 0 {
		id = broker.MadeAt(w.nodes[w.load.IntN(len(w.nodes))].m.Name, id)
	}
	if !n.up || n.paused {
		return
	}
	switch {
	case kind < 10:
		n.call(&client{queue: queue, op: pqueue.OpInsert, id: id}, broker.Call{Command: pqueue.Command{
			Op: pqueue.OpInsert, Queue: queue, ID: id, Priority: uint32(w.load.IntN(3)), Payload: []byte(id),
		}})
	case kind < 18:
		if kind%2 == 0 {
			wait = 0
		}
		n.take(queue, most, wait)
	case kind == 18:
		n.call(&client{queue: queue, op: pqueue.OpRank, id: id}, broker.Call{Command: pqueue.Command{Op: pqueue.OpRank, Queue: queue, ID: id}})
	default:
		n.call(&client{queue: queue, op: pqueue.OpStats}, broker.Call{Command: pqueue.Command{Op: pqueue.OpStats}})
	}
	n.settle()
}

// answerMax is by when every call has an answer, beyond what it waits.
const answerMax = 12 * second

func (n *node) call(c *client, call broker.Call) {
	n.w.calls++
	call.ID = n.w.calls
	c.n, c.began, c.until = n, n.w.now, n.w.now+answerMax
	n.clients[call.ID] = c
	n.b.Do(n.time(), call)
}

func (n *node) take(queue string, most int, wait int64) {
	n.w.calls++
	id := n.w.calls
	n.clients[id] = &client{n: n, queue: queue, most: most, lasts: leaseFor, began: n.w.now, epoch: n.epoch(queue), waits: wait, until: n.w.now + wait + answerMax}
	n.b.Take(n.time(), broker.Take{ID: id, Queue: queue, Max: most, Wait: wait, For: leaseFor, Within: wait + 5*second})
	if n.w.load.IntN(20) == 0 {
		n.do(n.w.load.Int64N(second), func() {
			if n.clients[id] != nil {
				delete(n.clients, id)
				n.b.Forsake(n.time(), id)
			}
		})
	}
}

// epoch is that of a queue's tables at n.
func (n *node) epoch(queue string) qpid.Epoch {
	e, _ := n.b.Root(queue)
	return e
}

func (c *client) answered(a broker.Answer) {
	w := c.n.w
	w.note("%v %s %d: %d", c.n.m, c.queue, c.op, a.Result.Code)
	if w.oracle.hear != nil {
		w.oracle.hear(a)
	}
	if a.Result.Code == pqueue.Unavailable {
		w.Reached.Unavailable++
	}
	if a.Result.Code == pqueue.StorageFull {
		w.Reached.Refused++
	}
	switch c.op {
	case 0:
		if a.Result.Code == pqueue.Empty {
			w.Reached.Empty++
		}
		w.oracle.ordered(c.queue, a.Parts)
		w.oracle.ended(c, a)
		w.oracle.short(c, a)
		w.oracle.named(c, a)
		for _, p := range a.Parts {
			switch l := w.oracle.leased(c, p); {
			case !w.loading:
			case isAgain(c.queue), isDead(c.queue):
				c.n.workAgain(l)
			case isFew(c.queue):
				c.n.workOn(l, c.n.w.few, fewMax)
			case isKeyed(c.queue):
				c.n.workOn(l, c.n.w.keyed, keyMax)
			case isFair(c.queue):
				c.n.workOn(l, c.n.w.fair, fairMax)
			default:
				c.n.work(l)
			}
		}
	case pqueue.OpStats:
		w.oracle.counted(c, a)
	case pqueue.OpInsert:
		if a.Result.Code == pqueue.OK && !a.Result.Exists {
			w.oracle.inserted(c, a)
		}
	case pqueue.OpUpdate:
		if a.Result.Code == pqueue.OK {
			w.oracle.item(c.queue, a.Handle, c.id).updated = true
			w.Reached.Updated++
		}
	case pqueue.OpConfigure:
		w.oracle.changed(c, a)
	case pqueue.OpPurge:
		w.oracle.purged(c.purge, a)
	case pqueue.OpAck, pqueue.OpNack:
		w.oracle.settled(c.lease, c.op, a.Result.Code)
	default:
	}
}

// work is what the holder of a lease does: it acknowledges most of the time,
// sometimes gives back, and sometimes is never heard of again.
func (n *node) work(l *lease) {
	w := n.w
	op, after := pqueue.OpAck, w.load.Int64N(4*second)
	switch w.load.IntN(10) {
	case 0, 1:
		return
	case 2:
		op = pqueue.OpNack
	}
	w.after(after, func() {
		o := w.nodes[w.load.IntN(len(w.nodes))]
		if !o.up || o.paused || l.over {
			return
		}
		o.call(&client{queue: l.queue, op: op, lease: l}, broker.Call{
			Handle: l.handle, Command: pqueue.Command{Op: op, Queue: l.queue, Lease: l.number},
		})
		w.oracle.settling(l, op)
		o.settle()
	})
}

// drain takes everything that is left, with nobody else about, one or many at a
// time, and checks that it comes in order and is complete.
func (w *World) drain() {
	for _, queue := range []string{"q", "kept", "safe"} {
		w.drainOne(queue)
	}
	for _, queue := range bins() {
		if w.o.Bins {
			w.drainOne(queue)
		}
	}
	if w.o.Again {
		w.places()
		for _, queue := range append(repeats(), deads()...) {
			w.drainOne(queue)
		}
	}
	if w.o.Few {
		w.drainFew()
	}
	if w.o.Keys {
		w.drainKeyed()
	}
	if w.o.Fair {
		w.drainFair()
	}
	w.oracle.end()
}

// drainOne drains one queue. A dead letter for which there was no room tries again a
// minute later, which may be now: what it comes among is in no order with what went
// before, and may be one more than there were.
func (w *World) drainOne(queue string) {
	there, total := w.in(queue)
	for i := 0; w.oracle.err == nil; i++ {
		n, most := w.nodes[i%len(w.nodes)], 1
		if w.load.IntN(2) == 0 {
			most = 1 + w.load.IntN(max(1, there))
		}
		peek, _ := n.wait(&client{queue: queue, op: pqueue.OpPeek}, func(id uint64) {
			n.b.Do(n.time(), broker.Call{ID: id, Command: pqueue.Command{Op: pqueue.OpPeek, Queue: queue, Max: most}})
		})
		got, took := n.wait(&client{queue: queue, lasts: leaseAtEnd}, func(id uint64) {
			n.b.Take(n.time(), broker.Take{ID: id, Queue: queue, Max: most, For: leaseAtEnd, Within: 5 * second})
		})
		if got == nil || got.Result.Code != pqueue.OK && got.Result.Code != pqueue.Empty {
			w.oracle.fail("queue %s: a deleteMin at %v, when all is well: %+v", queue, n.m, got)
			return
		}
		if len(got.Missing) > 0 {
			w.oracle.fail("queue %s at rest: %v misses %v", queue, n.m, got.Missing)
		}
		_, now := w.in(queue)
		if want := min(most, there); now == total && (len(got.Parts) > want || len(got.Parts) < want && took < broker.MoreFor) {
			w.oracle.fail("queue %s at rest: %v asks for %d of %d items, and gets %d", queue, n.m, most, there, len(got.Parts))
		}
		if now == total {
			w.oracle.shown(queue, peek, got.Parts, most < there)
		} else {
			delete(w.oracle.last, queue)
		}
		if got.Result.Code == pqueue.Empty {
			return
		}
		w.oracle.drained(queue, got.Parts)
		if now != total {
			delete(w.oracle.last, queue)
		}
		there, total = w.in(queue)
		w.until(w.now + 3*w.o.Delay*3 + 10*milli) // let news travel: at rest, order is exact
	}
}

// wait begins a call and runs the world until it is answered, nil: it is not; and
// says how long that took.
func (n *node) wait(c *client, begin func(id uint64)) (got *broker.Answer, took int64) {
	w := n.w
	w.calls++
	id, began := w.calls, w.now
	c.n, c.until = n, w.now+answerMax
	n.clients[id] = c
	w.oracle.hear = func(a broker.Answer) {
		if a.ID == id {
			got = &a
		}
	}
	begin(id)
	n.settle()
	for end := w.now + 6*second; got == nil && w.now < end; {
		w.until(w.now + broker.TickEvery)
	}
	return got, w.now - began
}

// in is how many items of a queue are ready, over all nodes, and how many with those
// that are leased: what a take leaves as they are, and what comes does not.
func (w *World) in(queue string) (ready, all int) {
	for _, n := range w.nodes {
		for _, s := range n.b.Each() {
			if s.Queue == queue {
				ready, all = ready+s.Ready, all+s.Ready+s.Leased
			}
		}
	}
	return ready, all
}

// ready is how many items of a queue are, over all nodes.
func (w *World) ready(queue string) int {
	ready, _ := w.in(queue)
	return ready
}

// leaseAtEnd outlives the run.
const leaseAtEnd = 3600 * second

// workOn does, as draws say, what a worker does with a lease of a queue that bounds
// leases: it acknowledges most items, gives some back, extends some leases before, a few
// of them time and again, and is never heard of again with others.
func (n *node) workOn(l *lease, draws *rand.Rand, longest int64) {
	w := n.w
	c, after := pqueue.Command{Op: pqueue.OpAck, Queue: l.queue, Lease: l.number}, draws.Int64N(700*milli)
	switch kind := draws.IntN(24); {
	case w.loading && kind > 0 && (l.keeps || kind < 4):
		l.keeps = true
		c.Op, c.For = pqueue.OpExtend, longest
	case kind < 8:
		return
	case kind < 12:
		c.Op = pqueue.OpNack
	case kind < 16:
		c.Op, c.For = pqueue.OpExtend, longest
	}
	w.after(after, func() {
		o := w.nodes[draws.IntN(len(w.nodes))]
		if !o.up || o.paused || l.over {
			return
		}
		o.call(&client{queue: l.queue, op: c.Op, lease: l}, broker.Call{Handle: l.handle, Command: c})
		if c.Op == pqueue.OpExtend {
			l.given = true // it lasts for another time now, and the answer may be lost
			o.workOn(l, draws, longest)
		} else {
			w.oracle.settling(l, c.Op)
		}
		o.settle()
	})
}
