package node

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// Who is on the site is on the disk, too, where the node has one: then it goes on with them in
// its next life (eviction/resume.go), and their slots need not be waited for.
//
// Each visit has a line, which says until when a pass of it may be good at most. A pass is good
// for no longer than a line that is durable says: who comes in waits for that, as for an heir
// (guard.go). What is said is a quarter of a session more than what is needed, so that most
// renewals need no line. The lines of a batch are durable together; one is on its way at a time,
// and the next has whatever has changed meanwhile.
//
// When a visit is over its line is struck, and its slot stays in use until that is durable. So
// there are no more lines of an account on the disk than it has slots in use: what is used once
// more is not booked twice in a next life.
//
// An account that is closed leaves its lines behind: its passes are good until they end. They
// are struck when they have run out, by a clock that a quorum has taken for right in this life.
// So are the lines of earlier lives with which the node does not go on.
//
// Invariant: striking is how many slots are in use for lines that are being struck.
type onDisk struct {
	lines    map[qpid.ItemID]*diskLine
	changed  []qpid.ItemID // whose line is to be written, in order; may name one twice, or one of which nothing is due
	dirty    bool          // in the node's list of rooms with changes
	striking int
	leftover int // lines of closed accounts
	nobodys  nobodys
	before
}

// nobodys is until when, in pass time, passes use slots here of which there is no line:
// this life's visits cannot go on in a next one. Negative: there were such passes.
type nobodys struct{ until, said, durable int64 }

// diskLine is what the disk has of a visit, or is to have.
type diskLine struct {
	home    eviction.Account    // whose it is, while that is open
	until   int64               // as it is said; pass time
	durable int64               // 0: it has no such line of this account
	started int64               // pass time
	next    *eviction.VisitLine // to be written; nil with due: to be struck
	state   lineState
	due     bool // its change is in no batch yet
	away    bool // the batch on its way has one
	on      bool // the disk has one, of whatever account
	renews  bool // that is of an earlier life, and not written anew yet
	older   bool // it was another account's before: a pass of that may be out
}

type lineState uint8

const (
	lineOurs     lineState = iota // the visit is here, and has a slot
	lineStriking                  // it is over, and its slot waits
	lineStruck                    // it is over, and no slot waits
	lineLeft                      // its account is closed
	lineGiven                     // it is on its way to another node
)

// write has the disk keep the visit of v for as long as a pass may be good that it gets now.
func (r *room) write(v *visitor, now eviction.Time) {
	if !r.node.writes() {
		return
	}
	session := r.gate.Session().Microseconds()
	need := r.node.ev.Now(now) + session
	if v.stage == onSite {
		need = v.expires
	}
	l := r.lines[v.id]
	if l != nil && l.state == lineOurs && l.until-need >= session/8 {
		return
	}
	r.put(r.lineOf(v, now), need+session/4)
}

// lineOf is what the disk is to have of v.
func (r *room) lineOf(v *visitor, now eviction.Time) *eviction.VisitLine {
	p := r.pasts[v.id]
	line := &eviction.VisitLine{ID: v.id, Stamp: v.stamp, Gen: v.gen, Started: r.node.ev.Now(now), Hand: p.hand, Homes: []eviction.Account{r.gate.Ledger().Account()}}
	if l := r.lines[v.id]; v.stage == onSite {
		line.Started = v.seen
	} else if l != nil && l.state == lineOurs {
		line.Started = l.started
	}
	if p.adopted != (eviction.Account{}) {
		line.Homes = append(append(line.Homes, p.adopted), p.earlier...)
		line.Homes = line.Homes[:min(len(line.Homes), 1+eviction.HomesMax)]
	}
	return line
}

// put has the disk have a line, good until then at least.
func (r *room) put(line *eviction.VisitLine, until int64) {
	l := r.lines[line.ID]
	if l == nil {
		l = &diskLine{state: lineStruck}
		r.keepLine(line.ID, l)
		until = max(until, r.replaces(line, l))
	}
	switch l.state {
	case lineStriking:
		if l.due { // it is not struck after all; what uses it now has a slot of its own
			r.striking--
			r.gate.Ledger().Release()
		}
	case lineLeft:
		r.leftover--
		l.older = true
		if !slices.Contains(line.Homes, l.home) { // a ticket that was called at two nodes: another visit takes the place of that one
			r.writeNobodys(l.until)
		}
	default:
	}
	if l.state != lineOurs {
		l.durable = 0 // what the disk has is of another account
	}
	l.state, l.home, l.until, l.started = lineOurs, line.Homes[0], max(l.until, until), line.Started
	line.Until = l.until
	l.next = line
	r.send(line.ID, l)
}

func (r *room) keepLine(id qpid.ItemID, l *diskLine) {
	if r.lines == nil {
		r.lines = make(map[qpid.ItemID]*diskLine)
	}
	r.lines[id] = l
}

