package loop

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// joins are those who have joined here and are told so when another node keeps their
// place: who has been told that they wait is not passed over if this node dies then. The
// lock of the node guards it.
//
// Invariant: a channel in it is open, and somebody waits for it, or did until joinWait
// was over: no more than there are requests.
type joins struct {
	waiting map[qpid.ItemID]joining
}

type joining struct {
	room string
	done chan struct{}
}

// joinWait is for how long a newcomer is kept waiting for that. Then the place is given up
// again, and they are asked to come back.
const joinWait = time.Second

// watch returns what is closed when the answer to q may go out; nil: it may at once.
func (j *joins) watch(n *node.Node, q *ticket.Request, a *ticket.Answer, err error) <-chan struct{} {
	if q.Op != ticket.Join || err != nil || a.State != ticket.Waiting || a.Forward != (eviction.Member{}) || !n.Unkept(q.Room, a.Ticket.ID) {
		return nil
	}
	if j.waiting == nil {
		j.waiting = make(map[qpid.ItemID]joining)
	}
	w, twice := j.waiting[a.Ticket.ID]
	if !twice {
		w = joining{q.Room, make(chan struct{})}
		j.waiting[a.Ticket.ID] = w
	}
	return w.done
}

// kept lets the answers go out of those who are kept by now.
func (j *joins) kept(n *node.Node, places []node.Place) {
	if len(j.waiting) == 0 {
		return
	}
	for _, p := range places {
		if w, ok := j.waiting[p.ID]; ok && w.room == p.Room {
			j.leave(p.ID)
		}
	}
}

// look lets those go out for whom there is nobody any more who might keep them.
func (j *joins) look(n *node.Node) {
	for id, w := range j.waiting {
		if !n.Unkept(w.room, id) {
			j.leave(id)
		}
	}
}

func (j *joins) leave(id qpid.ItemID) {
	if w, ok := j.waiting[id]; ok {
		close(w.done)
		delete(j.waiting, id)
	}
}

// joined returns the answer to q when it may go out. A place that nobody keeps in time is
// no place: it is given up.
func (l *Loop) joined(ctx context.Context, q *ticket.Request, a ticket.Answer, kept <-chan struct{}, err error) (ticket.Answer, error) {
	if kept == nil {
		return a, err
	}
	late := time.NewTimer(joinWait)
	defer late.Stop()
	select {
	case <-kept:
		return a, nil
	case <-l.done:
		return ticket.Answer{}, errStopped
	case <-late.C:
		err = ticket.ErrUnavailable
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = l.order(func(n *node.Node, now eviction.Time) {
		l.joins.leave(a.Ticket.ID)
		n.Undo(now, a.Ticket)
	})
	return ticket.Answer{}, err
}
