package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// S10, one pass per ticket. A ticket backs one live pass while nothing happens
// to its home, and at most one more for each time that its home of then
// crashed, was paused, cut off, suspected, or left out of waves, or that a gray node, or
// one to which one of these had happened, or whose waves go on without its home, took it over.

// admitted opens the session of a pass that h's node has just issued.
func (w *world) admitted(h *host, q *request) {
	c := &w.checker
	p := &q.answer.Pass
	room := &c.rooms[q.room]
	i := w.ticketOf(p.ID)
	t := &w.crowd.tickets[i]
	if p.Home == (eviction.Account{}) {
		t.admitted = true
		return
	}
	h.seen.acted[q.room] = true
	w.checkPass(h, int(q.room), t, p)
	backing := room.accountOf(p.Home)
	for s := t.session; s != none; s = c.sessions[s].next {
		if c.sessions[s].account == backing && !c.sessions[s].nobodys { // the same pass again
			q.session = s
			if !c.sessions[s].ended {
				w.startSession(s, p.Expires)
			}
			return
		}
	}
	q.session = int32(len(c.sessions))
	c.sessions = append(c.sessions, session{ticket: i, next: t.session, account: backing, room: q.room, key: h.activeKey()})
	t.session = q.session
	w.startSession(q.session, p.Expires)
	w.expire(room)
	live := int32(0)
	for s := t.session; s != none; s = c.sessions[s].next {
		if c.sessions[s].live {
			live++
		}
	}
	allowed := 1 + t.allow
	if t.home == h.index {
		allowed += w.mishapsOf(t)
	} else {
		allowed += w.partedFrom(t, h) // it has taken the place over, and its log says so after this answer
	}
	if t.over {
		allowed-- // S15: another place stands in line for it
	}
	if live > allowed {
		w.fail("S10", "%s: ticket %d has %d live passes; what happened to its homes allows %d", h.name, i, live, allowed)
	}
}

// settle makes h the ticket's home. If it was in no wave for so long that others may have
// given it up, as when it was paused until a moment ago, that has happened to this one too.
func (t *place) settle(w *world, h *host) {
	t.home, t.life, t.base, t.since = h.index, h.life, h.mishaps, w.now
	if w.outOfWaves(h) {
		t.base--
	}
}

// mishapsOf counts what may have made another node take over the ticket: what
// has happened to its home since that became it, and at least one if the home
// was cut off or suspected then or since.
func (w *world) mishapsOf(t *place) int32 {
	h := &w.hosts[t.home]
	n := h.mishaps - t.base
	if n == 0 && (h.cuts > 0 || h.calm >= t.since) {
		n = 1
	}
	return n
}

// lostTo counts what may have made h hold the ticket's home for lost: what has happened to
// that, and at least one if waves of h's go on without it, and have for exclude_after. So it
// is with two sides each of which goes on by survivor_after: the home was left out before
// the ticket came there, once, and is out all the while.
func (w *world) lostTo(t *place, h *host) int32 {
	n := w.mishapsOf(t)
	if n == 0 && w.without(h, t.home) {
		n = 1
	}
	return n
}

// without reports whether h may hold a host that it was in a wave with for lost: that is in
// its waves no more, and was not for exclude_after, told from the gather of the last.
func (w *world) without(h *host, other int32) bool {
	if int(other) >= len(h.metAt) || h.metAt[other] == 0 || h.index == other {
		return false
	}
	if slices.ContainsFunc(h.seen.status.List, func(m eviction.Member) bool { return w.lives[w.lifeOf(m)].host == other }) {
		return false
	}
	c := w.o.slowest()
	return w.now-h.metAt[other] >= (c.ExcludeAfter - c.Deadline).Microseconds()
}

// metIn notes who is in the wave that h has installed.
func (w *world) metIn(h *host, list []eviction.Member) {
	for _, m := range list {
		i := int(w.lives[w.lifeOf(m)].host)
		if i >= len(h.metAt) {
			h.metAt = append(h.metAt, make([]int64, i+1-len(h.metAt))...)
		}
		h.metAt[i] = w.now
	}
}

