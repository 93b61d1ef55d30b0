package node

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
)

// dues say in which rooms something is to be done, so that a node with thousands
// of them looks at no other.
//
// Invariant: a room that is neither stirred nor restless has nothing to do before
// its time in agenda: to advance it would change nothing.
type dues struct {
	stirred  []*room // changed since they were advanced, each once
	restless []*room // by name: what they wait for may come from outside the room
	agenda   agenda  // all rooms
	spare    []*room
}

// attention is when a node looks at a room.
type attention struct {
	stirred, restless bool
	wakes             int64 // boot time up to which nothing is due
	place             int   // in the agenda
}

// stir notes that something has changed in the room.
func (r *room) stir() {
	if !r.stirred {
		r.stirred = true
		r.node.dues.stirred = append(r.node.dues.stirred, r)
	}
}

// rest notes whether the room waits for what may come from outside: somebody is
// to be called, taken over or drawn, and cannot be for now, or a slot comes free at
// a pass time.
func (r *room) rest() {
	restless := r.isRestless()
	if restless == r.restless {
		return
	}
	r.restless = restless
	d := &r.node.dues
	i, _ := slices.BinarySearchFunc(d.restless, r.name, func(o *room, name string) int { return cmp.Compare(o.name, name) })
	if restless {
		d.restless = slices.Insert(d.restless, i, r)
	} else {
		d.restless = slices.Delete(d.restless, i, i+1)
	}
}

func (r *room) isRestless() bool {
	return len(r.wanting) > 0 || r.deletes.left > 0 || len(r.held) > 0 || r.next() != nil
}

// ever is the boot time of what is not due.
const ever = 1 << 62

// agenda is a heap of rooms by when something is due in them.
type agenda []*room

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].wakes < a[j].wakes }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

func (a *agenda) Push(r any) {
	r.(*room).place = len(*a)
	*a = append(*a, r.(*room))
}

// Pop is of no use: a room is never taken out.
func (a *agenda) Pop() any { panic("node: a room left the agenda") }

// next is the boot time at which the first room is to be looked at.
func (a agenda) next() int64 {
	if len(a) == 0 {
		return ever
	}
	return a[0].wakes
}

// plan puts the room where it belongs in the agenda. It is called when something
// in it may be due earlier than it was.
func (r *room) plan() {
	if at := r.deadline(); at != r.wakes {
		r.wakes = at
		heap.Fix(&r.node.dues.agenda, r.place)
	}
}

// deadline is the boot time at which something is due in the room.
func (r *room) deadline() int64 {
	if r.broken != nil {
		return ever
	}
	return min(r.wheel.deadline(), r.deletes.deadline(), r.moved.deadline())
}

// schedule has v looked at when it is due.
func (r *room) schedule(v *visitor) {
	r.wheel.add(v)
	r.plan()
}

// Overlooked says in which room something is to be done that the node would not
// look at in time, nil if there is none. It looks at all rooms, which nothing else
// does: a simulator asks, after Ready.
func (n *Node) Overlooked() error {
	if room := n.ev.Overlooked(n.saved); room != "" {
		return fmt.Errorf("node: a lapse, or what is to be saved, of room %q", room)
	}
	for _, r := range n.rooms {
		if r.wakes > r.deadline() {
			return fmt.Errorf("node: room %q wakes at %d, and something is due at %d", r.name, r.wakes, r.deadline())
		}
		if r.stirred {
			continue
		}
		ready := r.q.Ready() // which nobody will carry out: there must be nothing
		switch {
		case r.byCut() && r.cut != r.gate.Cut(), len(ready.Messages)+len(ready.Removed)+len(ready.Answers) > 0:
			return fmt.Errorf("node: nobody has stirred room %q, cut at %v of %v, %+v", r.name, r.cut, r.gate.Cut(), ready)
		case !r.restless && r.isRestless():
			return fmt.Errorf("node: room %q rests, with %v next, %d wanting, %d deleteMins and %d slots held", r.name, r.next(), len(r.wanting), r.deletes.left, len(r.held))
		}
	}
	return nil
}
