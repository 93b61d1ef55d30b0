package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// chooseLine says which line the room's ledgers belong to. A room follows the
// nodes to a survivors' line only after its own survivor_after, or at once if it shares; until then
// false: nobody is called. So does a room that is new on such a line: whoever is
// on the line that the survivors left may have it too. It also follows from a line where a quorum of
// that has given its vote to this one, and is asked to where a quorum can.
//
// As long as it does not follow, the room stays at each node on the line that it is on there.
func (g *Gate) chooseLine(d *decision, rs *roomSums, c *RoomCommit) bool {
	var lines []Line
	lapsed := int64(-1)
	for _, n := range rs.nodes {
		if n.Line == d.line {
			c.Line = d.line
			return true
		}
		if n.Line.Founded() && !slices.Contains(lines, n.Line) {
			lines = append(lines, n.Line)
		}
		if n.Lapsed >= 0 && (lapsed < 0 || n.Lapsed < lapsed) {
			lapsed = n.Lapsed
		}
	}
	c.Line = d.line
	if len(lines) == 0 {
		return true // the room is new, and no other line can have it
	}
	slices.SortFunc(lines, Line.compare)
	asked := Line{}
	for _, l := range lines {
		switch leaves, may := rs.quorumOf(l, d); {
		case leaves:
			c.From = l
			return true
		case may && !asked.Founded():
			asked = l
		}
	}
	if after, ok := g.survivorAfter(d.reckons); rs.sides || ok && (lapsed < 0 || lapsed >= after) {
		c.From = lines[0]
		return true
	}
	c.Line = lines[0]
	if asked.Founded() {
		c.Line, c.From = asked, asked // its voters are asked for their votes
	}
	return false
}

// quorumOf reports whether of the nodes that are still on the room's old line a quorum of its voters has given its votes
// to the line of this wave, and so the room leaves; and whether they may be asked for them: they are a quorum, and for no other line
// have those who gave it theirs been one, with all voters that are not here, unless that line has ended. A node votes
// as it left the old line: what it did on another one since does not count, nor do lives since.
//
// Proof that a room which has left a line so is never on it again, nor leaves it for another that does not end that of which
// nothing came: each of that quorum had left the line itself when it gave its vote, which is on its disk before it says
// so. Any other quorum of that line, for another one or to be primary there, has one of those names in it, in that
// life (see votes). It is not back on the line: the first of them to be so would need a primary wave there without any
// of them. Of waves there that were decided before, one of them knows. Nor has it given its vote to another line since: the
// wave that asked the first of them for that, after they had replied to the one that the room left by, had a quorum, too.
// Those of them who were in it had that vote yet, as they had answered the earlier wave first, and the others count as
// if they had. Voters that one of the two waves does not know of are the next ones of the other.
//
// It takes two waves: were the room to leave in the one that finds the quorum, one who has not heard of that could
// vote again, or go back to the line. Were a vote given for good, a room would stay behind for ever, with all of its voters
// here, once their votes are for a line that they have left.
func (rs *roomSums) quorumOf(old Line, d *decision) (leaves, may bool) {
	voters, know := rs.voice(old, old, d, func(n *RoomNode) Voters { return n.Voters })
	gave := func(to Line) []qpid.NodeID {
		_, names := rs.voice(old, old, d, func(n *RoomNode) Voters {
			if n.Goes.To != to {
				return Voters{}
			}
			return n.Voters
		})
		return names
	}
	may = voters.quorum(know)
	for _, n := range rs.nodes {
		if to := n.Goes.To; may && n.Line == old && to.Founded() && to != d.line {
			may = rs.ended(old, to, d) || !voters.mayBe(know, gave(to))
		}
	}
	return voters.quorum(gave(d.line)), may
}

