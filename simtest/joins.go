package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// joining is a join whose answer waits for another node to keep the place, or the visit of
// one who comes in.
type joining struct {
	req   int32
	room  string
	id    qpid.ItemID
	until int64 // true time at which the place is given up
	comes bool  // in
}

// held reports whether it waits yet.
func (j *joining) held(n *node.Node) bool {
	if j.comes {
		return n.Unguarded(j.room, j.id)
	}
	return n.Unkept(j.room, j.id)
}

// joinWait is for how long, in µs.
const joinWait = 1_000_000

// joinWaits reports whether the answer of h to a request is to wait.
func (w *world) joinWaits(i int32, h *host) bool {
	q := &w.crowd.requests.at[i]
	if q.op != opJoin && q.op != opLeave || !h.up() || q.err != nil || q.answer.State == node.Admitted || q.answer.Forward != (eviction.Member{}) {
		return false
	}
	j := joining{i, q.ticket.Room, q.answer.Ticket.ID, w.now + joinWait, q.answer.State == node.Called}
	if q.op == opLeave && !j.comes || !j.held(h.n) {
		return false
	}
	q.refs++
	w.needTimeout(i)
	h.joins = append(h.joins, j)
	w.agenda.push(w.now+joinWait, evUnkept, h.index, h.life)
	return true
}

// keptJoins lets the answers go out of those who are kept by now, or whom nobody can keep.
func (w *world) keptJoins(h *host) {
	h.joins = slices.DeleteFunc(h.joins, func(j joining) bool {
		if j.held(h.n) {
			return false
		}
		w.reached.n[reachJoinKept]++
		if j.comes {
			w.reached.n[reachVisitKept]++
			q := &w.crowd.requests.at[j.req]
			q.ticket, q.again = q.answer.Ticket, true
		}
		w.agenda.push(w.now, evJoined, j.req, h.life)
		return true
	})
}

// unkept gives up the places that nobody has kept in time.
func (w *world) unkept(h *host, life int32) {
	if h.life != life {
		return
	}
	if h.paused > 0 {
		h.hold(event{kind: evUnkept, a: h.index, b: life})
		return
	}
	var late []joining
	h.joins = slices.DeleteFunc(h.joins, func(j joining) bool {
		if w.now < j.until {
			return false
		}
		late = append(late, j)
		return true
	})
	for _, j := range late {
		q := &w.crowd.requests.at[j.req]
		if j.comes { // called, until they come
			w.agenda.push(w.now, evJoined, j.req, life)
			continue
		}
		if h.life == life {
			h.n.Undo(h.clock.read(w.now), q.answer.Ticket)
			w.drain(h)
		}
		w.reached.n[reachJoinUnkept]++
		q.answer, q.err = node.Answer{}, ticket.ErrUnavailable
		w.agenda.push(w.now, evJoined, j.req, life)
	}
}

// joined answers a join that has waited at a life of its host.
func (w *world) joined(i, life int32) {
	q := &w.crowd.requests.at[i]
	h := &w.hosts[q.at]
	switch {
	case (h.life != life || !h.up()) && q.at == q.first:
		w.finish(i, errReset)
	case h.life != life || !h.up(): // who asked for it hears nothing
	case h.paused > 0:
		h.hold(event{kind: evJoined, a: i, b: life})
		return
	default:
		if q.again { // with the pass
			op, before, judged := q.op, q.answer, q.judged
			q.op, q.again = opLeave, false
			w.execute(i, h)
			q = &w.crowd.requests.at[i]
			if op == opJoin && (q.err != nil || q.answer.Forward != (eviction.Member{})) {
				q.answer, q.err, q.judged = before, nil, judged // they have a place now, and ask as everybody does
			}
			q.op = op
		}
		w.respond(i, h, life)
	}
	w.release(i)
}
