package node

import (
	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// HoldBack is a check-in of somebody who may not come in just now, although
// their turn may have come: their address has as many on the site as it may. One
// who is called, or would be, is parked: no slot waits for them, the place is
// kept, and a check-in without that puts them back in line, in front. It is no
// call that they let pass.
func (n *Node) HoldBack(now eviction.Time, t Ticket) (a Answer, err error) {
	defer n.guard(t.Room, now, &err)
	r, v, to, err := n.resolve(now, &t)
	switch {
	case err != nil || to != (eviction.Member{}):
		return forwarded(to, t), err
	case v == nil || r.passesThrough() || v.stage >= onSite || !v.has(entitled) && v.stage != called || r.overdue(v):
		return n.CheckIn(now, t)
	}
	r.hearFrom(v, now, t)
	if v.stage != parked {
		r.holdBack(v, now)
		n.carryOn(now)
	}
	a, err = r.answer(now, v)
	a.Paused = ticket.PausedAddress
	return a, err
}

func (r *room) holdBack(v *visitor, now eviction.Time) {
	if v.stage == called {
		r.called--
		r.release(v, now)
	} else {
		r.dequeue(v)
	}
	r.park(v, now)
	r.gate.Touch()
}
