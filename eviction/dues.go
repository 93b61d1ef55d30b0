package eviction

import "time"

// dues are what a node looks at instead of all its rooms, as it does whenever it
// reads the clocks or speaks: there may be thousands of rooms, in which nothing
// has happened.
//
// Invariant: the account of no gate lapses before lapse, and outlived is false
// before outlived. What makes either earlier goes through changed, or forgets it.
// Invariant: what differs from the record kept last is of a gate in revised, or no
// gate's.
type dues struct {
	lapse    int64 // boot time
	outlived int64 // boot time; never: find out
	revised  []*Gate
}

// changed notes that the configuration of g, its account, its lease, its line or
// what it knows to be void is another one.
func (n *Node) changed(g *Gate) {
	n.dues.lapse = min(n.dues.lapse, g.lapsesAt())
	n.dues.outlived = never
	if !g.revised {
		g.revised = true
		n.dues.revised = append(n.dues.revised, g)
	}
}

// lapse closes the accounts that nobody has renewed the lease of for too long.
func (n *Node) lapse(now int64) {
	if now < n.dues.lapse {
		return
	}
	n.dues.lapse = ever
	for _, g := range n.gates {
		if g.lapse(n.self.Member, now) {
			n.done = append(n.done, Installed{Gate: g, Before: g.cut, Epoch: n.installed, Reset: true})
		}
		n.dues.lapse = min(n.dues.lapse, g.lapsesAt())
	}
}

// outlived reports whether nothing is left alive that this node's clock timed:
// its last primary lease is over, and so is the longest session since.
func (n *Node) outlived(now int64) bool {
	switch {
	case n.lastPrimary == never:
		return true
	case now < n.lastPrimary+micros(n.c.Lease) || now < n.dues.outlived:
		return false // however short the sessions are
	}
	n.dues.outlived = n.outlives()
	return now >= n.dues.outlived
}

// outlives is until when something is alive that this node's clock timed, as of its
// last primary wave.
func (n *Node) outlives() int64 {
	longest := time.Duration(0)
	for _, g := range n.gates {
		longest = max(longest, g.ttl, g.cfg.longest())
	}
	return n.lastPrimary + drifted(micros(n.c.Lease+longest)) + micros(2*n.c.MaxSkew+n.c.Margin)
}

// Unsaved returns what the node must not forget, nil if saved has it: the last
// record that this returned, or else the one that the node was restored from.
func (n *Node) Unsaved(saved *Record) *Record {
	if !n.knows {
		return nil
	}
	if saved != nil && !saved.differs(n.head()) && len(saved.Rooms) == len(n.gates) && !n.roomsDiffer(saved) {
		return nil
	}
	n.noteSaved()
	return n.Record()
}

// roomsDiffer reports whether what saved, which has all of them, says of a room is
// out of date.
func (n *Node) roomsDiffer(saved *Record) bool {
	for _, g := range n.dues.revised {
		i, _ := n.find(g.cfg.Name)
		r := g.record()
		if saved.Rooms[i].differs(&r) {
			return true
		}
	}
	n.noteSaved()
	return false
}

func (n *Node) noteSaved() {
	for i, g := range n.dues.revised {
		g.revised, n.dues.revised[i] = false, nil
	}
	n.dues.revised = n.dues.revised[:0]
}

// Overlooked names a room of which the dues are wrong, "" if they are right. It
// looks at all of them, for a simulator; saved is as for Unsaved.
func (n *Node) Overlooked(saved *Record) (room string) {
	all := saved != nil && len(saved.Rooms) == len(n.gates)
	for i, g := range n.gates {
		r := g.record()
		if g.lapsesAt() < n.dues.lapse || all && !g.revised && saved.Rooms[i].differs(&r) {
			return g.cfg.Name
		}
	}
	if n.lastPrimary != never && n.outlives() < n.dues.outlived {
		return "that outlives its lease"
	}
	return ""
}
