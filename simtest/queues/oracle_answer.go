package queues

import (
	"slices"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// counted checks that an answer about all nodes hides none of them.
func (o *oracle) counted(c *client, a broker.Answer) {
	if a.Result.Code != pqueue.OK {
		return
	}
	for _, name := range o.w.names() {
		here := func(p broker.Part) bool { return p.Node == name }
		if !slices.ContainsFunc(a.Parts, here) && !slices.Contains(a.Missing, name) {
			o.fail("%v counts the items of all nodes but %s, and does not say so", c.n.m, name)
		}
	}
}

// names are those of all nodes, each of which has a vote.
func (w *World) names() []qpid.NodeID {
	var names []qpid.NodeID
	for _, n := range w.nodes {
		names = append(names, n.m.Name)
	}
	return names
}

// ended checks that a deleteMin does not wait for longer than it was to.
func (o *oracle) ended(c *client, a broker.Answer) {
	took := o.w.now - max(c.began, c.n.woke)
	most := c.waits + broker.EndWithin + second // half of which is until it is looked at again
	if len(a.Parts) > 0 {
		most += leaseFor
	}
	if c.waits > 0 && took > most {
		o.fail("a deleteMin at %v, of %s, was to wait for %d ms, and has %d items after %d", c.n.m, c.queue, c.waits/milli, len(a.Parts), took/milli)
	}
}

// ordered checks that an answer has its items in their order, whatever happens
// around it.
func (o *oracle) ordered(queue string, parts []broker.Part) {
	for i := 1; i < len(parts); i++ {
		a, b := parts[i-1].Result, parts[i].Result
		if len(a.Items) == 1 && len(b.Items) == 1 && goesBefore(b.Items[0], a.Items[0]) {
			o.fail("queue %s: one answer has %s (%d, %d) after %s (%d, %d)", queue,
				b.Items[0].ID, b.Items[0].Priority, b.Items[0].Stamp, a.Items[0].ID, a.Items[0].Priority, a.Items[0].Stamp)
		}
	}
}

func goesBefore(a, b pqueue.Item) bool {
	return a.Priority < b.Priority || a.Priority == b.Priority && a.Stamp < b.Stamp
}
