package eviction

import (
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
	QPID     *qpid.Snapshot
}

// install carries out a commit's part for this room at this node.
func (g *Gate) install(n *Node, w *wave, c *RoomCommit, grade Grade) (Installed, []Message) {
	in := Installed{Gate: g, Before: g.cut, Epoch: w.epoch}
	now := w.at
	g.configure(c, now)
	g.installAccount(n, w, c, &in)
	if grade >= Primary && g.line == n.line && g.ledger.account.Born > 0 {
		g.leasedAt, g.voters = now, n.voters
	}
	if w.index == 0 {
		g.ledger.mint(c.Mint)
	}
	for _, b := range c.Burn {
		if b.Index == w.index {
			g.ledger.burn(b.N)
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
	g.open, g.closed, g.supply, g.total, g.active, g.rate = c.Open, c.Closed, c.Supply, c.Queued, c.Active, c.Rate
	if g.paced = c.Paced; g.paced {
		g.tokens, g.tokenTo = 0, now+tokenLife
		for _, t := range c.Tokens {
			if t.Index == w.index {
				g.tokens = t.N
			}
		}
	}
	g.waiting, g.members, g.born = c.Waiting, w.list, c.Born
	if c.Digests != nil {
		g.installDigests(w, c)
	}
	return in, g.moves(w, c)
}

// configure takes over a newer configuration. A session that gets longer is
// used for new passes only when everyone knows of it; one that gets shorter
// is still reckoned with until all passes of the old length have run out.
func (g *Gate) configure(c *RoomCommit, now int64) {
	if c.TTL > micros(g.ttl) {
		g.ttl = durationOf(c.TTL)
		g.ttlUntil = now + g.delay()
	}
	if now >= g.ttlUntil {
		g.ttl = g.cfg.Session
	}
	if c.Config != nil && c.Config.Version.Compare(g.cfg.Version) > 0 {
		g.ttl = max(g.ttl, g.cfg.Session, c.Config.Session)
		g.ttlUntil = now + g.delay()
		g.cfg = c.Config.WithDefaults()
	}
	if c.Agreed {
		g.session = g.cfg.Session
	} else {
		g.session = min(g.session, g.cfg.Session)
	}
}

func (g *Gate) installAccount(n *Node, w *wave, c *RoomCommit, in *Installed) {
	if c.Line.Founded() {
		if born := c.Born[w.index]; born != g.ledger.account.Born {
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
			g.oldLeased = never
		}
	}
}

// reopen closes the account and opens another; it reports whether the old one
// had anything in use.
func (g *Gate) reopen(a Account) (used bool) {
	used = g.ledger.used > 0
	g.oldLeased = max(g.oldLeased, g.leasedAt)
	g.leasedAt = never
	g.ledger.reset(a)
	g.busy = true
	return used
}

// lapse closes an account whose last pass has run out while nobody renewed
// its lease: its slots may be about to be minted again elsewhere.
func (g *Gate) lapse(self Member, now int64) (reset bool) {
	if g.cfg.OnPartition == Share || g.leasedAt == never || g.ledger.account.Born == 0 {
		return false
	}
	if now < g.leasedAt+micros(g.c.Lease+max(g.ttl, g.cfg.Session)+2*g.c.MaxSkew) {
		return false
	}
	return g.reopen(Account{Member: self})
}

// applyCut raises the cut. A cut under a newer keying than the queue's waits
// until the owner has re-keyed.
func (g *Gate) applyCut(c Cut) {
	if c.Keying == g.keying && c.newer(g.cut) {
		g.cut = c
	}
}

// Rekey gives the queue the keying that holds at time t; the owner then puts
// everyone back under their new weights. It reports whether that is needed.
func (g *Gate) Rekey(t uint64) bool {
	k := g.cfg.keyingAt(t)
	if k == g.keying {
		return false
	}
	g.keying, g.cut = k, Cut{Keying: k}
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
		if p.Acked < p.Sent && slices.Contains(list, p.Member) && !g.voided(p.Account) {
			s := &Slots{Room: g.cfg.Name, From: g.ledger.account, To: p.Account, Total: p.Sent}
			out = append(out, Message{From: self, To: p.Member, Body: s})
		}
	}
	return out
}

// forget drops voids of members that no one can hear of any more.
func (g *Gate) forget(known func(Member) bool) {
	g.voids = slices.DeleteFunc(g.voids, func(v Void) bool { return !known(v.Member) })
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
	}
	g.calls.add(now)
	g.busy = true
	return true
}

// installDigests keeps the other nodes' digests for position estimates.
func (g *Gate) installDigests(w *wave, c *RoomCommit) {
	g.digests, g.digestOf = c.Digests, w.list
}

// Position estimates how many people wait before key, and counts those who
// wait: exactly at this node, by the digests of the last second elsewhere.
func (g *Gate) Position(self Member, key qpid.Weight) int {
	ahead := float64(g.Queue.Rank(key) + g.Due)
	for i, m := range g.digestOf {
		if m == self || i >= len(g.digests) || g.digests[i] == nil {
			continue
		}
		d := g.digests[i]
		n := markRank(len(d) - 1)
		ahead += max(0, rankIn(d, n+1, key)-rankIn(d, n+1, g.cut.Value))
	}
	return int(ahead) + 1
}
