package queues

import (
	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// begun is a round: when it began, of whom.
type begun struct {
	at   int64
	list []eviction.Member
}

// sent looks at the rounds that begin, and at the grants that go to other nodes.
func (o *oracle) sent(m broker.Message) {
	switch {
	case m.Kind == broker.MsgGather:
		if _, known := o.rounds[m.Epoch]; !known {
			o.rounds[m.Epoch] = begun{o.w.now, m.List}
		}
	case m.Kind == broker.MsgGranted && m.Result.Code == pqueue.OK:
		again := o.given[o.receipt(m.Queue, m.From.Name, m.Result)] // a second copy of a deleteMin is told of the same lease
		o.grant(m.Queue, m.From.Name, m.Result)
		if receipt := o.receipt(m.Queue, m.From.Name, m.Result); !again {
			o.within[receipt], _ = o.w.node(m.From.Name).b.Root(m.Queue)
		}
		if c, ok := o.w.node(m.From.Name).b.ConfigOf(m.Queue); ok && c.Kind == broker.Memory && !again && !isKeyed(m.Queue) && !isFair(m.Queue) { // of those, one item may wait for another
			o.first(m)
		}
	}
}

// roots checks that no epoch has two roots of a queue.
func (o *oracle) roots() {
	for _, name := range []string{"q", "slow", "safe", "few"} {
		type root struct {
			epoch qpid.Epoch
			by    eviction.Member
		}
		var found []root
		for _, n := range o.w.nodes {
			if !n.up {
				continue
			}
			if e, is := n.b.Root(name); is {
				for _, r := range found {
					if r.epoch == e {
						o.fail("queue %s has two roots in epoch %v: %v and %v", name, e, r.by, n.m)
					}
				}
				found = append(found, root{e, n.m})
			}
		}
	}
}

// first checks that a grant from memory overtakes no item that was there when the
// round began in which it is made, at any node that is in that round: those are
// known to all from its install on. One that was leased at any time may have come
// back since.
func (o *oracle) first(m broker.Message) {
	got, by := m.Result.Items[0], o.w.node(m.From.Name)
	epoch, _ := by.b.Root(m.Queue)
	r := o.rounds[epoch]
	lasts := int64(leaseFor)
	if isFew(m.Queue) {
		lasts = fewLease
	}
	if m.Result.Until-lasts-clockBase-by.skew <= r.at {
		return // it was made in an earlier round, for somebody who could not be told
	}
	for _, in := range r.list {
		n := o.w.node(in.Name)
		if !n.up || n.m != in {
			continue
		}
		lightest, ok := n.b.Lightest(m.Queue)
		i := o.items[key{m.Queue, broker.HandleOf(broker.Memory, in.Name, lightest.Number)}]
		if ok && i != nil && i.put && lightest.Lease == 0 && i.putAt < r.at && goesBefore(lightest, got) {
			o.fail("queue %s: %v lets %s (%d, %d) out to %v and overtakes %s at %v, which was there %d ms before the round", m.Queue, m.From,
				got.ID, got.Priority, got.Stamp, m.To, i.id, in, (r.at-i.putAt)/milli)
		}
	}
}
