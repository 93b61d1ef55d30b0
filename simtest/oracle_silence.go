package simtest

import (
	"errors"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// heard notes for how long somebody may be silent from now on.
func (w *world) heard(h *host, q *request) {
	if q.err != nil && !errors.Is(q.err, ticket.ErrNotCalled) || q.answer.Forward != (eviction.Member{}) || q.op > opLeave || q.answer.State == node.Admitted {
		return
	}
	t := &w.crowd.tickets[w.ticketOf(q.answer.Ticket.ID)]
	if t.home != h.index || w.lifeOf(q.answer.Ticket.Home) != h.life { // it answers for another node
		return
	}
	t.heard = w.now
	if q.ticket.Quiet {
		t.patience = w.o.Rooms[t.room].TicketTTL.Microseconds()
	} else {
		t.patience = 3 * q.answer.Refresh.Microseconds()
	}
}

// rough is how exactly S25 holds by the nodes' clocks, in µs, and a thousandth.
const rough = 10_000

// S25, silence. Nobody is taken for gone too soon, wherever their place has been meanwhile:
// they may be silent for three times as long as they were told to wait, and for ticket_ttl
// who said that they do not check in. In a QPID room the second copy of a ticket is parked
// at any time.
func (w *world) checkSilence(h *host, t *place) {
	if t.home != h.index || t.heard == 0 || w.o.Rooms[t.room].Algorithm == eviction.ByQPID {
		return
	}
	if silent := w.now - t.heard; silent < t.patience-t.patience/1000-rough {
		w.fail("S25", "%s parks ticket %d, silent for %v, which may be for %v", h.name, w.ticketOf(t.id), micros(silent), micros(t.patience))
	}
}

// checkKeptFor is S25 for places: nobody hears that theirs was given up before ticket_ttl
// is over since a node told them that they wait or are called, whichever it was.
func (w *world) checkKeptFor(p *visitor, q *request) {
	t := &w.crowd.tickets[w.ticketOf(q.ticket.ID)]
	if q.op == opJoin || p.told == 0 || q.judged == 0 || t.over || t.abandoned || t.admitted {
		return
	}
	ttl := w.o.Rooms[t.room].TicketTTL.Microseconds()
	if silent := q.judged - p.told; silent < ttl-ttl/1000-rough {
		w.fail("S25", "%s says that the place of ticket %d was given up, %v after its bearer was told that they wait: places are kept for %v", w.hosts[q.at].name, w.ticketOf(t.id), micros(silent), micros(ttl))
	}
}
