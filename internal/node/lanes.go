package node

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// lane is the way of places to one heir.
type lane struct {
	heir    eviction.Member // zero: it is closed
	number  uint64
	seq     uint64 // of batch, or of the last that was acknowledged
	at      int64  // boot time at which that was sent last, or acknowledged,
	since   int64  // and at which batch was sent first
	heard   int64  // the same of the last one that was acknowledged
	batch   *eviction.Copies
	refuses bool        // visits: it has no room for more
	keeps   bool        // visits, too: the heir is of a version that does, and has the room for them
	sent    []copyEntry // places of batch
	todo    []copyEntry // whose places are to be said, or are gone:
	later   []copyEntry // those that only get another heir come after them
}

// copyEntry is a place of which an heir is to be told how it is when that is said.
type copyEntry struct {
	room  *room
	id    qpid.ItemID
	visit bool  // on the site, or about to be; see guard.go
	over  bool  // a visit that need not be kept any more
	until int64 // of a visit that was said
}

// heardOf reports whether the heir has acknowledged something lately: so long it ends no visit
// of this node, see Node.ends.
func (l *lane) heardOf(n *Node) bool {
	silence := n.c.Cluster.WithDefaults().ExcludeAfter.Microseconds()
	return l.heir != (eviction.Member{}) && n.ev.LastBoot()-l.heard < silence*3/4
}

// close ends a lane. Its number is not another's until all places were looked at.
func (c *copies) close(n *Node, l *lane) {
	if l.heir == (eviction.Member{}) {
		return
	}
	delete(c.to, l.heir)
	*l = lane{}
	c.look = true
	for _, r := range n.rooms {
		r.unsure = r.bare != nil
		r.sweepAnew()
	}
}

// laneFor is the lane to the heir of a place, 0 if there is none.
func (c *copies) laneFor(n *Node, id qpid.ItemID, stamp uint64) uint16 {
	heir := eviction.HeirAmong(c.heirs, id, stamp)
	if heir == (eviction.Member{}) || !n.ev.Listed(heir) {
		return 0
	}
	if i := c.to[heir]; i > 0 {
		return i
	}
	free := -1
	if c.sweeps == 0 { // nobody names a lane that is closed
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
		c.to, c.answers = make(map[eviction.Member]uint16), make(map[eviction.Member]bool)
	}
	c.to[heir] = uint16(free + 1)
	return uint16(free + 1)
}

// say puts something on the way to the heir of lane i.
func (c *copies) say(n *Node, i uint16, e copyEntry) {
	if l := c.open(n, i); l != nil {
		l.todo = append(l.todo, e)
	}
}

// sayLater is say for what may wait: nobody is kept waiting by a sweep.
func (c *copies) sayLater(n *Node, i uint16, e copyEntry) {
	if l := c.open(n, i); l != nil {
		l.later = append(l.later, e)
	}
}

// open returns lane i, nil if there is none, or none any more, as too much waits in it.
func (c *copies) open(n *Node, i uint16) *lane {
	if i == 0 || c.lanes[i-1].heir == (eviction.Member{}) {
		return nil
	}
	l := &c.lanes[i-1]
	if len(l.todo)+len(l.later) >= todoMax {
		c.close(n, l)
		return nil
	}
	return l
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
		case l.batch == nil && (len(l.todo)+len(l.later) > 0 || now.Boot-l.at >= silence/4):
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
	l.todo = l.say(l.todo, i, eviction.PlacesMax)
	l.later = l.say(l.later, i, max(0, eviction.PlacesMax-len(l.sent)))
}

// say puts up to most of todo into the batch of lane i, and returns the rest.
func (l *lane) say(todo []copyEntry, i uint16, most int) []copyEntry {
	b, said := l.batch, 0
	for ; said < len(todo) && said < most; said++ {
		e := todo[said]
		k := slices.IndexFunc(b.Rooms, func(c eviction.RoomCopies) bool { return c.Room == e.room.name })
		if k < 0 {
			k, b.Rooms = len(b.Rooms), append(b.Rooms, eviction.RoomCopies{Room: e.room.name})
		}
		if e.visit {
			if l.sayVisit(&b.Rooms[k], &e, i) {
				l.sent = append(l.sent, e)
			}
			continue
		}
		v := e.room.visitors.get(e.id)
		known := v != nil && v.stage <= parked && e.room.bare != nil
		switch {
		case known && e.room.copyOf(v).to == i:
		case known && e.room.copyOf(v).at == i:
			continue // until another heir has it
		default:
			b.Rooms[k].Gone = append(b.Rooms[k].Gone, e.id)
			continue
		}
		e.room.copyOf(v).due = false
		b.Rooms[k].Places = append(b.Rooms[k].Places, e.room.placeKept(v))
		l.sent = append(l.sent, e)
	}
	if said == len(todo) {
		return nil
	}
	return todo[said:]
}

// sayVisit says a visit, or that it is over, and reports whether it is to be kept.
func (l *lane) sayVisit(c *eviction.RoomCopies, e *copyEntry, i uint16) bool {
	g := e.room.visits[e.id]
	switch {
	case g != nil && g.to == i:
		g.due, e.until = false, g.said
		c.Visits = append(c.Visits, eviction.VisitKept{ID: e.id, Until: g.said})
		return true
	case g != nil && g.at == i || !e.over: // another heir is to have it first; or nobody said that it is over
	case g != nil:
		c.Moved = append(c.Moved, e.id)
	default:
		c.Ended = append(c.Ended, e.id)
	}
	return false
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
	visits := 0
	for i := range l.batch.Rooms {
		visits += len(l.batch.Rooms[i].Visits)
	}
	switch full := b.Visits == 1+visits; {
	case !full:
		l.keeps, l.refuses = false, visits > 0
	case visits > 0 || !l.refuses:
		l.keeps, l.refuses = true, false
	}
	l.batch, l.at, l.heard = nil, now.Boot, l.since
	n.copies.answers[from] = true
	for _, e := range l.sent {
		if e.visit {
			if l.keeps {
				e.room.visitKept(e, i)
			} else {
				e.room.visitRefused(e, i)
			}
			continue
		}
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
