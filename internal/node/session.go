package node

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// Refresh extends a pass. Where that cannot be done now (no lease, no slot to
// take it over with), the same pass comes back and is good until it expires.
func (n *Node) Refresh(now eviction.Time, p Pass) (a Answer, err error) {
	defer n.guard(p.Room, now, &err)
	r, v, to, err := n.session(now, &p)
	if err != nil || to != (eviction.Member{}) {
		return Answer{Forward: to}, err
	}
	same := Answer{State: Admitted, Pass: p}
	c := r.gate.InForce()
	switch {
	case p.Home == eviction.Account{} && (c.NoRenewal || c.Method != eviction.Passthrough):
		return same, nil // it holds no slot
	case p.Home == eviction.Account{}:
		p.Started, p.Expires = r.started(now, p), r.extended(now, p)
		return Answer{State: Admitted, Pass: p}, nil
	case c.NoRenewal || !n.ev.Admits(r.gate, now):
		return same, nil
	case v == nil:
		v = r.adopt(now, p)
		if v == nil {
			return same, nil
		}
	}
	r.comesIn(v, now)
	r.mayLetIn(now)
	v.expires = max(v.expires, p.Expires, r.until(now, v.seen))
	r.guard(v, now)
	r.write(v, now)
	if r.passUntil(v) < p.Expires {
		return same, nil // until an heir keeps the visit for longer, and the disk
	}
	return r.answer(now, v)
}

// until is how long, in pass time, a visit that began at started may go on as of
// now. It is the one place that says so: wherever a pass is made or extended, the
// slot behind it is counted here.
func (r *room) until(now eviction.Time, started int64) int64 {
	end := r.node.ev.Now(now) + r.gate.Session().Microseconds()
	if most := r.gate.Room().SessionMax.Microseconds(); most > 0 {
		end = min(end, started+most)
	}
	r.node.ev.Gives(end)
	return end
}

// extended is until when p may be good; never less than it is.
func (r *room) extended(now eviction.Time, p Pass) int64 {
	return max(p.Expires, r.until(now, r.began(now, p)))
}

// began is when the visit of a pass began. One that was made while the room had
// no session_max does not tell: then it is as old as the pass.
func (r *room) began(now eviction.Time, p Pass) int64 {
	clock := r.node.ev.Now(now)
	if p.Started == 0 {
		return min(clock, p.Expires-r.gate.Session().Microseconds())
	}
	return min(clock, p.Started)
}

// started is what p's successor tells of the same: only where it matters, as
// nodes of before there was a session_max cannot read it.
func (r *room) started(now eviction.Time, p Pass) int64 {
	if r.gate.Room().SessionMax == 0 {
		return 0
	}
	return r.began(now, p)
}

// Visit reports whether a pass is good here and now, and extends nothing.
func (n *Node) Visit(now eviction.Time, p Pass) (Answer, error) {
	_, _, to, err := n.session(now, &p)
	if err != nil {
		return Answer{}, err
	}
	return Answer{State: Admitted, Pass: p, Forward: to}, nil
}

// End gives the slot back at once. Repeating it changes nothing.
func (n *Node) End(now eviction.Time, p Pass) (a Answer, err error) {
	defer n.guard(p.Room, now, &err)
	r, v, to, err := n.session(now, &p)
	if err != nil || to != (eviction.Member{}) || p.Home == (eviction.Account{}) || r.broken != nil {
		return Answer{Forward: to}, err
	}
	if v == nil { // a lost node's: all there is to do is to refuse it from now on
		if n.keptVisit(r, p.Home.Member, p.ID) > 0 && !n.ends(now, p.Home.Member) {
			return Answer{}, ticket.ErrUnavailable
		}
		n.dropVisit(r, p.Home.Member, p.ID)
		if r.visitors.get(p.ID) == nil { // else somebody is on the site under it by another pass
			v = r.visitors.add(visitor{id: p.ID, stamp: p.Stamp, expires: p.Expires})
			r.retire(v, spent, now)
		}
		return Answer{}, nil
	}
	r.leaveSite(v, now)
	n.carryOn(now)
	return Answer{}, nil
}

