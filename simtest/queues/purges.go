package queues

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// bins are queues of which nobody takes anything before the end: so what a purge
// leaves, or takes too much, shows.
func bins() []string { return []string{"bin", "bin/kept", "bin/safe"} }

// purgeEvery is how many items are put into a bin between two purges, about.
const purgeEvery = 40

// binned is an item that was put into a bin.
type binned struct{ queue, id string }

// updated begins the payload of an item that was updated.
const updated = "new "

// purge is one call of it.
type purge struct {
	queue      string
	by         *node
	began, end int64         // end 0: it is under way
	done       []qpid.NodeID // said that it was done
}

// fillBins puts something into a bin, or purges it.
func (w *World) fillBins() {
	if !w.loading {
		return
	}
	w.after(w.bins.Int64N(4*w.o.Load), w.fillBins)
	n, queue := w.nodes[w.bins.IntN(len(w.nodes))], bins()[w.bins.IntN(len(bins()))]
	kind, later := w.bins.IntN(purgeEvery), w.bins.Int64N(10*second)
	w.calls++
	id := fmt.Sprintf("b%d", w.calls)
	if !n.up || n.paused {
		return
	}
	switch {
	case kind <= 3 && kind > 0 && len(w.binned) > 0: // each once, so that it is known what it has in the end
		at := w.bins.IntN(len(w.binned))
		old := w.binned[at]
		w.binned = slices.Delete(w.binned, at, at+1)
		n.call(&client{queue: old.queue, op: pqueue.OpUpdate, id: old.id}, broker.Call{Command: pqueue.Command{
			Op: pqueue.OpUpdate, Queue: old.queue, ID: old.id, Fields: pqueue.FieldPayload, Payload: []byte(updated + old.id),
		}})
	case kind == 0:
		p := &purge{queue: queue, by: n, began: w.now}
		w.oracle.purges = append(w.oracle.purges, p)
		n.call(&client{queue: queue, op: pqueue.OpPurge, purge: p}, broker.Call{Command: pqueue.Command{Op: pqueue.OpPurge, Queue: queue}})
	default:
		w.binned = append(w.binned, binned{queue, id})
		w.binned = w.binned[max(0, len(w.binned)-5):]
		c := pqueue.Command{Op: pqueue.OpInsert, Queue: queue, ID: id, Priority: uint32(kind % 3), Payload: []byte(id)}
		if kind%4 == 0 {
			c.NotBefore = n.time().Clock + later
		}
		n.call(&client{queue: queue, op: pqueue.OpInsert, id: id}, broker.Call{Command: c})
	}
	n.settle()
}

// purged notes how a purge went.
func (o *oracle) purged(p *purge, a broker.Answer) {
	p.end = o.w.now
	for _, part := range a.Parts {
		p.done = append(p.done, part.Node)
	}
	if a.Result.Code == pqueue.OK {
		o.w.Reached.Purged += int(a.Result.N)
	}
}

// purgesEnd ends those that a crashed node was at.
func (o *oracle) purgesEnd(n *node) {
	for _, p := range o.purges {
		if p.by == n && p.end == 0 {
			p.end = o.w.now
		}
	}
}

// mayBePurged reports whether a purge was about when an item was put, or came
// later; mustBe, whether one began after that was acknowledged, and was done.
func (o *oracle) mayBePurged(i *item) bool {
	return slices.ContainsFunc(o.purges, func(p *purge) bool { return p.queue == i.queue && (p.end == 0 || p.end >= i.began) })
}

func (o *oracle) mustBePurged(i *item) bool {
	return i.put && slices.ContainsFunc(o.purges, func(p *purge) bool {
		there := i.handle.Kind == broker.Replicated && len(p.done) > 0 || slices.Contains(p.done, i.handle.Node)
		return p.queue == i.queue && p.began > i.putAt && there
	})
}

// swept checks a bin, when it is drained. A disk that has lost the end of its log
// has lost updates and purges as well.
func (o *oracle) swept(i *item, payload []byte) {
	if o.w.o.Loses && i.handle.Kind == broker.Durable {
		return
	}
	if i.updated && string(payload) != updated+i.id {
		o.fail("%s of %s (%v) was updated, and has %q", i.id, i.queue, i.handle, payload)
	}
	if strings.HasPrefix(i.queue, "bin") && o.mustBePurged(i) {
		o.fail("%s of %s (%v) was purged, and comes all the same", i.id, i.queue, i.handle)
	}
}
