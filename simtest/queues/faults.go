package queues

import "github.com/anteroom/anteroom/internal/broker"

// fault has something go wrong, and sees that it ends.
func (w *World) fault() {
	if w.now > 2*second+w.o.Fault {
		return
	}
	defer w.after(w.faults.Int64N(2*w.o.Every), w.fault)
	n := w.nodes[w.faults.IntN(len(w.nodes))]
	lasts := 50*milli + w.faults.Int64N(4*second)
	switch w.faults.IntN(5) {
	case 0:
		w.crash(n, lasts)
	case 1:
		w.pause(n, lasts)
	case 2:
		w.split(lasts)
	default:
		o := w.nodes[w.faults.IntN(len(w.nodes))]
		if o != n {
			w.note("break %v %v", n.m, o.m)
			w.breaks(n, o, w.faults.Int64N(300*milli))
		}
	}
}

func (w *World) crash(n *node, lasts int64) {
	if !n.up {
		return
	}
	if w.o.Disk != nil && n.doomed == 0 && w.damage.IntN(2) == 0 {
		n.doomed = lasts
		return
	}
	n.doomed = 0
	w.Reached.Crashes++
	w.trouble(0)
	w.note("crash %v", n.m)
	n.up, n.leads = false, false
	if w.o.Disk != nil {
		n.powerCut()
	} else if n.doubt != nil && w.disks.IntN(2) == 0 {
		n.disk = append(n.disk, n.doubt)
	}
	n.doubt = nil
	w.oracle.crashed(n)
	if w.o.Disk == nil && w.o.Loses && len(n.disk) > 0 && w.disks.IntN(2) == 0 {
		n.giveUp(1 + w.disks.IntN(min(len(n.disk), 40)))
	}
	for _, o := range w.nodes {
		if o != n {
			w.breaks(n, o, w.faults.Int64N(second))
		}
	}
	w.after(lasts, func() {
		if !n.up {
			n.boot()
		}
	})
}

// giveUp loses the end of a durable log, as an operator does who has a damaged one
// recovered: the entries from the damage on. (A damaged copy of a replicated log
// is made anew from the others, as here every node's is at each boot.)
func (n *node) giveUp(entries int) {
	n.w.Reached.GivenUp++
	keep := len(n.disk) - entries
	n.w.note("%v gives up %d entries", n.m, entries)
	n.w.oracle.gaveUp(n, n.disk[keep:])
	n.disk = n.disk[:keep:keep]
}

func (w *World) pause(n *node, lasts int64) {
	if !n.up || n.paused {
		return
	}
	w.Reached.Pauses++
	w.trouble(0)
	w.note("pause %v", n.m)
	n.paused = true
	life := n.m.Boot
	w.after(lasts, func() {
		if n.up && n.m.Boot == life && n.paused {
			n.wake()
		}
	})
}

// fill has a disk be nearly full for a while, or full: then what is proposed is
// refused, or nobody knows.
func (w *World) fill() {
	if w.now > 2*second+w.o.Fault {
		return
	}
	defer w.after(w.disks.Int64N(4*w.o.Every), w.fill)
	n := w.nodes[w.disks.IntN(len(w.nodes))]
	if n.room != broker.RoomForAll {
		return
	}
	w.Reached.Full++
	n.room = broker.RoomToRemove
	if w.disks.IntN(2) == 0 {
		n.room = broker.RoomForNone
	}
	w.trouble(0)
	w.note("fill %v %d", n.m, n.room)
	n.tellRoom()
	w.after(50*milli+w.disks.Int64N(4*second), n.makeRoom)
}

func (n *node) makeRoom() {
	if n.room == broker.RoomForAll {
		return
	}
	n.room = broker.RoomForAll
	n.w.note("room at %v", n.m)
	n.tellRoom()
}

// tellRoom has the broker know of its disk, some time later.
func (n *node) tellRoom() {
	life := n.m.Boot
	n.w.after(n.w.disks.Int64N(100*milli), func() {
		if n.up && n.m.Boot == life {
			n.do(0, func() {
				n.w.trouble(0)
				for _, k := range []broker.Kind{broker.Durable, broker.Replicated} {
					n.b.SetRoom(n.time(), k, n.room)
				}
			})
		}
	})
}

// wake lets a paused node go on: what came meanwhile is handled now, late.
func (n *node) wake() {
	n.paused, n.woke = false, n.w.now
	n.w.trouble(0)
	n.w.note("wake %v", n.m)
	late := n.late
	n.late = nil
	for _, f := range late {
		if n.up && !n.paused {
			f()
			n.settle()
		}
	}
}

// split cuts the nodes into two sides.
func (w *World) split(lasts int64) {
	w.Reached.Partitions++
	for _, n := range w.nodes {
		n.side = w.faults.IntN(2)
		w.note("side %v %d", n.m, n.side)
	}
	w.cut()
	w.after(lasts, func() {
		for _, n := range w.nodes {
			n.side = 0
		}
		w.trouble(0)
		w.note("joined")
	})
}

// cut breaks the links between the sides; the break is noticed late.
func (w *World) cut() {
	for i, n := range w.nodes {
		for _, o := range w.nodes[:i] {
			if n.side != o.side {
				w.breaks(n, o, 100*milli+w.faults.Int64N(3*second))
			}
		}
	}
}

// trouble notes that something has broken, has come back or changes hands, until so
// long from now.
func (w *World) trouble(lasts int64) { w.troubled = max(w.troubled, w.now+lasts) }

// healthy reports whether nothing is broken just now; what was is in w.troubled. A link
// that is down loses what is sent until both its ends have heard of it.
func (w *World) healthy() bool {
	for i, n := range w.nodes {
		if !n.up || n.paused || n.side != 0 || n.room != broker.RoomForAll {
			return false
		}
		for _, o := range w.nodes[:i] {
			if w.way(n.m.Name, o.m.Name).down || w.way(o.m.Name, n.m.Name).down {
				return false
			}
		}
	}
	return w.group.leader != nil
}

// heal ends all faults: every node is up, on one side, and awake.
func (w *World) heal() {
	w.note("heal")
	w.healed = true
	w.upgrade()
	for _, n := range w.nodes {
		n.side, n.doomed = 0, 0
		if !n.up {
			n.boot()
		}
		n.makeRoom()
		if n.paused {
			n.wake()
		}
	}
	w.Reached.Rounds = 0
	for _, n := range w.nodes {
		w.Reached.Rounds += int(n.b.Counts().Rounds)
		w.Reached.Returned += int(n.b.Counts().Returned)
	}
}
