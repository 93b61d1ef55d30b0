package simtest

import (
	"errors"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// judge looks at the answer that h's node has just given.
func (w *world) judge(h *host, q *request) {
	w.checkJudge(h, q)
	w.checkFound(h, q)
	if q.answer.Forward != (eviction.Member{}) {
		return
	}
	if q.judged = w.now; !w.clockRight(h) || !w.passClockRight(h) { // what it says, it says of another time
		q.judged = 0
	}
	if q.err != nil {
		return
	}
	a := &q.answer
	switch q.op {
	case opJoin:
		t := &w.crowd.tickets[w.ticketOf(q.ticket.ID)]
		t.stamp = a.Ticket.Stamp
		if a.State == node.Admitted {
			t.stamp = a.Pass.Stamp
		}
		t.settle(w, h)
		w.checkStamp(h, t)
		if a.State != node.Admitted && t.state == unqueued {
			t.state = queued
		}
	case opEnd:
		w.visitEnded(h, q)
		return
	case opVisit:
		w.honoured(h, q)
		return
	case opAbandon:
		return
	case opRefresh:
		w.refreshed(h, q)
		return
	default: // check-in and leave: below
	}
	if a.State == node.Admitted {
		w.admitted(h, q)
		return
	}
	if a.Ticket.ID != q.ticket.ID {
		w.restamped(h, q.ticket.ID, a.Ticket.Weight())
		w.reached.n[reachStandsFor]++
	}
	w.checkPosition(h, q)
	w.checkPatience(h, q)
	if w.told != nil {
		w.told(q)
	}
	t := &w.crowd.tickets[w.ticketOf(a.Ticket.ID)]
	if t.state == parked && t.home == h.index && a.State == node.Waiting {
		t.state = queued
		w.reached.n[reachBackFromParked]++
	}
	if a.Ticket.Gen > t.gen {
		t.gen = a.Ticket.Gen
		if t.home != h.index && w.lifeOf(a.Ticket.Home) == h.life { // of two nodes that had taken it over this one goes on with it
			t.allow += w.lostTo(t, h)
			t.settle(w, h)
			t.touched = true
		}
		for i := range min(int(t.gen), len(t.past)) {
			t.past[i] = w.formerHome(a.Ticket.Past[i])
		}
	}
	w.checkGhost(h, t, a.Ticket.Gen)
}

// S1, whose clock counts. A node whose clock no quorum has measured in this life,
// or that knows it to be off, lets nobody in, extends nothing, and says of no
// pass whether it is good: by a clock that is behind, passes outlive the slots
// that are made again in their place.
func (w *world) checkJudge(h *host, q *request) {
	if h.seen.vouched && !h.seen.status.Quarantined || q.answer.Forward != (eviction.Member{}) {
		return
	}
	if st := h.n.Status(); st.Installed != h.seen.status.Installed && st.Grade >= eviction.Primary && !st.Quarantined {
		return // by the wave that the request itself made
	}
	ofPass := q.op == opVisit || q.op == opRefresh || q.op == opEnd
	if ofPass && (q.err == nil || errors.Is(q.err, ticket.ErrPassExpired)) || q.err == nil && q.answer.State == node.Admitted {
		w.fail("S1", "%s answers a %v by a clock that nobody has vouched for: %v", h.name, q.op, q.err)
	}
}

// S8, promises. No join is stamped at or before the T of a gather that its
// node has replied to in this life, nor before its first wave, for what an
// earlier life has promised nobody there knows.
func (w *world) checkStamp(h *host, t *place) {
	if h.seen.status.Installed == (qpid.Epoch{}) && h.n.Status().Installed == (qpid.Epoch{}) {
		w.fail("S8", "%s stamps ticket %d before its first wave", h.name, w.ticketOf(t.id))
	}
	if t.stamp <= h.seen.promised {
		w.fail("S8", "%s stamps ticket %d with %d and has promised to stamp nothing up to %d", h.name, w.ticketOf(t.id),
			t.stamp-epochWall, h.seen.promised-epochWall)
	}
}

// turns counts waves that leave out a room where visitors wait.
func (w *world) turns(h *host, g *eviction.Gather) {
	for r := range w.checker.rooms {
		name := w.checker.rooms[r].name
		if slices.ContainsFunc(g.Rooms, func(rg eviction.RoomGather) bool { return rg.Room == name }) {
			continue
		}
		if rs, ok := h.n.Room(name, h.clock.read(w.now)); ok && rs.Total > 0 {
			w.reached.n[reachTurns]++
			return
		}
	}
}

// sent looks at a message that a node sends.
func (w *world) sent(h *host, m *eviction.Message, kind msgKind) {
	switch b := m.Body.(type) {
	case *eviction.Gather:
		if b.Lead.Member == m.From { // the coordinator answers itself
			w.asked(h, b)
			w.answers(h, b.Epoch)
			w.checker.gatheredUpTo(b.Epoch.Num, b.T)
			w.gathered(b, listOf(h, b))
			w.turns(h, b)
		}
		for i := range b.Rooms {
			if b.Rooms[i].Want > w.o.Cluster.Exact {
				w.reached.n[reachSampled]++
			}
		}
	case *eviction.Reply:
		w.answers(h, b.Epoch)
		w.checkBare(h, b)
		w.checkCovered(h, b)
		if b.Epoch == h.seen.gather {
			h.seen.promised = max(h.seen.promised, h.seen.gatherT)
		}
	case *eviction.Copies:
		w.checkGone(h, m.To, b)
	case *eviction.Slots:
		s := h.n.Status()
		if r := w.roomIndex(b.Room); len(b.Visits) > 0 && w.uncovered(h, &s) && h.seen.covered[r] == b.From {
			w.fail("S26", "%s room %s: gives visits away, and has said that all are kept", h.name, b.Room)
		}
	case *eviction.Commit:
		if b.Epoch == h.seen.gather { // the coordinator keeps to what it has decided on
			h.seen.promised = max(h.seen.promised, h.seen.gatherT)
		}
		w.checkCommit(h, b)
	case *eviction.Nack:
		w.reached.n[reachNack]++
	case *eviction.SyncReply:
		if len(b.Taken) > 0 {
			w.reached.n[reachSync]++
		}
	}
}

// hearing looks at a message that a node is about to get.
func (w *world) hearing(h *host, f *flight) {
	if b, ok := f.m.Body.(*eviction.Gather); ok && b.Epoch.Compare(h.seen.gather) > 0 {
		if b.List == nil && b.As != h.n.Installed() {
			w.reached.n[reachAsk]++
			return // it asks for the list
		}
		w.asked(h, b)
	}
}

// S11, positions. What a visitor is shown never grows, until it joins anew, and
// whoever waits is among those who wait.
func (w *world) checkPosition(h *host, q *request) {
	a := &q.answer
	if a.State == node.Waiting && (a.Queued < a.Position || a.Queued == 0) {
		w.fail("S11", "%s shows ticket %d position %d of %d", h.name, w.ticketOf(q.ticket.ID), a.Position, a.Queued)
	}
	before, now := q.ticket.Position, a.Ticket.Position
	if q.op == opJoin || w.drawn(h, q) || a.Ticket.ID != q.ticket.ID {
		before = 0
	}
	if before > 0 && (now > before || now == 0 && a.State == node.Waiting) && !mayDraw(&w.o.Rooms[q.room]) ||
		uint32(a.Position) != now && a.State == node.Waiting && (a.Position != 0 || !mayDraw(&w.o.Rooms[q.room])) {
		w.fail("S11", "%s shows ticket %d position %d (in the ticket: %d) after %d", h.name, w.ticketOf(q.ticket.ID), a.Position, now, before)
	}
}

// L7, patience. Nobody who waits is asked back so soon that their browser would do
// nothing but ask.
func (w *world) checkPatience(h *host, q *request) {
	if a := &q.answer; a.State == node.Waiting && a.Refresh < 10*time.Millisecond {
		w.fail("L7", "%s asks ticket %d back in %v", h.name, w.ticketOf(q.ticket.ID), a.Refresh)
	}
}

// logged follows one line of a node's admission log.
func (w *world) logged(h *host, e *node.Admission) {
	n := &w.reached.n
	r := w.roomIndex(e.Room)
	t := &w.crowd.tickets[w.ticketOf(e.Weight.ID)]
	w.note('l', uint64(h.index)<<8|uint64(e.Event), uint64(w.ticketOf(e.Weight.ID)))
	if w.trace.print != nil {
		w.printf("%s logs ticket %d of %s %s", h.name, w.ticketOf(e.Weight.ID), e.Room, eventName(e.Event))
	}
	switch e.Event {
	case node.Entitled:
		if t.entitledAt == 0 {
			t.entitledAt, t.epoch, t.key = w.now, e.Epoch, e.Key
			w.entitled(t, h)
		}
	case node.CalledIn:
		n[reachCalled]++
		w.checkLease(h, r, "calls somebody")
		w.checkDoors(h, r, t)
		w.came(h, r, t)
		t.open = t.open || e.Epoch > 0
		if t.entitledAt == 0 {
			t.entitledAt = w.now
		}
		t.told, t.tried = false, false
		w.checkUsed(h, t)
		w.became(t, h, calledIn)
	case node.AdmittedQ:
		w.checkLease(h, r, "lets somebody in who waited")
		h.seen.acted[r] = true
		t.admitted = true
		w.became(t, h, gone)
	case node.AdmittedO:
		n[reachOpenAdmission]++
		w.walkedIn(h, r, t)
	case node.Parked:
		n[reachParked]++
		w.checkMissed(h, t)
		if !e.NoShow {
			w.checkSilence(h, t)
		}
		t.touched = true
		w.became(t, h, parked)
	case node.TakenOver, node.WentOn:
		if from := h.n.Adopted(e.Room, e.Weight.ID); from != (eviction.Account{}) {
			w.visitTaken(h, r, t, from)
		}
		w.takenOver(h, t, e.Event)
	case node.Given:
		if e.Key != (qpid.Weight{}) {
			w.visitGiven(h, r, t)
			return
		}
		n[reachPlaceGiven]++
		t.allow += w.mishapsOf(t)
		t.settle(w, h)
		if t.state != parked {
			w.became(t, h, queued)
		}
	case node.Dropped:
		n[reachDropped]++
		w.became(t, h, gone)
	case node.Through:
		n[reachThrough]++
		t.admitted = true
		w.became(t, h, gone)
	case node.Restamped:
		w.restamped(h, e.Weight.ID, e.Key)
	case node.Ended, node.HandedOn: // the session's own end says so; a place is where it was
	}
}

// walkedIn follows somebody who comes in without having waited.
func (w *world) walkedIn(h *host, r int, t *place) {
	w.checkLease(h, r, "lets somebody walk in")
	if t.state != calledIn { // when the slot was set aside
		w.checkDoors(h, r, t)
		w.came(h, r, t)
	}
	t.open, t.admitted = true, true
	if t.home == none {
		t.settle(w, h)
	}
	w.became(t, h, gone)
}

// takenOver follows the place of a lost node to h: somebody has asked with it there, or
// h has kept it.
func (w *world) takenOver(h *host, t *place, how node.Event) {
	t.allow += w.partedFrom(t, h)
	t.settle(w, h)
	if how == node.WentOn {
		w.reached.n[reachWentOn]++
		if t.state != parked {
			w.became(t, h, queued)
		}
		return
	}
	w.reached.n[reachTicketTaken]++
	t.touched = true
	w.became(t, h, queued)
}

func eventName(e node.Event) string {
	return [...]string{"entitled", "called", "admitted from the queue", "admitted at once", "parked", "ended", "taken over", "given up", "through", "given", "stamped anew", "gone on with", "handed on"}[e]
}

// became follows a ticket at its home; a ghost elsewhere says nothing.
func (w *world) became(t *place, h *host, s ticketState) {
	if t.home == h.index {
		t.state = s
	}
}

// came notes that somebody was called or let in.
func (w *world) came(h *host, r int, t *place) {
	h.seen.acted[r] = true
	if !h.stopped { // else it goes by a lease and a limit that were good when it stopped: for checkLease
		w.checker.rooms[r].rose, w.checker.rooms[r].roseAt = true, h.index
	}
	w.checker.lastCall[r] = w.now
	if t.calledAt == 0 {
		t.calledAt = w.now
	}
	w.checkPace(h, r)
}

// pace is a bucket that drains at a room's rate, and the calls of the last minute.
type pace struct {
	level float64
	at    int64
	calls []int64
}

// S13, pacing. In every minute at most new_users_per_minute visitors are called or
// walk in, whatever sides there are, and in every window of W seconds at most rate
// × (W + 2 s) and one for each node; with survivor lines each side may. What is
// beyond rate × W is what a quiet room lets in at once, at one coordinator and at
// the next.
func (w *world) checkPace(h *host, r int) {
	rate := rateMax(&w.o.Rooms[r])
	if rate == 0 || w.phase >= whole {
		return
	}
	p, sides := &w.checker.rooms[r].pace, 1+w.checker.rooms[r].sides
	second := float64(rate) / 60 * float64(sides)
	p.level = max(0, p.level-second*float64(w.now-p.at)/1e6)
	p.at = w.now
	p.level++
	if most := 2*second + float64(len(w.hosts)); p.level > most+1e-6 {
		w.fail("S13", "%s room %s: %d visitors a minute may be called; this call is %.2f beyond rate × (W + 2 s) and one for each node",
			h.name, w.o.Rooms[r].Name, rate, p.level-most)
	}
	for len(p.calls) > 0 && w.now-p.calls[0] >= 60_000_000 {
		p.calls = p.calls[1:]
	}
	p.calls = append(p.calls, w.now)
	if len(p.calls) > rate*sides {
		w.fail("S13", "%s room %s: %d visitors a minute may be called; this call is the %dth of the last minute",
			h.name, w.o.Rooms[r].Name, rate, len(p.calls))
	}
}

// take is a deleteMin that was called.
type take struct {
	op       qpid.OpID
	life     int32
	at       int64
	answered bool
}

func (c *checker) takeCalled(w *world, h *host, op qpid.OpID) {
	c.takes = append(c.takes, take{op: op, life: h.life, at: w.now})
}

// taken matches the answer to a deleteMin with its call.
func (w *world) taken(h *host, a qpid.Answer) {
	w.printf("%s hears of %v: %v", h.name, a.Op, a)
	w.note('d', uint64(h.index), a.Op.Seq)
	for i := range w.checker.takes {
		if t := &w.checker.takes[i]; t.life == h.life && t.op == a.Op {
			if t.answered {
				w.fail("L4", "%s: %v is answered twice", h.name, a.Op)
			}
			t.answered = true
			w.reached.n[reachTakeAnswered]++
			return
		}
	}
	w.fail("L4", "%s hears of %v, which it never called", h.name, a.Op)
}
