package simtest

import (
	"errors"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// execute runs the request's operation at h. The answer is in the request;
// h may be down afterwards.
func (w *world) execute(i int32, h *host) {
	q := &w.crowd.requests.at[i]
	q.answer, q.err = node.Answer{}, nil
	if q.key != 0 && h.keys&q.key == 0 {
		q.err = ticket.ErrUnavailable
		if w.keys.live&q.key == 0 {
			q.err = errNoKey
		}
		return
	}
	now := h.clock.read(w.now)
	switch q.op {
	case opJoin:
		q.answer, q.err = h.n.Join(now, q.ticket.Room, q.ticket.ID, q.ticket.Quiet)
	case opCheckIn:
		q.answer, q.err = h.n.CheckIn(now, q.ticket)
	case opLeave:
		q.answer, q.err = h.n.Leave(now, q.ticket)
	case opAbandon:
		q.answer, q.err = h.n.Abandon(now, q.ticket)
	case opRefresh:
		q.answer, q.err = h.n.Refresh(now, q.pass)
	case opEnd:
		q.answer, q.err = h.n.End(now, q.pass)
	default:
		q.answer, q.err = h.n.Visit(now, q.pass)
	}
	q.sealed = h.activeKey()
	w.checker.ops[q.op]++
	w.note('o', uint64(h.index)<<8|uint64(q.op), uint64(q.answer.State)<<32|uint64(q.answer.Position))
	if w.trace.print != nil {
		w.printf("%s %v %s: %s", h.name, q.op, w.shown(q), w.outcome(q))
	}
	w.judge(h, q)
	w.drain(h)
	w.tell(h, q)
	w.heard(h, q)
	if q.err == nil && q.answer.State != node.Waiting && q.op <= opLeave {
		w.trap(h, mOther, inAnswer)
	}
}

// hear is the visitor's reaction to the answer of request i, or to err.
func (w *world) hear(v, i int32, err error) {
	q := &w.crowd.requests.at[i]
	p := &w.crowd.visitors.at[v]
	if err != nil {
		w.hearError(v, p, q, err)
		return
	}
	p.tries = 0
	switch q.op {
	case opJoin, opCheckIn, opLeave:
		w.hearPlace(v, p, q)
	case opAbandon:
		w.reached.n[reachCancel]++
		w.done(v)
	case opRefresh:
		w.takePass(p, &q.answer, q)
		w.browseOn(v, p)
	case opVisit:
		w.browseOn(v, p)
	case opEnd:
		if p.traits&replays != 0 {
			w.copy(v, cheat)
		}
		w.done(v)
	default:
		panic("simtest: an answer to nothing")
	}
}

// hearPlace follows what the visitor was told of its place.
func (w *world) hearPlace(v int32, p *visitor, q *request) {
	a := &q.answer
	if a.State == node.Admitted {
		w.letIn(v, p, q)
		return
	}
	w.takeTicket(p, a, q)
	if q.judged != none {
		p.told = q.judged
	}
	if a.State == node.Called && p.traits&noShow == 0 {
		p.stage = called
		w.wakeIn(v, w.thinkTime(p))
		return
	}
	p.stage = waiting
	wait := a.Refresh.Microseconds()
	if wait <= 0 {
		w.fail("answer", "a visitor is told to ask again after %v", a.Refresh)
		return
	}
	if p.traits&program != 0 {
		w.wakeIn(v, quietLooks)
		return
	}
	wait = wait*9/10 + w.rngLoad.Int64N(wait/5+1)
	switch {
	case p.traits&comesEarly != 0 && chance(w.rngLoad, 1, 2):
		wait /= 1 + w.rngLoad.Int64N(8)
	case p.traits&comesLate != 0 && chance(w.rngLoad, 1, 3):
		p.traits &^= comesLate
		wait *= 2 + w.rngLoad.Int64N(5)
	}
	w.wakeIn(v, wait)
}

// thinkTime is how long someone takes to follow the call.
func (w *world) thinkTime(p *visitor) int64 {
	if p.traits&comesLate != 0 && chance(w.rngLoad, 1, 3) {
		p.traits &^= comesLate
		claim := w.o.Rooms[p.room].ClaimWindow.Microseconds()
		return claim/2 + w.rngLoad.Int64N(claim)
	}
	return w.rngLoad.Int64N(100_000)
}

// letIn begins the visit.
func (w *world) letIn(v int32, p *visitor, q *request) {
	if p.traits&replays != 0 && q.op == opLeave { // a copy of the used ticket
		w.copy(v, cheat)
		p = &w.crowd.visitors.at[v]
		w.crowd.keep(p)
	}
	p.stage = inside
	p.session = q.session
	w.takePass(p, &q.answer, q)
	if p.traits&(cheat|copied) == 0 {
		w.crowd.served++
	}
	p.leaveAt = w.now + w.o.Load.Browse.draw(w.rngLoad)
	w.browseOn(v, p)
}

// browseOn schedules the next request of a visit.
func (w *world) browseOn(v int32, p *visitor) {
	if p.traits&cheat != 0 {
		w.done(v)
		return
	}
	session := w.o.Rooms[p.room].Session.Microseconds()
	next := session*3/10 + w.rngLoad.Int64N(session/2+1)
	if p.traits&comesLate != 0 && chance(w.rngLoad, 1, 4) {
		next *= 3
	}
	w.wakeIn(v, max(1, min(next, p.leaveAt-w.now)))
}

func (w *world) takeTicket(p *visitor, a *node.Answer, q *request) {
	t := &a.Ticket
	if t.ID != p.id {
		p.id, p.ticket = t.ID, w.ticketOf(t.ID)
	}
	p.home, p.gen, p.pos, p.issued, p.stamp = w.lifeOf(t.Home), t.Gen, t.Position, t.Issued, t.Stamp
	for i := range min(int(p.gen), len(p.past)) {
		p.past[i] = w.formerHome(t.Past[i])
	}
	p.key = q.sealed
}

func (w *world) takePass(p *visitor, a *node.Answer, q *request) {
	s := &a.Pass
	p.home, p.born, p.expires, p.stamp = none, s.Home.Born, s.Expires, s.Stamp
	if s.Home != (eviction.Account{}) { // a room that lets everyone through has no slots to back a pass
		p.home = w.lifeOf(s.Home.Member)
	}
	p.key = q.sealed
}

// hearError is the visitor's reaction to a refusal, or to silence.
func (w *world) hearError(v int32, p *visitor, q *request, err error) {
	p.tries = min(p.tries+1, 200)
	soon := int64(p.tries)*50_000 + w.rngLoad.Int64N(400_000)
	switch {
	case p.traits&cheat != 0:
		if errors.Is(err, ticket.ErrUsed) {
			w.reached.n[reachSpent]++
		}
		w.done(v)
	case q.op == opAbandon || q.op == opEnd && p.tries > 3:
		w.done(v)
	case errors.Is(err, ticket.ErrExpired), errors.Is(err, ticket.ErrUsed), errors.Is(err, errNoKey):
		w.startOver(v, p, q, err)
	case errors.Is(err, ticket.ErrNotCalled):
		p.stage = waiting
		w.wakeIn(v, soon)
	case errors.Is(err, ticket.ErrPassExpired):
		w.reached.n[reachPassExpired]++
		w.done(v)
	case p.stage == inside && w.now > p.leaveAt+5_000_000:
		w.done(v)
	default: // no node, or none that can: try another
		w.wakeIn(v, min(soon, 2_000_000))
	}
}

// startOver joins anew, twice at most.
func (w *world) startOver(v int32, p *visitor, q *request, err error) {
	if errors.Is(err, ticket.ErrExpired) {
		w.checkKeptFor(p, q)
		w.reached.n[reachTicketExpired]++
	}
	if p.stage == inside || p.again >= 2 || p.traits&copied != 0 {
		w.done(v)
		return
	}
	p.again++
	p.stage, p.tries, p.key = coming, 0, 0
	w.wakeIn(v, w.rngLoad.Int64N(500_000))
}

// nextTake calls a deleteMin at a random node in each room that has them.
func (w *world) nextTake() {
	if w.phase >= whole {
		return
	}
	for r := range w.o.Rooms {
		h := &w.hosts[w.anyHost(none)]
		if w.o.Rooms[r].Algorithm != eviction.ByQPID || !h.running() {
			continue
		}
		frozen := h.n.Status().Frozen
		op, err := h.n.DeleteMin(h.clock.read(w.now), w.o.Rooms[r].Name)
		w.printf("%s deleteMin %s: %v %v", h.name, w.o.Rooms[r].Name, op, err)
		if err == nil {
			w.checker.takeCalled(w, h, op)
			w.reached.n[reachTake]++
			if frozen {
				w.reached.n[reachTakeFrozen]++
			}
		}
		w.drain(h)
	}
	mean := int64(60_000_000 / w.o.Load.Takes)
	w.agenda.push(w.now+1+w.rngLoad.Int64N(2*mean), evTake, 0, 0)
}
