package eviction

import "slices"

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