// partedFrom counts what may have made h take the ticket over: what has happened to its
// home, and at least one if something has happened to h since, or h is cut off, suspected, gray
// or cannot save anything, or was or could not a moment ago.
//
// Proof that no more is promised. A node takes a place over if it may let people in and
// was in no wave with the home for exclude_after. A cut link is held against both of its
// ends. A node that was paused is in no wave for as long, and has heard of none when it
// wakes up; where a room shares it lets people in by a wave of its own. The links of a gray
// node are slow towards all others, and that is held against it alone. While they are, none
// of the others is in a wave with it; if it is the most senior it leads waves of its own, and
// where a room shares, or by survivor_after, it may let people in by those. So all homes but
// itself are as cut off from it, and it from them. The same goes for a node that all others
// hold for dead, and for one that cannot save, which hears everything and sends nothing. Two
// nodes with a slow link between them are told by their waves: see lostTo. Of other nodes
// this is not true: among themselves their links are good. It ends when waves list it again,
// no later than settleTime after its links are fast.
func (w *world) partedFrom(t *place, h *host) int32 {
	n, settled := w.lostTo(t, h), w.now-w.settleTime()
	if n == 0 && (h.mishapAt >= t.since || h.cuts > 0 || h.calm > max(0, min(t.since, settled)) || w.outOfWaves(h) || w.checker.gray.parts(h, settled) || !h.sends(settled)) {
		n = 1
	}
	return n
}

// outOfWaves reports whether h was in no wave for so long that others may take over from
// it, and it from them.
func (w *world) outOfWaves(h *host) bool {
	return w.now-w.checker.installs[h.index] > w.o.slowest().ExcludeAfter.Microseconds()
}

// refreshed follows a pass that was extended, and maybe taken over.
func (w *world) refreshed(h *host, q *request) {
	p := &q.answer.Pass
	c := &w.checker
	if q.session == none {
		return
	}
	s := &c.sessions[q.session]
	if s.ended {
		w.reached.n[reachEndedPass]++
	}
	if p.Home == q.pass.Home && p.Expires <= q.pass.Expires {
		return // honoured for as long as it lasts, not extended: like a visit
	}
	if p.Expires > s.expires {
		w.checkLease(h, int(q.room), "extends a pass")
	}
	w.checkPass(h, int(q.room), &w.crowd.tickets[s.ticket], p)
	h.seen.acted[q.room] = true
	if p.Home != q.pass.Home {
		w.reached.n[reachPassTaken]++
	}
	w.moveSession(q.session, p.Home)
	s.taken = false
	if !s.live && !(s.ended && p.Home == q.pass.Home) { // its home had its slot all the time, if another node was told of its end
		c.rooms[q.room].rose, c.rooms[q.room].roseAt = true, h.index
	}
	s.ended = false
	w.startSession(q.session, p.Expires)
}

// honoured follows a pass that was shown. One that is good again after it had run out by every clock, as one
// of them has gone back, is on the site again: S1 counts it.
func (w *world) honoured(h *host, q *request) {
	if q.session == none {
		return
	}
	s := &w.checker.sessions[q.session]
	switch {
	case s.ended:
		w.reached.n[reachEndedPass]++
	case !s.live && !s.taken:
		w.checker.rooms[q.room].rose, w.checker.rooms[q.room].roseAt = true, h.index
		w.startSession(q.session, q.pass.Expires)
	}
}

// visitEnded follows a visit that is over. Where h has taken it over, that one is, whichever of its passes
// was shown: another node may have extended the one of before at the same time.
func (w *world) visitEnded(h *host, q *request) {
	if q.session == none {
		return
	}
	over := func(s int32) {
		w.endSession(s)
		w.checker.sessions[s].ended = true
	}
	over(q.session)
	c := &w.checker.rooms[q.room]
	if rs, ok := h.n.Room(c.name, h.clock.read(w.now)); !ok || rs.Broken != "" {
		return
	}
	for s := w.crowd.tickets[w.checker.sessions[q.session].ticket].session; s != none; s = w.checker.sessions[s].next {
		if c.accounts[w.checker.sessions[s].account].life == h.life && !w.checker.sessions[s].nobodys {
			over(s)
		}
	}
}

