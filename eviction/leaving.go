package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// How a room leaves a line on which it has stayed behind, for the one that its nodes are on.
//
// They vote on the old line, each as it left that. A wave with a quorum of its voters asks them for their votes, and the next one that has
// these is what the room leaves by (quorumOf). That may come to nothing, if too few of those who hear of it stay on the line where it
// goes. So a node keeps which lines it was on without the room (without), and from where the room came to
// where it is (came). Once those who were there without it are a quorum of that line, the line is over for the room (ended): votes are given
// anew, and whoever went there with the room comes back for that.
//
// Once a node has a supply of the line that it is on with the room, and hears anew that this is Sure, it forgets all that (accept).
//
// A node of a version before says nothing of either, so it counts as one who is away: a room may stay behind until no such node runs.
// If it coordinates, it asks for votes anew only where it knows of an end as such nodes tell it. That is one all the same, so that whoever came from that line is
// right to go back.
//
// What is said here of all rooms is so of those that neither share nor have a survivor_after: these leave lines in other ways as well, and
// exceed their limits by that.

// chooseLine says which line the room's ledgers belong to. A room follows the
// nodes to a survivors' line only after its own survivor_after, or at once if it shares; until then
// false: nobody is called. So does a room that is new on such a line: whoever is
// on the line that the survivors left may have it too. It also follows from a line where a quorum of
// that has given its vote to this one, and is asked to where a quorum can.
//
// As long as it does not follow, the room stays at each node on the line that it is on there, but for those who go back to one
// of which the voters are asked.
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
// to the line of this wave, and so the room leaves; and whether they may be asked for them: they are a quorum, together with those who went from there to a
// line that has ended; and for no other line have those who gave it theirs been one, with all voters that are not here, unless that has ended. A node votes
// as it left the old line: what it did on another one since does not count, nor do lives since.
//
// Proof that a room which has left a line so is never on it again, nor leaves it for another before that to which it went has
// ended: each of that quorum had left the line itself when it gave its vote, which is on its disk before it says
// so. Any other quorum of that line, for another one or to be primary there, has one of those names in it, in that
// life (see votes). It is not back on the line: the first of them to be so would need a primary wave there without any
// of them. Of waves there that were decided before, one of them knows. Nor has it given its vote to another line since: the
// wave that asked the first of them for that, after they had replied to the one that the room left by, had a quorum, too.
// Those of them who were in it had answered the earlier wave first. So they had that vote yet; or had gone on with the room, and
// say that they came from the old line only if they are where they had voted for (see follow). All others count
// as if they had that vote. So together they would have been a quorum, and that line had ended. Voters that one of the two waves does not
// know of are the next ones of the other.
//
// So the lines for which a room has left one come one after the other, each when that before has ended, and from one that has ended the room goes to none. Hence of any two
// lines on which it has been, one was over before it came to the other: no wave there is primary any more, as a quorum of its voters
// has left it. And wherever the room is with those who came from a line, that has ended when a wave asks there for votes for another one: it
// need not know of them.
//
// It takes two waves: were the room to leave in the one that finds the quorum, one who has not heard of that could
// vote again, or go back to the line. Were a vote given for good, a room would stay behind for ever, with all of its voters
// here, once their votes are for a line that they have left. So it still does where those who have left that are a quorum of it neither with the room nor
// without it, but only together.
func (rs *roomSums) quorumOf(old Line, d *decision) (leaves, may bool) {
	voters, know := rs.voice(old, d, func(n *RoomNode) Voters { return n.on(old) })
	gave := func(to Line) []qpid.NodeID {
		_, names := rs.voice(old, d, func(n *RoomNode) Voters {
			if n.Line == old && n.Goes.To != to || n.Line != old && n.Line != to {
				return Voters{}
			}
			return n.on(old)
		})
		return names
	}
	may = voters.quorum(know)
	for i := range rs.nodes {
		switch n := &rs.nodes[i]; {
		case !may:
		case n.Line != old:
			may = n.Came.Line != old || rs.ended(n.Line, d)
		case n.Goes.To.Founded() && n.Goes.To != d.line:
			may = rs.ended(n.Goes.To, d) || !voters.mayBe(know, gave(n.Goes.To))
		}
	}
	return voters.quorum(gave(d.line)), may
}

// on is what a node that has left the old line says of the voters there, if the room is on it yet, or was until it went where it is.
func (n *RoomNode) on(old Line) Voters {
	switch old {
	case n.Line:
		return n.Voters
	case n.Came.Line:
		return n.Came.Voters
	}
	return Voters{}
}

