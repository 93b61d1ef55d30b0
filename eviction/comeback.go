package eviction

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// returning is for how long something waits for people who were lost with their node, or
// while everything was down.
type returning struct {
	back       comeback
	shyUntil   int64 // boot time until which the room is not open: people of a lost node may be on their way
	holdUntil  int64 // boot time until which nobody is called after a cold start
	graceUntil int64 // boot time until which a ticket up to a day old counts as unexpired
}

// comeback is the wait for the people of lost nodes. Those who were next in line
// are back within seconds; without it the slots that came free while the loss
// was being noticed would all go to others, in the first wave after it.
type comeback struct {
	from  qpid.Weight // nobody heavier is entitled until then; the zero Weight: nobody is missing
	until int64       // boot time
	due   bool        // until is not known yet: nobody can take them over on a side without a quorum
}

// soon is the longest interval after which somebody near the front of the line
// checks in again.
const soon = 2 * time.Second

// missLost notes, as a commit of list is installed, who of those with people is not in it
// any more. They may be on their way here, and whoever walks in by an open door would be
// before them.
func (g *Gate) missLost(now int64, list []Member, grade Grade, onLine bool) {
	if len(g.lost(list)) > 0 {
		g.shyUntil = now + micros(g.cfg.Refresh)*11/10
	}
	g.back = g.awaitLost(list, now, g.cfg.OnPartition.admits(grade) && (onLine || g.cfg.OnPartition == Share))
}

// lost returns the members at which people waited and that list lacks.
func (g *Gate) lost(list []Member) (lost []Member) {
	if same(g.members, list) {
		return nil
	}
	for i, m := range g.members {
		if i < len(g.waiting) && g.waiting[i] > 0 && !slices.Contains(list, m) {
			lost = append(lost, m)
		}
	}
	return lost
}

// awaitLost returns the wait as of a wave of list. It begins when list lacks a
// member at which people waited, as soon as others may take them over. The
// coordinator decides by it, and every node that installs the wave keeps it.
func (g *Gate) awaitLost(list []Member, now int64, mayTakeOver bool) comeback {
	b := g.back
	if !b.due && now >= b.until {
		b = comeback{}
	}
	for _, m := range g.lost(list) {
		if w := g.lightestOf(m); b.from == (qpid.Weight{}) || w.Less(b.from) {
			b.from = w
		}
		b.due = true
	}
	if b.due && mayTakeOver {
		b.due, b.until = false, now+micros(min(soon, g.cfg.Refresh)*11/10+g.c.Deadline)
	}
	return b
}

// lightestOf is where m's people beyond the cut begin, as of the last digest, or a little before.
func (g *Gate) lightestOf(m Member) qpid.Weight {
	if i := slices.Index(g.digestOf, m); i >= 0 && i < len(g.first) && g.first[i] > 0 {
		if w := (qpid.Weight{Stamp: g.digest.Marks[g.first[i]-1].Stamp}); g.cut.Value.Less(w) {
			return w
		}
	}
	return g.cut.Value
}

// coldStart gives people of before the time to come back first.
func (g *Gate) coldStart(now int64) {
	g.holdUntil = now + micros(g.cfg.Refresh)*11/10
	g.graceUntil = now + micros(g.cfg.TicketTTL)
}

// TicketLife is how old an untouched ticket of a lost node may be at boot time
// now, in microseconds. After a cold start everyone gets a day.
func (g *Gate) TicketLife(now int64) int64 {
	if now < g.graceUntil {
		return micros(24 * time.Hour)
	}
	return micros(g.cfg.TicketTTL)
}
