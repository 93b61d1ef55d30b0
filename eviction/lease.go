package eviction

import "slices"

// Who may be called, let in, or have a pass extended at this node, here and now: lemma 4.

// Calls reports whether waiting visitors of g may be called.
func (n *Node) Calls(g *Gate, now Time) bool {
	return n.Admits(g, now) && !g.closed && !n.cutOff && g.cfg.Mode.calls() && !g.waits(uint64(n.clock.now))
}

// Admits reports whether visitors of g may be called, admitted or have their
// passes extended here and now.
func (n *Node) Admits(g *Gate, now Time) bool {
	return !n.leaving && n.leased(g, now)
}

// leased reports whether the account of g may act here and now.
func (n *Node) leased(g *Gate, now Time) bool {
	if !n.Clear() || now.Boot >= n.LeaseOf(g) || g.ledger.account.Born == 0 || g.broken || g.durable == 0 {
		return false
	}
	return g.cfg.OnPartition.admits(n.grade, g.line == n.line, g.sides)
}

// Clear reports whether the node's clock may be trusted with stamps and passes: a
// quorum has taken it for right in this life, and it has neither been set nor
// been found wrong since. A node that returns alone with a wrong clock would give
// out places in the far future, or ahead of everyone, and whoever takes them over
// would be dragged along. If its clock is behind, passes would be good there long
// after D has made their slots again.
func (n *Node) Clear() bool { return n.clock.vouched && !n.clock.quarantined }

// LeaseOf returns the boot time until which the account of g may act.
func (n *Node) LeaseOf(g *Gate) int64 {
	if g.heldAt < n.clock.stoodTo {
		return never // by a clock that stood still, nobody knows since when
	}
	return min(n.leaseUntil, g.heldAt+micros(n.c.Lease))
}

// waits reports whether an event keeps everybody waiting at clock t of this node.
// Its pre-queue begins by the node's own clock, its doors open with a wave alone:
// nobody is called too early here because the clock is wrong.
func (f *inForce) waits(t uint64) bool {
	if !f.now.started(f.at) {
		return true
	}
	t = max(t, f.at)
	for i := range f.cfg.Events {
		if e := &f.cfg.Events[i]; e.holds(t) {
			return f.at < uint64(e.Start)
		}
	}
	return false
}

// Spend takes a slot, and a pacing token if the room is paced, for a visitor
// who is called or walks in.
func (g *Gate) Spend(now int64) bool {
	if g.paced && (g.tokens <= 0 || now >= g.tokenTo) {
		return false
	}
	if !g.ledger.Spend() {
		return false
	}
	if g.paced {
		g.tokens--
		g.spent++
	}
	g.calls.add(now)
	g.busy = true
	return true
}

// Gathers reports whether an event keeps everybody waiting here and now.
func (n *Node) Gathers(g *Gate) bool { return g.waits(uint64(n.clock.now)) }

// Open reports whether a newcomer may walk straight in.
func (n *Node) Open(g *Gate, now Time) bool {
	return g.open && n.Calls(g, now) && g.now.started(uint64(n.clock.now)) && !g.shy(now.Boot)
}

// InTouch reports whether this node knows what became of its visitors of g: it is in
// the waves, and whoever may have taken some over while it was not has told it.
func (n *Node) InTouch(g *Gate, now Time) bool { return n.leased(g, now) && len(n.unsynced) == 0 }

// MayAdopt reports whether a session whose account is gone may go on here, on a
// slot of this node's. It may not until nothing of that account can extend the
// same pass.
func (n *Node) MayAdopt(g *Gate, from Account, now Time) bool {
	if !n.Admits(g, now) || !g.voided(from) || !g.isSafe(from) {
		return false
	}
	if slices.Contains(g.lives, from.Member) { // it goes on elsewhere
		return false
	}
	if g.wentOn && !g.sured { // or may do so yet: who has its disk was to go on when others did, and has not heard of it
		return false
	}
	b := n.c.waits
	wait := drifted(b.Deadline+b.Lease) + b.Margin
	if slices.ContainsFunc(n.met, func(s sight) bool {
		return g.mayHaveGoneOn(from.Member, s.member, now.Boot) && !n.Listed(s.member) && now.Boot-s.at < wait
	}) {
		return false
	}
	if from.Member == n.self.Member {
		if g.oldHeld != never && now.Boot-g.oldHeld < wait {
			return false
		}
	} else if i, ok := n.findMet(from.Member); ok && !n.Listed(from.Member) && now.Boot-n.met[i].at < wait {
		return false
	} else if n.Listed(from.Member) {
		return false // it is here under another account, and adopts its own
	}
	return true
}
