package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// S1, capacity. Active are the sessions whose pass some running node would
// still honour, and the called tickets of nodes whose lease is valid. A session
// lives from the moment a node issued its pass until a node has processed its
// end, or until the slowest clock in charge has passed its expiry; a pass that
// moves to another node is the same session. Whenever somebody is called, walks
// in or comes back with a pass that was over, active is within the highest
// limit that a leased node goes by; it is never beyond the highest limit the
// room ever had. With survivor lines, each side may fill the limit: whenever it
// lets somebody in, those on the site by its own accounts are within the limit
// that it goes by.
func (w *world) checkCapacity(r int) {
	c := &w.checker.rooms[r]
	w.expire(c)
	called := 0
	for i := range w.hosts {
		if h := &w.hosts[i]; w.mayAct(h, r) {
			called += h.seen.rooms[r].Called
		}
	}
	c.active = c.live + called
	c.activeMax = max(c.activeMax, c.active)
	rose := c.rose
	c.rose = false
	if w.o.Rooms[r].Method == eviction.Passthrough {
		return
	}
	limit, bound := c.hard*(1+c.sides), "the highest limit ever"
	switch {
	case rose && c.sides == 0:
		limit, bound = w.limitInForce(r), "the limit in force"
	case rose:
		w.checkSide(r, &w.hosts[c.roseAt])
	}
	if c.active > limit {
		c.over = max(c.over, c.active-limit)
		w.fail("S1", "room %s: %d on the site and %d called, %s is %d: %s", c.name, c.live, called, bound, limit, w.ledgers(r))
	}
}

// checkSide is S1 for one line of a room that has had several: that of a host where
// somebody was called or let in, whose limit counts even if it has crashed over it.
func (w *world) checkSide(r int, at *host) {
	c := &w.checker.rooms[r]
	line, inside, limit := at.seen.rooms[r].Line, 0, at.seen.rooms[r].Now.Target
	for i := range c.accounts {
		if c.accounts[i].line == line {
			inside += c.accounts[i].live
		}
	}
	for i := range w.hosts {
		h := &w.hosts[i]
		if rs := &h.seen.rooms[r]; w.mayAct(h, r) && rs.Line == line {
			inside += rs.Called
			limit = max(limit, rs.Now.Target)
		}
	}
	if inside > limit {
		w.fail("S1", "room %s: %d on the site or called on line %v, whose limit is %d: %s", c.name, inside, line, limit, w.ledgers(r))
	}
}

// limitInForce is the highest limit that a node with a lease goes by.
func (w *world) limitInForce(r int) int {
	limit, any := 0, false
	for i := range w.hosts {
		if h := &w.hosts[i]; w.mayAct(h, r) {
			limit, any = max(limit, h.seen.rooms[r].Now.Target), true
		}
	}
	if !any {
		return w.checker.rooms[r].hard
	}
	return limit
}

// expire ends sessions whose pass nobody honours any more.
func (w *world) expire(c *roomCheck) {
	if len(c.expiries) == 0 {
		return
	}
	clock, ok := w.slowest()
	for ok && len(c.expiries) > 0 && c.expiries[0].at <= clock {
		top := c.popExpiry()
		s := &w.checker.sessions[top.session]
		switch {
		case !s.live:
		case s.expires > top.at:
			c.pushExpiry(expiry{s.expires, top.session})
		default:
			w.endSession(top.session)
		}
	}
}

