package node

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// before are the visits of earlier lives.
type before struct {
	pending []eviction.VisitLine // with which this life has not gone on, by id as the disk has them
	lives   []eviction.Member    // with which it has; a pass of theirs is this node's business
	rewrite int                  // of them the lines that do not say so yet, durably
	vague   bool                 // the disk has that somebody unknown uses a slot
	silent  bool                 // of some a life is on no record: no wave waits for it but by those that are
	said    []eviction.Earlier   // what pending comes to; nil: find out
}

// takeUpLines gives a new room what the disk has of it.
func (r *room) takeUpLines() {
	late := r.node.visitLog.late
	i := slices.IndexFunc(late, func(l eviction.RoomLines) bool { return l.Room == r.name })
	if i < 0 {
		return
	}
	r.pending, r.vague = late[i].Put, late[i].Held > 0
	r.silent = slices.ContainsFunc(r.pending, func(v eviction.VisitLine) bool { return !r.node.ev.HasMet(v.Homes[0].Member) })
	if until := late[i].Held; until > 0 {
		r.nobodys = nobodys{until, until, until}
	}
	r.node.visitLog.late = slices.Delete(slices.Clone(late), i, i+1)
}

// sweepLines strikes what has run out of closed accounts and of earlier lives, now and then.
func (n *Node) sweepLines(now eviction.Time) {
	if !n.writes() || now.Boot < n.visitLog.sweepAt || !n.ev.Clear() {
		return
	}
	n.visitLog.sweepAt = now.Boot + n.c.Cluster.WithDefaults().Period.Microseconds()*5
	for _, r := range n.rooms {
		if r.leftover+len(r.pending) > 0 || r.nobodys.until > 0 {
			r.sweepLines(now)
		}
	}
	clock, skew := n.ev.Now(now), n.c.Cluster.WithDefaults().MaxSkew.Microseconds()
	for i := range n.visitLog.late {
		l := &n.visitLog.late[i]
		var over []qpid.ItemID
		l.Put = slices.DeleteFunc(slices.Clone(l.Put), func(v eviction.VisitLine) bool {
			if v.Until+2*skew > clock {
				return false
			}
			over = append(over, v.ID)
			return true
		})
		if len(over) > 0 {
			n.visitLog.struck = append(n.visitLog.struck, eviction.RoomLines{Room: l.Room, Struck: over})
		}
	}
}

func (r *room) sweepLines(now eviction.Time) {
	clock := r.node.ev.Now(now)
	if r.leftover > 0 {
		over := func(l *diskLine) bool { return l.state == lineLeft && clock >= l.until+2*r.skew() }
		for _, id := range r.linesThat(over) {
			r.leftover--
			r.strikeLine(id, r.lines[id])
		}
	}
	if len(r.held) == 0 && r.nobodys.until > 0 && clock >= r.nobodys.until+2*r.skew() {
		r.nobodys.until = -1
		r.soil()
	}
	r.pending = slices.DeleteFunc(r.pending, func(v eviction.VisitLine) bool {
		if r.passEnds(&v, now)+2*r.skew() > clock {
			return false
		}
		r.strikePending(v.ID)
		return true
	})
}

// strikePending takes a line of an earlier life off the disk.
func (r *room) strikePending(id qpid.ItemID) {
	r.before.said = nil
	if r.lines[id] != nil {
		return // it is another life's by now
	}
	l := &diskLine{state: lineStruck, on: true}
	r.keepLine(id, l)
	r.send(id, l)
}

// passEnds is the pass time at which a pass of an earlier life is over at the latest: that
// life ended before this one began. The room's session_max may have been longer then, or none.
func (r *room) passEnds(v *eviction.VisitLine, now eviction.Time) int64 {
	began := r.node.ev.Now(now) - (now.Boot - r.node.visitLog.began)
	return min(v.Until, began+r.gate.MaxPass()+2*r.skew())
}

