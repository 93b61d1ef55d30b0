package simtest

import (
	"errors"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// op is what a visitor asks for.
type op uint8

const (
	opJoin op = iota
	opCheckIn
	opLeave
	opAbandon
	opRefresh
	opEnd
	opVisit
	ops
)

func (o op) String() string {
	return [...]string{"join", "check-in", "leave", "abandon", "refresh", "end", "visit"}[o]
}

// request is one HTTP request on its way to a node and back.
type request struct {
	op        op
	hops      uint8 // times that it was forwarded
	timed     bool  // an evTimeout is on the agenda
	forwarded bool  // its first node does not answer it alone
	again     bool  // it is carried out again when it is answered, see joins.go
	refs      int16 // events that hold it
	room      uint8
	visitor   int32 // none once answered or given up
	first     int32 // host that got it from the visitor
	life      int32 // of that host then
	at        int32 // host that works on it
	session   int32
	judged    int64  // true time of the answer; 0: by a wrong clock; none: it says nothing of the place
	key       uint64 // what was sent is sealed with
	sealed    uint64 // what the answer is sealed with
	ticket    node.Ticket
	pass      node.Pass
	answer    node.Answer
	err       error
	relay     relay
}

// Ways in which a request fails that no node speaks of.
var (
	errRefused = errors.New("simtest: connection refused")
	errReset   = errors.New("simtest: connection lost")
)

// later schedules an event that holds the request.
func (w *world) later(after int64, kind eventKind, i int32) {
	w.crowd.requests.at[i].refs++
	w.agenda.push(w.now+after, kind, i, 0)
}

// submit sends the visitor's request to a node.
func (w *world) submit(v int32, o op) {
	c := &w.crowd
	p := &c.visitors.at[v]
	if !w.o.Load.Sticky || p.tries > 0 || p.traits&cheat != 0 || p.host == none {
		p.host = w.anyHost(none)
	}
	i := c.requests.take()
	q := &c.requests.at[i]
	*q = request{op: o, visitor: v, first: p.host, at: p.host, life: w.hosts[p.host].life, room: p.room, session: p.session, key: p.key, relay: relay{host: none}}
	p.req = i
	switch o {
	case opJoin:
		q.key = 0
		p.id, p.pos, p.gen, p.session = w.newID(), 0, 0, none
		p.ticket = int32(len(c.tickets))
		c.tickets = append(c.tickets, place{id: p.id, joined: p.since, session: none, home: none, room: p.room})
		q.ticket.Room, q.ticket.ID, q.ticket.Quiet = w.o.Rooms[p.room].Name, p.id, p.traits&program != 0
	case opCheckIn, opLeave, opAbandon:
		q.ticket = w.heldTicket(p)
		if o == opAbandon {
			c.tickets[w.ticketOf(q.ticket.ID)].abandoned = true
		}
	default:
		q.pass = w.heldPass(p)
	}
	q.refs++
	if w.o.Load.HTTP.Max == 0 {
		w.reach(i)
		return
	}
	w.agenda.push(w.now+w.o.Load.HTTP.draw(w.rngLoad), evReach, i, 0)
	w.needTimeout(i)
}

func (w *world) needTimeout(i int32) {
	if q := &w.crowd.requests.at[i]; !q.timed {
		q.timed = true
		w.later(w.o.Load.Timeout.Microseconds(), evTimeout, i)
	}
}

// release drops one hold on a request.
func (w *world) release(i int32) {
	q := &w.crowd.requests.at[i]
	q.refs--
	if q.refs == 0 {
		w.crowd.requests.put(i)
	}
}

// reach: the request is at the first node.
func (w *world) reach(i int32) {
	q := &w.crowd.requests.at[i]
	h := &w.hosts[q.first]
	switch {
	case !h.up():
		w.finish(i, errRefused)
	case h.paused > 0:
		w.needTimeout(i)
		h.hold(event{kind: evReach, a: i})
		return // the inbox holds it now
	case h.stopped:
		w.finish(i, errReset)
	default:
		q.life = h.life
		w.work(i, h)
	}
	w.release(i)
}

// work runs the operation at h and sends the answer on its way.
func (w *world) work(i int32, h *host) {
	if w.relayFirst(i, h) {
		return
	}
	life := h.life
	w.execute(i, h)
	if !w.joinWaits(i, h) {
		w.respond(i, h, life)
	}
}

// respond sends the answer of h, which was another life then, on its way.
func (w *world) respond(i int32, h *host, life int32) {
	q := &w.crowd.requests.at[i]
	switch {
	case h.life != life: // it went down over it
		w.needTimeout(i)
		w.finish(i, errReset)
	case (h.index == q.first || h.index == q.relay.host) && q.err == nil && q.answer.Forward != (eviction.Member{}):
		w.forward(i, h)
	case h.index != q.first:
		w.sendBack(i, h)
	case w.standsStill(h, q):
		if !w.askAnother(i, h) {
			w.askedBack(h, q)
			w.sendAnswer(i)
		}
	default:
		w.sendAnswer(i)
	}
}

// forward passes the request on to the node that must answer. h is the first one, or
// who relays for that: another that was asked says where to go on.
func (w *world) forward(i int32, h *host) {
	q := &w.crowd.requests.at[i]
	w.reached.n[reachForward]++
	q.forwarded = true
	to := w.lives[w.lifeOf(q.answer.Forward)].host
	if q.answer.Ticket != (node.Ticket{}) {
		q.ticket = q.answer.Ticket
	}
	q.answer = node.Answer{}
	switch {
	case q.hops == ticket.HopsMax || to == h.index || to == q.first:
		w.reached.n[reachForwardTwice]++
		q.err = ticket.ErrUnavailable
		if h.index != q.first {
			w.sendBack(i, h)
			return
		}
		w.sendAnswer(i)
		return
	case w.wires.dead(h.index, to): // no answer
		q.err = ticket.ErrUnavailable
		if h.index != q.first || !w.askAnother(i, h) {
			w.needTimeout(i)
		}
		return
	}
	if q.hops > 0 {
		w.reached.n[reachForwardOn]++
	}
	if h.index != q.first {
		w.reached.n[reachRelayOn]++
	}
	q.hops, q.at = q.hops+1, to
	w.needTimeout(i)
	w.later(w.wires.delay(w.wires.link(h.index, to)), evForward, i)
}

// forwarded: the request is at the node that must answer.
func (w *world) forwarded(i int32) {
	q := &w.crowd.requests.at[i]
	h := &w.hosts[q.at]
	switch {
	case !h.up():
		q.err = ticket.ErrUnavailable
		w.sendBack(i, h)
	case h.paused > 0:
		h.hold(event{kind: evForward, a: i})
		return
	case h.stopped:
		q.err = ticket.ErrUnavailable
		w.sendBack(i, h)
	default:
		w.work(i, h)
	}
	w.release(i)
}

// sendBack returns a forwarded request's answer to who asked for it: the first node, or
// who relays for that.
func (w *world) sendBack(i int32, from *host) {
	q := &w.crowd.requests.at[i]
	q.at = q.first
	if q.relay.host != none && q.relay.host != from.index {
		q.at = q.relay.host
	}
	if !w.wires.dead(from.index, q.at) {
		w.later(w.wires.delay(w.wires.link(from.index, q.at)), evBack, i)
	}
}

// back: the answer of a forwarded request is at the node that asked for it.
func (w *world) back(i int32) {
	q := &w.crowd.requests.at[i]
	h := &w.hosts[q.at]
	switch {
	case q.at == q.first && h.life != q.life:
		w.finish(i, errReset)
	case !h.up(): // who relays: nobody hears of it
	case h.paused > 0:
		h.hold(event{kind: evBack, a: i})
		return
	case q.err == nil && q.answer.Forward != (eviction.Member{}):
		w.forward(i, h)
	case q.at != q.first:
		w.sendBack(i, h)
	case q.relay.host != none:
		w.relayed(i, h)
	case errors.Is(q.err, ticket.ErrUnavailable) && w.askAnother(i, h):
	default:
		w.sendAnswer(i)
	}
	w.release(i)
}

// sendAnswer puts the answer on its way to the visitor.
func (w *world) sendAnswer(i int32) {
	q := &w.crowd.requests.at[i]
	h := &w.hosts[q.first]
	if q.sealed == 0 {
		q.sealed = q.key
	}
	if q.op == opCheckIn && q.forwarded && errors.Is(q.err, ticket.ErrUnavailable) { // as package loop does
		t := h.n.HeardOf(h.clock.read(w.now), q.ticket)
		q.answer, q.err = node.Answer{State: node.Waiting, Ticket: t, Position: int(t.Position), Refresh: time.Second}, nil
		if q.judged = none; t.Issued != q.ticket.Issued { // else it is too old, and nobody promises anything
			q.judged = w.now
			if !w.passClockRight(h) {
				q.judged = 0
			}
		}
		w.drain(h)
		q = &w.crowd.requests.at[i]
	}
	if w.phase == storm && chance(w.rngLoad, w.o.Load.Lost, 1000) {
		w.reached.n[reachLostAnswer]++
		w.needTimeout(i)
		return
	}
	if w.o.Load.HTTP.Max == 0 && h.paused == 0 {
		w.finish(i, q.err)
		return
	}
	w.needTimeout(i)
	w.later(w.o.Load.HTTP.draw(w.rngLoad), evAnswer, i)
}

// answer: the answer leaves the first node, if that is not paused.
func (w *world) answer(i int32) {
	q := &w.crowd.requests.at[i]
	h := &w.hosts[q.first]
	switch {
	case h.life != q.life:
		w.finish(i, errReset)
	case h.paused > 0:
		w.reached.n[reachPausedAnswer]++
		h.hold(event{kind: evAnswer, a: i})
		return
	default:
		w.finish(i, q.err)
	}
	w.release(i)
}

// refuse ends what waited in a process that died.
func (w *world) refuse(e event) {
	switch e.kind {
	case evMessage:
		w.wires.land(e.a)
	case evReach, evAnswer, evBack:
		if q := &w.crowd.requests.at[e.a]; e.kind != evBack || q.at == q.first {
			w.finish(e.a, errReset)
		}
		w.release(e.a)
	case evJoined:
		w.agenda.push(w.now, evJoined, e.a, none)
	case evForward:
		q := &w.crowd.requests.at[e.a]
		q.err = ticket.ErrUnavailable
		w.sendBack(e.a, &w.hosts[q.at])
		w.release(e.a)
	default: // nobody waits for it
	}
}

// timeout: the visitor waits no longer.
func (w *world) timeout(i int32) {
	w.finish(i, errTimeout)
	w.release(i)
}

var errTimeout = errors.New("simtest: no answer")

// finish tells the visitor, unless it has given up on the request.
func (w *world) finish(i int32, err error) {
	q := &w.crowd.requests.at[i]
	v := q.visitor
	if v == none {
		return
	}
	q.visitor = none
	w.crowd.visitors.at[v].req = none
	w.hear(v, i, err)
}
