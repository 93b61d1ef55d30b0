package simtest

import (
	"errors"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// relay is what a request remembers when another node is asked for it by the first one,
// as loop.Loop does it.
type relay struct {
	host   int32 // who is asked; none
	member eviction.Member
	tried  bool // once a request
	own    node.Answer
	err    error
	sealed uint64
	judged int64
}

// relayWithin is how long who was asked is given, in microseconds.
const relayWithin = 1_000_000

// relayFirst sees to it that nobody joins at a node at which they would stand still, if
// another answers, and that such a node answers for no other.
func (w *world) relayFirst(i int32, h *host) bool {
	q := &w.crowd.requests.at[i]
	switch {
	case h.index == q.relay.host && w.aside(h):
		q.answer, q.err = node.Answer{}, ticket.ErrUnavailable
		w.sendBack(i, h)
		return true
	case h.index == q.first && q.op == opJoin && w.aside(h):
		return w.askAnother(i, h)
	}
	return false
}

func (w *world) aside(h *host) bool { return h.n.Aside(h.clock.read(w.now)) }

// standsStill reports whether h, where the visitor asked, can do nothing for them.
func (w *world) standsStill(h *host, q *request) bool {
	if !w.aside(h) {
		h.relays.Clear()
		return false
	}
	if q.op == opJoin || q.op == opAbandon || q.op == opEnd {
		return false
	}
	if q.err != nil {
		return errors.Is(q.err, ticket.ErrUnavailable)
	}
	switch q.op {
	case opCheckIn, opLeave:
		return q.answer.State == node.Waiting || q.answer.State == node.Called && h.seen.rooms[q.room].LeaseUntil <= h.clock.read(w.now).Boot
	case opRefresh:
		return q.answer.Pass == q.pass
	default:
		return false
	}
}

// askAnother has h, where the visitor asked, ask another node, if it knows of one.
func (w *world) askAnother(i int32, h *host) bool {
	q := &w.crowd.requests.at[i]
	if q.relay.tried {
		return false
	}
	m, ok := h.relays.Pick(h.clock.read(w.now).Boot, h.seen.status.Reckons.Exclude, w.lives[h.life].member)
	if !ok {
		return false
	}
	to := w.lives[w.lifeOf(m)].host
	q.relay = relay{host: to, member: m, tried: true, own: q.answer, err: q.err, sealed: q.sealed, judged: q.judged}
	if q.err == nil && q.answer.State != node.Admitted && q.answer.Ticket != (node.Ticket{}) {
		q.ticket = q.answer.Ticket
	}
	w.reached.n[reachRelay]++
	q.answer, q.err, q.hops = node.Answer{}, nil, 0
	w.needTimeout(i)
	if w.wires.dead(h.index, to) || w.wires.dead(to, h.index) {
		q.err, q.at = ticket.ErrUnavailable, q.first
		w.later(relayWithin, evBack, i)
		return true
	}
	q.at = to
	w.later(w.wires.delay(w.wires.link(h.index, to)), evForward, i)
	return true
}

// relayed: what the other node has said is at h, where the visitor asked.
func (w *world) relayed(i int32, h *host) {
	q := &w.crowd.requests.at[i]
	r := q.relay
	q.relay.host = none
	ok := !errors.Is(q.err, ticket.ErrUnavailable)
	h.relays.Answered(r.member, ok)
	switch {
	case ok:
		w.reached.n[reachRelayed]++
		w.sendAnswer(i)
	case q.op == opJoin:
		w.work(i, h)
	default:
		q.answer, q.err, q.sealed, q.judged = r.own, r.err, r.sealed, r.judged
		w.askedBack(h, q)
		w.sendAnswer(i)
	}
}

// askedBack has the visitor ask again soon, if nobody answered for h yet.
func (w *world) askedBack(h *host, q *request) {
	if q.err == nil && q.answer.State == node.Waiting {
		q.answer.Refresh = h.relays.Refresh(h.clock.read(w.now).Boot, q.answer.Refresh)
	}
}
