package queues

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// fairQueues are queues whose keys take turns.
func fairQueues() []string { return []string{"fair", "fair/kept", "fair/safe"} }

func isFair(queue string) bool { return slices.Contains(fairQueues(), queue) }

const (
	fairLease = 800 * milli
	fairMax   = second // a lease at most
	fairItems = 60
)

// fairConfig is their configuration.
func fairConfig(q func(string, broker.Kind) broker.Queue) []broker.Queue {
	var all []broker.Queue
	for k, name := range fairQueues() {
		c := q(name, broker.Kind(k))
		c.Lease, c.Limits.LeaseMax, c.FairKeys, c.Limits.ItemsMax = fairLease, fairMax, true, fairItems
		all = append(all, c)
	}
	return all
}

// useFair puts something into one of them, most of it of one key that is never quiet, or
// takes something.
func (w *World) useFair() {
	if !w.loading {
		return
	}
	w.after(w.fair.Int64N(2*w.o.Load), w.useFair)
	n, queue := w.nodes[w.fair.IntN(len(w.nodes))], fairQueues()[w.fair.IntN(len(fairQueues()))]
	kind, wait, most, key := w.fair.IntN(5), w.fair.Int64N(2*second), 1+w.fair.IntN(3), max(0, w.fair.IntN(8)-3)
	burst, level := 1+w.fair.IntN(5), uint32(w.fair.IntN(4)/3)
	w.calls++
	id := fmt.Sprintf("t%d", w.calls)
	if !n.up || n.paused {
		return
	}
	if w.o.Sets && w.fair.IntN(60) == 0 {
		n.setFair(queue)
		return
	}
	if kind < 2 {
		for i := range burst {
			id := fmt.Sprintf("%s-%d", id, i)
			c := pqueue.Command{Op: pqueue.OpInsert, Queue: queue, ID: id, Priority: level, Payload: []byte(id)}
			if key > 0 {
				c.Key = fmt.Sprint("key", key)
			}
			n.call(&client{queue: queue, op: pqueue.OpInsert, id: id}, broker.Call{Command: c})
		}
	} else {
		if kind == 4 {
			wait = 0
		}
		w.calls++
		n.clients[w.calls] = &client{n: n, queue: queue, most: most, lasts: fairLease, began: w.now, epoch: n.epoch(queue), waits: wait, until: w.now + wait + answerMax}
		n.b.Take(n.time(), broker.Take{ID: w.calls, Queue: queue, Max: most, Wait: wait, For: fairLease, Within: wait + 5*second})
	}
	n.settle()
}

// setFair has keys take turns no more, or again.
func (n *node) setFair(queue string) {
	is, _ := n.b.ConfigOf(queue)
	set := is.Settings()
	set.FairKeys = !set.FairKeys || n.w.now > n.w.o.Fault
	n.call(&client{queue: queue, op: pqueue.OpFind}, broker.Call{Command: pqueue.Command{
		Op: pqueue.OpConfigure, Queue: queue, Limits: is.Limits, Settings: set,
	}})
	n.settle()
}

// lineOf is what takes turns: the items of a key, in one priority, at one node.
type lineOf struct {
	at       qpid.NodeID
	key      string
	priority uint32
}

// firstOf is the first item of a line, since when it is, and which item of each other
// line has gone before it since that was known.
type firstOf struct {
	number uint64
	since  int64
	passed map[lineOf]uint64
	late   int64  // when a second one of another line went before it; 0: never
	why    string // which that was
}

// turns are what the oracle knows of a queue whose keys take turns.
type turnsOf struct {
	firsts map[lineOf]*firstOf
	leases map[qpid.NodeID]map[uint64]uint64 // number of the last lease that was seen, by item
	epochs map[qpid.NodeID]qpid.Epoch
	calm   int64 // when the nodes last began anew, in a round or with other settings
}

// turns checks, after whatever n did, that nothing has gone out of turn: of each other
// line one item at most goes before the first of a line, once all know of that.
func (o *oracle) turns(n *node) {
	if !o.w.o.Fair {
		return
	}
	for _, queue := range fairQueues() {
		is, ok := n.b.ConfigOf(queue)
		if !ok {
			continue
		}
		t := o.fairness[queue]
		if t == nil {
			t = &turnsOf{firsts: map[lineOf]*firstOf{}, leases: map[qpid.NodeID]map[uint64]uint64{}, epochs: map[qpid.NodeID]qpid.Epoch{}}
			o.fairness[queue] = t
		}
		if e := n.epoch(queue); t.epochs[n.m.Name] != e || !is.FairKeys {
			t.epochs[n.m.Name], t.calm = e, o.w.now
		}
		for _, l := range t.granted(n, queue) {
			o.wentOut(queue, t, n, l)
		}
		t.lookAt(n, queue, o.w.now)
	}
}

// granted are the leases that n has given since it was last looked at, in their order.
func (t *turnsOf) granted(n *node, queue string) []pqueue.Item {
	var all []pqueue.Item
	was, is := t.leases[n.m.Name], map[uint64]uint64{}
	for _, i := range n.b.Leases(queue) {
		is[i.Number] = i.Lease
		if was[i.Number] != i.Lease {
			all = append(all, i)
		}
	}
	t.leases[n.m.Name] = is
	slices.SortFunc(all, func(a, b pqueue.Item) int { return int(int64(a.Lease) - int64(b.Lease)) })
	return all
}

