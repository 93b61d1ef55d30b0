package eviction

import "slices"

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
	forgot   bool     // or never knew what waves have said of rooms, and has not heard of each of them since, see remember
	outvoted bool     // and another life of its name had its vote in the last primary wave, see Commit.Outvoted
	stood    uint64   // boot of the life that was in the last primary wave, this one or one before; 0: not known
	since    uint64   // up to this wave's number no other life of its name is ahead of it, see votes
	lives    []uint64 // boots of earlier lives whose record it has
	quits    []Line   // that it founded in this life and left, none of which has begun: see foundAgain

	grade       Grade
	leaseUntil  int64 // boot time
	lastPrimary int64 // boot time of the last primary wave
	heardAt     int64 // boot time of the last wave with one that knows, while this node did not
}

// behind is the line that the survivors left whose line the node is on. Rooms that were
// never on a line are there.
type behind struct {
	left       Line    // zero: they left none
	leftVoters Voters  // of left, if this node was on it,
	leftRivals []Rival // the lives of their names,
	leftAt     int64   // and boot time of its last primary wave on it
}

// leave notes what stays behind when this node goes over to another line: who
// votes on rooms that do not come along, and where those stand that were never on
// a line. Of survivors that is the line that they left, from.
func (n *Node) leave(from Line) {
	var rivals []Rival
	if n.knows {
		rivals = n.rivals()
	}
	switch {
	case n.knows && !n.forgot && from.Founded() && from == n.line:
		n.left, n.leftVoters, n.leftRivals, n.leftAt = from, n.voters, rivals, n.lastPrimary
	case from != n.left:
		n.left, n.leftVoters, n.leftRivals, n.leftAt = from, Voters{}, nil, never
	}
	for _, g := range n.gates {
		if n.knows && (!n.forgot || g.learned) {
			g.part(Stay{n.line, n.voters}, rivals)
			n.changed(g)
		}
		n.setOff(g)
	}
}

// setOff puts a room that was never on a line where it stands.
func (n *Node) setOff(g *Gate) {
	if !g.line.Founded() && n.left.Founded() {
		g.line, g.voters, g.rivals, g.leasedAt = n.left, n.leftVoters, n.leftRivals, n.leftAt
		n.changed(g)
	}
}

// remember ends the time in which this life does not vote: it begins as one that has forgotten what an earlier one may
// have heard, unless it has its record or founds the line. So does who comes over from another line, and whose name has voted
// in another life. It votes when it has heard of each room there is, by primary waves of the line since.
//
// Proof that a quorum in which it votes knows what any quorum before it relied on, of any room: until it has heard of the room,
// no quorum counts it. So one of the wave by which it hears meets any of before in somebody else, and has
// what that one knew; what later ones rely on, before it votes, they meet this one's without it. By induction
// it is the same where others forget, one after another. Which rooms there are the coordinator knows, as long as nobody in the wave names another. One of
// a version that does not say so has all vote as that did.
//
// Of a life whose vote another one has taken that is so from the commit on by which it stands for its name again (see votes): until then
// it is not counted either, and that commit says so.
//
// Who founds a line has nothing to forget when that begins: in its first wave there, first.
func (n *Node) remember(c *Commit, first bool) {
	founder := (c.Founding || c.Grade >= Primary && first) && slices.Contains(c.Voters.Founders, n.self.Member)
	rooms, all := 0, c.Grade >= Primary
	for _, g := range n.gates {
		if g.cfg.Version != (Version{}) {
			rooms++
			all = all && g.learned
		}
	}
	if founder || all && c.Known == 2+rooms || c.Grade >= Primary && c.Known == 0 {
		n.forgot = false
	}
}

// forgets begins it: what waves have said of rooms before counts no more.
func (n *Node) forgets() {
	n.forgot = true
	for _, g := range n.gates {
		g.learned = false
	}
}

// rivals are the lives of voters that this node knows of. Who votes on a line that it
// leaves is to be known for as long as a room stays there, and other members are
// forgotten in time. Of a name only so many count that one of them is no earlier life of
// whoever may claim its vote.
func (n *Node) rivals() (rivals []Rival) {
	for _, s := range n.met {
		if !n.voters.names(s.member.Name) {
			continue
		}
		newer := 0
		for _, o := range n.met {
			if o.member.Name == s.member.Name && (o.wave > s.wave || o.wave == s.wave && s.member.Compare(o.member) < 0) {
				newer++
			}
		}
		if newer <= LivesMax+1 {
			rivals = append(rivals, Rival{n.line, s.member, s.wave})
		}
	}
	return rivals
}

// namesake reports whether another life of the member at place i of met is listed.
func (n *Node) namesake(i int, listed []bool) bool {
	name := n.met[i].member.Name
	if name == n.self.Name {
		return true
	}
	for j := i - 1; j >= 0 && n.met[j].member.Name == name; j-- {
		if listed[j] {
			return true
		}
	}
	for j := i + 1; j < len(n.met) && n.met[j].member.Name == name; j++ {
		if listed[j] {
			return true
		}
	}
	return false
}

// rivalsIn returns those of whose name list has another life.
func rivalsIn(rivals []Rival, list []Member) (in []Rival) {
	for _, s := range rivals {
		if succeeded(list, s.Member) {
			in = append(in, s)
		}
	}
	return in
}

// mergeRivals adds what others have seen.
func mergeRivals(a, b []Rival) []Rival {
	for _, s := range b {
		i, ok := slices.BinarySearchFunc(a, s, Rival.compare)
		if ok {
			a[i].Wave = max(a[i].Wave, s.Wave)
		} else {
			a = slices.Insert(a, i, s)
		}
	}
	return a
}

// compare orders rivals by line and member.
func (r Rival) compare(o Rival) int {
	if c := r.Line.compare(o.Line); c != 0 {
		return c
	}
	return r.Member.Compare(o.Member)
}
