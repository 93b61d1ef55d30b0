package node

import (
	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// Join puts a visitor in line, or lets them straight in while there is room
// and nobody waits. id is 128 random bits. Who is silent does not check in while they
// wait, see ticket.Ticket.Quiet.
func (n *Node) Join(now eviction.Time, name string, id qpid.ItemID, silent bool) (a Answer, err error) {
	defer n.guard(name, now, &err)
	r, err := n.offered(name)
	if err != nil {
		return Answer{}, err
	}
	n.clock(now)
	c := r.gate.InForce()
	switch {
	case !n.ev.Clear() || r.broken != nil || n.leaveBy != 0 && len(n.ev.Members()) > 1: // who joins now would be waited for when this node has gone
		return Answer{}, ticket.ErrUnavailable
	case c.Method == eviction.Reject:
		return Answer{}, ticket.ErrRejected
	case r.visitors.get(id) != nil:
		if v := r.visitors.get(r.renewed(Ticket{Room: name, ID: id}).ID); v != nil {
			return r.answer(now, v)
		}
		return Answer{}, ticket.ErrExpired
	case c.Mode == eviction.Draining:
		return Answer{}, ticket.ErrRejected
	}
	v := visitor{id: id, stamp: n.ev.Stamp(), seen: now.Boot}
	if silent { // who keeps the place as well has to know it from the first
		v.marks |= quiet
		v.refresh = r.refreshAfter(&v, 0)
	}
	r.gate.Arrived(now.Boot)
	if r.passesThrough() {
		return r.passthrough(now, v.id, v.stamp), nil
	}
	if n.ev.Open(r.gate, now) && r.gate.Queue.Len() == 0 && r.gate.Due == 0 && r.gate.Wanted == 0 && !n.visitLog.fails && r.gate.Spend(now.Boot) {
		in := r.visitors.add(v)
		if r.gate.Promised() || n.writes() {
			return r.walkIn(now, in)
		}
		r.admit(now, in, n.ev.Now(now))
		r.record(AdmittedO, in.weight(), n.ev.Status().Installed.Num, in.weight())
		return r.answer(now, in)
	}
	if r.full() {
		return Answer{}, ticket.ErrQueueFull
	}
	waits := r.visitors.add(v)
	r.lineUp(waits)
	n.carryOn(now)
	return r.answer(now, waits)
}

// walkIn sets a slot aside for a newcomer who comes in as soon as an heir keeps the visit, and
// the disk.
func (r *room) walkIn(now eviction.Time, v *visitor) (Answer, error) {
	v.stage = called
	v.marks |= walkedIn
	r.called++
	v.due = now.Boot + r.claim(v)
	r.schedule(v)
	r.write(v, now)
	r.record(CalledIn, v.weight(), r.node.ev.Status().Installed.Num, v.weight())
	return r.answer(now, v)
}

// lineUp puts a newcomer in line.
func (r *room) lineUp(v *visitor) {
	r.enqueue(v)
	if r.gate.Queue.Len() == 1 {
		r.node.ev.Urge(r.gate)
	}
	r.gate.Touch()
}

// full reports whether the room holds as many waiting people as it may.
func (r *room) full() bool {
	return r.visitors.len()-r.spent-r.onSite >= r.gate.Room().QueueMax
}

// CheckIn tells a visitor where they stand, and keeps their place.
func (n *Node) CheckIn(now eviction.Time, t Ticket) (a Answer, err error) {
	defer n.guard(t.Room, now, &err)
	r, v, to, err := n.resolve(now, &t)
	if err != nil || to != (eviction.Member{}) {
		return forwarded(to, t), err
	}
	if r.broken != nil {
		return r.keeps(t, now), nil
	}
	if r.passesThrough() && (v == nil || v.stage != onSite) { // since an event has ended, or the room was suspended
		if v != nil && r.withdraw(v, now) {
			n.use(v.id)
			r.record(Through, v.weight(), 0, qpid.Weight{})
			r.retire(v, spent, now)
			n.carryOn(now)
		}
		return r.passthrough(now, t.ID, t.Stamp), nil
	}
	switch {
	case v == nil:
		if v, err = r.takeOver(now, t); err != nil {
			return Answer{}, err
		}
		if v == nil {
			t = r.heardOf(t, now)
			return Answer{State: Waiting, Ticket: t, Position: int(t.Position), Queued: max(1, r.waiting(), int(t.Position)), Refresh: r.untilGone(t, now), Paused: n.paused()}, nil
		}
	case v.has(unheard) && n.ev.Now(now)-t.Issued <= r.gate.Room().TicketTTL.Microseconds()+2*r.skew():
		switch {
		case n.used.has(usedHash(t.ID)):
			return Answer{}, ticket.ErrUsed
		case n.used.has(usedHash(successor(t.ID, uint64(t.Hand)))):
			return Answer{}, ticket.ErrHandedOn
		case n.leaveBy != 0: // what it has is on its way to others
			return r.keeps(t, now), nil
		case r.full():
			return Answer{}, ticket.ErrQueueFull
		}
		r.takeUp(v, now, t)
	}
	r.hearFrom(v, now, t)
	if (v.stage == queued || v.stage == parked) && r.toCome(v.stamp, now) {
		r.stampNow(v, now)
	}
	r.comesIn(v, now)
	switch {
	case r.overdue(v) && (v.stage <= drawn || v.stage == parked):
		v = r.stampAnew(v, now)
	case v.stage == parked && v.asleep(now) == 0:
		r.parked--
		v.expires = 0
		if v.neverCalled() {
			r.waits.visits.Returned()
		} else {
			r.waits.visits.Back()
		}
		r.enqueue(v)
		r.watch(v, now)
		r.markLate(v)
		r.gate.Touch()
		n.carryOn(now)
	}
	return r.answer(now, v)
}

// comesIn notes that a ticket is used whose call is of an earlier life: its browser has asked since.
func (r *room) comesIn(v *visitor, now eviction.Time) {
	if v.stage == onSite && r.mayNotBeIn(v) {
		v.marks |= told
		r.node.use(v.id)
		r.node.isUsed(v.id, now)
	}
}

// mayNotBeIn reports whether all that is known of one who is on the site is that an earlier life called them.
func (r *room) mayNotBeIn(v *visitor) bool {
	return !v.has(told) && r.goesOn(r.pasts[v.id].adopted.Member)
}

// toCome reports whether a stamp is of a clock that went on alone, wrong: whoever has it
// would wait for that time to come. So do those who are stamped now, where the node has
// promised to stamp nothing before it.
func (r *room) toCome(stamp uint64, now eviction.Time) bool {
	return int64(stamp) > max(r.node.ev.Now(now), r.node.ev.Promised())+4*r.skew()
}

// stampNow has somebody with a stamp of a time to come wait from now on.
func (r *room) stampNow(v *visitor, now eviction.Time) {
	if v.stage == queued {
		r.dequeue(v)
	}
	v.stamp = r.node.ev.Stamp()
	if v.stage == queued {
		r.enqueue(v)
	}
	r.copy(v)
	r.gate.Touch()
	r.record(TakenOver, v.weight(), 0, qpid.Weight{})
	r.node.carryOn(now)
}

// hearFrom notes a check-in with t.
func (r *room) hearFrom(v *visitor, now eviction.Time, t Ticket) {
	if t.Quiet && !v.has(quiet) {
		v.marks |= quiet
		r.copy(v) // it is asked back later from now on
	}
	if v.stage < onSite {
		v.listen(now)
	}
	if at := r.shownBefore(t); at > 0 && (v.shown == 0 || at < v.shown) {
		v.shown = at // what is shown never rises, whichever node showed it
	}
}

// shownBefore is the position that t was shown last, 0 if a draw counts since.
func (r *room) shownBefore(t Ticket) uint32 {
	if k := r.gate.Keying(); t.Stamp < k && t.Issued < int64(k) {
		return 0
	}
	return t.Position
}

// Glance is CheckIn where that changes nothing but what the node remembers of
// this visitor: then there is nothing to do after it, no message, no line of the
// log and no earlier Deadline, and Ready need not be called. Almost all check-ins
// are of this kind. For the others ok is false, and CheckIn is to be called: so
// it is where the visitor is now the first to be looked at, sooner than Ready said.
//
// It is the same as CheckIn because it does the same where it does anything: the
// visitor is known here and in line or called, so CheckIn would neither take
// over nor forward nor put back in line; and no clock has lapsed or jumped,
// which is all that CheckIn would carry out at once.
func (n *Node) Glance(now eviction.Time, t Ticket) (a Answer, ok bool) {
	r, err := n.offered(t.Room)
	if err != nil {
		return Answer{}, false
	}
	n.ev.Now(now)
	v := r.visitors.get(t.ID)
	if n.ev.Pending() || !n.ev.Clear() || r.broken != nil || v == nil || t.Gen > v.gen || v.stage > called || r.passesThrough() || r.toCome(v.stamp, now) ||
		v.missed > 0 || v.stage == called && !v.has(told) || t.Hand > 0 || v.has(handed) { // it may be stamped anew; it hears of its call; another may have its place
		return Answer{}, false
	}
	next := n.dues.agenda.next()
	r.hearFrom(v, now, t)
	a, err = r.answer(now, v)
	return a, err == nil && n.dues.agenda.next() >= next
}

// Leave takes a called visitor onto the site. Repeated, it gives the same pass
// while that lives.
func (n *Node) Leave(now eviction.Time, t Ticket) (a Answer, err error) {
	defer n.guard(t.Room, now, &err)
	a, err = n.CheckIn(now, t)
	if err != nil || a.Forward != (eviction.Member{}) || a.State == Admitted {
		return a, err
	}
	if a.State != Called {
		return a, ticket.ErrNotCalled
	}
	r, _ := n.room(t.Room)
	if !n.ev.Admits(r.gate, now) {
		r.visitors.get(a.Ticket.ID).marks |= tried
		return a, nil // still called: another try may find a lease
	}
	v := r.visitors.get(a.Ticket.ID)
	r.guard(v, now)
	r.write(v, now)
	if n.Unguarded(t.Room, v.id) {
		v.marks |= tried
		return a, nil // until an heir keeps the visit, and the disk: Ready.Kept says when
	}
	started := n.ev.Now(now)
	if l := r.lines[v.id]; l != nil && r.gate.Room().SessionMax > 0 {
		started = l.started // what the disk has
	}
	r.called--
	r.admit(now, v, started)
	n.use(v.id)
	if v.has(walkedIn) {
		r.record(AdmittedO, v.weight(), n.ev.Status().Installed.Num, v.weight())
		return r.answer(now, v)
	}
	r.waits.visits.Came()
	r.record(AdmittedQ, v.weight(), 0, qpid.Weight{})
	return r.answer(now, v)
}

// admit gives v a pass. Its expiry counts from the lease check, so a pause
// between that and the answer makes nothing longer.
func (r *room) admit(now eviction.Time, v *visitor, started int64) {
	r.mayLetIn(now)
	r.uncopy(v)
	v.stage = onSite
	r.onSite++
	v.seen, v.expires = started, r.until(now, started)
	r.guard(v, now)
	r.write(v, now)
	r.waits.visits.Begin(started, r.node.ev.LastNow())
	v.due = now.Boot + r.gate.Session().Microseconds() + 2*r.skew()
	r.schedule(v)
}

// Abandon gives up a place, or a call. Repeating it changes nothing.
func (n *Node) Abandon(now eviction.Time, t Ticket) (a Answer, err error) {
	defer n.guard(t.Room, now, &err)
	r, v, to, err := n.resolve(now, &t)
	if err != nil || to != (eviction.Member{}) || v == nil {
		return forwarded(to, t), err
	}
	switch {
	case r.withdraw(v, now):
		n.use(v.id)
		r.record(Dropped, v.weight(), 0, qpid.Weight{})
		r.retire(v, dropped, now)
		n.carryOn(now)
	case v.has(unheard): // it is not to be taken up again
		n.use(v.id)
		v.marks &^= unheard
		delete(r.pasts, v.id)
	}
	return Answer{}, nil
}

// Undo ends a join of which nobody was told: no copy of its ticket is anywhere, and whoever
// asked for it may have joined at another node with the same id.
func (n *Node) Undo(now eviction.Time, t Ticket) {
	defer n.guard(t.Room, now, nil)
	r, err := n.offered(t.Room)
	n.clock(now)
	if err != nil || r.broken != nil {
		return
	}
	if v := r.visitors.get(t.ID); v != nil && r.withdraw(v, now) {
		r.record(Dropped, v.weight(), 0, qpid.Weight{})
		r.remove(v)
		n.carryOn(now)
	}
}

// withdraw takes v out of wherever it waits, or frees the slot of its call. It
// reports false for one that is on the site, or was.
func (r *room) withdraw(v *visitor, now eviction.Time) bool {
	switch v.stage {
	case queued, drawn:
		r.givesUp(v)
	case parked:
		r.parked--
		v.expires = 0
	case called:
		r.called--
		r.waits.visits.NoShow()
		r.release(v, now)
		r.unguard(v.id)
	default:
		return false
	}
	return true
}

// passesThrough reports whether nobody waits here and now.
func (r *room) passesThrough() bool {
	c := r.gate.InForce()
	return c.Method == eviction.Passthrough && c.Mode != eviction.Held && !r.node.ev.Gathers(r.gate)
}

// passthrough lets somebody in without a slot.
func (r *room) passthrough(now eviction.Time, id qpid.ItemID, stamp uint64) Answer {
	p := Pass{Room: r.name, ID: id, Stamp: stamp, Expires: r.until(now, r.node.ev.Now(now))}
	if r.gate.Room().SessionMax > 0 {
		p.Started = r.node.ev.Now(now)
	}
	return Answer{State: Admitted, Pass: p}
}
