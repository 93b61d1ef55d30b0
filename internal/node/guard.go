package node

import (
	"math"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// Who is on the site is kept by an heir as well, like a place: then no more slots are
// missing when this node is lost than there are visits (eviction.Keeping). The heir is told
// of a visit when the browser hears of its call, and until when no pass of it is good. That
// is a session longer than it has to be: who asks for a longer pass gets it at once, and the
// heir hears of them twice in a session.
//
// While the account is promised (eviction.Gate.Promised), no pass is good for longer than
// an heir has acknowledged, and none is given unless the heir has acknowledged something lately:
// else it may have taken this node for lost, and have ended the visit for who asked it to.
//
// Invariant: bareVisits is how many of visits are bare.
type guarded struct {
	visits     map[qpid.ItemID]*guardedVisit
	bareVisits int
	offered    []offeredVisits
}

// guardedVisit is who keeps a visit, and until when. All times are pass times.
type guardedVisit struct {
	copyOf
	stamp uint64 // of the ticket
	said  int64
	kept  int64 // that was acknowledged; 0: nobody keeps it
	out   int64 // until then a pass may be good; 0: there is none
}

// bare reports whether a pass may be good for longer than anybody keeps the visit.
func (g *guardedVisit) bare() bool { return g.out > g.kept }

// becomes has a visit be kept, or a pass of it be out, until then.
func (r *room) becomes(g *guardedVisit, kept, out int64) {
	if g.bare() {
		r.bareVisits--
	}
	if g.kept, g.out = kept, out; g.bare() {
		r.bareVisits++
	}
}

// guard has an heir keep the visit of v for as long as a pass may be good that it gets now.
func (r *room) guard(v *visitor, now eviction.Time) *guardedVisit {
	if r.bare == nil {
		return nil
	}
	session := r.gate.Session().Microseconds()
	return r.guardUntil(v.id, v.stamp, max(v.expires, r.node.ev.Now(now)+session))
}

func (r *room) guardUntil(id qpid.ItemID, stamp uint64, until int64) *guardedVisit {
	g := r.visits[id]
	if g == nil {
		if r.visits == nil {
			r.visits = make(map[qpid.ItemID]*guardedVisit)
		}
		g = &guardedVisit{stamp: stamp}
		r.visits[id] = g
	}
	session := r.gate.Session().Microseconds()
	if stale := g.at > 0 && !r.node.copies.lanes[g.at-1].heardOf(r.node); g.said-until < session/2 || stale && !g.due {
		g.said = max(g.said, until+session)
		r.sayVisit(id, g)
	}
	return g
}

// guardOut is guard for one whose pass is out already.
func (r *room) guardOut(v *visitor, now eviction.Time) {
	if g := r.guard(v, now); g != nil {
		r.becomes(g, g.kept, max(g.out, v.expires))
	}
}

// sayVisit puts a visit on the way to its heir.
func (r *room) sayVisit(id qpid.ItemID, g *guardedVisit) {
	c := &r.node.copies
	to := c.laneFor(r.node, id, g.stamp)
	due := g.due && g.to == to
	if old := g.to; old != to {
		g.to = to
		if old != g.at {
			c.say(r.node, old, copyEntry{room: r, id: id, visit: true, over: true})
		}
	}
	g.due = to > 0
	if g.due && !due {
		c.say(r.node, to, copyEntry{room: r, id: id, visit: true})
	}
}

// unguard has nobody keep the visit of id any more: it is over, or another's.
func (r *room) unguard(id qpid.ItemID) {
	g := r.visits[id]
	if g == nil {
		return
	}
	r.becomes(g, 0, 0)
	delete(r.visits, id)
	e := copyEntry{room: r, id: id, visit: true, over: true}
	r.node.copies.say(r.node, g.at, e)
	if g.to != g.at && !g.due {
		r.node.copies.say(r.node, g.to, e)
	}
}

// sweepVisit looks for an heir of a visit that is another one by now.
func (r *room) sweepVisit(id qpid.ItemID) {
	g, c := r.visits[id], &r.node.copies
	if g == nil {
		return
	}
	if g.at > 0 && c.lanes[g.at-1].heir == (eviction.Member{}) {
		g.at = 0
		r.becomes(g, 0, g.out)
	}
	if to := c.laneFor(r.node, id, g.stamp); to != g.to || g.at != to && !g.due {
		r.sayVisit(id, g)
	}
}

// visitKept notes that the heir of lane i keeps a visit as it was said.
func (r *room) visitKept(e copyEntry, i uint16) {
	g := r.visits[e.id]
	if g == nil || g.to != i {
		return
	}
	if old := g.at; old > 0 && old != i {
		g.at = i
		r.node.copies.say(r.node, old, copyEntry{room: r, id: e.id, visit: true, over: true})
	}
	g.at, r.node.copies.look = i, true
	r.becomes(g, e.until, g.out)
	if len(r.node.copies.kept) < keptMax {
		r.node.copies.kept = append(r.node.copies.kept, Place{r.name, e.id})
	}
	if v := r.visitors.get(e.id); v != nil && v.stage == onSite {
		r.ours(v)
	}
}

// visitRefused notes that the heir of lane i has no room for visits, or is of a version that
// keeps none.
func (r *room) visitRefused(e copyEntry, i uint16) {
	if g := r.visits[e.id]; g != nil && g.to == i {
		g.said = 0 // it is said again as soon as somebody asks
	}
	if r.gate.Retract() {
		r.node.ev.Urge(r.gate)
	}
}

// offeredVisits is a message with visits that a leaving node gives, which this node takes
// in when heirs keep them: their passes are out.
type offeredVisits struct {
	m       *eviction.Slots
	anybody bool // one of the visits is nobody's, or somebody else is here under its id: no heir can keep it
}

// keepFirst reports whether heirs keep the visits of m for as long as their passes are good,
// if that is promised, and the disk. Else it has them do so, and takeOffered looks again.
func (r *room) keepFirst(m *eviction.Slots) bool {
	if r.gate.Ledger().Took(m) {
		return true // it is repeated, as the acknowledgement was lost
	}
	kept, offer, promised := true, offeredVisits{m: m}, r.gate.Promised()
	for i := range m.Visits {
		v := &m.Visits[i]
		if v.ID == (qpid.ItemID{}) || r.atHome(r.visitors.get(v.ID), math.MaxUint32) != nil {
			r.writeNobodys(v.Expires)
			kept = kept && (!r.node.writes() || r.nobodys.durable >= v.Expires)
			offer.anybody = promised
			if promised {
				kept = false
			}
			if r.gate.Retract() {
				r.node.ev.Urge(r.gate)
			}
			continue
		}
		kept = r.writeOffered(m.From, v) && kept
		if promised {
			r.sweepVisit(v.ID)
			r.guardUntil(v.ID, v.Stamp, v.Expires)
			kept = kept && r.guardedUntil(v.ID) >= v.Expires
		}
	}
	again := slices.ContainsFunc(r.offered, func(o offeredVisits) bool { return o.m.From == m.From && o.m.Total == m.Total })
	if !kept && !again && len(r.offered) < offeredMax {
		r.offered = append(r.offered, offer)
		r.node.copies.offers++
	}
	return kept
}

// offeredMax bounds the messages that wait in a room: more are repeated until there is room.
const offeredMax = 256

// takeOffered hands in again what waits for heirs, when something has become of that.
func (n *Node) takeOffered(now eviction.Time) {
	if n.copies.offers == 0 || !n.copies.look {
		return
	}
	n.copies.offers, n.copies.look = 0, false
	for _, r := range n.rooms {
		offered := r.offered
		r.offered = nil
		for _, o := range offered {
			_ = n.ev.Step(now, eviction.Message{From: o.m.From.Member, To: n.c.Self.Member, Body: o.m}) // it was in order the first time
			// The books have the visits of a message before they are here: of one at a time.
			n.carryOn(now)
			if !slices.ContainsFunc(r.offered, func(p offeredVisits) bool { return p.m == o.m }) {
				r.forgo(o.m)
			}
		}
	}
	n.advance(now)
}

// forgo has nobody keep those visits of m that did not come.
func (r *room) forgo(m *eviction.Slots) {
	if r.gate.Ledger().Took(m) {
		return
	}
	for i := range m.Visits {
		if id := m.Visits[i].ID; r.visitors.get(id) == nil {
			r.unguard(id)
			if l := r.lines[id]; l != nil && l.state == lineOurs {
				r.strikeLine(id, l)
			}
		}
	}
}

// guardedUntil is until when a pass of id may be good, while that is promised: 0 if it may
// have none yet.
func (r *room) guardedUntil(id qpid.ItemID) int64 {
	g := r.visits[id]
	if g == nil || g.at == 0 || !r.node.copies.lanes[g.at-1].heardOf(r.node) {
		return 0
	}
	return g.kept
}

// passUntil is until when a pass of v may be good now: 0 if it may have none yet.
func (r *room) passUntil(v *visitor) int64 {
	until := v.expires
	if r.gate.Promised() {
		until = min(until, r.guardedUntil(v.id))
	}
	if r.node.writes() {
		until = min(until, r.writtenUntil(v.id), r.node.ev.LastNow()+r.gate.MaxPass())
	}
	return until
}

// coveredBy reports whether each pass of this account that is out is kept by a member of list.
func (r *room) coveredBy(list []eviction.Member) bool {
	if r.bare == nil || r.unsure || r.broken != nil || r.node.leaveBy != 0 || r.bareVisits > 0 || len(r.held) > 0 || len(r.deletes.active) > 0 || len(r.pending) > 0 && r.gate.MayResume() ||
		slices.ContainsFunc(r.offered, func(o offeredVisits) bool { return o.anybody }) {
		return false
	}
	for i := range r.node.copies.lanes {
		if l := &r.node.copies.lanes[i]; l.heir != (eviction.Member{}) && !(l.keeps && r.node.among.has(list, l.heir)) {
			return false
		}
	}
	return true
}

// Unguarded reports whether somebody who was called gets their pass as soon as an heir
// keeps their visit, and the disk: Ready.Kept says when.
func (n *Node) Unguarded(name string, id qpid.ItemID) bool {
	r, err := n.room(name)
	if err != nil {
		return false
	}
	v := r.visitors.get(id)
	if v == nil || v.stage != called {
		return false
	}
	until := n.ev.LastNow() + r.gate.Session().Microseconds()
	return r.gate.Promised() && r.guardedUntil(id) < until || n.writes() && r.writtenUntil(id) < until
}

// Shortened reports whether somebody on the site gets a longer pass as soon as the disk has
// their visit for longer: Ready.Kept says when.
func (n *Node) Shortened(name string, id qpid.ItemID) bool {
	r, err := n.room(name)
	if err != nil || !n.writes() || n.visitLog.fails {
		return false
	}
	v := r.visitors.get(id)
	return v != nil && v.stage == onSite && r.broken == nil && r.writtenUntil(id) < min(v.expires, n.ev.LastNow()+r.gate.MaxPass())
}
