package queues

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
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

// short checks that a deleteMin which had the time for more has not ended without an
// item that it had to find, at a node of the round that its caller is in.
func (o *oracle) short(c *client, a broker.Answer) {
	took := o.w.now - c.began
	switch conf, ok := c.n.b.ConfigOf(c.queue); {
	case !ok || conf.Interval > 0 || len(a.Parts) >= c.most:
		return
	case len(a.Parts) == 0 && (a.Result.Code != pqueue.Empty || c.waits > 0): // one that waits has looked a while ago
		return
	case took >= min(broker.MoreFor, c.lasts/4), c.waits > 0 && took >= c.waits+broker.EndWithin:
		return
	}
	epoch := c.n.epoch(c.queue)
	if epoch != c.epoch {
		return // its deleteMins went to who was the root before, who may know of nothing since
	}
	r := o.rounds[epoch]
	for _, in := range r.list {
		if i := o.standing(c.queue, in, epoch); i != nil && o.known(i, r, c) {
			o.fail("a deleteMin at %v, of %s, ends with %d of %d items after %d ms without %s at %v, which was there %d ms before it began", c.n.m, c.queue,
				len(a.Parts), c.most, took/milli, i.id, in, (c.began-i.putAt)/milli)
		}
	}
}

// named checks that who brings an answer names all nodes without which the round goes on
// that it is in, and those without which any of its items was let out: what they have may
// go before what it brings.
func (o *oracle) named(c *client, a broker.Answer) {
	conf, ok := c.n.b.ConfigOf(c.queue)
	if !ok || conf.Kind == broker.Replicated || a.Result.Code != pqueue.Empty && len(a.Parts) == 0 {
		return
	}
	o.namesAll(c, a, c.n.epoch(c.queue))
	for _, p := range a.Parts {
		if epoch, told := o.within[o.receipt(c.queue, p.Node, p.Result)]; told {
			o.w.Reached.Told++
			o.namesAll(c, a, epoch)
		}
	}
}

// namesAll checks that an answer names all that are not in a round.
func (o *oracle) namesAll(c *client, a broker.Answer, epoch qpid.Epoch) {
	r, in := o.rounds[epoch]
	if !in {
		return
	}
	for _, name := range o.w.names() {
		is := func(m eviction.Member) bool { return m.Name == name }
		if slices.ContainsFunc(r.list, is) {
			continue
		}
		if len(a.Parts) > 0 {
			o.w.Reached.Without++
		}
		if !slices.Contains(a.Missing, name) {
			o.fail("a deleteMin at %v, of %s, brings %d items of round %v, and does not say that %s is in no round", c.n.m, c.queue, len(a.Parts), epoch, name)
		}
	}
}

// standing is the first item of a queue at a member that is in that round, if it was
// put there and never leased; else nil.
func (o *oracle) standing(queue string, m eviction.Member, epoch qpid.Epoch) *item {
	n := o.w.node(m.Name)
	if !n.up || n.m != m {
		return nil
	}
	conf, ok := n.b.ConfigOf(queue)
	if e, _ := n.b.Root(queue); !ok || e != epoch {
		return nil
	}
	lightest, ok := n.b.Lightest(queue)
	i := o.items[key{queue, broker.HandleOf(conf.Kind, m.Name, lightest.Number)}]
	if !ok || i == nil || !i.put || lightest.Lease != 0 {
		return nil
	}
	return i
}

// known reports whether all in a round must know of an item when a deleteMin begins.
// What was there when the round began is in its tables, and stays if it is in memory.
// Of what came since, and from logs, which change hands, news must have had its way.
func (o *oracle) known(i *item, r begun, c *client) bool {
	w := o.w
	hop := w.o.Delay + 5*milli
	switch {
	case i.handle.Kind == broker.Memory && i.putAt < r.at:
		return true
	case w.troubled+second > c.began || !w.healthy():
		return false
	}
	return i.putAt < r.at || i.putAt > max(w.troubled, r.at+8*hop) && i.putAt+4*hop < c.began
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