// ended reports whether a quorum of the voters of a line has left that while the room was on the old one at each of them,
// with their votes for it, and none of them is back there. If the room ever left for that line, nothing came of it: every wave
// there since has one of those in it who had not heard so, so that no supply was accepted and no slot made; and all that
// acted there has been seen by one of them.
//
// It stays so: the first of them to be back there would need a wave there without any of them. So who has found it need not find
// it again, when some have given their votes anew, and say nothing of that line any more, and others have not heard of it.
func (rs *roomSums) ended(old, line Line, d *decision) bool {
	e := end{old, line}
	if slices.Contains(rs.ends, e) {
		return true
	}
	voters, know := rs.voice(old, line, d, func(n *RoomNode) Voters {
		if n.Goes.To != line {
			return Voters{}
		}
		return n.Goes.Voters
	})
	if !voters.quorum(know) {
		return false
	}
	rs.ends = append(slices.Clone(rs.ends[max(0, len(rs.ends)-endsMax+1):]), e)
	return true
}

// end is of a line for which a room may have left an old one, and nothing came of it.
type end struct{ old, line Line }

// endsMax bounds those that are remembered.
const endsMax = 16

// voice returns what nodes that have the room on the old line say of the voters of a line: the newest, and which names know.
func (rs *roomSums) voice(old, line Line, d *decision, says func(*RoomNode) Voters) (newest Voters, know []qpid.NodeID) {
	for i := range rs.nodes {
		n, m := &rs.nodes[i], d.list[i]
		v := says(n)
		if n.Line == old && v.Version > 0 && stands(earliest(m, d.lives[i]), v.At.Num, rival(d.rivals, m, d.lives[i], line)) {
			know = append(know, m.Name)
			if v.newer(newest) {
				newest = v
			}
		}
	}
	return newest, know
}

// account voids and settles what is gone, and mints or burns the difference
// to the limit: all but what accounts outside the list may still use, see Supply. It
// reports whether a next wave will mint.
func (g *Gate) account(d *decision, rs *roomSums, r *RoomReply, supply Supply, c *RoomCommit, b *books) (mints bool) {
	voids := make([]Void, len(r.Voids))
	safe := make(map[Member]uint64, len(r.Voids)) // looked up only
	for i, v := range r.Voids {
		voids[i] = Void{v.Member, v.Max}
		if v.Nodes == len(d.list) {
			safe[v.Member] = v.Min
			c.Safe = append(c.Safe, Void{v.Member, v.Min})
		}
	}
	lost := g.settleListed(d, rs, c, b, &voids, safe)
	lost = append(lost, g.settleGone(d, rs, c, b, &voids, safe)...)
	lost = rs.actLeft(d, lost, safe)
	b.lost = lost
	c.Resumed = rs.resumedBy(d)
	rs.resumes = rs.uncounted()
	c.Void = voids
	if rs.accepted(d, supply, c.Line) {
		c.Reckoning = Reckoning{supply.Sure, supply.Claims, censusOf(supply)}
	} else if len(lost) > 0 && rs.mayRecall(d, c.Line, voids) {
		c.Stands = &Supply{Line: c.Line, Slots: supply.Slots, At: supply.At}
	}
	if !slices.ContainsFunc(rs.nodes, func(n RoomNode) bool { return n.Says == SaysNothing }) {
		c.Covered = make([]bool, len(rs.nodes))
	}
	for i := range c.Covered {
		n := &rs.nodes[i]
		c.Covered[i] = n.Says == IsCovered && b.valid[i] && !c.Sides
	}
	inside := 0
	for i, n := range rs.nodes {
		switch {
		case b.valid[i]:
			inside += n.Minted
		case n.Born > 0: // its books are in the sums, and no longer count
			rs.hold(c, b)
			return false
		}
	}
	for _, n := range r.Net {
		i := slices.Index(d.list, n.Account.Member)
		if i < 0 || !b.valid[i] || rs.nodes[i].Born != n.Account.Born {
			inside += n.Slots
		}
	}
	if c.Sure {
		b.kept, mints = rs.make(d, supply, c, inside, lost, safe)
	} else {
		mints = g.count(d, rs, supply, c, inside, b, safe)
	}
	rs.resume(d, c, inside, lost)
	b.inside = inside + c.Mint
	b.free[0] += c.Mint
	c.Active += b.kept
	c.Missing = max(0, rs.target-b.inside-b.kept)
	if len(lost) == 0 {
		c.Missing = 0 // the next wave makes them
	} else if c.Missing > 0 {
		c.WholeIn = b.wait
	}
	rs.hold(c, b)
	return mints
}

