package pqueue

import (
	"cmp"

	"github.com/anteroom/anteroom/qpid"
)

// forwardEvery is how soon a dead letter is tried again for which there was no room
// in the queue where it should be, in µs.
const forwardEvery = 60_000_000

// die makes a dead letter of an item.
func (q *queue) die(i *item, k Kind, was told) {
	q.move(i, Dead)
	q.tell(k, i, was)
	q.counters.Died++
	q.tell(HasDied, i, told{})
	q.goOn(i)
	q.trimDead()
}

// goOn moves a dead letter into the dead letter queue, if there is one. It leaves q
// in the same step: nobody finds it in both, nor in neither. If it cannot go there
// it stays, and is tried again.
func (q *queue) goOn(i *item) {
	if q.limits.DeadTo == "" {
		i.until = 0
		q.shard.due.set(i, 0)
		return
	}
	to, now := q.shard.byName[q.limits.DeadTo], q.shard.now
	if !to.takes(i) {
		i.until = now + forwardEvery
		q.shard.due.set(i, i.until)
		return
	}
	q.finish(i)
	to.enter(i.letter(to))
}

// letter is what i is in the dead letter queue.
func (i *item) letter(to *queue) *item {
	return &item{
		queue: to, id: i.id, priority: i.priority, stamp: to.shard.now, inserted: i.inserted, reason: i.reason, payload: i.payload,
		origin: cmp.Or(i.origin, i.queue.name), key: i.key, deadline: deadline{place: -1},
	}
}

// takes reports whether dead letter i of another queue can go into q.
func (q *queue) takes(i *item) bool {
	return q != nil && q.mode.Mode != Draining && !q.full(i.letter(q)) && q.items[q.ids[i.id]] == nil
}

// crowded reports whether i cannot become a dead letter: it cannot go into the dead
// letter queue, and as many wait for that already as may.
func (q *queue) crowded(i *item) bool {
	return q.limits.DeadTo != "" && q.dead.Len() >= q.limits.DeadMax && !q.shard.byName[q.limits.DeadTo].takes(i)
}

// forward has the dead letters of q go on at once where they now should be.
func (q *queue) forward() {
	q.dead.Ascend(func(w qpid.Weight) bool {
		i := q.items[NumberOf(w)]
		if i.until = 0; q.limits.DeadTo != "" {
			i.until = max(q.shard.now, 1)
		}
		q.shard.due.set(i, i.until)
		return true
	})
}

// trimDead drops the longest dead beyond the bound, but for those that wait for room
// elsewhere.
func (q *queue) trimDead() {
	for q.limits.DeadTo == "" && q.dead.Len() > q.limits.DeadMax {
		w, _ := q.dead.Min()
		q.finish(q.items[NumberOf(w)])
	}
}
