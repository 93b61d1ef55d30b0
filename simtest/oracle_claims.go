package simtest

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
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
	claimed, exposed, which := 0, 0, ""
	for _, claim := range rc.Claims {
		claimed += claim.Slots
		w.followClaim(c, claim)
	}
	for i := range c.accounts {
		a := &c.accounts[i]
		if slices.ContainsFunc(rc.Claims, func(o eviction.Claim) bool { return covers(o.Of, a.Account) }) {
			n := w.exposed(r, a)
			exposed, which = exposed+n, which+fmt.Sprintf(" %v %d", a.Account, n)
		}
	}
	if exposed > claimed {
		w.fail("S26", "room %s: %v reckons that lost accounts use up to %d slots, and they use %d: %+v, and%s: %s", c.name, m.Epoch, claimed, exposed, rc.Claims, which, w.ledgers(r))
	}
}

// S26, supply. No more slots may exist than a primary wave reckons with, of whoever they are: if it
// reckons with more than the limit, nobody is called. What there is a claim of counts as that says, see
// checkClaims. A wave that is not Sure may reckon with none, as after a founding: then it has none, and makes none before D
// is over. One that is decided late has not heard of what others have made since, and nobody goes by it.
func (w *world) checkReckoned(m *eviction.Commit, rc *eviction.RoomCommit, r int) {
	c := &w.checker.rooms[r]
	if m.Grade < eviction.Primary || rc.Supply == 0 && !rc.Sure || rc.Shared || c.sides > 0 || rc.Line != m.Line || w.isOld(m) {
		return
	}
	w.expire(c)
	exist := 0
	for _, claim := range rc.Claims {
		exist += claim.Slots
	}
	claimed := func(a eviction.Account) bool {
		return slices.ContainsFunc(rc.Claims, func(o eviction.Claim) bool { return covers(o.Of, a) })
	}
	for i := range c.accounts {
		a := &c.accounts[i]
		if claimed(a.Account) {
			continue
		}
		exist += w.exposedBut(r, a, claimed)
	}
	if exist > rc.Supply {
		w.fail("S26", "room %s: %v reckons with up to %d slots, and %d exist: %s", c.name, m.Epoch, rc.Supply, exist, w.ledgers(r))
	}
}

// S26, supply on disk. Who is a quorum by itself makes no more slots than its disk says there may be:
// nobody else could tell a later life of it.
func (w *world) checkMintAlone(h *host, s *node.Status, r int, rs *node.RoomStatus) {
	c, most := &w.checker.rooms[r], 0
	if !w.o.Faults.Disk || len(s.List) != 1 || s.Grade < eviction.Primary || c.sides > 0 {
		return
	}
	if k := h.disk.kept; k != nil {
		for i := range k.Rooms {
			if k.Rooms[i].Room.Name == c.name {
				most = k.Rooms[i].Supply.Slots
			}
		}
	}
	if rs.Owned > most {
		w.fail("S26", "%s room %s: makes slots by itself, %d of them are its own, and by its disk a later life would reckon with %d", h.name, c.name, rs.Owned, most)
	}
}

