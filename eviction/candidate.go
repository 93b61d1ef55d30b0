package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// candidate is a member that could be listed.
type candidate struct {
	Peer
	heard    int64 // boot time of its last answer
	probed   int64 // boot time of the last probe
	clock    reading
	with     bid   // in whose waves it is, as far as that matters to this node
	leaves   bool  // it has said goodbye
	forgot   bool  // it does not vote there
	line     Line  // that it is on, as its last answer says
	answered bool  // since this node leads
	blamed   int64 // boot time since which waves fail because of it; never: they do not
	blocked  int64 // boot time until which it is left out
	backoff  int64
	late     int  // so many of its round trips, the last ones, took longer than a wave may: lateMin at most
	owes     int  // so many more have to fit, in a row, before it is listed
	gray     bool // it was left out as slow, not long ago
}

// A node is slow when the last lateMin round trips to it took longer than a wave may:
// it lives, and every wave would wait for it in vain. One alone may be due to this
// node's own standing still. Who was left out for that is back when fitsMin in a row have
// fitted; of anybody else one has to.
const (
	lateMin = 2
	fitsMin = 3
)

// prune forgets candidates that are not among those who may be listed any more.
func (l *lead) prune(others []Peer) {
	l.peers = slices.DeleteFunc(l.peers, func(c candidate) bool {
		return !slices.ContainsFunc(others, func(p Peer) bool { return p.Member == c.Member })
	})
}

// others are those whom this node may list: its view, and newcomers of the last
// commit that its failure detector has not told it of yet. They are the most junior.
// Without them the first wave after a coordinator has left would lack whoever that one
// had only just taken in, and hold the cut for the people who wait there.
func (n *Node) others() []Peer {
	others := slices.DeleteFunc(slices.Clone(n.view), func(p Peer) bool { return p.Member == n.self.Member })
	for _, m := range n.list[slices.Index(n.list, n.self.Member)+1:] {
		if n.unheard(m) {
			others = append(others, Peer{Member: m})
		}
	}
	return others
}

// drop forgets a member that says goodbye.
func (l *lead) drop(m Member) {
	if c := l.find(m); c != nil {
		c.heard, c.blocked = never, 1<<62
	}
}

func (l *lead) find(m Member) *candidate {
	if i := slices.IndexFunc(l.peers, func(c candidate) bool { return c.Member == m }); i >= 0 {
		return &l.peers[i]
	}
	return nil
}

// fits notes whether a round trip fitted a wave's deadline. Who was in the last wave
// is not left out before one has missed it.
func (c *candidate) fits(ok, listed bool) {
	if !ok {
		c.late = min(c.late+1, lateMin)
		if !listed || c.owes > 0 {
			c.owe()
		}
		return
	}
	c.late, c.owes = 0, max(0, c.owes-1)
}

// owe says how many round trips have to fit before c is listed.
func (c *candidate) owe() {
	c.owes = 1
	if c.gray {
		c.owes = fitsMin
	}
}

// ready reports whether c may be listed: heard of lately, its clock within
// bounds of the median, and neither slow nor left out for failing waves.
func (n *Node) ready(now Time, c *candidate, mid int64) bool {
	if c == nil || c.leaves || c.owes > 0 || now.Boot < c.blocked || now.Boot-c.heard >= micros(n.c.ExcludeAfter) {
		return false
	}
	return c.clock.ok && abs(c.clock.offset-mid)+c.clock.err <= micros(n.c.MaxSkew)
}

// middle returns the median offset of all candidates heard of, and its own 0.
func (n *Node) middle(now Time) int64 {
	offsets := []int64{0}
	for _, c := range n.lead.peers {
		if n.fresh(now, &c) {
			offsets = append(offsets, c.clock.offset)
		}
	}
	slices.Sort(offsets)
	return n.clock.median(offsets)
}

// fresh reports whether c's clock was measured lately.
func (n *Node) fresh(now Time, c *candidate) bool {
	return c.clock.ok && now.Boot-c.heard < micros(n.c.ExcludeAfter)
}

// clocksWith reports whether the clocks of a quorum are certain to be around mid.
// Only then a clock that is not may be called off: who is told so stops at once,
// and a coordinator that is itself off, or has heard of few, must not have that
// done to the others.
func (n *Node) clocksWith(now Time, mid int64) bool {
	if !n.knows || n.clock.quarantined {
		return false
	}
	var with []qpid.NodeID
	if abs(mid) <= micros(n.c.MaxSkew) {
		with = append(with, n.self.Name)
	}
	for _, c := range n.lead.peers {
		if n.fresh(now, &c) && abs(c.clock.offset-mid)+c.clock.err <= micros(n.c.MaxSkew) {
			with = append(with, c.Name)
		}
	}
	return n.voters.quorum(with)
}

// blame notes whom a failed wave lacked: the topmost of the silent in each
// branch. One that fails waves for exclude_after is left out for a while. Who is slow
// is left out at once, wherever it is in the tree: a coordinator that is slow itself
// finds all others so, and is not to learn it one level after the other.
func (n *Node) blame(now Time, w *wave) {
	for _, r := range w.Rooms { // whose nodes take them for reported
		if g := n.Gate(r.Room); g != nil {
			g.busy = true
		}
	}
	if now.Boot-w.at > 2*micros(n.c.Deadline) {
		return // it was this node that stood still
	}
	present := make([]bool, len(w.list))
	for _, r := range w.sum.Nodes {
		present[r.Index] = true
	}
	for i, m := range w.list {
		c := n.lead.find(m)
		if c == nil || i == 0 {
			continue
		}
		if present[i] {
			c.heard = now.Boot
			continue
		}
		slow := c.late >= lateMin // by round trips of its own
		if !slow && !present[parent(i, n.c.Fanout)] {
			continue
		}
		if c.blamed == never {
			c.blamed = w.at
		}
		c.gray = c.gray || slow
		if now.Boot-c.blamed >= micros(n.c.ExcludeAfter) || c.gray {
			n.block(now, c)
		}
	}
}

// acquit notes that m was in a wave that was complete.
func (n *Node) acquit(now Time, m Member) {
	c := n.lead.find(m)
	if c == nil {
		return
	}
	c.heard, c.blamed = now.Boot, never
	if !c.gray || now.Boot-c.blocked >= n.patience() {
		c.backoff, c.gray = 0, false
	}
}

// block leaves c out of waves, longer each time.
func (n *Node) block(now Time, c *candidate) {
	c.backoff = min(max(2*c.backoff, micros(n.c.ExcludeAfter)), n.patience())
	c.blocked, c.blamed, c.heard = now.Boot+c.backoff, never, never
	if c.gray {
		c.owe()
	}
}

// patience is how long a node is left out at most, and how long one that was slow has
// to be back until that is forgotten.
func (n *Node) patience() int64 { return 8 * micros(n.c.ExcludeAfter) }
