package broker

import (
	"slices"

	"github.com/anteroom/anteroom/internal/pqueue"
)

const (
	idleAfter  = 600_000_000 // µs without any use
	idleEvery  = 10_000_000  // µs within which all queues are looked at, a few with each Tick
	roomyEvery = 1_000_000   // µs between two looks for room where there was none
)

// tidySome looks at the next few queues, as many as make all of them in idleEvery.
func (b *Broker) tidySome() {
	if b.looked >= len(b.queues) {
		b.looked = 0
	}
	const ticks = idleEvery / TickEvery
	n := (len(b.queues) + ticks - 1) / ticks
	b.looked = b.tidy(b.looked, min(b.looked+n, len(b.queues)))
}

// makeRoom looks for a queue to forget where there is no room for another.
func (b *Broker) makeRoom() bool {
	if b.crowdedAt != 0 && b.now.Boot < b.crowdedAt+roomyEvery {
		return false // whoever asks for one queue after the other is not to cost a look at all of them each time
	}
	b.crowdedAt = 0
	if b.tidy(0, len(b.queues)); len(b.queues) >= b.c.QueuesMax {
		b.crowdedAt = b.now.Boot
	}
	return b.crowdedAt == 0
}

// tidy forgets those of queues[from:to] that were made on use and are of no use any
// more, and returns where it has ended.
func (b *Broker) tidy(from, to int) int {
	full := len(b.queues) >= b.c.QueuesMax
	kept := slices.DeleteFunc(b.queues[from:to], func(q *queue) bool { return b.forget(q, full) })
	end := from + len(kept)
	b.queues = slices.Delete(b.queues, end, to)
	return end
}

// forget drops what a queue has here, if it is of no use any more, and reports
// whether the queue can go too. In the middle of a round's tree a node that has told
// others of its items must stay, and so must the name of what is in a log.
func (b *Broker) forget(q *queue, full bool) bool {
	if q.listed || q.c.Kind != Memory || b.now.Boot < q.used+idleAfter && !(full && b.now.Boot >= q.used+idleEvery) {
		return false
	}
	if len(q.waiters) > 0 || len(q.held) > 0 || q.watched || len(q.askers.live(b.now.Boot)) > 0 || q.mode.Mode != pqueue.Running {
		return false
	}
	switch r := b.shards[Memory].state.Apply(pqueue.Command{Op: pqueue.OpForget, Queue: q.c.Name, Now: b.now.Clock}); {
	case r.Code == pqueue.Full:
		return false
	case len(r.Stats) == 1:
		b.tally.count(q, r.Stats[0].Counters)
		q.tallied = pqueue.Counters{} // it begins anew
	}
	b.round.need = b.round.need || full && q.touched
	if q.touched {
		return false
	}
	b.tally.dismiss(q)
	return true
}
