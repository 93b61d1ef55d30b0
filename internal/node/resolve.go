package node

import (
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

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
	if r.goesOn(t.Home) { // nobody else knows who was called there
		return r, nil, to, nil
	}
	if heir := n.ev.Heir(t.ID, t.Stamp); heir != self {
		return r, nil, heir, nil
	}
	if at, ok := n.ev.GoesOnAt(r.gate, t.Home); ok && at != self { // who was called has a visit there
		to = at
	}
	return r, nil, to, nil
}

// forwarded has another node answer for t, if to is one.
func forwarded(to eviction.Member, t Ticket) Answer {
	if to == (eviction.Member{}) {
		return Answer{}
	}
	return Answer{Forward: to, Ticket: t}
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
	v.gen = t.Gen + 1
	if isKept {
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

// markLate entitles one who comes to a place that the cut has passed already.
func (r *room) markLate(v *visitor) {
	key := r.gate.Key(v.weight())
	if r.byCut() && v.stage == queued && !r.gate.Cut().Value.Less(key) {
		r.mark(v, r.node.ev.Status().Installed.Num, key)
	}
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
