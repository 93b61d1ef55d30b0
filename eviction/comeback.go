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
	waveAt     int64 // boot time of the last wave here; 0: there was none yet
	holdUntil  int64 // boot time until which nobody is called after a cold start; 0: not held
	heard      bool  // a wave of this life has said whether the room is held
	graceUntil int64 // boot time until which a ticket up to a day old counts as unexpired
}

// comeback is the wait for the people of lost nodes. Those who were next in line
// are back within seconds; without it the slots that came free while the loss
// was being noticed would all go to others, in the first wave after it.
//
// It is over when their nodes are back, in the same life: their people are counted again. Else
// one that is left out and taken back over and over would have nobody called for good.
type comeback struct {
	of    []missing // never changed: another takes its place
	until int64     // boot time, see lasts
	due   bool      // until is not known yet: nobody can take them over on a side without a quorum
}

// missing is a node at which people waited, and where they begin: nobody heavier is
// entitled until then.
type missing struct {
	member Member
	bare   qpid.Weight // those whom no other node keeps,
	all    qpid.Weight // and everybody who waited there, or has joined since
}

// from is where those of m begin who are waited for: if others are missing as well, who
// keeps them may be one of these.
func (b *comeback) from(m *missing) qpid.Weight {
	if len(b.of) > 1 {
		return m.all
	}
	return m.bare
}

// anew is the wait in another order: whoever is missing may be anywhere in it.
func (b comeback) anew() comeback {
	b.of = slices.Clone(b.of)
	for i := range b.of {
		b.of[i].bare, b.of[i].all = qpid.Weight{}, qpid.Weight{}
	}
	return b
}

// limits reports whether a cut at w would pass somebody who is missing, and where they begin.
func (b *comeback) limits(now int64, w qpid.Weight) (from qpid.Weight, passes bool) {
	if now >= b.until {
		return w, false
	}
	from = w
	for i := range b.of {
		if at := b.from(&b.of[i]); at.Less(from) {
			from, passes = at, true
		}
	}
	return from, passes
}

// soon is the longest interval after which somebody near the front of the line
// checks in again.
const soon = 2 * time.Second

// missLost notes, as a commit of list is installed, who of those with people is not in it
// any more. They may be on their way here, and whoever walks in by an open door would be
// before them.
func (g *Gate) missLost(now int64, list []Member, met []Sighting, grade Grade, onLine bool) {
	g.shyUntil = g.lasts(g.shyUntil, now)
	if len(g.lost(list)) > 0 {
		g.shyUntil = now + micros(g.cfg.Refresh)*11/10
	}
	g.back = g.awaitLost(&g.cfg, list, met, now, g.cfg.OnPartition.admits(grade, onLine, g.sides))
	g.waveAt = now
}

// shy reports whether the door is shut at boot time now to who would walk in, for people
// of a lost node who may be on their way.
func (g *Gate) shy(now int64) bool { return now < g.lasts(g.shyUntil, now) }

// lasts is until when people are waited for, as seen at boot time now. While this node
// stands still, or is in no wave, they cannot come to it, and where it is missed for a
// quorum to no other: then they have as long after it.
func (g *Gate) lasts(until, now int64) int64 {
	if away := now - g.waveAt; until > g.waveAt && away > micros(g.c.ExcludeAfter) {
		return until + away
	}
	return until
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

// awaitLost returns the wait as of a wave of list. It begins when list lacks a member at
// which people waited, as soon as others may take them over, and is over early when list
// has it again. The coordinator decides by it, and every node that installs the wave
// keeps it: by the configuration that the wave agreed on, cfg, which may be new in it.
func (g *Gate) awaitLost(cfg *Room, list []Member, met []Sighting, now int64, mayTakeOver bool) comeback {
	b := g.back
	b.until = g.lasts(b.until, now)
	if !b.due && now >= b.until {
		b = comeback{}
	}
	b.of = slices.DeleteFunc(slices.Clone(b.of), func(m missing) bool { return slices.Contains(list, m.member) })
	for _, m := range g.gone(cfg, list, met) {
		b.of = append(b.of, m)
		b.due = true
	}
	if len(b.of) == 0 {
		return comeback{}
	}
	b.due = b.due || !mayTakeOver
	if b.due && mayTakeOver {
		back := max(micros(min(soon, cfg.Refresh)*11/10), g.c.waits.Exclude) // who comes too early is told when to come
		b.due, b.until = false, now+back+micros(g.c.Deadline)
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

// gone returns what there is to wait for of the members that list lacks. Where nobody
// waited at one that has taken its leave, everybody has been given to others.
func (g *Gate) gone(cfg *Room, list []Member, met []Sighting) (gone []missing) {
	if same(g.members, list) {
		return nil
	}
	for i, m := range g.members {
		if slices.Contains(list, m) {
			continue
		}
		waited := i < len(g.waiting) && g.waiting[i] > 0
		left := slices.ContainsFunc(met, func(s Sighting) bool { return s.Member == m && s.Left })
		if !waited && (left || !g.c.copied(cfg)) {
			continue
		}
		out := missing{m, qpid.Weight{Stamp: g.t}, qpid.Weight{Stamp: g.t}} // whoever has joined there since
		if waited {
			out.all = g.lightestOf(m)
			out.bare = out.all
		}
		if i < len(g.bare) {
			out.bare = qpid.Weight{Stamp: g.bare[i]} // who joins is told of it when another node keeps the place
		}
		gone = append(gone, out)
	}
	return gone
}

// What a node says of a hold that no wave has told it of.
const (
	heldUnknown = -1 // it is new to the room
	heldAnew    = -2 // all that it knows is from before its start
)

// coldStart gives people of before the time to come back first, from the first wave
// that could call anybody, if nobody else knows better.
func (g *Gate) coldStart(now int64) {
	g.holdUntil, g.heard = now+g.comeBackIn(), false
	g.graceUntil = now + micros(g.cfg.TicketTTL)
}

// comeBackIn is how long it takes until everybody who waits has asked again, in microseconds.
func (g *Gate) comeBackIn() int64 { return micros(g.cfg.Refresh) * 11 / 10 }

// held is what the node reports of the hold at boot time now, see RoomNode.Held.
func (r *returning) held(now int64) int64 {
	switch {
	case r.heard:
		return max(0, r.holdUntil-now)
	case r.holdUntil > 0:
		return heldAnew
	}
	return heldUnknown
}

// heldFor returns for how long nobody is called, in microseconds. Only if everything was
// down there is somebody to wait for: where one node calls people, those of another that
// comes back have been with the others all the time, or were taken over.
func (g *Gate) heldFor(nodes []RoomNode) int64 {
	var anew, told int64
	for i := range nodes {
		switch held := nodes[i].Held; {
		case held == 0:
			return 0
		case held == heldAnew:
			anew = g.comeBackIn()
		case held > 0 && (told == 0 || held < told):
			told = held
		}
	}
	if told > 0 {
		return told
	}
	return anew
}

// hear takes what a wave says of the hold, from boot time now on. Who has heard of it
// before keeps to that, else the hold would grow by what a wave takes, wave by wave.
func (r *returning) hear(now, held int64) {
	switch {
	case held == 0:
		r.holdUntil = 0
	case !r.heard:
		r.holdUntil = now + held
	}
	r.heard = true
}

// TicketLife is how old an untouched ticket of a lost node may be at boot time
// now, in microseconds. After a cold start everyone gets a day.
func (g *Gate) TicketLife(now int64) int64 {
	if now < g.graceUntil {
		return micros(24 * time.Hour)
	}
	return micros(g.cfg.TicketTTL)
}