// replaces takes what is pending of an earlier life out of that, as a line is about to take its
// place, and returns until when it was good. Of another visit a pass is still out that uses a slot of that
// life, which has no line any more: then it is not known whole.
func (r *room) replaces(line *eviction.VisitLine, l *diskLine) (until int64) {
	i, ok := slices.BinarySearchFunc(r.pending, line.ID, func(v eviction.VisitLine, id qpid.ItemID) int { return slices.Compare(v.ID[:], id[:]) })
	if !ok {
		return 0
	}
	until = r.pending[i].Until
	if !slices.Contains(line.Homes, r.pending[i].Homes[0]) {
		r.vague = true
		r.writeNobodys(until)
	}
	r.pending = slices.Delete(r.pending, i, i+1)
	l.on, l.older, r.before.said = true, true, nil
	return until
}

// send puts a line on its way.
func (r *room) send(id qpid.ItemID, l *diskLine) {
	if !l.due {
		l.due = true
		r.changed = append(r.changed, id)
	}
	r.soil()
}

func (r *room) soil() {
	if !r.dirty {
		r.dirty = true
		r.node.visitLog.dirty = append(r.node.visitLog.dirty, r)
	}
}

// strike takes the line of a visit that is over off the disk, and reports whether its slot
// waits for that.
func (r *room) strike(id qpid.ItemID) bool {
	l := r.lines[id]
	switch {
	case l == nil || l.state == lineStriking || l.state == lineStruck:
		return false
	case l.state == lineLeft: // this use is another one
		return false
	case !l.on && !l.away: // no batch ever had it
		r.drop(id, l)
		return false
	}
	l.state, l.next = lineStriking, nil
	r.striking++
	r.send(id, l)
	return true
}

// strikeLine takes a line off the disk for which no slot waits.
func (r *room) strikeLine(id qpid.ItemID, l *diskLine) {
	if !l.on && !l.away {
		r.drop(id, l)
		return
	}
	l.state, l.next = lineStruck, nil
	r.send(id, l)
}

// drop forgets a line that the disk does not have.
func (r *room) drop(id qpid.ItemID, l *diskLine) {
	l.due = false
	delete(r.lines, id)
}

// noRenewal notes that a line of an earlier life will not be written as this life's.
func (r *room) noRenewal(l *diskLine) {
	if l.renews {
		l.renews = false
		r.rewrite--
		r.before.said = nil
	}
}

// closeLines leaves the lines of an account that is closed to run out, but for those who had
// no pass, of this account or of one before.
func (r *room) closeLines() {
	r.striking = 0
	for _, id := range r.linesThat(func(l *diskLine) bool { return l.state != lineLeft && l.state != lineStruck }) {
		l := r.lines[id]
		v := r.visitors.get(id)
		switch {
		case l.state == lineStriking:
			l.state = lineStruck
		case !l.older && (l.durable == 0 || v != nil && v.stage == called):
			r.strikeLine(id, l)
		default:
			l.state, l.next, l.due = lineLeft, nil, false
			r.leftover++
			r.noRenewal(l)
		}
	}
}

// linesThat returns whose lines are so, by id.
func (r *room) linesThat(are func(*diskLine) bool) (ids []qpid.ItemID) {
	for id, l := range r.lines { //puretest:sorted sorted below
		if are(l) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b qpid.ItemID) int { return slices.Compare(a[:], b[:]) })
	return ids
}

// writtenUntil is until when a pass of id may be good by what the disk has: 0 if it may have
// none yet.
func (r *room) writtenUntil(id qpid.ItemID) int64 {
	if l := r.lines[id]; l != nil && l.state == lineOurs {
		return l.durable
	}
	return 0
}

// writeNobodys has the disk have that somebody unknown uses a slot until then.
func (r *room) writeNobodys(until int64) {
	if r.node.writes() && until > r.nobodys.until {
		r.nobodys.until = until
		r.soil()
	}
}

// writeOffered reports whether the disk has a visit that a node gives which leaves, for as
// long as its pass is good, and has it do so.
func (r *room) writeOffered(from eviction.Account, v *eviction.Visit) bool {
	if !r.node.writes() {
		return true
	}
	if l := r.lines[v.ID]; l == nil || l.state != lineOurs || l.until < v.Expires {
		homes := append([]eviction.Account{r.gate.Ledger().Account(), from}, v.Homes...)
		r.put(&eviction.VisitLine{
			ID: v.ID, Stamp: v.Stamp, Gen: v.Gen, Started: v.Started, Homes: homes[:min(len(homes), 1+eviction.HomesMax)], Hand: v.Hand,
		}, v.Expires+r.gate.Session().Microseconds()/4)
	}
	return r.writtenUntil(v.ID) >= v.Expires
}

// strikeGiven takes those off the disk that others have.
func (r *room) strikeGiven() {
	for _, id := range r.linesThat(func(l *diskLine) bool { return l.state == lineGiven }) {
		r.strikeLine(id, r.lines[id])
	}
}
