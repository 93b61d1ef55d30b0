package broker

import (
	"fmt"

	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// Watch begins or ends the watch of a queue at this node: Ready.Seen then has
// what happens to its items on all nodes. It fails if there is no such queue.
func (b *Broker) Watch(now Time, name string, on bool) pqueue.Code {
	b.read(now)
	q, code := b.queue(name), pqueue.OK
	if q == nil && on {
		q, code = b.use(name)
	}
	if q == nil {
		return code
	}
	if q.watched = on; on {
		q.told = 0
		b.activate(q)
		b.interested(q)
	}
	return pqueue.OK
}

func (b *Broker) onWatch(m Message) error {
	q, code := b.use(m.Queue)
	if code != pqueue.OK {
		return fmt.Errorf("broker: no room for queue %q, which %v watches", m.Queue, m.From)
	}
	q.watchers.add(m.From, b.now.Boot+min(m.For, interestMax))
	return nil
}

// interested tells the others that somebody here waits for items of q, or
// watches it, as often as they need to hear it.
func (b *Broker) interested(q *queue) {
	if q.told != 0 && b.now.Boot < q.told+interestEvery {
		return
	}
	q.told, q.used = b.now.Boot, b.now.Boot
	for _, m := range b.others() {
		if len(q.waiters) > 0 {
			b.send(Message{Kind: MsgWaiting, To: m, Queue: q.c.Name, For: 2*interestEvery + interestEvery/2})
		}
		if q.watched {
			b.send(Message{Kind: MsgWatch, To: m, Queue: q.c.Name, For: 2*interestEvery + interestEvery/2})
		}
	}
}

// tellAskers wakes those who wait for an item that has come, here and elsewhere.
func (b *Broker) tellAskers(q *queue) {
	b.wake(q)
	if len(q.askers) == 0 || b.now.Boot < q.wokeAt+wakeEvery {
		return
	}
	q.wokeAt = b.now.Boot
	for _, m := range q.askers.live(b.now.Boot) {
		b.send(Message{Kind: MsgWake, To: m, Queue: q.c.Name})
	}
}

// tellWatchers passes a change on.
func (b *Broker) tellWatchers(q *queue, c pqueue.Change) {
	b.seen(b.self.Name, c)
	if len(q.watchers) == 0 {
		return
	}
	for _, m := range q.watchers.live(b.now.Boot) {
		b.send(Message{Kind: MsgChange, To: m, Change: c})
	}
}

func (b *Broker) seen(node qpid.NodeID, c pqueue.Change) {
	if q := b.queue(c.Queue); q != nil && q.watched {
		b.out.Seen = append(b.out.Seen, Seen{node, q.c.Kind, c})
	}
}