// wentOut has an item pass all that wait.
func (o *oracle) wentOut(queue string, t *turnsOf, n *node, i pqueue.Item) {
	w := o.w
	line := lineOf{n.m.Name, i.Key, i.Priority}
	at := int64(i.Lease) - clockBase - n.skew // numbers of leases go by the clock
	slack := skewMax + 8*(w.o.Delay+5*milli)
	for other, f := range t.firsts {
		if other == line && f.number == i.Number {
			if f.late != 0 && at > f.late+milli {
				o.fail("%s", f.why)
			}
			delete(t.firsts, other)
		}
		// Who is in another round goes by that, and who led the log before by nothing.
		known := t.epochs[other.at] == t.epochs[n.m.Name] && (other.at == n.m.Name || queue != "fair/safe")
		if other == line || other.priority != line.priority || !known || !w.healthy() || at <= max(f.since, t.calm, w.troubled)+slack {
			continue
		}
		w.Reached.Turns++
		before := f.passed[line]
		f.passed[line] = i.Number
		if before != 0 && before != i.Number && f.late == 0 && !n.offers(queue, before) { // else that one has come back
			f.late = at // or it is on its way through the log itself, by another way
			f.why = fmt.Sprintf("queue %s: %s is the second item of %q at %v, priority %d, to go before the first of %q at %v, which is that for %d ms", queue, i.ID, line.key, line.at,
				line.priority, other.key, other.at, (w.now-f.since)/milli)
		}
		if f.late != 0 && w.now > f.late+second {
			o.fail("%s", f.why)
		}
	}
}

// offers reports whether an item may be leased at n.
func (n *node) offers(queue string, number uint64) bool {
	return slices.ContainsFunc(n.b.Offered(queue), func(i pqueue.Item) bool { return i.Number == number })
}

// nobodyHas forgets a lease that a log refuses, or of which it does not say that it was
// given: it takes no turn. Its item was out of line meanwhile, and waits anew.
func (o *oracle) nobodyHas(n *node, p broker.Proposal) {
	c, err := pqueue.DecodeCommand(p.Command)
	t := o.fairness[c.Queue]
	if err != nil || c.Op != pqueue.OpLease || t == nil {
		return
	}
	for line, f := range t.firsts {
		if line.at == n.m.Name && f.number == c.Number {
			delete(t.firsts, line)
		}
	}
	for _, i := range n.b.Leases(c.Queue) {
		if i.Number == c.Number && t.leases[n.m.Name] != nil {
			t.leases[n.m.Name][i.Number] = i.Lease
		}
	}
}

// lookAt notes which items are the first of their lines at n.
func (t *turnsOf) lookAt(n *node, queue string, now int64) {
	is := map[lineOf]uint64{}
	for _, i := range n.b.Offered(queue) {
		if line := (lineOf{n.m.Name, i.Key, i.Priority}); is[line] == 0 {
			is[line] = i.Number
		}
	}
	for line, f := range t.firsts {
		if line.at == n.m.Name && is[line] != f.number {
			delete(t.firsts, line)
		}
	}
	for line, number := range is {
		if t.firsts[line] == nil {
			t.firsts[line] = &firstOf{number: number, since: now, passed: map[lineOf]uint64{}}
		}
	}
}

// drainFair takes all that is left, one after the other: lines go out in turn, and each
// in its order.
func (w *World) drainFair() {
	for _, queue := range fairQueues() {
		w.nodes[0].setFair(queue) // or a run may have ended without turns
		w.until(w.now + second)
		last, passed := map[lineOf]pqueue.Item{}, map[lineOf]map[lineOf]int{}
		for i := 0; w.oracle.err == nil && w.ready(queue) > 0; i++ {
			left := w.linesOf(queue)
			n := w.nodes[i%len(w.nodes)]
			got, _ := n.wait(&client{queue: queue, lasts: fairLease}, func(id uint64) {
				n.b.Take(n.time(), broker.Take{ID: id, Queue: queue, Max: 1, Wait: 3 * second, For: fairLease, Within: 8 * second})
			})
			if got == nil || len(got.Parts) != 1 {
				w.oracle.fail("queue %s at rest has %d items, and a take at %v gets %+v", queue, w.ready(queue), n.m, got)
				return
			}
			p := got.Parts[0]
			is := p.Result.Items[0]
			line := lineOf{p.Node, is.Key, is.Priority}
			if before, ok := last[line]; ok && goesBefore(is, before) {
				w.oracle.fail("queue %s at rest: of %q at %s, %s (%d) comes after %s (%d)", queue, is.Key, p.Node, is.ID, is.Stamp, before.ID, before.Stamp)
			}
			last[line], passed[line] = is, map[lineOf]int{}
			for _, other := range left {
				if other.priority < line.priority {
					w.oracle.fail("queue %s at rest: %s, priority %d, goes before one of %d", queue, is.ID, line.priority, other.priority)
				}
				if other == line || other.priority != line.priority {
					continue
				}
				if passed[other] == nil {
					passed[other] = map[lineOf]int{}
				}
				passed[other][line]++
				if passed[other][line] > 1 {
					w.oracle.fail("queue %s at rest: %s is the second item of %q at %v to go before the next of %q at %v", queue, is.ID, line.key, line.at, other.key, other.at)
				}
			}
			w.oracle.item(queue, broker.HandleOf(p.Kind, p.Node, is.Number), is.ID).fetched = true
			w.ackFew(queue, p)
			w.until(w.now + 3*w.o.Delay*3 + 10*milli)
		}
	}
}

// linesOf are the lines that have items which are ready, at all nodes.
func (w *World) linesOf(queue string) (all []lineOf) {
	for _, n := range w.nodes {
		for _, i := range n.b.Offered(queue) {
			if line := (lineOf{n.m.Name, i.Key, i.Priority}); !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return all
}