// visitGiven follows a visit whose node leaves, and gave it away with its slot; of a ticket that was called at two
// nodes that leave the one that was sent.
func (w *world) visitGiven(h *host, r int, t *place) {
	c := &w.checker.rooms[r]
	rs, ok := h.n.Room(c.name, h.clock.read(w.now))
	if !ok {
		return
	}
	w.reached.n[reachVisitGiven]++
	for s := t.session; s != none; s = w.checker.sessions[s].next {
		life := c.accounts[w.checker.sessions[s].account].life
		if life == none || life == h.life || w.checker.sessions[s].nobodys {
			continue
		}
		if l := &w.lives[life]; l.over || w.hosts[l.host].leaving && h.wasOffered(c, &w.checker.sessions[s], t.id) {
			w.moveSession(s, rs.Account)
			w.checkGiven(h, r, t.id, rs.Account, w.checker.sessions[s].expires)
		}
	}
}

// wasOffered reports whether h has been sent the visit of a session by the node that has it.
func (h *host) wasOffered(c *roomCheck, s *session, id qpid.ItemID) bool {
	return slices.ContainsFunc(h.offered, func(m *eviction.Slots) bool {
		return m.Room == c.name && m.From == c.accounts[s.account].Account &&
			slices.ContainsFunc(m.Visits, func(v eviction.Visit) bool { return v.ID == id && v.Expires >= s.expires })
	})
}

// visitsCame follows visits that h has taken in with their slots, where something else is under the same id:
// it says nothing of that, and has their slots in use until their passes have run out.
func (w *world) visitsCame(h *host, c *roomCheck, rs *node.RoomStatus) {
	h.offered = slices.DeleteFunc(h.offered, func(m *eviction.Slots) bool {
		if m.Room != c.name || m.To != rs.Account || !slices.ContainsFunc(rs.Peers, func(p eviction.PeerAccount) bool { return p.Account == m.From && p.Received >= m.Total }) {
			return m.To.Member != h.member(w)
		}
		for i := range m.Visits {
			w.becomesNobodys(c, m, &m.Visits[i])
		}
		return true
	})
}

// becomesNobodys follows a visit of which the giver has said nothing to its name, and one that was nobody's before.
func (w *world) becomesNobodys(c *roomCheck, m *eviction.Slots, v *eviction.Visit) {
	sent := func(s *session) bool {
		return s.live && &w.checker.rooms[s.room] == c && c.accounts[s.account].Account == m.From
	}
	if v.ID != (qpid.ItemID{}) {
		for i := w.crowd.tickets[w.ticketOf(v.ID)].session; i != none; i = w.checker.sessions[i].next {
			if s := &w.checker.sessions[i]; sent(s) && !s.nobodys {
				w.moveSession(i, m.To)
				s.nobodys = true
			}
		}
		return
	}
	i := slices.IndexFunc(w.checker.sessions, func(s session) bool { return sent(&s) && s.nobodys && s.expires == v.Expires })
	if i >= 0 {
		w.moveSession(int32(i), m.To)
	}
}

// visitTaken follows a visit of a lost node that another one goes on with, on a slot of its
// own. Whoever is on the site hears of that when they ask next.
func (w *world) visitTaken(h *host, r int, t *place, from eviction.Account) {
	c := &w.checker.rooms[r]
	rs, ok := h.n.Room(c.name, h.clock.read(w.now))
	if !ok {
		return
	}
	for s := t.session; s != none; s = w.checker.sessions[s].next {
		if c.accounts[w.checker.sessions[s].account].Account == from {
			w.moveSession(s, rs.Account)
			w.checker.sessions[s].taken = true
		}
	}
}

// S10, ghosts die. Once slots are whole again, no node answers for a place that
// another one took over from it and still keeps: whoever was cut off has been
// told. (Two nodes may have taken it over from the same lost one, which makes
// their copies of one generation; that is the further pass that its fault
// allows, even if one of them had the place before.)
func (w *world) checkGhost(h *host, t *place, gen uint32) {
	if gen == t.gen {
		return
	}
	from := slices.Contains(t.past[:min(int(t.gen), len(t.past))], h.life)
	if from && w.phase >= whole && t.home != h.index && !w.lives[t.life].over && t.state < gone {
		w.fail("S10", "%s keeps a place for ticket %d, which %s has taken over", h.name, w.ticketOf(t.id), w.hosts[t.home].name)
	}
}
