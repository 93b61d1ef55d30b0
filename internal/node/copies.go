package node

import (
	"maps"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// Each place in line is kept by one other node as well, its heir: who would go on with it
// if this node were lost. Places go down a lane to each heir, in batches: the next when
// the last was acknowledged. See kept.go for the other end.
//
// A wave tells where those begin here whom nobody else keeps (eviction.RoomNode.Bare).
// If this node is lost, and no other, only they have to be waited for: the others are
// kept by heirs who are in the next wave, and say so, or this node did not count them.
//
// What changes of a place is said again, and until that is acknowledged the place is bare:
// so what counts as kept is kept as it is. A place that gets another heir counts as kept
// by the one before until the new one has it. A lane ends when its heir is left out of a
// wave, or says that it does not know the lane; then nobody is sure of anything until all
// places were looked at.
//
// Invariant: a lane that a copyOf names is open, or the room is unsure.
// Invariant: bare has the keys of all who are queued and whose copyOf says that they are
// kept by nobody.
type copies struct {
	heirs   []eviction.Peer            // one of them for each place
	of      []eviction.Peer            // as of this: see eviction.Node.Heirs
	lanes   []lane                     // copyOf counts them from 1
	to      map[eviction.Member]uint16 // the open ones
	answers map[eviction.Member]bool   // who has ever acknowledged anything; an older version does not
	mute    []muteHeir                 // who did not acknowledge anything for long, and are no heirs for a while
	kept    []Place                    // that an heir keeps since Ready was called
	look    bool                       // something has become of what they wait for
	offers  int                        // messages with visits that wait in rooms until those are kept
	sweeps  int                        // rooms in which places are looked at for another heir
	epoch   qpid.Epoch                 // of the last wave,
	wave    int64                      // and boot time
}

// muteHeir is a member that the places of this node do not reach, or whose word does not
// reach this node: one bad link is enough. Another keeps its part for a while.
type muteHeir struct {
	member eviction.Member
	until  int64 // boot time
}

// copyOf says who keeps a place.
type copyOf struct {
	at, to uint16 // lanes: of who does, and of who is to; 0: none
	due    bool   // it is in the todo of lane to
}

// copied is who keeps the places of a room.
type copied struct {
	bare     *qpid.Queue // nil: the room is not copied
	of       []copyOf    // by number of the visitor's record
	sweep    uint32      // the record to look at next,
	sweeping bool        // for an heir that is another one now
	unsure   bool        // some may name a lane that is closed
	guarded
}

const (
	lanesMax   = 1 << 15
	todoMax    = 1 << 21    // per lane; past it the lane begins anew
	sweepMax   = 4096       // places looked at between two inputs, where there are few heirs
	sweepAgain = 1000       // µs
	keptMax    = 1 << 16    // told of between two calls of Ready
	muteFor    = 30_000_000 // µs
)

// follow has lanes go to those who may be heirs by now.
func (c *copies) follow(n *Node, now eviction.Time) {
	if n.c.Cluster.Copies == 0 {
		return
	}
	if in := n.ev.Installed(); in != c.epoch {
		// Who was in no wave for some time may have been taken for lost.
		if now.Boot-c.wave >= n.c.Cluster.WithDefaults().ExcludeAfter.Microseconds()*3/4 {
			for i := range c.lanes {
				c.close(n, &c.lanes[i])
			}
		}
		c.epoch, c.wave = in, now.Boot
		for _, r := range n.rooms {
			r.copyAnew(now)
		}
	}
	all := n.ev.Heirs()
	if len(c.mute) > 0 && now.Boot >= c.mute[0].until {
		c.mute, c.of = c.mute[1:], nil
	}
	if c.of != nil && len(all) == len(c.of) && (len(all) == 0 || &all[0] == &c.of[0]) {
		return
	}
	c.of = all
	heirs := slices.DeleteFunc(slices.Clone(all), func(p eviction.Peer) bool {
		return p.Member == n.c.Self.Member || slices.ContainsFunc(c.mute, func(m muteHeir) bool { return m.member == p.Member })
	})
	for i := range c.lanes {
		if l := &c.lanes[i]; l.heir != (eviction.Member{}) && !n.ev.Listed(l.heir) {
			c.close(n, l)
		}
	}
	if slices.Equal(heirs, c.heirs) {
		return
	}
	c.heirs = heirs
	maps.DeleteFunc(c.answers, func(m eviction.Member, _ bool) bool { return !n.ev.Listed(m) }) //puretest:sorted none depends on another
	for _, r := range n.rooms {
		r.copyAnew(now)
		r.sweepAnew()
	}
}

// copyAnew begins to have the room's places kept, or ends it.
func (r *room) copyAnew(now eviction.Time) {
	wanted := r.gate.Copied() && r.broken == nil && len(r.node.copies.heirs) > 0
	switch {
	case wanted && r.bare == nil:
		r.copied = copied{bare: qpid.NewQueue()}
		r.visitors.all(func(v *visitor) {
			if v.stage == queued {
				r.bare.Insert(r.gate.Key(v.weight()))
			}
		})
		r.sweepAnew()
		r.visitors.all(func(v *visitor) {
			if v.stage == onSite {
				r.guardOut(v, now)
			}
		})
	case !wanted && r.bare != nil:
		r.copyNone()
		for i := range r.node.copies.lanes {
			r.node.copies.close(r.node, &r.node.copies.lanes[i]) // what they keep of this room is to be forgotten
		}
	}
}

func (r *room) sweepAnew() {
	if r.bare == nil {
		return
	}
	r.sweep = 0
	if !r.sweeping {
		r.sweeping = true
		r.node.copies.sweeps++
	}
}

// swept ends that.
func (r *room) swept() {
	if r.sweeping {
		r.sweeping, r.unsure = false, false
		r.node.copies.sweeps--
	}
}

// copyNone has nobody keep any place of the room.
func (r *room) copyNone() {
	r.swept()
	r.copied = copied{}
}

// copyOf is who keeps v's place.
func (r *room) copyOf(v *visitor) *copyOf {
	if int(v.number) >= len(r.copied.of) {
		r.copied.of = append(r.copied.of, make([]copyOf, int(v.number)+1-len(r.copied.of))...)
	}
	return &r.copied.of[v.number]
}

// copy has the place of v kept as it is now. Until it is, nobody keeps it.
func (r *room) copy(v *visitor) {
	if r.bare == nil || v.stage > parked {
		return
	}
	c := r.copyOf(v)
	to := r.node.copies.laneFor(r.node, v.id, v.stamp)
	for _, old := range [...]uint16{c.at, c.to} {
		if old != to {
			r.node.copies.say(r.node, old, copyEntry{room: r, id: v.id})
		}
	}
	due := c.due && c.to == to
	*c = copyOf{to: to, due: to > 0}
	if v.stage == queued {
		r.bare.Insert(r.gate.Key(v.weight()))
	}
	if to > 0 && !due {
		r.node.copies.say(r.node, to, copyEntry{room: r, id: v.id})
	}
}

// uncopy has nobody keep the place of v any more, which is over, or another's.
func (r *room) uncopy(v *visitor) {
	if r.bare == nil || int(v.number) >= len(r.copied.of) {
		return
	}
	c := r.copied.of[v.number]
	r.copied.of[v.number] = copyOf{}
	if c.to != c.at {
		r.node.copies.say(r.node, c.at, copyEntry{room: r, id: v.id})
	}
	if !c.due {
		r.node.copies.say(r.node, c.to, copyEntry{room: r, id: v.id})
	}
}

// uncovered takes v, who is not queued any more, out of those who are and whom nobody keeps.
func (r *room) uncovered(v *visitor) {
	if r.copyOf(v).at == 0 {
		r.bare.Delete(r.gate.Key(v.weight()))
	}
}

// rekeyCopies puts who is kept by nobody in the order of a draw.
func (r *room) rekeyCopies() {
	if r.bare == nil {
		return
	}
	r.bare = qpid.NewQueue()
	r.visitors.all(func(v *visitor) {
		if v.stage == queued && r.copyOf(v).at == 0 {
			r.bare.Insert(r.gate.Key(v.weight()))
		}
	})
}

// sweepOn looks at up to most places for an heir that is another one by now, and returns
// at how many more it might.
func (r *room) sweepOn(most int) int {
	if !r.sweeping {
		return most
	}
	c := &r.node.copies
	for ; most > 0; most-- {
		if r.sweep >= r.visitors.records() {
			for _, o := range r.offered {
				for i := range o.m.Visits {
					r.sweepVisit(o.m.Visits[i].ID)
				}
			}
			r.swept()
			return most
		}
		v := r.visitors.at(r.sweep)
		r.sweep++
		if v.slot == gone {
			continue
		}
		if v.stage == called || v.stage == onSite {
			r.sweepVisit(v.id)
		}
		if v.stage > parked {
			continue
		}
		of := r.copyOf(v)
		if of.at > 0 && c.lanes[of.at-1].heir == (eviction.Member{}) {
			of.at = 0
			if v.stage == queued {
				r.bare.Insert(r.gate.Key(v.weight()))
			}
		}
		to := c.laneFor(r.node, v.id, v.stamp)
		if to == of.to && (of.due || of.at == to) {
			continue
		}
		if of.to != of.at && of.to != to {
			c.say(r.node, of.to, copyEntry{room: r, id: v.id})
		}
		of.to, of.due = to, to > 0
		if to > 0 {
			c.sayLater(r.node, to, copyEntry{room: r, id: v.id})
		}
	}
	return 0
}

// placeKept is what an heir has to know of v's place.
func (r *room) placeKept(v *visitor) eviction.Place {
	return eviction.Place{
		ID: v.id, Stamp: v.stamp, Gen: v.gen + 1, Past: r.pasts[v.id].homes[0], Refresh: v.refresh, Missed: v.missed, Slept: v.slept, Anew: v.has(anew),
		Entitled: v.has(entitled), Wave: v.wave, Parked: v.stage == parked, Hand: r.pasts[v.id].hand,
	}
}

// copiesSettled reports whether heirs that answer know what there is to know.
func (n *Node) copiesSettled(now eviction.Time) bool {
	answers := 2 * n.c.Cluster.WithDefaults().Period.Microseconds()
	for i := range n.copies.lanes {
		l := &n.copies.lanes[i]
		if waits := l.batch != nil || len(l.todo)+len(l.later) > 0; waits && (l.batch == nil || now.Boot-l.since < answers) {
			return false
		}
	}
	return n.copies.sweeps == 0
}

// barest is where those begin who wait here and whom nobody in list keeps, see
// eviction.RoomNode.
func (r *room) barest(list []eviction.Member) uint64 {
	if r.bare == nil || r.unsure {
		return 0
	}
	for i := range r.node.copies.lanes {
		l := &r.node.copies.lanes[i]
		if l.heir != (eviction.Member{}) && (!r.node.among.has(list, l.heir) || !r.node.copies.answers[l.heir]) {
			return 0
		}
	}
	if m, ok := r.bare.Min(); ok {
		return m.Stamp
	}
	return eviction.Nobody
}

// bareCount is how many wait here whom nobody else keeps, -1 if the room is not copied.
func (r *room) bareCount() int {
	if r.bare == nil {
		return -1
	}
	return r.bare.Len()
}

// copiesDue is the boot time at which there is more to look at.
func (n *Node) copiesDue(now eviction.Time) int64 {
	if n.hasten || n.copies.sweeps > 0 {
		return now.Boot + sweepAgain
	}
	return ever
}

// Unkept reports whether somebody who waits here should be told so only when another node
// keeps the place, and none does yet: Ready.Kept says when. It may also come to be that
// there is nobody to keep it. For an heir that has not acknowledged anything yet nobody
// waits: it may be of a version that keeps nothing.
func (n *Node) Unkept(name string, id qpid.ItemID) bool {
	r, err := n.room(name)
	if err != nil || r.bare == nil {
		return false
	}
	v := r.visitors.get(id)
	if v == nil || v.stage != queued {
		return false
	}
	c := r.copyOf(v)
	return c.at == 0 && c.to > 0 && n.copies.answers[n.copies.lanes[c.to-1].heir]
}