// S26, void accounts. Nobody sends slots to an account of which it knows that it is void: what
// that one can use is settled. What it decided before it knew may be on its way, and as long
// as its own disk holds it up it is. A node that has a commit of another, and leads a wave by itself
// at once, in which it finds that one lost, has decided before.
func (w *world) checkSent(h *host, m *eviction.Slots) {
	rs, _ := h.n.Room(m.Room, h.clock.read(w.now))
	knows := func(v eviction.Void) bool { return v.Member == m.To.Member && m.To.Born <= v.Epoch }
	if !slices.ContainsFunc(rs.Voided, knows) {
		return
	}
	before := h.seen.rooms[w.roomIndex(m.Room)].Voided
	if slices.ContainsFunc(before, knows) || slices.Contains(h.n.Status().List, m.To.Member) {
		w.fail("S26", "%s room %s: sends slots to %v, and knows that it is void", h.name, m.Room, m.To)
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

// exposedBut is exposed without the visits that are on their way to others: they count there.
func (w *world) exposedBut(r int, a *account, others func(eviction.Account) bool) int {
	c, n := &w.checker.rooms[r], w.exposed(r, a)
	for _, p := range a.peers {
		if b, ok := c.index[p.Account]; ok && others(p.Account) && n > a.owned {
			n = max(a.owned, n-max(0, p.Sent-c.accounts[b].receivedFrom(a.Account)))
		}
	}
	return n
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
	c.claimed[claim.Of[0]] = claim.Slots
	if known && claim.Slots < was {
		w.reached.n[reachClaimLowered]++
	}
}

// S26, covers. A node that says in a wave that its account is covered has nobody on the site
// by it whom no other node keeps, while all who are in its waves are alive: else the wave ends
// with them. And from then on it gives no pass that nobody keeps for as long, takes in no such
// visit, and gives none away, until a wave has carried that it is not.
func (w *world) checkCovered(h *host, b *eviction.Reply) {
	if len(b.Nodes) != 1 || h.seen.gatherAt != h.clock.boot(w.now) { // what it has said was true when it was asked
		return
	}
	for i := range b.Rooms {
		for _, n := range b.Rooms[i].Nodes {
			if r := w.roomIndex(b.Rooms[i].Room); n.Says == eviction.IsCovered {
				h.seen.covered[r] = h.seen.rooms[r].Account
				w.checkVisits(h, r)
			}
		}
	}
}

// uncovered follows the commit that h has installed last, and reports whether it is known: one
// of its own is when it goes out.
func (w *world) uncovered(h *host, s *node.Status) (known bool) {
	if len(s.List) == 1 && s.Grade >= eviction.Primary { // it tells nobody of it
		clear(h.seen.covered)
		return true
	}
	for k := range w.checker.commits {
		if w.checker.commits[k].epoch != s.Installed {
			continue
		}
		c := w.checker.commits[k].commit
		i := slices.Index(s.List, h.member(w))
		for j := range c.Rooms {
			if rc := &c.Rooms[j]; c.Grade >= eviction.Primary && i >= 0 && i < len(rc.Covered) && !rc.Covered[i] {
				h.seen.covered[w.roomIndex(rc.Room)] = eviction.Account{}
			}
		}
		known = true
	}
	return known
}

// allAlive reports whether all who were in the last wave of h are alive.
func (w *world) allAlive(h *host) bool {
	return !slices.ContainsFunc(h.n.Status().List, func(m eviction.Member) bool { return w.lives[w.lifeOf(m)].over })
}

// checkGiven is S26 for a pass, or a visit that came from a leaving node.
func (w *world) checkGiven(h *host, r int, id qpid.ItemID, home eviction.Account, expires int64) {
	s := h.n.Status()
	if w.uncovered(h, &s) && home.Born > 0 && h.seen.covered[r] == home && w.allAlive(h) && !w.visitKept(h, w.checker.rooms[r].name, id, expires) {
		w.fail("S26", "%s room %s: has said that all its visits are kept, and nobody keeps that of ticket %d, who has a pass until %d", h.name, w.checker.rooms[r].name, w.ticketOf(id), expires-epochWall)
	}
}

func (w *world) checkVisits(h *host, r int) {
	c := &w.checker.rooms[r]
	if !w.allAlive(h) {
		return
	}
	w.expire(c) // none, while nobody may judge a pass
	own, right := h.n.Status().Clock, w.passClockRight(h)
	for _, e := range c.expiries {
		s := &w.checker.sessions[e.session]
		if !s.live || s.taken || c.accounts[s.account].life != h.life {
			continue
		}
		if right && s.expires+2*h.file.MaxSkew.Microseconds() <= own {
			continue // over by every clock that is right
		}
		if s.expires-epochWall > w.now+(w.sessionMax(r)+2*w.o.Cluster.MaxSkew).Microseconds() {
			continue // by a survivor's own clock, of a time to come: nobody waits for that
		}
		w.reached.n[reachCovered]++
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
