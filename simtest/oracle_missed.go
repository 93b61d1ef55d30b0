package simtest

import (
	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// S15, missed calls. A place whose browser goes on asking lets claims_max calls
// pass, and as many more for each fault that allows another pass for it (S10):
// a lost node may take the last count with it. Then it is stamped anew, behind
// everybody who joined before that, and its old ticket lets nobody in. A call that
// it was not told of counts for nothing.

// tell notes whether the browser learns of a call, which may have come with the
// request. Who tries to come in on it, and cannot, does not miss it.
func (w *world) tell(h *host, q *request) {
	if q.err != nil || q.answer.Forward != (eviction.Member{}) || q.op > opLeave || q.answer.State == node.Admitted {
		return
	}
	if t := &w.crowd.tickets[w.ticketOf(q.answer.Ticket.ID)]; t.home == h.index {
		t.tried = t.tried || q.answer.State == node.Called && q.op == opLeave
		t.told = q.answer.State == node.Called && !t.tried
	}
}

// checkMissed follows a place that is parked: if it had been called, and its
// browser told, the call was missed.
func (w *world) checkMissed(h *host, t *place) {
	if t.state != calledIn || t.home != h.index || !t.told {
		return
	}
	t.told = false
	t.missed++
	w.reached.n[reachNoShow]++
	most := int32(w.o.Rooms[t.room].ClaimsMax) * (1 + t.allow + w.mishapsOf(t))
	if t.missed > most {
		w.fail("S15", "%s lets ticket %d miss %d calls and what happened to its homes allows %d", h.name, w.ticketOf(t.id), t.missed, most)
	}
}

// restamped files the place that old is now.
func (w *world) restamped(h *host, old qpid.ItemID, is qpid.Weight) {
	c := &w.crowd
	if _, ok := c.renewed[is.ID]; ok {
		return
	}
	w.reached.n[reachRestamped]++
	was := w.ticketOf(old) // another node may have had it, and called, which is not in its book
	if t := &w.crowd.tickets[was]; t.home == h.index && t.gen == 0 && t.allow == 0 && int(t.missed) < w.o.Rooms[t.room].ClaimsMax {
		w.fail("S15", "%s stamps ticket %d anew and its browser was told of %d calls that it let pass", h.name, was, t.missed)
	}
	i := int32(len(c.tickets))
	c.tickets = append(c.tickets, place{
		id: is.ID, stamp: is.Stamp, joined: w.now, session: none, home: none, room: c.tickets[was].room, state: queued,
	})
	c.renewed[is.ID] = i
	t := &c.tickets[i]
	t.settle(w, h)
	w.checkStamp(h, t)
	w.became(&c.tickets[was], h, gone)
	c.tickets[was].over = true
	if is.Stamp <= c.tickets[was].stamp {
		w.fail("S15", "%s stamps ticket %d anew and no later than before", h.name, was)
	}
	w.printf("%s has ticket %d go on as %d", h.name, was, i)
}
