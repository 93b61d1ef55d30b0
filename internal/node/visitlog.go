package node

import (
	"cmp"
	"math"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// visitLog is the batches of a node.
type visitLog struct {
	dirty   []*room
	flight  *flight
	late    []eviction.RoomLines // of rooms that are not here
	struck  []eviction.RoomLines // of them, to be struck
	leaving bool                 // visits are to be given away,
	left    bool                 // and the disk has that
	fails   bool                 // the last try to write has failed, or is late
	wellAt  int64                // boot time at which that was not so last
	sweepAt int64
	began   int64 // boot time of this life
}

// flight is the batch on its way.
type flight struct {
	at      int64 // boot time at which it went
	lines   []flightLine
	held    []heldLine
	leaving bool
}

type flightLine struct {
	room   *room
	id     qpid.ItemID
	of     *diskLine
	until  int64            // 0: it is struck
	home   eviction.Account // of whom the disk has it then; zero: it is struck
	slot   eviction.Account // whose slot waits for that; zero: nobody's
	renews bool
}

type heldLine struct {
	room  *room
	until int64
}

// batchLines bounds those of one batch: to some MB.
const batchLines = 8192

// hangsAfter is how many µs a batch takes that is late: nobody is called then until it is durable,
// as with one that has failed.
const hangsAfter = 500_000

// noteLate notes that the batch on its way is late.
func (n *Node) noteLate(now eviction.Time) {
	n.visitLog.fails = n.visitLog.fails || now.Boot >= n.lateAt()
	if !n.visitLog.fails {
		n.visitLog.wellAt = now.Boot
	}
}

// stuck reports whether the disk has taken nothing for so long that others are to go on without
// this node, if they can: it says nothing, as one whose record cannot be saved. It would be given
// all slots, else, and calls nobody.
func (n *Node) stuck(now eviction.Time) bool {
	return n.visitLog.fails && n.ev.Spared() && now.Boot-n.visitLog.wellAt >= n.c.DiskWait.Microseconds()
}

// lateAt is the boot time at which the batch on its way is late, if nobody has noted yet that it is.
func (n *Node) lateAt() int64 {
	if f := n.visitLog.flight; f != nil && !n.visitLog.fails {
		return f.at + hangsAfter
	}
	return math.MaxInt64
}

// writes reports whether visits are on a disk.
func (n *Node) writes() bool { return n.c.Visits != nil }

// openVisits takes up what the disk has.
func (n *Node) openVisits(now eviction.Time) {
	n.visitLog.began, n.visitLog.wellAt = now.Boot, now.Boot
	if n.c.Visits == nil {
		return
	}
	n.visitLog.late = n.c.Visits.Rooms
	v := *n.c.Visits
	v.Rooms = nil
	if n.c.Persisted == nil {
		v.Lives = nil // it cannot tell what was known of them
	}
	n.c.Visits = &v
}

// mayGive reports whether visits may be given away: the disk has that they are, so that a next
// life goes on with none of which it does not know whether somebody else does.
func (n *Node) mayGive() bool { return !n.writes() || n.visitLog.left }

// batch is what is to be made durable next, nil if nothing is, or something is already on its way.
func (n *Node) batch(now eviction.Time) *eviction.VisitsBatch {
	log := &n.visitLog
	leaving := log.leaving && !log.left
	if !n.writes() || log.flight != nil || len(log.dirty)+len(log.struck) == 0 && !leaving {
		return nil
	}
	b, f := &eviction.VisitsBatch{Leaving: leaving, Rooms: log.struck}, &flight{at: now.Boot, leaving: leaving}
	log.struck = nil
	slices.SortFunc(log.dirty, func(a, b *room) int { return cmp.Compare(a.name, b.name) })
	rest := log.dirty[:0]
	for _, r := range log.dirty {
		lines := eviction.RoomLines{Room: r.name}
		for len(r.changed) > 0 && len(f.lines) < batchLines {
			r.nextLine(&lines, f)
		}
		if r.nobodys.until != r.nobodys.said {
			lines.Held = r.nobodys.until
			f.held = append(f.held, heldLine{r, r.nobodys.until})
			r.nobodys.said = r.nobodys.until
		}
		if len(lines.Put)+len(lines.Struck) > 0 || lines.Held != 0 {
			b.Rooms = append(b.Rooms, lines)
		}
		r.dirty = len(r.changed) > 0
		if r.dirty {
			rest = append(rest, r)
		}
	}
	clear(log.dirty[len(rest):])
	log.dirty = rest
	if len(b.Rooms) == 0 && !leaving {
		return nil
	}
	log.flight = f
	return b
}

// nextLine puts the next line that has changed into a batch.
func (r *room) nextLine(lines *eviction.RoomLines, f *flight) {
	id := r.changed[0]
	r.changed = r.changed[1:]
	l := r.lines[id]
	if l == nil || !l.due {
		return
	}
	l.due, l.away = false, true
	out := flightLine{room: r, id: id, of: l, renews: l.renews}
	l.renews = false
	switch {
	case l.next != nil:
		lines.Put = append(lines.Put, *l.next)
		out.until, out.home = l.next.Until, l.next.Homes[0]
		l.next = nil
	default:
		lines.Struck = append(lines.Struck, id)
		if l.state == lineStriking {
			out.slot = r.gate.Ledger().Account()
		}
	}
	f.lines = append(f.lines, out)
}

// VisitsSaved notes that the batch that Ready has asked for last is durable.
func (n *Node) VisitsSaved(now eviction.Time) {
	f := n.visitLog.flight
	if f == nil {
		return
	}
	n.visitLog.flight, n.visitLog.fails = nil, false
	n.visitLog.left = n.visitLog.left || f.leaving
	n.clock(now) // an account may have lapsed
	for _, h := range f.held {
		h.room.nobodys.durable = max(0, h.until)
		h.room.vague = h.room.vague && (h.until > 0 || h.room.nobodys.until > 0)
		h.room.before.said = nil
	}
	for i := range f.lines {
		l := &f.lines[i]
		l.room.safely(now, func(eviction.Time) { l.room.saved(l) })
	}
	n.copies.look = true // for those whose visits are offered
	n.advance(now)
	n.takeOffered(now)
	n.giveAway(now)
}

// saved notes that one line is durable.
func (r *room) saved(f *flightLine) {
	l := f.of
	l.away = false
	r.stir()
	if f.renews {
		r.rewrite--
		r.before.said = nil
	}
	if f.until > 0 {
		l.on = true
		if f.home != r.gate.Ledger().Account() {
			return // it was closed meanwhile: no pass of another is good by that line
		}
		l.durable = f.until
		if r.lines[f.id] == l && l.state == lineOurs && len(r.node.copies.kept) < keptMax {
			r.node.copies.kept = append(r.node.copies.kept, Place{r.name, f.id})
		}
		return
	}
	if f.slot != (eviction.Account{}) && f.slot == r.gate.Ledger().Account() && r.broken == nil {
		r.striking--
		r.gate.Ledger().Release()
		r.gate.Touch()
	}
	if r.lines[f.id] != l {
		return
	}
	l.durable, l.on, l.older = 0, false, false
	if !l.due && (l.state == lineStriking || l.state == lineStruck) {
		delete(r.lines, f.id)
	}
}

// VisitsFailed notes that the batch could not be made durable, and is tried again: nobody is
// called meanwhile who could not come in.
func (n *Node) VisitsFailed() { n.visitLog.fails = true }