// earlier is what there is to say of this node's earlier lives, see eviction.Earlier.
func (r *room) earlier() []eviction.Earlier {
	if r.silent {
		return nil
	}
	if r.before.said == nil {
		r.before.said = r.findEarlier()
	}
	out := make([]eviction.Earlier, 0, len(r.before.said))
	for _, e := range r.before.said {
		if r.node.ev.HasMet(e.Account.Member) {
			out = append(out, e)
		}
	}
	return out
}

func (r *room) findEarlier() []eviction.Earlier {
	said := []eviction.Earlier{}
	for _, m := range r.node.c.Visits.Lives {
		e, whole := eviction.Earlier{Account: eviction.Account{Member: m}}, !r.vague
		if slices.Contains(r.before.lives, m) {
			e.State = eviction.EarlierResumed
			if r.rewrite > 0 {
				e.State = eviction.EarlierBooked
			}
			said = append(said, e)
			continue
		}
		for i := range r.pending {
			home := r.pending[i].Homes[0]
			if home.Member != m {
				continue
			}
			e.Visits++
			if e.Account.Born != 0 && home.Born != e.Account.Born {
				whole = false
			}
			e.Account.Born = max(e.Account.Born, home.Born)
		}
		if e.Visits > 0 {
			e.State = eviction.EarlierWhole
			whole = whole && !slices.Contains(r.node.c.Visits.Leaving, m)
		}
		if whole {
			said = append(said, e)
		}
	}
	return said
}

// takePending returns the visits of those lives of which this node has said that it has all.
func (r *room) takePending() (whole []eviction.VisitLine) {
	said := r.earlier()
	isWhole := func(m eviction.Member) bool {
		return slices.ContainsFunc(said, func(e eviction.Earlier) bool { return e.Account.Member == m && e.State == eviction.EarlierWhole })
	}
	var rest []eviction.VisitLine
	for _, v := range r.pending {
		if isWhole(v.Homes[0].Member) {
			whole = append(whole, v)
		} else {
			rest = append(rest, v)
		}
	}
	r.pending, r.before.said = rest, nil
	return whole
}

// resume goes on with the visits of earlier lives, on slots of their own.
func (r *room) resume(now eviction.Time) {
	clock := r.node.ev.Now(now)
	pending := r.takePending()
	for i := range pending {
		line := &pending[i]
		ends := r.passEnds(line, now)
		if ends+2*r.skew() <= clock || r.lines[line.ID] != nil {
			r.strikePending(line.ID)
			continue
		}
		gen := line.Gen
		if v := r.visitors.get(line.ID); v != nil && r.withdraw(v, now) { // a copy of the place that the pass was for
			gen = max(gen, v.gen)
			r.node.isUsed(v.id, now)
			r.record(Dropped, v.weight(), 0, qpid.Weight{})
			r.remove(v)
		}
		r.gate.Book(1)
		visit := eviction.Visit{ID: line.ID, Stamp: line.Stamp, Gen: gen, Expires: ends, Started: line.Started, Homes: line.Homes[1:], Hand: line.Hand}
		r.takeIn(now, line.Homes[0], &visit)
		l := r.lines[line.ID]
		if l == nil { // somebody else is here under that id: the slot is used until the pass has run out
			l = &diskLine{state: lineLeft, until: ends}
			r.keepLine(line.ID, l)
			r.leftover++
		} else {
			l.renews, l.older = true, true
			r.rewrite++
		}
		l.on = true
	}
	for _, m := range r.node.c.Visits.Lives {
		if slices.ContainsFunc(pending, func(v eviction.VisitLine) bool { return v.Homes[0].Member == m }) {
			r.before.lives = append(r.before.lives, m)
		}
	}
	r.before.said = nil
	r.gate.Touch()
}

// goesOn reports whether the visits of an earlier life go on here.
func (r *room) goesOn(m eviction.Member) bool { return slices.Contains(r.before.lives, m) }

// WentOn reports whether visits of earlier lives go on in any room: a simulator asks.
func (n *Node) WentOn() bool {
	return slices.ContainsFunc(n.rooms, func(r *room) bool { return len(r.before.lives) > 0 })
}
