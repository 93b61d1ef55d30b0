package node

import (
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
	heirs []eviction.Peer            // one of them for each place
	of    []eviction.Peer            // as of this: see eviction.Node.Heirs
	lanes []lane                     // copyOf counts them from 1
	to    map[eviction.Member]uint16 // the open ones
	mute  []muteHeir                 // who did not acknowledge anything for long, and are no heirs for a while
	kept  []Place                    // that an heir keeps since Ready was called
	epoch qpid.Epoch                 // of the last wave,
	wave  int64                      // and boot time
}

// lane is the way of places to one heir.
type lane struct {
	heir   eviction.Member // zero: it is closed
	number uint64
	seq    uint64 // of batch, or of the last that was acknowledged
	at     int64  // boot time at which that was sent last, or acknowledged,
	since  int64  // and at which batch was sent first
	batch  *eviction.Copies
	sent   []copyEntry // places of batch
	todo   []copyEntry // whose places are to be said, or are gone
}

// muteHeir is a member that the places of this node do not reach, or whose word does not
// reach this node: one bad link is enough. Another keeps its part for a while.
type muteHeir struct {
	member eviction.Member
	until  int64 // boot time
}

type copyEntry struct {
	room *room
	id   qpid.ItemID
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
}

const (
	lanesMax   = 1 << 15
	todoMax    = 1 << 21    // per lane; past it the lane begins anew
	sweepMax   = 4096       // places looked at between two inputs
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
		if now.Boot-c.wave >= n.c.Cluster.WithDefaults().ExcludeAfter.Microseconds()/2 {
			for i := range c.lanes {
				c.close(n, &c.lanes[i])
			}
		}
		c.epoch, c.wave = in, now.Boot
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
	for _, r := range n.rooms {
		r.copyAnew()
		r.sweepAnew()
	}
}

func (c *copies) close(n *Node, l *lane) {
	if l.heir == (eviction.Member{}) {
		return
	}
	delete(c.to, l.heir)
	*l = lane{}
	for _, r := range n.rooms {
		r.unsure = r.bare != nil
		r.sweepAnew()
	}
}

// laneFor is the lane to the heir of a place, 0 if there is none.
func (c *copies) laneFor(n *Node, v *visitor) uint16 {
	heir := eviction.HeirAmong(c.heirs, v.id, v.stamp)
	if heir == (eviction.Member{}) || !n.ev.Listed(heir) {
		return 0
	}
	if i := c.to[heir]; i > 0 {
		return i
	}
	free := -1
	if !slices.ContainsFunc(n.rooms, func(r *room) bool { return r.sweeping }) { // nobody names a lane that is closed
		free = slices.IndexFunc(c.lanes, func(l lane) bool { return l.heir == eviction.Member{} })
	}
	if free < 0 {
		if len(c.lanes) == lanesMax {
			return 0
		}
		free, c.lanes = len(c.lanes), append(c.lanes, lane{})
	}
	c.lanes[free] = lane{heir: heir, number: n.ev.Stamp()}
	if c.to == nil {
		c.to = make(map[eviction.Member]uint16)
	}
	c.to[heir] = uint16(free + 1)
	return uint16(free + 1)
}

// say puts something on the way to the heir of lane i.
func (c *copies) say(n *Node, i uint16, e copyEntry) {
	if i == 0 || c.lanes[i-1].heir == (eviction.Member{}) {
		return
	}
	l := &c.lanes[i-1]
	if len(l.todo) >= todoMax {
		c.close(n, l)
		return
	}
	l.todo = append(l.todo, e)
}

// copyAnew begins to have the room's places kept, or ends it.
func (r *room) copyAnew() {
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
	case !wanted && r.bare != nil:
		r.copied = copied{}
		for i := range r.node.copies.lanes {
			r.node.copies.close(r.node, &r.node.copies.lanes[i]) // what they keep of this room is to be forgotten
		}
	}
}

func (r *room) sweepAnew() {
	if r.bare != nil {
		r.sweep, r.sweeping = 0, true
	}
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
	to := r.node.copies.laneFor(r.node, v)
	for _, old := range [...]uint16{c.at, c.to} {
		if old != to {
			r.node.copies.say(r.node, old, copyEntry{r, v.id})
		}
	}
	due := c.due && c.to == to
	*c = copyOf{to: to, due: to > 0}
	if v.stage == queued {
		r.bare.Insert(r.gate.Key(v.weight()))
	}
	if to > 0 && !due {
		r.node.copies.say(r.node, to, copyEntry{r, v.id})
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
		r.node.copies.say(r.node, c.at, copyEntry{r, v.id})
	}
	if !c.due {
		r.node.copies.say(r.node, c.to, copyEntry{r, v.id})
	}
}

