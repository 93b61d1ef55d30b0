package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// S26, claims. What a wave reckons that accounts of lost nodes can still use is no less
// than they do: those on the site by them, and what they own while they may act. All together:
// a visit that was on its way from one to another counts as either's.
func (w *world) checkClaims(m *eviction.Commit, rc *eviction.RoomCommit, r int) {
	c := &w.checker.rooms[r]
	if m.Grade < eviction.Primary || !rc.Sure || c.sides > 0 || len(rc.Claims) == 0 {
		return
	}
	w.expire(c)
	claimed, exposed := 0, 0
	for _, claim := range rc.Claims {
		claimed += claim.Slots
		w.followClaim(c, claim)
	}
	for i := range c.accounts {
		a := &c.accounts[i]
		if slices.ContainsFunc(rc.Claims, func(o eviction.Claim) bool { return covers(o.Of, a.Account) }) {
			exposed += w.exposed(r, a)
		}
	}
	if exposed > claimed {
		w.fail("S26", "room %s: %v reckons that lost accounts use up to %d slots, and they use %d: %s", c.name, m.Epoch, claimed, exposed, w.ledgers(r))
	}
}

// exposed is how many people are on the site by an account, or may come to be.
func (w *world) exposed(r int, a *account) int {
	if a.life != none && !w.lives[a.life].over {
		o := &w.hosts[w.lives[a.life].host]
		if s := &o.seen.rooms[r]; s.Account == a.Account && w.mayAct(o, r) {
			return max(a.live, a.owned)
		}
	}
	return a.live
}

// followClaim counts the claims of which slots were made again before all of their accounts
// were over.
func (w *world) followClaim(c *roomCheck, claim eviction.Claim) {
	if len(claim.Of) == 0 {
		return
	}
	was, known := c.claimed[claim.Of[0]]
	if c.claimed == nil {
		c.claimed = make(map[eviction.Void]int)
	}
	if c.claimed[claim.Of[0]] = claim.Slots; known && claim.Slots < was {
		w.reached.n[reachClaimLowered]++
	}
}

// S26, covers. A node that says in a wave that its account is covered has nobody on the site
// by it whom no other member of the wave keeps, while all of those are alive: else that wave
// ends with them.
func (w *world) checkCovered(h *host, b *eviction.Reply) {
	if len(b.Nodes) != 1 || h.seen.gatherAt != h.clock.boot(w.now) { // what it has said was true when it was asked
		return
	}
	if slices.ContainsFunc(h.n.Status().List, func(m eviction.Member) bool { return w.lives[w.lifeOf(m)].over }) {
		return
	}
	for i := range b.Rooms {
		for _, n := range b.Rooms[i].Nodes {
			if n.Covered {
				w.checkVisits(h, w.roomIndex(b.Rooms[i].Room))
			}
		}
	}
}

func (w *world) checkVisits(h *host, r int) {
	c := &w.checker.rooms[r]
	a := h.seen.rooms[r].Account
	i, known := c.index[a]
	if !known || c.accounts[i].live == 0 {
		return
	}
	w.expire(c)
	w.reached.n[reachCovered]++
	for _, e := range c.expiries {
		s := &w.checker.sessions[e.session]
		if !s.live || s.account != i || s.taken {
			continue
		}
		if id := w.crowd.tickets[s.ticket].id; !w.visitKept(h, c.name, id, s.expires) {
			w.fail("S26", "%s room %s: says that all its visits are kept, and nobody keeps that of ticket %d until %d", h.name, c.name, s.ticket, s.expires-epochWall)
			return
		}
	}
}

// visitKept reports whether another node keeps a visit of h's for as long as it lasts.
func (w *world) visitKept(h *host, room string, id qpid.ItemID, expires int64) bool {
	for i := range w.hosts {
		if o := &w.hosts[i]; o != h && o.up() && o.n.KeepsVisit(room, h.member(w), id) >= expires {
			return true
		}
	}
	return false
}
