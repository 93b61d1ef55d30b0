package eviction

// standing is what waves have made a node: on which line it is, who votes there, and until
// when it may act.
//
// Invariant: a node that knows is on a line, and its voters are of a wave of that line.
// Invariant: knows is never taken back in a life, and restored only once.
type standing struct {
	line     Line
	voters   Voters
	knows    bool     // took part in a committed primary wave of line in this life, or restored
	restored bool     // knows from its disk alone
	since    uint64   // up to this wave's number no other life of its name is ahead of it, see votes
	lives    []uint64 // boots of earlier lives whose record it has

	grade       Grade
	leaseUntil  int64 // boot time
	lastPrimary int64 // boot time of the last primary wave
	heardAt     int64 // boot time of the last wave with one that knows, while this node did not
}

// behind is the line that the survivors left whose line the node is on. Rooms that were
// never on a line are there.
type behind struct {
	left       Line   // zero: they left none
	leftVoters Voters // of left, if this node was on it
	leftAt     int64  // boot time of its last primary wave on it
}

// leave notes what stays behind when this node goes over to another line: who
// votes on rooms that do not come along, and where those stand that were never on
// a line. Of survivors that is the line that they left, from.
func (n *Node) leave(from Line) {
	switch {
	case n.knows && from.Founded() && from == n.line:
		n.left, n.leftVoters, n.leftAt = from, n.voters, n.lastPrimary
	case from != n.left:
		n.left, n.leftVoters, n.leftAt = from, Voters{}, never
	}
	for _, g := range n.gates {
		if n.knows && g.line == n.line {
			g.voters = n.voters
		}
		n.setOff(g)
	}
}

// setOff puts a room that was never on a line where it stands.
func (n *Node) setOff(g *Gate) {
	if !g.line.Founded() && n.left.Founded() {
		g.line, g.voters, g.leasedAt = n.left, n.leftVoters, n.leftAt
		n.changed(g)
	}
}
