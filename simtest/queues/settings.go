package queues

import (
	"cmp"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// changeable are the queues whose settings change in a run of Sets.
func changeable() []string { return []string{"slow", "slow/safe", "kept", "safe", "q"} }

// change has somebody change the settings of a queue, and sometimes soon again.
func (w *World) change() {
	if w.now > 2*second+w.o.Fault {
		return
	}
	w.after(200*milli+w.sets.Int64N(3*second), w.change)
	queue := changeable()[w.sets.IntN(len(changeable()))]
	w.changeOne(queue)
	for w.sets.IntN(2) == 0 {
		w.after(w.sets.Int64N(800*milli), func() { w.changeOne(queue) })
	}
}

// changeOne has somebody change the settings of that queue.
func (w *World) changeOne(queue string) {
	n := w.nodes[w.sets.IntN(len(w.nodes))]
	interval := []int64{250 * milli, 500 * milli, second, 2 * second}[w.sets.IntN(4)]
	most, items := 1+w.sets.IntN(3), 1000+w.sets.IntN(100_000)
	if !n.up || n.paused {
		return
	}
	is, ok := n.b.ConfigOf(queue)
	if !ok {
		return
	}
	l := is.Limits
	w.oracle.marks++
	l.ItemsMax, l.RememberMax = items, 100_000+w.oracle.marks // the latter tells one change from the other
	s := pqueue.Settings{Lease: leaseFor, PayloadMax: 100, PerInterval: 1}
	if is.Interval > 0 {
		s.Interval, s.PerInterval = interval, most
	}
	n.call(&client{queue: queue, op: pqueue.OpConfigure, mark: l.RememberMax}, broker.Call{Command: pqueue.Command{
		Op: pqueue.OpConfigure, Queue: queue, Limits: l, Settings: s,
	}})
	n.settle()
}

// settings are what the oracle knows of them.
type settings struct {
	marks int
	seen  map[int]pqueue.Settings    // by mark
	acked map[string]pqueue.Settings // the newest that all nodes have acknowledged, which have a log for it
	paces map[string][]pace
}

// pace is what one node went by for a while.
type pace struct {
	node     qpid.NodeID
	interval int64
	most     int
	until    int64 // 0 as long as it does
}

// follow notes what n goes by now. In one life it never goes back to older settings.
func (o *oracle) follow(n *node) {
	n.changes = n.b.Changes()
	for _, queue := range changeable() {
		c, ok := n.b.ConfigOf(queue)
		if !ok {
			continue
		}
		set, _ := n.b.SettingsOf(queue)
		if old := n.set[queue]; old.Newer(set) {
			o.fail("%v goes back from the settings %+v of %s to %+v", n.m, old, queue, set)
		}
		n.set[queue] = set
		if set.Stamp != 0 {
			o.seen[c.Limits.RememberMax] = set
		}
		if c.Interval > 0 {
			o.paced(queue, pace{node: n.m.Name, interval: c.Interval, most: c.PerInterval})
		}
	}
}

// paced notes that a node goes by p; one without an interval is a node that is gone.
func (o *oracle) paced(queue string, p pace) {
	all := o.paces[queue]
	for i := range all {
		if is := &all[i]; is.node == p.node && is.until == 0 {
			if is.interval == p.interval && is.most == p.most {
				return
			}
			is.until = o.w.now
		}
	}
	if p.interval > 0 {
		o.paces[queue] = append(all, p)
	}
}

// laxest is the shortest interval, and the most items in one, that any node has gone by
// since then.
func (o *oracle) laxest(queue string, since int64) (interval int64, most int) {
	for _, p := range o.paces[queue] {
		if p.until == 0 || p.until >= since {
			interval, most = min(cmp.Or(interval, p.interval), p.interval), max(most, p.most)
		}
	}
	return interval, most
}

// changed takes in how a change has ended.
func (o *oracle) changed(c *client, a broker.Answer) {
	if a.Result.Code != pqueue.OK {
		return
	}
	if len(a.Missing) > 0 {
		o.w.Reached.SetLater++
		return
	}
	o.w.Reached.Set++
	if s := o.seen[c.mark]; s.Newer(o.acked[c.queue]) {
		o.acked[c.queue] = s
	}
}

// agreed checks that at rest all nodes go by the same settings, in their shards too,
// and that what was acknowledged is not undone.
func (o *oracle) agreed() {
	for _, queue := range changeable() {
		var set pqueue.Settings
		var want broker.Queue
		for _, n := range o.w.nodes {
			if is, _ := n.b.SettingsOf(queue); is.Newer(set) || want.Name == "" {
				set = is
				want, _ = n.b.ConfigOf(queue)
			}
		}
		if acked := o.acked[queue]; acked.Newer(set) && (want.Kind == broker.Replicated || want.Kind == broker.Durable && !o.w.o.Loses) {
			o.fail("queue %s has the settings %+v in the end, and %+v were acknowledged", queue, set, acked)
		}
		for _, n := range o.w.nodes {
			c, ok := n.b.ConfigOf(queue)
			if is, _ := n.b.SettingsOf(queue); is != set || ok && c != want {
				o.fail("queue %s at rest: %v goes by %+v of %+v, and others by %+v of %+v", queue, n.m, c, is, want, set)
			}
			if l, is, ok := n.b.InShard(queue); ok && (l != want.Limits || is != set) {
				o.fail("queue %s at rest: the shard of %v has %+v of %+v, and the nodes %+v of %+v", queue, n.m, l, is, want.Limits, set)
			}
		}
	}
}
