package eviction

import (
	"math"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Installed tells the owner of a gate what a commit, or the lack of one,
// changed.
type Installed struct {
	Gate     *Gate
	Before   Cut           // what was permitted until now
	Entitled []qpid.Weight // drawn in a random room, in order
	Epoch    qpid.Epoch
	Delete   int           // deleteMins to run
	Twins    []qpid.Weight // copies of tickets that wait at another node too: to be parked
	Reset    bool          // the account is another one: nothing is used any more
	Visits   []Visit       // came from another account with the slots that they use
	From     Account       // that account
	QPID     *qpid.Snapshot
}

// install carries out a commit's part for this room at this node.
func (g *Gate) install(n *Node, w *wave, c *RoomCommit, grade Grade) (Installed, []Message) {
	in := Installed{Gate: g, Before: g.cut, Epoch: w.epoch}
	now := w.at
	g.at = max(g.at, w.T)
	g.bound = c.Bound
	g.configure(c, now)
	g.installAccount(n, w, c, &in)
	g.lease(n, w, c, grade)
	if w.index == 0 && c.Born[0] == g.ledger.account.Born {
		g.ledger.mint(c.Mint)
	}
	burned := 0
	for _, b := range c.Burn {
		if b.Index == w.index {
			burned += g.ledger.burn(b.N)
		}
	}
	g.applyCut(c.Cut)
	if c.Key == w.epoch && g.drawKey == w.epoch {
		for _, d := range g.drawn {
			if c.Drawn.Less(d.place) {
				break
			}
			in.Entitled = append(in.Entitled, d.queued)
		}
	}
	if w.index == 0 {
		in.Delete = c.Delete
	}
	for _, t := range c.Twins {
		if t.Index == w.index {
			in.Twins = append(in.Twins, t.Weight)
		}
	}
	g.open, g.closed, g.total, g.active, g.calledAll, g.rate = c.Open, c.Closed, c.Queued, c.Active, c.Called, c.Rate
	g.missing, g.wholeAt = c.Missing, now+c.WholeIn
	if grade >= Primary {
		g.supply = Supply{Line: c.Line, Slots: c.Supply, At: w.epoch, Voters: n.voters.Version, Sure: c.Sure, Claims: c.Claims}
	}
	g.supply.Burned += burned // a side knows what it burns, not what others have minted
	if g.paced = c.Paced; g.paced {
		g.tokens, g.tokenTo = 0, now+tokenLife
		for _, t := range c.Tokens {
			if t.Index == w.index {
				g.tokens = max(0, t.N-int(g.spent-g.spentThen))
			}
		}
	}
	g.waiting, g.members, g.born, g.asked = c.Waiting, w.list, c.Born, max(g.asked, w.at)
	if c.Digest != nil {
		g.installDigest(w, c)
	}
	return in, g.moves(w, c)
}

// lease lets the account act from the gather on, if the coordinator has looked
// at it. A wave that does not ask about the room leases nothing of it: the
// account may be void and nobody here know.
func (g *Gate) lease(n *Node, w *wave, c *RoomCommit, grade Grade) {
	born := g.ledger.account.Born
	if born == 0 || c.Born[w.index] != born {
		return
	}
	if grade >= Primary && c.Line.Founded() && g.line == n.line {
		g.heldAt, g.leasedAt = w.at, w.at
	}
	if grade >= Side && g.cfg.OnPartition == Share {
		g.heldAt = w.at
	}
}

// configure takes over a newer configuration. A session that gets longer is
// used for new passes only when everyone knows of it; one that gets shorter
// is still reckoned with until all passes of the old length have run out.
func (g *Gate) configure(c *RoomCommit, now int64) {
	if c.TTL > micros(g.ttl) || c.TTL == micros(g.ttl) && !c.Agreed { // who disagrees may still give it
		g.ttl = durationOf(c.TTL)
		g.ttlUntil = now + g.delay()
	}
	if now >= g.ttlUntil {
		g.ttl = g.cfg.longest()
	}
	// Of two contents of one version, both configured by hand, the coordinator's
	// counts: what the cluster runs with, whatever a newcomer's file says.
	if c.Config != nil && (c.Config.Version.Compare(g.cfg.Version) > 0 || c.Config.Version == g.cfg.Version && c.Config.Sum() != g.sum) {
		g.ttl = max(g.ttl, g.cfg.longest(), c.Config.longest())
		g.ttlUntil = now + g.delay()
		g.setRoom(*c.Config)
	}
	g.hold()
	if c.Agreed {
		g.session = g.now.Session
	} else {
		g.session = min(g.session, g.now.Session)
	}
}

func (g *Gate) installAccount(n *Node, w *wave, c *RoomCommit, in *Installed) {
	if c.Line.Founded() {
		if born := c.Born[w.index]; born != g.ledger.account.Born && born > g.shutBorn {
			in.Reset = g.reopen(Account{n.self.Member, born})
		}
		g.line = c.Line
	}
	for _, v := range c.Void {
		g.voids = addVoid(g.voids, v)
	}
	if c.Safe != nil || c.Settled != nil {
		g.safe = c.Safe
	}
	for _, v := range c.Settled {
		g.ledger.fold(v)
		if v.Member == n.self.Member {
			g.oldHeld = never
		}
	}
}

// reopen closes the account and opens another; it reports whether the old one
// had anything in use.
func (g *Gate) reopen(a Account) (used bool) {
	used = g.ledger.used > 0
	g.oldHeld = max(g.oldHeld, g.heldAt)
	g.heldAt = never
	g.shutBorn = max(g.shutBorn, g.ledger.account.Born)
	g.ledger.reset(a)
	g.busy = true
	return used
}

// lapse closes an account whose last pass has run out while nobody renewed
// its lease: its slots may be about to be minted again elsewhere.
func (g *Gate) lapse(self Member, now int64) (reset bool) {
	if now < g.lapsesAt() {
		return false
	}
	return g.reopen(Account{Member: self})
}

// lapsesAt is the boot time from which on the account has lapsed.
func (g *Gate) lapsesAt() int64 {
	if g.cfg.OnPartition == Share || g.leasedAt == never || g.ledger.account.Born == 0 {
		return ever
	}
	return g.leasedAt + drifted(micros(g.c.Lease+max(g.ttl, g.cfg.longest()))) + 2*micros(g.c.MaxSkew)
}

// applyCut raises the cut. A cut under a newer keying than the queue's waits
// until the owner has re-keyed.
func (g *Gate) applyCut(c Cut) {
	if c.Keying == g.keying && c.newer(g.cut) {
		g.cut = c
	}
}

// Rekey gives the queue the keying that holds at time t; the owner then puts
// everyone back under their new weights. It reports whether that is needed. A
// keying is never taken back.
func (g *Gate) Rekey(t uint64) bool {
	k, seed := g.cfg.keyingAt(t)
	if g.told >= k {
		k, seed = g.told, g.toldSeed // also of the same draw: the coordinator's seed counts
	}
	if k < g.keying || k == 0 || k == g.keying && (g.told != k || seed == g.seed) {
		return false
	}
	g.digest, g.own, g.first, g.digestOf, g.digestT = nil, nil, nil, nil, 0 // it speaks of other weights
	g.keying, g.seed, g.cut = k, seed, Cut{Keying: k}
	g.asserted.cut = g.cut // what was permitted until now was in another order
	return true
}

// moves carries out the node's own rows of the slot plan.
func (g *Gate) moves(w *wave, c *RoomCommit) (out []Message) {
	for _, m := range c.Moves {
		if m.From != w.index || c.Born[m.To] == 0 {
			continue
		}
		to := Account{w.list[m.To], c.Born[m.To]}
		if s := g.ledger.send(g.cfg.Name, to, m.Slots); s != nil {
			out = append(out, Message{From: w.list[w.index], To: to.Member, Body: s})
		}
	}
	return out
}

// resend repeats transfers to listed accounts that were not acknowledged.
func (g *Gate) resend(self Member, list []Member) (out []Message) {
	for _, p := range g.ledger.peers {
		if p.Acked < p.Sent && slices.Contains(list, p.Member) && g.current(p.Account) {
			for _, s := range g.ledger.unacked(g.cfg.Name, p) {
				out = append(out, Message{From: self, To: p.Member, Body: s})
			}
		}
	}
	return out
}

// forget drops voids of members that no one can hear of any more, and reports
// whether there were any.
func (g *Gate) forget(known func(Member) bool) bool {
	before := len(g.voids)
	g.voids = slices.DeleteFunc(g.voids, func(v Void) bool { return !known(v.Member) })
	return len(g.voids) < before
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

// installDigest keeps the room's digest for position estimates, and what part of it is
// this node's own.
func (g *Gate) installDigest(w *wave, c *RoomCommit) {
	g.digest, g.own, g.first, g.digestOf, g.digestT = c.Digest, g.sampled, c.First, w.list, w.T
}

// Position estimates how many people wait before key, and counts them from 1:
// exactly at this node, by the digest of the last second elsewhere. It is not
// known of a newcomer: the digest does not hold who joined elsewhere since.
func (g *Gate) Position(self Member, key qpid.Weight) (position int, known bool) {
	ahead := g.Queue.Rank(key) + g.Due
	if g.digest != nil && g.own != nil {
		others := g.digest.between(g.cut.Value, key) - g.own.between(g.cut.Value, key)
		ahead += max(0, int(math.Round(others)))
	}
	alone := len(g.members) == 1 && g.members[0] == self
	return ahead + 1, alone || key.Stamp <= g.digestT
}
