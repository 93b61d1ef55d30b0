package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// S27, no pass beyond the disk. A pass of a node whose visits are on its disk is good for no
// longer than what is durable there says of that account: when it is given out, and when the node
// dies, but for those that have run out or ended by then. So a later life of it knows of all: of
// those of its earlier lives as well, as long as the disk knows of these.

// onDiskUntil is until when the disk of h has a visit of an account.
func (h *host) onDiskUntil(room string, id qpid.ItemID, a eviction.Account) int64 {
	r := h.disk.visits.room(room)
	if i, ok := r.find(id); ok && r.lines[i].Homes[0] == a {
		return r.lines[i].Until
	}
	return 0
}

// checkOnDisk looks at a pass that h's node gives out.
func (w *world) checkOnDisk(h *host, r int, p *node.Pass) {
	if !w.o.Faults.Visits || p.Home.Member != h.member(w) {
		return
	}
	if until := h.onDiskUntil(w.checker.rooms[r].name, p.ID, p.Home); until < p.Expires {
		w.fail("S27", "%s room %s: gives ticket %d a pass until %d, and its disk has %d", h.name, w.checker.rooms[r].name, w.ticketOf(p.ID), p.Expires-epochWall, until-epochWall)
	}
}

// checkAllOnDisk looks at all passes of a node that dies.
func (w *world) checkAllOnDisk(h *host) {
	if !w.o.Faults.Visits {
		return
	}
	clock, ok := w.slowest()
	own := h.n.Status().Clock // by which it has ended them
	for i := range w.checker.sessions {
		s := &w.checker.sessions[i]
		c := &w.checker.rooms[s.room]
		a := &c.accounts[s.account]
		if !s.live || s.ended || s.taken || !h.keepsLife(w, a.life) || ok && s.expires <= clock || s.expires+2*h.file.MaxSkew.Microseconds() <= own {
			continue
		}
		w.reached.n[reachPassOnDisk]++
		id := w.crowd.tickets[s.ticket].id
		until := max(h.lastOnDisk(c.name, id), h.disk.visits.room(c.name).held) // of which there is no line
		if until < s.expires {
			w.fail("S27", "%s room %s: dies, and ticket %d has a pass until %d, of which its disk has %d", h.name, c.name, s.ticket, s.expires-epochWall, until-epochWall)
			return
		}
	}
}

// lastOnDisk is until when the disk of h has a visit, of whatever account of its.
func (h *host) lastOnDisk(room string, id qpid.ItemID) int64 {
	r := h.disk.visits.room(room)
	if i, ok := r.find(id); ok {
		return r.lines[i].Until
	}
	return 0
}

// keepsLife reports whether the disk of h has all of a life: of this one, or of one before.
func (h *host) keepsLife(w *world, life int32) bool {
	return slices.Contains(h.disk.visits.lives, w.lives[life].member) && !h.disk.visits.damaged
}
