package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// joining is a join whose answer waits for another node to keep the place.
type joining struct {
	req   int32
	room  string
	id    qpid.ItemID
	until int64 // true time at which the place is given up
}

// joinWait is for how long, in µs.
const joinWait = 1_000_000

// joinWaits reports whether the answer of h to a request is to wait.
func (w *world) joinWaits(i int32, h *host) bool {
	q := &w.crowd.requests.at[i]
	if q.op != opJoin || !h.up() || q.err != nil || q.answer.State != node.Waiting || q.answer.Forward != (eviction.Member{}) ||
		!h.n.Unkept(q.ticket.Room, q.answer.Ticket.ID) {
		return false
	}
	q.refs++
	w.needTimeout(i)
	h.joins = append(h.joins, joining{i, q.ticket.Room, q.answer.Ticket.ID, w.now + joinWait})
	w.agenda.push(w.now+joinWait, evUnkept, h.index, h.life)
	return true
}

// keptJoins lets the answers go out of those who are kept by now, or whom nobody can keep.
func (w *world) keptJoins(h *host) {
	h.joins = slices.DeleteFunc(h.joins, func(j joining) bool {
		if h.n.Unkept(j.room, j.id) {
			return false
		}
		w.reached.n[reachJoinKept]++
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
		w.respond(i, h, life)
	}
	w.release(i)
}