func (c *roomCheck) pushExpiry(e expiry) {
	h := append(c.expiries, e)
	i := len(h) - 1
	for i > 0 && e.at < h[(i-1)/2].at {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = e
	c.expiries = h
}

func (c *roomCheck) popExpiry() expiry {
	h := c.expiries
	top, n := h[0], len(h)-1
	e := h[n]
	h = h[:n]
	c.expiries = h
	if n == 0 {
		return top
	}
	i := 0
	for 2*i+1 < n {
		k := 2*i + 1
		if k+1 < n && h[k+1].at < h[k].at {
			k++
		}
		if h[k].at >= e.at {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = e
	return top
}

// outlived bounds the sessions of before a founding by which nobody is left on another
// line: whoever honours their passes knows no longer session than that of the files.
func (w *world) outlived(c *roomCheck, line eviction.Line) {
	r := w.roomIndex(c.name)
	for i := range w.hosts {
		if rs := &w.hosts[i].seen.rooms; w.hosts[i].up() && (*rs)[r].Line.Founded() && (*rs)[r].Line != line {
			return
		}
	}
	last := int64(line.Stamp)
	if r < len(w.o.Rooms)-w.unmade {
		last += w.filed(r).Microseconds()
	}
	for i := range w.checker.sessions {
		if s := &w.checker.sessions[i]; s.live && int(s.room) == r && s.expires > last {
			s.expires = last
			c.pushExpiry(expiry{last, int32(i)})
		}
	}
}

// endSession takes a session off the site.
func (w *world) endSession(i int32) {
	s := &w.checker.sessions[i]
	if !s.live {
		return
	}
	s.live = false
	c := &w.checker.rooms[s.room]
	c.live--
	c.accounts[s.account].live--
}

// startSession puts a session on the site, or on it again.
func (w *world) startSession(i int32, expires int64) {
	s := &w.checker.sessions[i]
	s.expires = max(s.expires, expires)
	if s.live {
		return
	}
	s.live = true
	c := &w.checker.rooms[s.room]
	c.live++
	c.accounts[s.account].live++
	c.pushExpiry(expiry{s.expires, i})
}

// moveSession notes that another account backs the session now.
func (w *world) moveSession(i int32, to eviction.Account) {
	s := &w.checker.sessions[i]
	c := &w.checker.rooms[s.room]
	a := c.accountOf(to)
	if s.live {
		c.accounts[s.account].live--
		c.accounts[a].live++
	}
	s.account = a
}

// unseal ends the sessions whose key is lost: no node can read their pass.
func (c *checker) unseal(w *world, lost uint64) {
	w.reached.n[reachKeysLost]++
	for i := range c.sessions {
		if s := &c.sessions[i]; s.live && s.key&lost != 0 {
			w.endSession(int32(i))
		}
	}
}

// S2, the ledger. Owned = minted + Σ received − Σ sent, and what is in use or
// locked is within what is owned.
func (w *world) checkLedger(h *host, rs *node.RoomStatus) {
	owned := rs.Minted
	for i := range rs.Peers {
		owned += rs.Peers[i].Received - rs.Peers[i].Sent
	}
	switch {
	case owned != rs.Owned:
		w.fail("S2", "%s room %s account %s: owns %d, minted + received - sent is %d: %+v",
			h.name, rs.Room.Name, w.account(rs.Account), rs.Owned, owned, rs.Peers)
	case rs.Used < 0 || rs.Used > rs.Owned:
		w.fail("S2", "%s room %s account %s: uses %d of %d", h.name, rs.Room.Name, w.account(rs.Account), rs.Used, rs.Owned)
	case rs.Free != rs.Owned-rs.Used:
		w.fail("S2", "%s room %s: free %d of %d with %d used", h.name, rs.Room.Name, rs.Free, rs.Owned, rs.Used)
	case rs.Called > rs.Used || rs.Called < 0 || rs.OnSite < 0:
		w.fail("S2", "%s room %s: %d called and %d on site, %d used", h.name, rs.Room.Name, rs.Called, rs.OnSite, rs.Used)
	}
}

// supply is how many slots the accounts of a line own that are not in voids,
// and how many are on their way between them.
func (w *world) supply(r int, line eviction.Line, voids []eviction.Void) int {
	c := &w.checker.rooms[r]
	inside := 0
	for i := range c.accounts {
		a := &c.accounts[i]
		if !w.valid(r, a, line, voids) {
			continue
		}
		inside += a.owned
		for _, p := range a.peers {
			b, ok := c.index[p.Account]
			switch {
			case ok && w.valid(r, &c.accounts[b], line, voids):
				inside += max(0, p.Sent-c.accounts[b].receivedFrom(a.Account))
			case !ok && w.mayOpen(p.Account):
				inside += p.Sent
			}
		}
	}
	return inside
}

// mayOpen reports whether an account that nobody has seen may still come to
// be: its commit may be on its way to a node that has replied to nothing since.
func (w *world) mayOpen(a eviction.Account) bool {
	l := &w.lives[w.lifeOf(a.Member)]
	return !l.over && w.hosts[l.host].seen.status.Epoch.Num <= a.Born
}

// valid reports whether a still counts on line: it is not void, and its node
// has had no reason to close it. A node does that itself once its lease has
// been over for as long as a pass may last, unless its room shares; then it counts
// for as long as its node may return. A dead one that has a later life in the waves
// does not, and whoever was not told of it by a wave with a quorum forgets it unvoided.
func (w *world) valid(r int, a *account, line eviction.Line, voids []eviction.Void) bool {
	lapse := (w.checker.rooms[r].session + 2*w.o.Cluster.MaxSkew).Microseconds()
	closed := (!w.checker.rooms[r].shares || a.life != none && w.replaced(a.life)) && w.now >= a.until+lapse
	return a.life != none && !a.closed && a.line == line && !closed && !covers(voids, a.Account)
}

// replaced reports whether a life is over and another one of its name is in the waves.
func (w *world) replaced(life int32) bool {
	name := w.lives[life].member.Name
	return w.lives[life].over && slices.ContainsFunc(w.hosts, func(h host) bool {
		return h.name == name && h.up() && h.life > life && h.seen.status.Grade >= eviction.Primary
	})
}

func (a *account) receivedFrom(b eviction.Account) int {
	for i := range a.peers {
		if a.peers[i].Account == b {
			return a.peers[i].Received
		}
	}
	return 0
}

// covers reports whether voids say that a is void.
func covers(voids []eviction.Void, a eviction.Account) bool {
	for _, v := range voids {
		if v.Member == a.Member && a.Born <= v.Epoch {
			return true
		}
	}
	return false
}

// S3, conservation. The slots of all accounts of a line that nobody on it ever
// held for void and that their node has not closed, those of dead nodes
// included, and the slots between them, are within the highest limit that the
// room ever had. So they are on each line of a room that has had several: a room that
// goes to another line with its slots leaves none behind, as those who stay are void there. Only where a room
// shares by the time that lines of survivors meet do the accounts of all of them go on, with a limit each: then nobody is called.
func (w *world) checkSupply(r int) {
	c := &w.checker.rooms[r]
	most := c.hard
	if c.shares {
		most *= 1 + c.sides
	}
	for _, line := range c.lines {
		n := w.supply(r, line, c.voided(line))
		if n > 0 && c.sides > 0 {
			w.reached.n[reachSideSupply]++
		}
		if n > most {
			w.fail("S3", "room %s: %d slots exist on line %v, the most that there may be are %d: %s", c.name, n, line, most, w.ledgers(r))
			return
		}
	}
}

// voided is what a node of the line ever held for void: nodes forget it in
// time, the checker does not.
func (c *roomCheck) voided(line eviction.Line) []eviction.Void { return voidsOf(c.voids, line) }

func voidsOf(all []lineVoids, line eviction.Line) []eviction.Void {
	for i := range all {
		if all[i].line == line {
			return all[i].voids
		}
	}
	return nil
}

// keepVoids adds what is void on a line.
func keepVoids(all []lineVoids, line eviction.Line, voids []eviction.Void) []lineVoids {
	if len(voids) == 0 {
		return all
	}
	at := slices.IndexFunc(all, func(l lineVoids) bool { return l.line == line })
	if at < 0 {
		at = len(all)
		all = append(all, lineVoids{line: line})
	}
	for _, v := range voids {
		all[at].add(v)
	}
	return all
}

func (l *lineVoids) add(v eviction.Void) {
	for i := range l.voids {
		if o := &l.voids[i]; o.Member == v.Member {
			o.Epoch = max(o.Epoch, v.Epoch)
			return
		}
	}
	l.voids = append(l.voids, v)
}

// heldElsewhere counts live sessions of accounts that are void of which a valid one has the slot: it came
// from a node that left, to one where the same ticket waited, too, which holds the slot until the pass
// has run out (seed 90017722 of the swarm at 3ac6838).
func (w *world) heldElsewhere(r int, line eviction.Line, voids []eviction.Void) (n int) {
	c := &w.checker.rooms[r]
	var held []int64
	for i := range w.hosts {
		if h := &w.hosts[i]; h.up() && h.seen.rooms[r].Line == line {
			held = append(held, h.n.Held(c.name)...)
		}
	}
	for i := range w.checker.sessions {
		s := &w.checker.sessions[i]
		if !s.live || int(s.room) != r || w.valid(r, &c.accounts[s.account], line, voids) {
			continue
		}
		at := slices.Index(held, s.expires+2*w.o.Cluster.MaxSkew.Microseconds())
		if at >= 0 {
			held = slices.Delete(held, at, at+1)
			n++
		}
	}
	return n
}

// S9, no minting in the dark. When slots are minted, the slots of the line's
// accounts that are not void, and those that other accounts may still spend
// (while their lease is valid) or back a live session with, are together
// within the limit. In a room that has had survivors' lines, these others are those of
// the same line: what was let in on another one comes on top of this, by survivor_after,
// until its passes have run out, also where its nodes are back (a supply counts the slots
// of its own line). It still says that no line makes slots of its own again that its lost
// nodes may use, for which one that goes on alone has as much occasion as any.
func (w *world) checkMint(h *host, r int, rs *node.RoomStatus) {
	c := &w.checker.rooms[r]
	if w.o.Rooms[r].Method == eviction.Passthrough {
		return
	}
	w.expire(c)
	voids := c.voided(rs.Line)
	inside := w.supply(r, rs.Line, voids)
	outside := 0
	for i := range c.accounts {
		a := &c.accounts[i]
		lives := a.life != none && !w.lives[a.life].over
		if w.valid(r, a, rs.Line, voids) || c.sides > 0 && a.line != rs.Line || lives && slices.Contains(rs.Room.Reclaimed, a.Member) {
			continue
		}
		outside += w.exposed(r, a)
	}
	if c.sides > 0 {
		w.reached.n[reachSideMint]++
	}
	limit := max(c.hard, rs.Now.Target)
	if inside+outside > limit {
		outside -= w.heldElsewhere(r, rs.Line, voids)
	}
	if inside+outside > limit {
		w.fail("S9", "room %s: %s has minted up to %d, and %d more may be in use at accounts it does not count; the limit is %d: %s",
			c.name, h.name, inside, outside, limit, w.ledgers(r))
	}
}
