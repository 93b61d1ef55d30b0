package node

import (
	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// A place that nobody asks for is given up after ticket_ttl. But who is silent here may have
// asked elsewhere all the while: a node that does not reach the home of a place says that its
// bearer waits. So the ticket is the sign of life. That node renews it, and a home that gave
// the place up for silence, and for nothing else, remembers that (unheard), and takes it up
// again for a ticket that is younger than ticket_ttl.

// unreachedFor is for how long, in µs, people may ask a node that cannot reach their home,
// and find their place afterwards: so long a home remembers where it went, or that it was
// given up for silence. Their tickets are renewed meanwhile, see heardOf.
const unreachedFor = 3_600_000_000

// HeardOf returns t as a sign of life of now: whoever has it asked, and nobody who knows
// their place can be reached. Its home may give the place up meanwhile, and takes it up
// again for a ticket that was renewed. One that is too old by now stays so.
func (n *Node) HeardOf(now eviction.Time, t Ticket) Ticket {
	n.clock(now) // it may have stood still since it read it last
	if r, err := n.offered(t.Room); err == nil && n.ev.Clear() {
		return r.heardOf(t, now)
	}
	return t
}

func (r *room) heardOf(t Ticket, now eviction.Time) Ticket {
	clock, life := r.node.ev.LastNow(), r.gate.Room().TicketTTL.Microseconds()
	if !r.node.ev.Listed(t.Home) {
		life = r.gate.TicketLife(now.Boot)
	}
	if clock-t.Issued > life+2*r.skew() || r.node.ev.AloneFor(now) > unreachedFor {
		return t
	}
	if r.gate.DrawnBetween(t.Stamp, t.Issued, clock) {
		t.Position = 0
	}
	t.Issued = clock
	return t
}

// takeUp undoes that v's place was given up for silence: its bearer has asked elsewhere.
func (r *room) takeUp(v *visitor, now eviction.Time, t Ticket) {
	r.spent--
	r.parked++
	v.stage, v.marks = parked, v.marks&^unheard
	r.moved.back(v.id)
	r.copy(v)
	r.tookOver(v, t, now)
	r.record(TakenOver, v.weight(), 0, qpid.Weight{})
}

// atHome returns v, of whom somebody says that they have generation gen of the place, or nil
// if all that this node has is the memory of an older one that it gave up for silence. See
// makeWay.
func (r *room) atHome(v *visitor, gen uint32) *visitor {
	if v != nil && v.has(unheard) && v.gen < gen {
		return nil
	}
	return v
}

// makeWay forgets a place that was given up for silence, as there is another one of id.
func (r *room) makeWay(id qpid.ItemID) {
	v := r.visitors.get(id)
	if v == nil {
		return
	}
	hand := r.pasts[id].hand
	r.forget(v)
	if hand > 0 {
		r.pasts[id] = past{hand: hand}
	}
}
