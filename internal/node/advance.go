package node

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// After every input a node carries on with what it has changed, room by room, and looks
// after each step whether the room is as it must be (broken.go).

// advance carries on with whatever the last input changed, for which a room may
// have waited.
func (n *Node) advance(now eviction.Time) {
	n.stirRestless()
	n.carryOn(now)
}

// stirRestless has those looked at for which a lease, a slot or the time may have
// come.
func (n *Node) stirRestless() {
	for _, r := range n.dues.restless {
		r.stir()
	}
}

// carryOn carries on with whatever a visitor has changed: that is all in one room.
func (n *Node) carryOn(now eviction.Time) {
	for {
		messages, done := n.ev.Take()
		n.out = append(n.out, messages...)
		if len(done) > 0 {
			n.stale = true
			n.addRooms(now)
			n.stirRestless()
		}
		for _, in := range done {
			if r, err := n.room(in.Gate.Room().Name); err == nil {
				r.safely(now, func(now eviction.Time) { r.install(now, in) })
			}
		}
		if len(done) > 0 {
			n.ev.Now(now) // an account that was opened may have lapsed at once;
			if n.ev.Pending() {
				continue // its room hears of that before it does anything else
			}
		}
		for _, r := range n.takeStirred() {
			r.safely(now, r.advance)
		}
		if len(done) == 0 {
			return
		}
	}
}

// addRooms makes a room for every gate that has none yet.
func (n *Node) addRooms(now eviction.Time) {
	if len(n.rooms) == len(n.ev.Gates()) {
		return // neither ever goes
	}
	for _, g := range n.ev.Gates() {
		name := g.Room().Name
		i, ok := n.find(name)
		if ok {
			continue
		}
		n.rooms = slices.Insert(n.rooms, i, newRoom(n, g, now))
	}
}

func (n *Node) find(name string) (int, bool) {
	return slices.BinarySearchFunc(n.rooms, name, func(r *room, name string) int { return cmp.Compare(r.name, name) })
}

func (n *Node) room(name string) (*room, error) {
	if i, ok := n.find(name); ok {
		return n.rooms[i], nil
	}
	return nil, ticket.ErrRoomUnknown
}

// takeStirred returns the rooms that were stirred, by name: their order must not
// depend on what else was looked at. It is good until the next call.
func (n *Node) takeStirred() []*room {
	d := &n.dues
	d.stirred, d.spare = d.spare[:0], d.stirred
	for _, r := range d.spare {
		r.stirred = false
	}
	slices.SortFunc(d.spare, func(a, b *room) int { return cmp.Compare(a.name, b.name) })
	return d.spare
}

// safely does something in one room.
func (r *room) safely(now eviction.Time, do func(eviction.Time)) {
	defer r.node.guard(r.name, now, nil)
	do(now)
}

// guard, deferred by whatever is done in room name, ends a panic of that room, and
// looks at what must be true of it. err says then that nothing came of it.
func (n *Node) guard(name string, now eviction.Time, err *error) {
	var broken *eviction.Broken
	switch p := recover().(type) {
	case nil:
	case *eviction.Broken:
		broken = p
	default:
		panic(p) // this is not about one room
	}
	r, unknown := n.room(name)
	if unknown != nil {
		return
	}
	if broken == nil {
		broken = r.wrong()
	}
	if broken != nil {
		r.giveUp(now, broken)
		if err != nil {
			*err = ticket.ErrUnavailable
		}
	}
}

// wrong says what of the room is not as it must be: its books, and that each use of a
// slot is somebody's.
func (r *room) wrong() *eviction.Broken {
	if r.broken != nil || r.node.ev.Pending() { // what was installed in the gate is not here yet
		return nil
	}
	if r.unseen {
		r.unseen = false
		if b := r.gate.Wrong(r.node.ev.Installed()); b != nil {
			return b
		}
	}
	if b := r.gate.WrongUse(); b != nil {
		return b
	}
	if uses := r.called + r.onSite + len(r.held) + len(r.deletes.active) + r.striking; uses != r.gate.Ledger().Used() {
		return r.breach("each use of a slot is somebody's")
	}
	return nil
}

// tickRooms looks at the rooms in which something is due, at those that were
// stirred and at the restless.
func (n *Node) tickRooms(now eviction.Time) {
	for a := n.dues.agenda; len(a) > 0 && a[0].wakes <= now.Boot; {
		a[0].stir()
		a[0].wakes = ever // until it has been looked at
		heap.Fix(&n.dues.agenda, 0)
	}
	n.stirRestless()
	for _, r := range n.takeStirred() {
		r.safely(now, r.tick)
		r.plan()
	}
}
