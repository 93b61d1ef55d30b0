package broker

import (
	"cmp"
	"slices"

	"github.com/anteroom/anteroom/internal/pqueue"
)

// stat is what this node's shards say of a queue, or of all, and what this node
// itself does.
func (b *Broker) stat(name string) pqueue.Result {
	if name == "" {
		var r pqueue.Result
		for _, q := range b.queues {
			r.Stats = append(r.Stats, b.statOf(q))
		}
		return r
	}
	q := b.queue(name)
	if q == nil {
		return pqueue.Result{}
	}
	_, led := b.leading()
	switch why := b.unready(q); {
	case why == pqueue.StorageFull:
		return pqueue.Result{Code: why}
	case why != pqueue.OK || q.c.Kind == Replicated && !led:
		return pqueue.Result{Code: pqueue.Unavailable}
	}
	return pqueue.Result{Stats: []pqueue.Stats{b.statOf(q)}}
}

func (b *Broker) statOf(q *queue) pqueue.Stats {
	st := pqueue.Stats{Queue: q.c.Name}
	if s := &b.shards[q.c.Kind]; s.state != nil && s.leads {
		if in := s.state.Apply(pqueue.Command{Op: pqueue.OpStats, Queue: q.c.Name}); len(in.Stats) == 1 {
			st = in.Stats[0]
		}
	}
	st.Mode, st.Root, st.Waiters, st.Kind = q.mode, q.q.IsRoot(), len(q.waiters), q.c.Kind.String()
	if q.c.Limits.InFlightMax > 0 {
		st.SlotsLost = q.slots.lost
	}
	st.KeysHeldBack = q.gates() && q.slots.lost > 0
	return st
}

// tally is how the queues are told of in metrics: some each by itself, and all
// others together, so that there is a bound to what names of queues can make of it.
// A queue stays where it was when it was made, or its numbers would jump.
type tally struct {
	each     []*queue        // by name: those that are listed, and the first eachMax of the others
	unlisted int             // of each
	rest     pqueue.Counters // of all others, and of those that were forgotten. Invariant: they only grow
}

// eachMax is how many queues that are not listed are told of by themselves.
const eachMax = 100

func (t *tally) find(name string) (int, bool) {
	return slices.BinarySearchFunc(t.each, name, func(q *queue, name string) int { return cmp.Compare(q.c.Name, name) })
}

// admit takes in a queue that is new.
func (t *tally) admit(q *queue) {
	if q.counted = q.listed || t.unlisted < eachMax; !q.counted {
		return
	}
	if !q.listed {
		t.unlisted++
	}
	i, _ := t.find(q.c.Name)
	t.each = slices.Insert(t.each, i, q)
}

// dismiss lets an unlisted queue go.
func (t *tally) dismiss(q *queue) {
	if !q.counted {
		return
	}
	t.unlisted--
	i, _ := t.find(q.c.Name)
	t.each = slices.Delete(t.each, i, i+1)
}

// count takes over what has happened to q.
func (t *tally) count(q *queue, c pqueue.Counters) {
	if !q.counted {
		t.rest = t.rest.Plus(c.Minus(q.tallied))
		q.tallied = c
	}
}

// Rest is what this node has of all queues that Each leaves out.
type Rest struct {
	Queues           int
	Paused, Draining int          // of them
	Roots            int          // of them, whose first item is thought to be here
	Sum              pqueue.Stats // Oldest is that of all; Queue, Mode, Root and Kind say nothing

	after string // name of the last queue that is in it
}

// Each is what this node has of the listed queues, and of the first others that it
// came to know, by name.
func (b *Broker) Each() []pqueue.Stats {
	stats := make([]pqueue.Stats, len(b.tally.each))
	for i, q := range b.tally.each {
		stats[i] = b.statOf(q)
	}
	return stats
}

// Known is how many queues this node knows.
func (b *Broker) Known() int { return len(b.queues) }

// SumUp adds the next most queues to r, which begins empty, and reports whether
// there are more. Between two calls all else may go on. Without more the sums are
// whole.
func (b *Broker) SumUp(r *Rest, most int) (more bool) {
	i, last := b.find(r.after)
	if last {
		i++
	}
	for ; i < len(b.queues) && most > 0; most-- {
		q := b.queues[i]
		i++
		if !q.counted {
			st := b.statOf(q)
			b.tally.count(q, st.Counters)
			r.add(st)
		}
		r.after = q.c.Name
	}
	r.Sum.Counters = b.tally.rest
	return i < len(b.queues)
}

func (r *Rest) add(st pqueue.Stats) {
	r.Queues++
	switch st.Mode.Mode {
	case pqueue.Paused:
		r.Paused++
	case pqueue.Draining:
		r.Draining++
	default:
	}
	if st.Root {
		r.Roots++
	}
	to := &r.Sum
	to.Ready += st.Ready
	to.Delayed += st.Delayed
	to.Leased += st.Leased
	to.Dead += st.Dead
	to.Blocked += st.Blocked
	to.Bytes += st.Bytes
	to.Waiters += st.Waiters
	if st.Oldest != 0 && (to.Oldest == 0 || st.Oldest < to.Oldest) {
		to.Oldest = st.Oldest
	}
}
