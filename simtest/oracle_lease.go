package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// S19, leases. Nobody is called or let in, and no pass is extended, but under a lease
// of the room's account, and no pass lasts longer than that lease and the longest
// session. A lease counts from the gather of a wave that asked about the room and
// whose commit the node has installed. One from before a machine stood still with its
// clocks is over as soon as the node has heard of that. The checker keeps it by itself:
// what a node believes of its lease is not asked.

// asked notes when a gather came to a node, or was sent by it.
func (w *world) asked(h *host, g *eviction.Gather) {
	w.met(h, g)
	h.seen.gather, h.seen.gatherT, h.seen.gatherAt = g.Epoch, g.T, h.clock.boot(w.now)
	for r := range w.checker.rooms {
		name := w.checker.rooms[r].name
		h.seen.asked[r] = slices.ContainsFunc(g.Rooms, func(rg eviction.RoomGather) bool { return rg.Room == name })
	}
}

// followLease notes what the wave that h's node has just installed, if it has, lets
// it do. A wave of one node has no gather: it begins and ends at once.
func (w *world) followLease(h *host) {
	installed := h.n.Installed()
	if installed == h.seen.leasedBy {
		return
	}
	h.seen.leasedBy = installed
	from := h.clock.boot(w.now)
	own := installed != h.seen.gather
	if !own {
		from = h.seen.gatherAt
	}
	for r := range w.checker.rooms {
		if own || h.seen.asked[r] {
			h.seen.lease[r] = from + h.file.Lease.Microseconds()
		}
	}
}

// hears notes that a machine whose clocks stood still has been told. Whatever its clock
// says of them, its leases are over.
func (h *host) hears() {
	if h.stopped {
		h.stopped = false
		clear(h.seen.lease)
	}
}

// checkLease looks at a call, an admission or an extension.
func (w *world) checkLease(h *host, r int, what string) {
	rs, ok := h.n.Room(w.checker.rooms[r].name, h.clock.read(w.now))
	if !ok || rs.Room.Method == eviction.Passthrough || rs.Now.Method == eviction.Passthrough {
		return
	}
	w.followLease(h)
	grade, boot := h.n.Status().Grade, h.clock.boot(w.now)
	switch {
	case boot >= h.seen.lease[r]:
		w.fail("S19", "%s %s in room %s, its lease has been over for %v: %s", h.name, what, rs.Room.Name, micros(boot-h.seen.lease[r]), w.ledgers(r))
	case !admits(rs.Room.OnPartition, grade):
		w.fail("S19", "%s %s in room %s by a %v lease", h.name, what, rs.Room.Name, grade)
	}
}

// admits reports whether a lease of that grade lets visitors in.
func admits(p eviction.Policy, grade eviction.Grade) bool {
	switch p {
	case eviction.Share:
		return grade >= eviction.Side
	case eviction.Stop:
		return grade == eviction.Unanimous
	default:
		return grade >= eviction.Primary
	}
}

// checkPass looks at a pass that h's node gives out. One that lasts no longer than a
// pass of the same ticket that was given out before is no new permission.
func (w *world) checkPass(h *host, r int, t *place, p *node.Pass) {
	w.checkGiven(h, r, p.ID, p.Home, p.Expires)
	w.checkOnDisk(h, r, p)
	for s := t.session; s != none; s = w.checker.sessions[s].next {
		if w.checker.sessions[s].expires >= p.Expires {
			return
		}
	}
	w.followLease(h)
	st := h.n.Status()
	lease := st.Clock + h.seen.lease[r] - st.ClockAt // in pass time
	if most := lease + w.sessionMax(r).Microseconds(); p.Expires > most {
		w.fail("S19", "%s gives ticket %d of room %s a pass that lasts %v longer than its lease and the longest session", h.name, w.ticketOf(t.id),
			w.checker.rooms[r].name, micros(p.Expires-most))
	}
}