// uncovered takes v, who is not queued any more, out of those who are and whom nobody keeps.
func (r *room) uncovered(v *visitor) {
	if r.bare != nil && r.copyOf(v).at == 0 {
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

// sweepOn looks at some places for an heir that is another one by now.
func (r *room) sweepOn() {
	if !r.sweeping {
		return
	}
	c := &r.node.copies
	for range sweepMax {
		if r.sweep >= r.visitors.records() {
			r.sweeping, r.unsure = false, false
			return
		}
		v := r.visitors.at(r.sweep)
		r.sweep++
		if v.slot == gone || v.stage > parked {
			continue
		}
		of := r.copyOf(v)
		if of.at > 0 && c.lanes[of.at-1].heir == (eviction.Member{}) {
			of.at = 0
			if v.stage == queued {
				r.bare.Insert(r.gate.Key(v.weight()))
			}
		}
		to := c.laneFor(r.node, v)
		if to == of.to && (of.due || of.at == to) {
			continue
		}
		if of.to != of.at && of.to != to {
			c.say(r.node, of.to, copyEntry{r, v.id})
		}
		of.to, of.due = to, to > 0
		if to > 0 {
			c.say(r.node, to, copyEntry{r, v.id})
		}
	}
}

// copyOut goes on with what is to be said to heirs, and repeats what they have not
// acknowledged.
func (n *Node) copyOut(now eviction.Time) {
	period := n.c.Cluster.WithDefaults().Period.Microseconds()
	silence := n.c.Cluster.WithDefaults().ExcludeAfter.Microseconds()
	for i := range n.copies.lanes {
		l := &n.copies.lanes[i]
		switch {
		case l.heir == eviction.Member{}:
			continue
		case l.batch == nil && (len(l.todo) > 0 || now.Boot-l.at >= silence/4):
			l.fill(uint16(i + 1))
			l.since = now.Boot
		case l.batch != nil && now.Boot-l.since >= silence: // sooner than the heir forgets what it keeps
			n.copies.mute = append(n.copies.mute, muteHeir{l.heir, now.Boot + muteFor})
			n.copies.close(n, l)
			n.copies.of = nil // who may be an heir is to be found out
			continue
		case l.batch == nil || now.Boot-l.at < period:
			continue
		}
		l.at = now.Boot
		n.out = append(n.out, eviction.Message{From: n.c.Self.Member, To: l.heir, Body: l.batch})
	}
}

// fill makes the next batch of lane i, which is l.
func (l *lane) fill(i uint16) {
	l.seq++
	b := &eviction.Copies{Lane: l.number, Seq: l.seq}
	l.batch, l.sent = b, l.sent[:0]
	said := 0
	for ; said < len(l.todo) && said < eviction.PlacesMax; said++ {
		e := l.todo[said]
		k := slices.IndexFunc(b.Rooms, func(c eviction.RoomCopies) bool { return c.Room == e.room.name })
		if k < 0 {
			k, b.Rooms = len(b.Rooms), append(b.Rooms, eviction.RoomCopies{Room: e.room.name})
		}
		v := e.room.visitors.get(e.id)
		if v == nil || v.stage > parked || e.room.bare == nil || e.room.copyOf(v).to != i {
			b.Rooms[k].Gone = append(b.Rooms[k].Gone, e.id)
			continue
		}
		e.room.copyOf(v).due = false
		b.Rooms[k].Places = append(b.Rooms[k].Places, e.room.placeKept(v))
		l.sent = append(l.sent, e)
	}
	if l.todo = l.todo[said:]; len(l.todo) == 0 {
		l.todo = nil
	}
}

// placeKept is what an heir has to know of v's place.
func (r *room) placeKept(v *visitor) eviction.Place {
	return eviction.Place{
		ID: v.id, Stamp: v.stamp, Gen: v.gen + 1, Past: r.pasts[v.id].homes[0], Refresh: v.refresh, Missed: v.missed, Slept: v.slept, Anew: v.has(anew),
		Entitled: v.has(entitled), Wave: v.wave, Parked: v.stage == parked, Hand: r.pasts[v.id].hand,
	}
}

// onCopiesAck hears that a batch is kept.
func (n *Node) onCopiesAck(now eviction.Time, from eviction.Member, b *eviction.CopiesAck) {
	i := n.copies.to[from]
	if i == 0 {
		return
	}
	l := &n.copies.lanes[i-1]
	switch {
	case b.Lane != l.number:
		return
	case b.Unknown:
		n.copies.close(n, l)
		return
	case l.batch == nil || b.Seq != l.seq:
		return
	}
	l.batch, l.at = nil, now.Boot
	for _, e := range l.sent {
		v := e.room.visitors.get(e.id)
		if v == nil || v.stage > parked || e.room.bare == nil {
			continue
		}
		c := e.room.copyOf(v)
		if c.to != i || c.due {
			continue // it has changed since
		}
		if c.at > 0 && c.at != i {
			n.copies.say(n, c.at, e)
		}
		if c.at == 0 && v.stage == queued {
			e.room.bare.Delete(e.room.gate.Key(v.weight()))
		}
		if c.at == 0 && len(n.copies.kept) < keptMax {
			n.copies.kept = append(n.copies.kept, Place{e.room.name, v.id})
		}
		c.at = i
	}
	l.sent = l.sent[:0]
}

// copiesSettled reports whether heirs know what there is to know.
func (n *Node) copiesSettled() bool {
	for i := range n.copies.lanes {
		if l := &n.copies.lanes[i]; l.batch != nil || len(l.todo) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(n.rooms, func(r *room) bool { return r.sweeping })
}

// barest is where those begin who wait here and whom nobody in list keeps, see
// eviction.RoomNode.
func (r *room) barest(list []eviction.Member) uint64 {
	if r.bare == nil || r.unsure {
		return 0
	}
	for i := range r.node.copies.lanes {
		if l := &r.node.copies.lanes[i]; l.heir != (eviction.Member{}) && !slices.Contains(list, l.heir) {
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
	if n.hasten || slices.ContainsFunc(n.rooms, func(r *room) bool { return r.sweeping }) {
		return now.Boot + sweepAgain
	}
	return ever
}

// Unkept reports whether somebody who waits here should be told so only when another node
// keeps the place, and none does yet: Ready.Kept says when. It may also come to be that
// there is nobody to keep it.
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
	return c.at == 0 && c.to > 0
}
