package eviction

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Void says that every account of Member born at or before Epoch is void: it
// never admits again and its slots are refused.
type Void struct {
	Member Member
	Epoch  uint64
}

func findVoid(vs []Void, m Member) (int, bool) {
	return slices.BinarySearchFunc(vs, m, func(v Void, m Member) int { return v.Member.compare(m) })
}

// addVoid records v in sorted vs; a later epoch covers an earlier one.
func addVoid(vs []Void, v Void) []Void {
	i, ok := findVoid(vs, v.Member)
	if !ok {
		return slices.Insert(vs, i, v)
	}
	vs[i].Epoch = max(vs[i].Epoch, v.Epoch)
	return vs
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

// voided reports whether account a may never act again.
func (g *Gate) voided(a Account) bool {
	i, ok := findVoid(g.voids, a.Member)
	return ok && a.Born <= g.voids[i].Epoch
}

// current reports whether a is an account that the last commit listed. Only
// such accounts exchange slots: to refuse what is known to be void is not
// enough, since that is forgotten in time, and a link may be stuck for longer.
func (g *Gate) current(a Account) bool {
	i := slices.Index(g.members, a.Member)
	return i >= 0 && i < len(g.born) && g.born[i] == a.Born && !g.voided(a)
}

// isSafe reports whether every node of a primary wave knew a to be void.
func (g *Gate) isSafe(a Account) bool {
	i, ok := findVoid(g.safe, a.Member)
	return ok && a.Born <= g.safe[i].Epoch
}

// forget drops voids of members that no one can hear of any more, and reports
// whether there were any.
func (g *Gate) forget(known func(Member) bool) bool {
	before := len(g.voids)
	g.voids = slices.DeleteFunc(g.voids, func(v Void) bool { return !known(v.Member) })
	return len(g.voids) < before
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

// SendTo moves up to n free slots to the account of the listed node called
// name. The message is nil if there is nobody or nothing to send.
func (g *Gate) SendTo(self Member, name qpid.NodeID, n int) *Message {
	for i, m := range g.members {
		if m.Name == name && m != self && i < len(g.born) && g.born[i] > 0 {
			if s := g.ledger.send(g.cfg.Name, Account{m, g.born[i]}, n); s != nil {
				return &Message{From: self, To: m, Body: s}
			}
		}
	}
	return nil
}

// Give has the account of a listed node go on with visits, on the slots that they
// use. It returns false if that node has no account.
func (g *Gate) Give(self, to Member, visits []Visit) ([]Message, bool) {
	i := slices.Index(g.members, to)
	if i < 0 || to == self || i >= len(g.born) || g.born[i] == 0 {
		return nil, false
	}
	var out []Message
	for part := range slices.Chunk(visits, VisitsMax) {
		out = append(out, Message{From: self, To: to, Body: g.ledger.give(g.cfg.Name, Account{to, g.born[i]}, part)})
	}
	return out, true
}

func (n *Node) onSlots(from Member, m *Slots) error {
	if m.From.Member != from || !count(m.Total) || len(m.Visits) > min(VisitsMax, m.Total) {
		return fmt.Errorf("eviction: %v sends %d slots of %v", from, m.Total, m.From)
	}
	g := n.Gate(m.Room)
	if g == nil || m.To.Born == 0 || m.To != g.ledger.account || m.From == m.To || !g.current(m.From) {
		return nil
	}
	ack, visits := g.ledger.receive(m)
	n.send(from, ack)
	g.busy = true
	if len(visits) > 0 {
		n.done = append(n.done, Installed{Gate: g, Before: g.cut, Epoch: n.installed, Visits: visits, From: m.From})
	}
	if n.parted { // they were on their way when it said so
		n.handOn(g)
	}
	return nil
}
