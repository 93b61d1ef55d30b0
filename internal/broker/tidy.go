package broker

import (
	"slices"

	"github.com/anteroom/anteroom/internal/pqueue"
)

const (
	idleAfter  = 600_000_000 // µs without any use
	idleEvery  = 10_000_000  // µs within which all queues are looked at, a few with each Tick
	roomyEvery = 1_000_000   // µs between two looks for room at all of them, where there was none
	roomyMax   = 1000        // queues looked at for room at a time
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

// makeRoom looks for queues to forget where there is no room for another. Whoever
// asks for one after the other has it go on where it was, and rest when it has been
// at all of them in vain.
func (b *Broker) makeRoom() bool {
	if b.now.Boot < b.roomyAt {
		return false
	}
	if b.sought >= len(b.queues) {
		b.sought = 0
	}
	b.sought = b.tidy(b.sought, min(b.sought+roomyMax, len(b.queues)))
	if len(b.queues) < b.c.QueuesMax {
		return true
	}
	if b.sought == len(b.queues) {
		b.roomyAt = b.now.Boot + roomyEvery
	}
	return false
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
	idle := b.now.Boot >= max(q.used, q.filled)+idleAfter || full && b.now.Boot >= q.used+idleEvery
	if q.listed || q.c.Kind != Memory || !idle {
		return false
	}
	if len(q.waiters) > 0 || len(q.held) > 0 || q.watched || len(q.askers.live(b.now.Boot)) > 0 || q.mode.Mode != pqueue.Running || q.set.Stamp != 0 {
		return false
	}
	memory := b.shards[Memory].state
	if !memory.Bare(q.c.Name) {
		q.filled = b.now.Boot
		return false
	}
	if r := memory.Apply(pqueue.Command{Op: pqueue.OpForget, Queue: q.c.Name, Now: b.now.Clock}); len(r.Stats) == 1 {
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
