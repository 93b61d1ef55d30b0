package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// How a room leaves a line on which it has stayed behind, for the one that its nodes are on.

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

// follow takes the room of a node on a line to that, if it follows. One that was on no line yet is on the one where the
// others have it. If its vote is asked for it is given, also where it was for another line: see quorumOf.
func (e *escrow) follow(line Line, c *RoomCommit) {
	switch {
	case c.Line != line && e.line.Founded():
		if c.From == e.line && e.goes.To != line {
			e.goes = Vote{To: line}
		}
	case c.Line != e.line:
		e.line, e.goes, e.voters, e.rivals = c.Line, Vote{}, Voters{}, nil
	default:
		e.goes = Vote{}
	}
}
