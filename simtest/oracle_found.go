package simtest

import (
	"errors"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// S17, a living place is found. While somebody's place is kept, no node that is in
// waves with the one that keeps it says that it was given up: not to the newest
// ticket, nor to an older one, which another tab has, or a stream, for as long as
// tickets live, whichever homes the place has had since.

// checkFound looks at a refusal.
func (w *world) checkFound(h *host, q *request) {
	if q.op != opCheckIn && q.op != opLeave || !errors.Is(q.err, ticket.ErrExpired) {
		return
	}
	i := w.ticketOf(q.ticket.ID)
	t := &w.crowd.tickets[i]
	if t.home == none || t.over || t.admitted || t.state == unqueued || t.state == gone {
		return
	}
	if q.ticket.Gen >= t.gen && w.lifeOf(q.ticket.Home) != t.life {
		return // of another copy: two nodes took it over from the same home, and this one's was given up
	}
	home := &w.hosts[t.home]
	age := h.n.Status().Clock - q.ticket.Issued
	if home.life != t.life || !w.inWaves(h, home, int(q.room)) || age > w.o.Rooms[q.room].TicketTTL.Microseconds() {
		return
	}
	w.fail("S17", "%s says that the place of ticket %d was given up; %s keeps it, generation %d, and the ticket asked with is of generation %d, by %s",
		h.name, i, home.name, t.gen, q.ticket.Gen, w.name(q.ticket.Home))
}

// inWaves reports whether two nodes are in the same waves, and may act by them.
func (w *world) inWaves(a, b *host, room int) bool {
	for _, h := range []*host{a, b} {
		if !h.running() || !w.mayAct(h, room) || h.seen.status.Grade < eviction.Primary ||
			!slices.Contains(h.seen.status.List, w.lives[a.life].member) || !slices.Contains(h.seen.status.List, w.lives[b.life].member) {
			return false
		}
	}
	return a == b || a.seen.status.Line == b.seen.status.Line
}
