package node

import (
	"math"
	"time"

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
	if n.ev.Open(r.gate, now) && r.gate.Queue.Len() == 0 && r.gate.Due == 0 && r.gate.Wanted == 0 && r.gate.Spend(now.Boot) {
		in := r.visitors.add(v)
		if r.gate.Promised() {
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

// walkIn sets a slot aside for a newcomer who comes in as soon as an heir keeps the visit.
func (r *room) walkIn(now eviction.Time, v *visitor) (Answer, error) {
	v.stage = called
	v.marks |= walkedIn
	r.called++
	v.due = now.Boot + r.claim(v)
	r.schedule(v)
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
	if v.stamp = r.node.ev.Stamp(); v.stage == queued {
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

func (n *Node) paused() ticket.Pause {
	if !n.ev.IsAside() {
		return ""
	}
	return n.waiting(n.ev.Status())
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
	if r.guard(v, now); n.Unguarded(t.Room, v.id) {
		v.marks |= tried
		return a, nil // until an heir keeps the visit: Ready.Kept says when
	}
	r.called--
	r.admit(now, v, n.ev.Now(now))
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

// forwarded has another node answer for t, if to is one.
func forwarded(to eviction.Member, t Ticket) Answer {
	if to == (eviction.Member{}) {
		return Answer{}
	}
	return Answer{Forward: to, Ticket: t}
}

// resolve finds whose business ticket t is: a visitor of this node, another
// node's (to), or a lost node's that this one may take over (neither). A ticket
// that stands for another becomes that, and an older one of a place that has gone
// elsewhere becomes one of where it is.
func (n *Node) resolve(now eviction.Time, t *Ticket) (r *room, v *visitor, to eviction.Member, err error) {
	if r, err = n.offered(t.Room); err != nil {
		return nil, nil, to, err
	}
	clock := n.clock(now)
	if !n.ev.Clear() {
		return r, nil, to, ticket.ErrUnavailable
	}
	self := n.c.Self.Member
	*t = r.renewed(*t)
	if r.broken != nil {
		*t = r.moved.follow(*t, n.c.Self.Member, now.Boot, r.ticketEnds(now))
		if t.Home != self && n.ev.Listed(t.Home) {
			to = t.Home
		}
		return r, nil, to, nil
	}
	v = r.visitors.get(t.ID)
	if v != nil && t.Gen <= v.gen {
		switch {
		case r.handedOn(v, *t):
			return r, nil, to, ticket.ErrHandedOn
		case n.ev.Left() && (v.stage <= parked || v.has(unheard)):
			if heir := n.ev.Heir(v.id, v.stamp); heir != to {
				return r, nil, heir, nil // as if this node had gone already
			}
			return r, v, to, nil
		case v.stage != dropped:
			return r, v, to, nil
		case t.Home != self && n.ev.Listed(t.Home):
			return r, nil, t.Home, nil // two nodes had taken it over, and this one's copy is not the one that was kept
		case n.ev.InTouch(r.gate, now):
			return r, v, to, nil
		}
		return r, nil, to, ticket.ErrUnavailable
	}
	*t = r.moved.follow(*t, n.c.Self.Member, now.Boot, r.ticketEnds(now))
	switch {
	case t.Home == self && !n.ev.InTouch(r.gate, now):
		return r, nil, to, ticket.ErrUnavailable // the place may go on elsewhere, and nobody has told this node yet
	case t.Home == self:
		return r, nil, to, ticket.ErrExpired
	case n.ev.Listed(t.Home):
		return r, nil, t.Home, nil
	case clock-t.Issued > r.gate.TicketLife(now.Boot)+2*r.skew():
		return r, nil, to, ticket.ErrExpired
	}
	if heir := n.ev.Heir(t.ID, t.Stamp); heir != self {
		return r, nil, heir, nil
	}
	return r, nil, to, nil
}

// takeOver puts the visitor of a lost node in line here, at their old place.
// Without a lease the node may itself be the lost one, and a home that missed
// a wave or two is not lost: nil, the visitor keeps the ticket and waits.
func (r *room) takeOver(now eviction.Time, t Ticket) (*visitor, error) {
	if r.node.used.has(usedHash(t.ID)) {
		return nil, ticket.ErrUsed
	}
	if r.node.used.has(usedHash(successor(t.ID, uint64(t.Hand)))) {
		return nil, ticket.ErrHandedOn
	}
	if !r.node.ev.Admits(r.gate, now) || !r.node.ev.Gone(t.Home, now) {
		return nil, nil
	}
	v := r.atHome(r.visitors.get(t.ID), t.Gen+1)
	kept, isKept := r.keptHere(t.ID, t.Home)
	switch {
	case v == nil && !isKept && r.full():
		return nil, ticket.ErrQueueFull
	case v == nil:
		stamp := t.Stamp
		if r.toCome(stamp, now) {
			stamp = r.node.ev.Stamp()
		}
		r.makeWay(t.ID)
		v = r.visitors.add(visitor{id: t.ID, stamp: stamp, shown: r.shownBefore(t), seen: now.Boot})
		r.enqueue(v)
	case v.stage >= onSite:
		return nil, ticket.ErrUsed
	}
	if v.gen = t.Gen + 1; isKept {
		v.gen = max(v.gen, kept.Gen)
	}
	r.moved.back(v.id)
	v.missed, v.slept = max(v.missed, t.Missed), max(v.slept, min(t.Slept, sleptMost))
	if t.Anew {
		v.marks |= anew
	}
	r.pasts[v.id] = past{homes: Homes{t.Home, t.Past[0]}, hand: r.pasts[v.id].hand}
	r.passOn(v, max(t.Hand, r.pasts[v.id].hand))
	if isKept {
		v.missed, v.slept = max(v.missed, kept.Missed), max(v.slept, min(kept.Slept, sleptMost))
		r.markKept(v)
	}
	r.copy(v)
	r.tookOver(v, t, now)
	r.record(TakenOver, v.weight(), 0, qpid.Weight{})
	r.markLate(v)
	r.gate.Touch()
	r.node.carryOn(now)
	return v, nil
}

// atOnce is how soon anybody is asked back: else one whose home is all but gone would ask
// without end until it is.
const atOnce = 10 * time.Millisecond

// untilGone is when somebody whose home is missing is to ask again: as soon as they can be
// taken over, for others are held for them no longer than it takes to come then.
func (r *room) untilGone(t Ticket, now eviction.Time) time.Duration {
	most := min(refreshMin, r.gate.Room().Refresh)
	in, ok := r.node.ev.GoneIn(t.Home, now)
	if !ok || in == 0 { // it is not for that
		return most
	}
	spread := max(atOnce, most/8*time.Duration(t.ID[0])/255) // not all at the same time
	return min(most, time.Duration(in)*time.Microsecond+spread)
}

// markLate entitles one who comes to a place that the cut has passed already.
func (r *room) markLate(v *visitor) {
	key := r.gate.Key(v.weight())
	if r.byCut() && v.stage == queued && !r.gate.Cut().Value.Less(key) {
		r.mark(v, r.node.ev.Status().Installed.Num, key)
	}
}

// answer says where v stands.
func (r *room) answer(now eviction.Time, v *visitor) (Answer, error) {
	n := r.node
	a := Answer{Queued: r.waiting(), Paused: n.paused()}
	switch v.stage {
	case onSite:
		if n.ev.Now(now) >= v.expires {
			return Answer{}, ticket.ErrUsed
		}
		if r.passUntil(v) <= n.ev.Now(now) {
			return Answer{}, ticket.ErrUnavailable
		}
		a.State, a.Pass, a.Wave = Admitted, r.pass(v), v.wave
		return a, nil
	case spent:
		return Answer{}, ticket.ErrUsed
	case dropped:
		return Answer{}, ticket.ErrExpired
	case called:
		a.State, a.Position, a.Wave = Called, max(1, int(v.shown)), v.wave
		r.tell(v, now)
		v.refresh = r.refreshAfter(v, 0)
	default:
		at, draw := 1, r.gate.DrawComes(v.stamp, n.ev.Now(now))
		switch {
		case draw > 0:
			v.shown = 0 // whatever it was
		case r.gate.InForce().Method != eviction.Random:
			known := true
			if v.stage == queued {
				at, known = r.gate.Position(r.gate.Key(v.weight()))
			}
			if v.shown == 0 && known || v.shown > 0 && at < int(v.shown) {
				v.shown = uint32(at)
			}
			a.Position = int(v.shown)
		}
		a.Queued = max(1, a.Queued, a.Position) // the digests and the counts may be of different waves
		place := max(at, a.Position)
		if turn := r.turn(place); turn > 0 {
			v.refresh = r.refreshAfter(v, turn)
		} else {
			v.refresh = r.refreshAfter(v, math.MaxInt64) // nobody knows
		}
		switch {
		case draw > 0:
			v.refresh = r.refreshAfter(v, max(0, time.Duration(draw-n.ev.Now(now))*time.Microsecond))
		case r.gate.InForce().Method == eviction.Random || a.Position > 0:
			a.Wait = later(r.wait(now, place), v.asleep(now))
		}
		r.watch(v, now)
	}
	a.Refresh = time.Duration(v.refresh) * time.Millisecond
	a.Ticket = Ticket{
		Room: r.name, ID: v.id, Stamp: v.stamp, Home: n.c.Self.Member, Gen: v.gen, Position: v.shown, Issued: n.ev.Now(now),
		Missed: v.missed, Slept: v.slept, Anew: v.has(anew), Quiet: v.has(quiet),
	}
	if v.gen > 0 || v.has(handed) {
		p := r.pasts[v.id]
		a.Ticket.Past, a.Ticket.Hand = p.homes, p.hand
	}
	return a, nil
}

func (r *room) pass(v *visitor) Pass {
	p := Pass{Room: r.name, ID: v.id, Stamp: v.stamp, Home: r.gate.Ledger().Account(), Expires: r.passUntil(v)}
	if g := r.visits[v.id]; g != nil {
		r.becomes(g, g.kept, max(g.out, p.Expires))
	}
	if r.gate.Room().SessionMax > 0 {
		p.Started = v.seen
	}
	return p
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