// session finds whose business pass p is: a session of this node, another
// node's (to), or one that this node may take over (neither). It shortens a pass of
// before the cluster to what it is good for.
func (n *Node) session(now eviction.Time, p *Pass) (r *room, v *visitor, to eviction.Member, err error) {
	if r, err = n.offered(p.Room); err != nil {
		return nil, nil, to, err
	}
	clock := n.clock(now)
	if p.Home != (eviction.Account{}) {
		p.Expires = min(p.Expires, n.ev.EndsBy(r.gate, p.Home.Member, p.Stamp))
	}
	switch {
	case !n.ev.Clear():
		return r, nil, to, ticket.ErrUnavailable
	case clock >= p.Expires:
		return r, nil, to, ticket.ErrPassExpired
	case p.Home == eviction.Account{}:
		return r, nil, to, nil
	}
	// A ticket that was called at two nodes has a session at each: p is of its
	// home's, whatever this node has under the same id.
	v = r.visitors.get(p.ID)
	if r.broken != nil {
		switch {
		case p.Home.Member != n.c.Self.Member && n.ev.Listed(p.Home.Member):
			to = p.Home.Member
		case v != nil && v.stage != onSite:
			err = ticket.ErrPassExpired
		}
		return r, nil, to, err // it is good until it ends
	}
	if v != nil && v.stage == onSite && (p.Home == r.gate.Ledger().Account() || r.hadBy(v, p.Home)) {
		return r, v, to, nil
	}
	self := n.c.Self.Member
	given, away := r.moved.at(p.ID, now.Boot)
	if r.goesOn(p.Home.Member) {
		switch l := r.lines[p.ID]; {
		case away: // it went on here until this node gave it away
			return r, nil, given, nil
		case l == nil || l.state != lineLeft || v != nil && v.stage == spent:
			return r, nil, to, ticket.ErrPassExpired
		}
		return r, nil, to, nil // it has a slot until it ends
	}
	if at, ok := n.ev.GoesOnAt(r.gate, p.Home.Member); ok && at != self {
		return r, nil, at, nil
	}
	switch heir := n.ev.Heir(p.ID, p.Stamp); {
	case p.Home == r.gate.Ledger().Account() && away:
		return r, nil, given, nil
	case p.Home == r.gate.Ledger().Account():
		return r, nil, to, ticket.ErrPassExpired
	case p.Home.Member != self && n.ev.Listed(p.Home.Member):
		return r, nil, p.Home.Member, nil
	case p.Home.Member != self && heir != self:
		return r, nil, heir, nil
	case n.keptVisit(r, p.Home.Member, p.ID) < 0 && (v == nil || v.stage != onSite): // its home has said that it is over: its slot may be another's
		return r, nil, to, ticket.ErrPassExpired
	case v != nil && r.withdraw(v, now): // a copy of their place went on here, which the pass was for
		n.isUsed(v.id, now)
		r.record(Dropped, v.weight(), 0, qpid.Weight{})
		r.remove(v)
		n.carryOn(now)
	case v != nil && v.has(unheard): // so it did at another node
		n.isUsed(v.id, now)
		r.forget(v)
	case v != nil:
		return r, nil, to, ticket.ErrPassExpired
	}
	return r, nil, to, nil
}

// hadBy reports whether the visit of v was a's before it was this node's.
func (r *room) hadBy(v *visitor, a eviction.Account) bool {
	p := r.pasts[v.id]
	return p.adopted == a || slices.Contains(p.earlier, a)
}

// wantingMax bounds the sessions that wait for a slot at one node.
const wantingMax = 100_000

// adopt goes on with the session of a lost account, on a slot of this node's.
// The lost account's own slots are waited out: nobody left can tell a pass that
// it had ended from one that was in use. While no slot is free here the session
// waits for one, before anybody from the queue; the pass is good meanwhile, until
// it expires.
func (r *room) adopt(now eviction.Time, p Pass) *visitor {
	if !r.node.ev.MayAdopt(r.gate, p.Home, now) {
		return nil
	}
	if r.gate.Room().SessionMax > 0 && r.extended(now, p) == p.Expires {
		return nil // its time is over with the pass: it needs no slot here
	}
	if !r.gate.Ledger().Spend() {
		r.want(p)
		return nil
	}
	v := r.visitors.add(visitor{id: p.ID, stamp: p.Stamp, marks: entitled})
	r.pasts[p.ID] = past{adopted: p.Home}
	r.admit(now, v, r.began(now, p))
	v.expires = max(v.expires, p.Expires)
	r.guard(v, now)
	r.write(v, now)
	r.record(TakenOver, v.weight(), 0, qpid.Weight{})
	r.gate.Touch()
	return v
}

func (r *room) want(p Pass) {
	same := func(o Pass) bool { return o.ID == p.ID && o.Home == p.Home }
	if len(r.wanting) < wantingMax && !slices.ContainsFunc(r.wanting, same) {
		r.wanting = append(r.wanting, p)
		r.gate.Wanted = len(r.wanting)
		r.gate.Touch()
		r.stir()
	}
}

// adoptWanting gives free slots to the sessions that wait for one, and drops
// those that have run out or ended.
func (r *room) adoptWanting(now eviction.Time) {
	clock := r.node.ev.Now(now)
	for len(r.wanting) > 0 {
		p := r.wanting[0]
		_, elsewhere := r.node.ev.GoesOnAt(r.gate, p.Home.Member)
		if over := clock >= p.Expires || r.visitors.get(p.ID) != nil || elsewhere || r.goesOn(p.Home.Member); !over {
			if !r.node.ev.MayAdopt(r.gate, p.Home, now) || r.gate.Ledger().Free() <= 0 {
				break
			}
			r.adopt(now, p)
		}
		r.wanting = r.wanting[1:]
	}
	r.gate.Wanted = len(r.wanting)
}

// Adopted is whose visit somebody on the site was before it was this node's, zero if that was
// nobody's: a simulator asks.
func (n *Node) Adopted(name string, id qpid.ItemID) (from eviction.Account) {
	if r, err := n.room(name); err == nil {
		if v := r.visitors.get(id); v != nil && v.stage == onSite {
			from = r.pasts[id].adopted
		}
	}
	return from
}
