package queues

import (
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// entry names a command of a durable log: an insert by its id, a lease by its
// item, a purge by its queue, all else by item and lease.
type entry struct {
	node          qpid.NodeID
	op            pqueue.Op
	id            string
	number, lease uint64
}

// gaveUp allows for what the last entries of a durable log did, and which is not
// so any more: items may be gone that were put, come again that were acknowledged,
// or be leased to somebody else.
func (o *oracle) gaveUp(n *node, entries [][]byte) {
	for _, text := range entries {
		c, err := pqueue.DecodeCommand(text)
		if err != nil {
			o.fail("%v cannot read its log: %v", n.m, err)
			return
		}
		e := entry{node: n.m.Name, op: c.Op, number: c.Number, lease: c.Lease}
		switch c.Op {
		case pqueue.OpInsert:
			e.id, e.number = c.ID, 0
		case pqueue.OpLease:
			e.lease = 0
		case pqueue.OpPurge:
			e.id, e.number = c.Queue, 0
		default:
		}
		o.gone[e] = n.time().Clock
	}
	for _, i := range o.all {
		h := i.handle
		if h.Kind != broker.Durable || h.Node != n.m.Name {
			continue
		}
		put, purge := entry{node: h.Node, op: pqueue.OpInsert, id: i.id}, entry{node: h.Node, op: pqueue.OpPurge, id: i.queue}
		if o.gone[put] > 0 || o.gone[purge] > 0 {
			i.put = false
		}
		if i.acked && o.gone[entry{node: h.Node, op: pqueue.OpAck, number: h.Number, lease: i.lease.number}] > 0 {
			i.acked, i.left = false, true
		}
		if i.lease != nil && i.lease.granted <= o.gone[entry{node: h.Node, op: pqueue.OpLease, number: h.Number}] {
			i.lease.given = true
		}
	}
}
