package queues

import (
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
)

// inserted notes an acknowledged insert: the item must not be lost while its
// node lives.
func (o *oracle) inserted(c *client, a broker.Answer) {
	o.w.Reached.Inserted++
	if h := a.Handle; h.Kind == broker.Memory && h.Number <= o.lost[h.Node] {
		return // the answer was on its way when the node crashed
	}
	if a.Handle.Kind == broker.Durable && o.gone[entry{node: a.Handle.Node, op: pqueue.OpInsert, id: c.id}] > 0 {
		return // and what it says has been given up since
	}
	i := o.item(c.queue, a.Handle, c.id)
	i.put, i.began, i.putAt = true, c.began, o.w.now
}

// leased takes in an item that has come to a client.
func (o *oracle) leased(c *client, p broker.Part) *lease {
	n, queue := c.n, c.queue
	o.w.Reached.Leased++
	r := p.Result
	if len(r.Items) != 1 || strings.TrimPrefix(string(r.Items[0].Payload), updated) != r.Items[0].ID {
		o.fail("%v got %+v", n.m, r)
		return &lease{over: true}
	}
	if from := r.Items[0].Origin; from != originOf(queue) {
		o.fail("%s of %s (%v) says that it is from %q", r.Items[0].ID, queue, p.Node, from)
	}
	if p.Node == n.m.Name {
		o.grant(queue, p.Node, r)
	}
	h := broker.HandleOf(p.Kind, p.Node, r.Number)
	i := o.item(queue, h, r.Items[0].ID)
	l := &lease{queue: queue, handle: h, item: i, number: r.Lease, granted: r.Until - c.lasts, until: r.Until, leases: r.Items[0].Attempts}
	l.given = h.Kind == broker.Durable && l.granted <= o.gone[entry{node: h.Node, op: pqueue.OpLease, number: h.Number}]
	old := i.lease
	switch {
	case i.acked:
		o.fail("%s of %s is acknowledged, and comes again at %v", i.id, queue, n.m)
	case old != nil && old.number == l.number:
		o.fail("%s of %s: one lease for two takes", i.id, queue)
	case old != nil && old.number > l.number:
		if l.until > old.granted { // it was longer on its way
			o.fail("%s of %s is leased until %d, and was again at %d", i.id, queue, l.until, old.granted)
		}
		l.over = true
		return l
	case old != nil && old.until > l.granted && !old.given:
		o.fail("%s of %s is leased until %d, and again at %d, to %v", i.id, queue, old.until, l.granted, n.m)
	case old != nil && old.until <= l.granted:
		o.w.Reached.Lapsed++
	}
	if old != nil {
		old.over = true
		o.waited(i, old, l)
	}
	o.letter(l)
	i.lease = l
	return l
}

// settling notes that an Ack or a Nack is on its way; settled, how it went.
func (o *oracle) settling(l *lease, op pqueue.Op) {
	if op == pqueue.OpAck {
		l.item.left = true
	} else {
		l.given, l.back = true, clockBase+o.w.now
	}
}

func (o *oracle) settled(l *lease, op pqueue.Op, c pqueue.Code) {
	switch {
	case c == pqueue.OK && o.gone[entry{node: l.handle.Node, op: op, number: l.handle.Number, lease: l.number}] > 0:
		l.given = true // and has been given up
	case op == pqueue.OpAck && c == pqueue.OK:
		l.item.acked = true
		o.w.Reached.Acked++
	case op == pqueue.OpAck && !mayFollow(c):
		l.item.left = l.item.acked
	case op == pqueue.OpNack && c == pqueue.OK:
		l.over = true
	}
}

// mayFollow reports whether a call that was answered so may have been carried out, or
// its second copy: a log may refuse the one and take the other.
func mayFollow(c pqueue.Code) bool {
	return slices.Contains([]pqueue.Code{pqueue.Unavailable, pqueue.StorageDoubt, pqueue.LogUnready, pqueue.StorageFull}, c)
}

// crashed forgets what the memory of a node had.
func (o *oracle) crashed(n *node) {
	o.lost[n.m.Name] = uint64(n.time().Clock) // numbers go by the clock
	o.purgesEnd(n)
	for _, queue := range changeable() {
		o.paced(queue, pace{node: n.m.Name})
	}
	for _, i := range o.all {
		if i.handle.Kind == broker.Memory && i.handle.Node == n.m.Name {
			i.put = false
			if i.lease != nil {
				i.lease.over = true
			}
		}
	}
}

// end checks that nothing is lost and nobody forgotten.
func (o *oracle) end() {
	for _, i := range o.all {
		if i.put && !i.acked && !i.left && !i.fetched && !strings.HasPrefix(i.queue, "slow") && !isAgain(i.queue) && !o.mayBePurged(i) {
			o.fail("%s of %s (%v) was acknowledged, and is gone", i.id, i.queue, i.handle)
		}
	}
	for _, n := range o.w.nodes {
		for _, c := range n.waiting() {
			if o.w.now > c.until {
				o.fail("a call at %v is not answered: queue %s, operation %d", n.m, c.queue, c.op)
			}
		}
	}
}

// waiting returns the calls that are not answered, in their order.
func (n *node) waiting() []*client {
	var ids []uint64
	for id := range n.clients { // sorted below
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var all []*client
	for _, id := range ids {
		all = append(all, n.clients[id])
	}
	return all
}