// ended reports whether a quorum of the voters of a line was there without the room when each left it, and none of them is back. If the
// room ever came there, nothing came of it: no supply was accepted on that line, so no slot was made; the room went nowhere from there, nor
// will it; and of whoever acted there one of them knows.
//
// Proof. The line has no primary wave any more: the first of them to be back there would need one without any of them. Of each wave that it had one of
// them knows (see votes). None of them has ever had the room there. For on a node that is on that line it stays
// there, and who leaves with it is not on the line again without it: the room would have come to another one after this, or back from
// it, and so this one would have been over before (see quorumOf). But what a quorum knows of a room, one of every quorum knows from then on (see change), so no quorum has had
// the room there: neither one that accepted a supply, of which it takes one (accepted), nor one by which the room left.
// That is so of the newest voters that those know of who have the room there, too. But where these were changing they need not count: what
// was not heard of by a quorum of the ones before is not in force.
//
// It stays so: no line on which nobody can be any more comes to have the room. What they say is on their disks with the line to which they went, before they
// speak there. Lives after it say it, too, if they have the vote of their name (stands).
//
// So what exists is known when the room leaves the old line for another one: those who were asked have heard of all who acted on the line that has ended (Commit.Met), one of them is
// in that wave, and D is waited for as for all who are lost; what those who went back own they say themselves. The supply that they bring is of
// waves after all those of the old line, and leaves no fewer slots than existed: none were made since. On the next line none is Sure before that has counted anew.
func (rs *roomSums) ended(line Line, d *decision) bool {
	voters, know := rs.voice(line, d, func(n *RoomNode) Voters {
		if i := slices.IndexFunc(n.Without, func(s Stay) bool { return s.Line == line }); i >= 0 && n.Line != line {
			return n.Without[i].Voters
		}
		return Voters{}
	})
	with, _ := rs.voice(line, d, func(n *RoomNode) Voters { return n.on(line) })
	return voters.quorum(know) || with.newer(voters) && with.quorum(know)
}

// voice returns what nodes say of the voters of a line: the newest, and which names know.
func (rs *roomSums) voice(line Line, d *decision, says func(*RoomNode) Voters) (newest Voters, know []qpid.NodeID) {
	for i := range rs.nodes {
		m := d.list[i]
		v := says(&rs.nodes[i])
		if v.Version > 0 && stands(earliest(m, d.lives[i]), v.At.Num, rival(d.rivals, m, d.lives[i], line)) {
			know = append(know, m.Name)
			if v.newer(newest) {
				newest = v
			}
		}
	}
	return newest, know
}

// withoutMax bounds the lines that are remembered so. Of more the latest are: those of before a node may never know to have ended.
const withoutMax = 16

// part notes that the node leaves a line, with the lives of its voters.
func (e *escrow) part(left Stay, rivals []Rival) {
	without := slices.DeleteFunc(slices.Clone(e.without), left.same)
	switch {
	case e.line == left.Line:
		e.voters, e.goes = left.Voters, Vote{} // its vote was of before it was back, see follow
	case e.line.Founded():
		without = append(without[max(0, len(without)-withoutMax+1):], left)
	}
	e.without = without
	e.rivals = slices.DeleteFunc(slices.Clone(e.rivals), func(r Rival) bool {
		return r.Line == left.Line || r.Line != e.line && r.Line != e.came.Line && !slices.ContainsFunc(without, Stay{Line: r.Line}.same)
	})
	e.rivals = append(e.rivals, rivals...)
}

// same reports whether two stays are on one line.
func (s Stay) same(o Stay) bool { return s.Line == o.Line }

// tell has n say, of a node on a line, what it knows of lines that it left: if the room has not come along. What it was on and is back on
// it has not left: it goes on there if it does not hear of this wave.
func (e *escrow) tell(n *RoomNode, line Line) {
	e.behind = e.line != line
	if !e.behind {
		return
	}
	n.Voters, n.Came = e.voters, e.came
	n.Without = slices.DeleteFunc(slices.Clone(e.without), Stay{Line: line}.same)
}

// follow takes the room of a node on a line to that, if it is not there and follows. One that was on no line yet is on the one where the
// others have it. If its vote is asked for it is given, also where it was for another line, or the room went there and has to come back: see quorumOf.
//
// It is said to have come from a line only where that line left by this very wave, or the node had voted for where it is: else others may have
// taken it farther meanwhile, and a vote that counted would be out of sight. And it goes back only if this node has said so: it had gone on
// from where the room is.
func (e *escrow) follow(line Line, c *RoomCommit) {
	switch {
	case c.Line != line && e.line.Founded():
		if c.From.Founded() && c.From == e.came.Line && e.behind {
			e.line, e.voters, e.came = e.came.Line, e.came.Voters, Stay{} // where it went has ended
			e.supply.Line = e.line
		}
		if c.From == e.line && e.goes.To != line {
			e.goes = Vote{line}
		}
	case c.Line != e.line:
		came := Stay{}
		if e.voters.Version > 0 && (c.From == e.line || e.goes.To == c.Line) {
			came = Stay{e.line, e.voters}
		}
		e.line, e.voters, e.goes, e.came = c.Line, Voters{}, Vote{}, came
	}
}

// names is how many voters a reply names of lines that were left.
func (e *escrow) names() int {
	if e.voters.Version == 0 {
		return 0 // the room goes along
	}
	n := len(e.voters.Names) + len(e.came.Voters.Names)
	for _, s := range e.without {
		n += len(s.Voters.Names)
	}
	return n
}
