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
// place, and those who come in, or have a pass renewed, when one keeps their visit, and the disk: who has been told that they wait
// is not passed over if this node dies then, nor does a slot of theirs go missing. The lock of
// the node guards it.
//
// Invariant: a channel in it is open, and somebody waits for it, or did until joinWait
// was over: no more than there are requests.
type joins struct {
	waiting map[qpid.ItemID]joining
}

type joining struct {
	room   string
	comes  bool // in,
	renews bool // has a pass renewed; else it joins
	done   chan struct{}
}

// joinWait is for how long somebody is kept waiting for that. Then the place is given up
// again, and they are asked to come back; who was to come in is called until then.
const joinWait = time.Second

// held reports whether somebody waits yet for another node.
func (w *joining) held(n *node.Node, id qpid.ItemID) bool {
	switch {
	case w.comes:
		return n.Unguarded(w.room, id)
	case w.renews:
		return n.Shortened(w.room, id)
	}
	return n.Unkept(w.room, id)
}

// watch returns what is closed when the answer to q may go out; nil: it may at once.
func (j *joins) watch(n *node.Node, q *ticket.Request, a *ticket.Answer, err error) <-chan struct{} {
	if err != nil || a.Forward != (eviction.Member{}) || q.Op != ticket.Join && q.Op != ticket.Leave && q.Op != ticket.Refresh {
		return nil
	}
	id, w := a.Ticket.ID, joining{room: a.Ticket.Room, comes: a.State == ticket.Called}
	switch {
	case q.Op == ticket.Refresh:
		id, w = a.Pass.ID, joining{room: a.Pass.Room, renews: true}
	case a.State == ticket.Admitted || !w.comes && q.Op == ticket.Leave:
		return nil
	}
	if !w.held(n, id) {
		return nil
	}
	if j.waiting == nil {
		j.waiting = make(map[qpid.ItemID]joining)
	}
	if twice, ok := j.waiting[id]; ok {
		return twice.done
	}
	w.done = make(chan struct{})
	j.waiting[id] = w
	return w.done
}

// kept lets the answers go out of those who are kept by now.
func (j *joins) kept(n *node.Node, places []node.Place) {
	if len(j.waiting) == 0 {
		return
	}
	for _, p := range places {
		if w, ok := j.waiting[p.ID]; ok && w.room == p.Room && !w.held(n, p.ID) {
			j.leave(p.ID)
		}
	}
}

// look lets those go out for whom there is nobody any more who might keep them.
func (j *joins) look(n *node.Node) {
	for id, w := range j.waiting {
		if !w.held(n, id) {
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
	comes, renews := a.State == ticket.Called, q.Op == ticket.Refresh
	select {
	case <-kept:
		switch {
		case renews:
			return l.renewed(q, a)
		case !comes:
			return a, nil
		}
		var in ticket.Answer
		if stopped := l.order(func(n *node.Node, now eviction.Time) { in, err = n.Leave(now, a.Ticket) }); stopped != nil {
			return ticket.Answer{}, stopped
		}
		if q.Op == ticket.Join && (err != nil || in.Forward != (eviction.Member{})) {
			return a, nil // they have a place now, and ask as everybody does
		}
		return in, err
	case <-l.done:
		return ticket.Answer{}, errStopped
	case <-late.C:
		err = ticket.ErrUnavailable
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = l.order(func(n *node.Node, now eviction.Time) {
		switch {
		case renews:
			l.joins.leave(a.Pass.ID)
			return
		case !comes:
			n.Undo(now, a.Ticket)
		}
		l.joins.leave(a.Ticket.ID)
	})
	if (comes || renews) && ctx.Err() == nil {
		return a, nil
	}
	return ticket.Answer{}, err
}

// renewed is the answer to who has a pass renewed that the disk has for longer by now than it
// had when that answered.
func (l *Loop) renewed(q *ticket.Request, a ticket.Answer) (again ticket.Answer, err error) {
	if stopped := l.order(func(n *node.Node, now eviction.Time) { again, err = n.Refresh(now, q.Pass) }); stopped != nil {
		return ticket.Answer{}, stopped
	}
	if err != nil || again.Forward != (eviction.Member{}) {
		return a, nil // it is as good as it was
	}
	return again, nil
}