// hold stops calls while more slots exist than the limit, and burns what is
// free of the excess. Nobody is thrown out. So it does while visits go on that may not have been
// counted yet.
func (rs *roomSums) hold(c *RoomCommit, b *books) {
	excess := c.Supply - rs.target
	c.Closed = excess > 0
	if c.Closed {
		c.Burn = deal(excess, b.free, 0)
	}
	c.Closed = c.Closed || rs.resumes && !c.Sure
}

// settleListed gives new accounts to listed nodes whose old one is void or of
// another line, and returns the older accounts of which something can still act.
func (g *Gate) settleListed(d *decision, rs *roomSums, c *RoomCommit, b *books, voids *[]Void, safe map[Member]uint64) (lost []Void) {
	for i, m := range d.list {
		n := rs.nodes[i]
		j, known := findVoid(*voids, m)
		onLine := n.Line == c.Line || c.From.Founded() && n.Line == c.From || n.Sides && n.Line.Founded()
		if n.Born > 0 && onLine && (!known || n.Born > (*voids)[j].Epoch) {
			b.valid[i] = true
		} else {
			b.born[i] = d.epoch.Num
			b.free[i] = 0
			if n.Born > 0 {
				lost = append(lost, Void{m, n.Born})
			}
		}
		if n.OldAge < 0 && !known && (n.Born == 0 || b.valid[i]) {
			continue // its first account
		}
		// Also if its void is older than its account was when it was opened: a
		// coordinator that had not heard of the void took it for a newcomer.
		*voids = addVoid(*voids, Void{m, b.born[i] - 1})
		quiet := n.OldAge < 0 || n.OldAge >= g.delayWith(d, rs)
		if quiet && b.valid[i] && safe[m] >= n.Born-1 {
			c.Settled = append(c.Settled, Void{m, n.Born - 1})
		} else {
			lost = append(lost, Void{m, n.Shut})
			b.wait = max(b.wait, g.delayWith(d, rs)-max(0, n.OldAge))
		}
	}
	return lost
}

// settleGone voids members that are not in the list and returns those of which
// something can still act.
func (g *Gate) settleGone(d *decision, rs *roomSums, c *RoomCommit, b *books, voids *[]Void, safe map[Member]uint64) (lost []Void) {
	for _, m := range d.met {
		silent, later := m.Age, successor(d.list, m.Member)
		reclaimed := slices.Contains(rs.cfg.Reclaimed, m.Member) || m.Left
		if !reclaimed && later >= 0 {
			reclaimed = true
			if rs.shared { // on a side of its own it may have acted until it ended, and nobody here know
				silent = min(silent, d.up[later])
			}
		}
		if rs.shared && rs.mayAct(d, m) {
			lost = append(lost, Void{m.Member, m.Epoch})
			continue
		}
		i, known := findVoid(*voids, m.Member)
		if (m.Age >= micros(g.c.ExcludeAfter) && !slices.Contains(d.awaited, m.Member) || reclaimed) && (!known || (*voids)[i].Epoch < m.Epoch) {
			*voids = addVoid(*voids, Void{m.Member, d.epoch.Num - 1}) // another side may open one under the same number
		}
		if e, ok := safe[m.Member]; ok && e >= m.Epoch && silent >= g.delayWith(d, rs) {
			c.Settled = append(c.Settled, Void{m.Member, e})
		} else {
			lost = append(lost, Void{m.Member, m.Epoch})
			b.wait = max(b.wait, g.delayWith(d, rs)-silent)
		}
	}
	return lost
}

// delayWith is D with the longest session that any listed node knows of, and all that any
// of them reckons with.
func (g *Gate) delayWith(d *decision, rs *roomSums) int64 {
	return g.delayFor(d.reckons, rs.ttl)
}
