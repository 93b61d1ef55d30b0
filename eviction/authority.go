package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// authority says by what right a complete wave decides: on which line, with
// which grade, and who its voters are from now on. It is not ok while there is
// no cluster yet and none may be founded.
func (n *Node) authority(now Time, w *wave) (*Commit, *decision, bool) {
	n.resolve(w)
	w.twins = twinsOf(w)
	n.lead.holdout = Member{}
	c := &Commit{Epoch: w.epoch, HLC: n.clock.hlc}
	for _, r := range w.sum.Nodes {
		c.HLC = max(c.HLC, r.HLC)
	}
	lines, voters := linesOf(w), Voters{}
	line, ok := firstQuorate(w, lines, w.sum.Bounds.Reckons.max(w.sum.Bounds.Wants).Lease)
	if ok {
		v := voiceOf(w, line)
		voters, c.Recalled = v.voters, v.voters.quorum(v.recall)
	}
	w.guess(line, c.Recalled)
	c.Met = w.sum.Met
	switch {
	case len(lines) == 0:
		if !n.mayFound(now, w, lines) {
			return nil, nil, false
		}
		n.found(w, c)
	case ok:
		n.primary(now, w, c, line)
	case n.foundAgain(now, w, c, lines):
	default:
		n.side(w, c, lines)
	}
	n.reckonWith(w, c)
	c.Carried = n.carries(w, c)
	d := &decision{now: now, epoch: w.epoch, t: w.T, list: w.list, grade: c.Grade, line: c.Line, met: c.Met, reckons: c.Reckons.max(w.sum.Bounds.Wants), voters: voters, votes: make([]bool, len(w.list)), rivals: w.sum.Rivals, lives: make([][]uint64, len(w.list)), up: make([]int64, len(w.list))}
	d.origins = originsOf(w, c.Voters.From)
	if now.Boot-n.lead.since < micros(n.c.ExcludeAfter) { // there were no waves that they could miss
		for _, p := range n.view {
			d.awaited = append(d.awaited, p.Member)
		}
	}
	for i := range w.sum.Nodes {
		r := &w.sum.Nodes[i]
		d.votes[r.Index], d.lives[r.Index], d.up[r.Index] = w.votes(r, c.Line) && !r.Forgot, r.earlier(), r.Up
	}
	return c, d, true
}

// origin is where a room that was never on a line stands at one node: on the line
// that survivors left, from; nowhere, if nobody has left one.
type origin struct {
	line   Line
	voters Voters // of line, if the node has not gone over yet; the later it reports itself
	lapsed int64  // as in RoomNode
}

// originsOf returns them by list index.
func originsOf(w *wave, from Line) []origin {
	origins := make([]origin, len(w.list))
	for i := range origins {
		origins[i] = origin{line: from, lapsed: -1}
	}
	for _, r := range w.sum.Nodes {
		if from.Founded() && r.remembers(from) {
			origins[r.Index].voters, origins[r.Index].lapsed = r.Voters, r.Lapsed
		}
	}
	return origins
}

// linesOf returns the lines that the replies are on, oldest first.
func linesOf(w *wave) (lines []Line) {
	for _, r := range w.sum.Nodes {
		if r.Line.Founded() && !slices.Contains(lines, r.Line) {
			lines = append(lines, r.Line)
		}
	}
	slices.SortFunc(lines, Line.compare)
	return lines
}

// voice is what the replies say on one line.
type voice struct {
	voters Voters
	know   []qpid.NodeID // names that know, sorted
	recall []qpid.NodeID // of them those that know from this life, in any order
	lapsed int64         // µs since its last primary wave; -1: nobody knows
}

// remembers reports whether who replied has forgotten nothing that waves of a line have said to it.
func (r *NodeReply) remembers(line Line) bool { return r.Line == line && r.Knows && !r.Forgot }

func voiceOf(w *wave, line Line) voice {
	v := voice{lapsed: -1}
	for _, r := range w.sum.Nodes {
		if r.Line != line || !r.Knows {
			continue
		}
		if r.Voters.newer(v.voters) {
			v.voters = r.Voters
		}
		if r.Lapsed >= 0 && (v.lapsed < 0 || r.Lapsed < v.lapsed) {
			v.lapsed = r.Lapsed
		}
	}
	for _, r := range w.sum.Nodes {
		m := w.list[r.Index]
		if w.votes(&r, line) && (r.remembers(line) || !r.Knows && (r.Line == line || !r.Line.Founded()) && slices.Contains(v.voters.Founders, m)) {
			v.know = append(v.know, m.Name)
			if !r.Restored {
				v.recall = append(v.recall, m.Name)
			}
		}
	}
	slices.Sort(v.know)
	return v
}

// guess lets the guesses of those who were restored count as sightings, but for those of
// nodes on a line of which a quorum recalls: they add nothing, see NodeReply.Guesses.
func (w *wave) guess(line Line, recalled bool) {
	for i := range w.sum.Nodes {
		if r := &w.sum.Nodes[i]; !recalled || r.Line != line {
			w.sum.Met = mergeSightings(w.sum.Met, r.Guesses)
		}
	}
}

// votes reports whether the life that replied is the one that its name votes in on a
// line, if it is there: nobody on that line was in a wave with another life of that name
// since a primary wave listed this one. Two lives under one name would else make two
// quorums that have only the name in common. Of two that are in this wave it is the one that stands for the later one, and if that is
// one wave, and both remember, the later life.
//
// A life whose disk this one has is over, whatever waves it was listed in: it
// synced its own record before it first spoke, so every such life is in Lives. Of
// itself it stands where it last synced: it may be some other node that has the name
// since, and not this one's earlier lives.
//
// Proof that of any two waves with a quorum of a line one knows of the other, from those
// who are on the line, or have the room in question there: primary waves of it, and those
// by which a room leaves it with its slots (see quorumOf). Let V
// and W be the first two that do not. Their quorums share a name, with lives v in V
// and w in W, or they would share a life, which replied to one and then to the
// other. Let A be the last primary wave of this line that v stands for, that is, had
// installed before V, and B that of w before W; say A's number is the lower (of one
// wave, the order of the lives decides). B is earlier than the pair, so V and B do know
// of each other. If B is before V, somebody in V has met w in B or heard so by a
// commit, on this line, and v, which stands up to A, does not vote. If V is before B,
// what V knew came to B, hence to w, and with it to W.
//
// Waves of other lines prove nothing of this kind, for B and V need not know of each
// other then; nor do their numbers say which of two was first, for those of a cluster
// that is founded anew begin at the beginning.
func (w *wave) votes(r *NodeReply, line Line) bool {
	m := w.list[r.Index]
	last := rival(w.sum.Rivals, m, r.earlier(), line)
	switch { // if it is restored it was in no such wave in this life
	case r.Restored && r.Stood != 0:
		m.Boot = r.Stood
	case r.Restored:
		m = earliest(m, r.Lives)
	}
	return stands(m, r.Since, last) && !slices.ContainsFunc(w.twins, func(o *NodeReply) bool { return w.outdoes(o, r, line) })
}

// outdoes reports whether o is of another life of r's name, and goes before it.
func (w *wave) outdoes(o, r *NodeReply, line Line) bool {
	a, b := w.list[o.Index], w.list[r.Index]
	return a.Name == b.Name && a != b && o.Knows && (o.Since > r.Since || o.Since == r.Since && o.remembers(line) && a.Compare(b) > 0)
}

// twinsOf returns the replies of lives of which the list has another one of the name.
func twinsOf(w *wave) (twins []*NodeReply) {
	if len(namesOf(w.list)) == len(w.list) {
		return nil
	}
	for i := range w.sum.Nodes {
		r := &w.sum.Nodes[i]
		name := w.list[r.Index].Name
		if slices.ContainsFunc(w.list, func(m Member) bool { return m.Name == name && m != w.list[r.Index] }) {
			twins = append(twins, r)
		}
	}
	return twins
}

// earlier are the lives whose disk r has. The one that others saw last on its line is among them, however many came after it:
// they may have seen it in later waves than its disk has.
func (r *NodeReply) earlier() []uint64 {
	if r.Stood == 0 || slices.Contains(r.Lives, r.Stood) {
		return r.Lives
	}
	return append(slices.Clone(r.Lives), r.Stood)
}

// stands reports whether m, which was last in a primary wave of a line with number
// since, has the vote of its name there, and not its rival.
func stands(m Member, since uint64, rival Rival) bool {
	return rival.Wave < since || rival.Wave == since && rival.Member.Compare(m) <= 0
}

// earliest is m in the first of the lives that it may have been in when it was last in a wave of a
// line: as itself, or as one whose disk it has. Of as many as are told there may be more.
func earliest(m Member, lives []uint64) Member {
	if len(lives) >= LivesMax {
		return Member{Name: m.Name}
	}
	for _, boot := range lives {
		m.Boot = min(m.Boot, boot)
	}
	return m
}

// rival is the other life of m's name that nodes on a line saw last, and no earlier one
// whose disk m has; the zero Rival: there is none. Who knows of no line may be a founder
// of this one.
func rival(rivals []Rival, m Member, lives []uint64, line Line) (last Rival) {
	for _, o := range rivals {
		if o.Member.Name != m.Name || o.Member == m || o.Line != line && o.Line.Founded() || slices.Contains(lives, o.Member.Boot) {
			continue
		}
		if o.Wave > last.Wave || o.Wave == last.Wave && o.Member.Compare(last.Member) > 0 {
			last = o
		}
	}
	return last
}

// firstQuorate returns the oldest line that has its quorum in this wave. An
// older one that had it within a lease may have it elsewhere: until that is
// over nobody goes on, or its nodes would be drawn away from it one by one.
func firstQuorate(w *wave, lines []Line, lease int64) (Line, bool) {
	for _, l := range lines {
		v := voiceOf(w, l)
		if v.voters.quorum(v.know) && (v.voters.begun() || w.together(l, v.voters)) {
			return l, true
		}
		if v.lapsed >= 0 && v.lapsed < lease {
			break
		}
	}
	return Line{}, false
}

// together reports whether all the founders of a line are in this wave, and each
// knows that it is on that line. A line's first primary wave takes that, and not
// only a quorum: as long as a founder has not heard of its founding, it may found
// another cluster with nodes that are not here. Proof that of two foundings which
// share a node f only one begins: in the first primary wave of either, f has
// replied that it is on that line. It goes from one line to another with a primary
// wave of that other, which then has begun and would have been the second to
// need f; or it founds again, which it does only on a line that has not begun, and
// then that one has lost it for good. Foundings that share no node both begin: it
// takes an expect of more than half of the nodes to rule them out.
//
// A node that restarted with its record stands for its earlier life.
func (w *wave) together(line Line, v Voters) bool {
	return !slices.ContainsFunc(v.Founders, func(f Member) bool {
		return !slices.ContainsFunc(w.sum.Nodes, func(r NodeReply) bool {
			return r.Line == line && r.Knows && w.list[r.Index].Name == f.Name && w.votes(&r, line)
		})
	})
}

// foundAgain is for lines of which none has begun: several, if nodes were founded with some
// and then with others. If all founders are here, those that did not hear of the oldest line
// are told of it, once more or for the first time. If some of them are over, and their
// nodes are here in another life, everybody founds again: nobody can tell what the
// dead had heard of. One of them may have been the one that had begun, so they
// count as members that were lost.
//
// None of the lines can have begun elsewhere, or begin later: that takes a wave with all of
// its founders, and each of those is over, or has replied to this wave that it knows of no
// beginning, and goes to the line that is chosen here before it replies to another one.
//
// So a line that this node has founded with others, and left when it was founded again (quits), is
// one of those of which that was found already. It cannot begin without this node, unless that
// comes back to it, and then has not left it any more (install). So nobody here need know who its
// founders were: some have only heard of it.
func (n *Node) foundAgain(now Time, w *wave, c *Commit, lines []Line) bool {
	over := false
	lines = slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return slices.Contains(n.quits, l) })
	for _, l := range lines {
		v := voiceOf(w, l)
		if v.voters.Version == 0 || v.voters.begun() {
			return false
		}
		for _, f := range v.voters.Founders {
			if !slices.Contains(w.list, f) {
				if !succeeded(w.list, f) {
					return false // it may be about to begin, or to found, with others
				}
				over = true
			}
		}
	}
	met := c.Met
	if over && !n.mayFound(now, w, lines) {
		return false
	}
	n.found(w, c)
	if over {
		c.Met = append(met, c.Met...)
	} else {
		c.Line, c.Voters = lines[0], voiceOf(w, lines[0]).voters
	}
	return true
}

// quitsMax bounds the lines that are remembered so: of those of before a founding waits for the founders.
const quitsMax = 16

// quit notes that this node, a founder of its line, leaves it for one that is founded.
func (n *Node) quit() {
	if n.knows && !n.voters.begun() && slices.Contains(n.voters.Founders, n.self.Member) {
		n.quits = append(n.quits[max(0, len(n.quits)-quitsMax+1):], n.line)
	}
}

// enoughToFound reports whether nodes that know of no cluster may start one: as
// many names as every one of them was told to expect are here, or one was told of
// nobody to join. Two lives of a name are one: the nodes that are not here may be those
// that remember.
func enoughToFound(w *wave) bool {
	need := 0
	for _, r := range w.sum.Nodes {
		need = max(need, r.Expect)
		if r.Expect == 0 && !r.Joins {
			need = max(need, 1)
		}
	}
	names := len(namesOf(w.list))
	return need > 0 && names >= need
}

// mayFound reports whether this coordinator may found a cluster, where those in the wave
// know of none, or of lines alone that are over.
func (n *Node) mayFound(now Time, w *wave, lines []Line) bool {
	return enoughToFound(w) && n.waitsFor(now, w, lines) == (Member{})
}

// waitsFor returns a node that is not in the wave and has told one that is that it knows of
// another cluster, or may say so when it is heard of. It is slow, or its clock is off, and
// founders that have forgotten everything, having neither data nor keys, would begin beside
// it: its visitors come on top of theirs. So they wait until it is in a wave, or gone.
func (n *Node) waitsFor(now Time, w *wave, lines []Line) (holdout Member) {
	soon := now.Boot-n.lead.since < micros(n.c.ExcludeAfter)
	for i := range w.sum.Nodes {
		r := &w.sum.Nodes[i]
		if m := r.Holdout; m != (Member{}) && !slices.Contains(w.list, m) && !slices.Contains(lines, r.HoldoutLine) {
			n.lead.holdout = m
			return m
		}
	}
	for i := range n.lead.peers {
		switch c := &n.lead.peers[i]; {
		case slices.Contains(w.list, c.Member):
		case c.line.Founded() && !slices.Contains(lines, c.line):
			n.lead.holdout = c.Member
			return c.Member
		case !c.answered && soon:
			holdout = c.Member
		}
	}
	return holdout
}

// found starts a cluster: its line and its voters, no more. Leases and slots
// come with the first wave in which all of them are on that line; of two
// foundings that share nodes only one gets there. With signing keys from before,
// passes of an earlier cluster may still be good: it counts as a member that was
// lost just now.
//
// That is so for keys that are new as well, since nothing shows that they are. When a
// key was made says when its first pass can have been given, not its last: a cluster
// that ran with it for a minute and lost all its disks leaves just that key, in a file
// as young, to nodes that remember as little. A mark beside the key says no more, for
// the file comes back from where it was kept, without one; nor does a room that was
// made since, as one of that name may have been there before. Keys that the nodes make
// by themselves are kept where their records are, so a first start has none, and waits
// for nothing.
func (n *Node) found(w *wave, c *Commit) {
	c.Founding, c.Grade, c.Line = true, Side, beginsLine(n.self.Member, w.T)
	c.Voters = foundersOf(w)
	c.Voters.At = qpid.Epoch{}
	for _, r := range w.sum.Nodes {
		c.Kept = c.Kept || r.KeptKeys
	}
	c.Met = nil
	if c.Kept {
		c.Met = []Sighting{{}}
	}
}

// foundersOf returns the first voters of a line that begins with this wave.
func foundersOf(w *wave) Voters {
	return Voters{Version: 1, Names: namesOf(w.list), At: w.epoch, Founders: w.list}
}

// primary goes on with a line that has its quorum.
func (n *Node) primary(now Time, w *wave, c *Commit, line Line) {
	v := voiceOf(w, line)
	c.Grade, c.Line = Primary, line
	if v.voters.all(v.know) {
		c.Grade = Unanimous
	}
	c.Voters = n.change(w, line, v)
	c.Voters.At = w.epoch
	n.lead.heard.speak(w, c.Voters)
	c.Known = n.knownRooms(w)
	for i := range w.sum.Nodes {
		if r := &w.sum.Nodes[i]; !w.votes(r, line) {
			c.Outvoted = append(c.Outvoted, r.Index)
		}
	}
}

// knownRooms is what a commit says of how many rooms there are that were agreed on, see Commit.Known.
func (n *Node) knownRooms(w *wave) int {
	if !n.hasAll(w) {
		return 1
	}
	known := 2
	for _, g := range n.gates {
		if g.cfg.Version != (Version{}) {
			known++
		}
	}
	return known
}

// side is a wave without a quorum. Once it has lasted longer than the rooms'
// survivor_after, those who know go on alone, on a line of their own. So do
// those who have only heard of a line, if as many are here as a founding takes.
func (n *Node) side(w *wave, c *Commit, lines []Line) {
	line := lines[0]
	for _, l := range lines {
		if voiceOf(w, l).lapsed >= 0 {
			line = l
			break
		}
	}
	v := voiceOf(w, line)
	c.Grade, c.Line, c.Voters = Side, line, v.voters
	if v.lapsed < 0 && enoughToFound(w) {
		for _, r := range w.sum.Nodes {
			if r.Lapsed >= 0 && (v.lapsed < 0 || r.Lapsed < v.lapsed) {
				v.lapsed = r.Lapsed
			}
		}
	}
	for _, g := range n.gates {
		if after, ok := g.survivorAfter(w.sum.Bounds.Reckons.max(w.sum.Bounds.Wants)); ok && v.lapsed >= after {
			c.Grade, c.Line = Unanimous, beginsLine(n.self.Member, w.T)
			c.Voters = foundersOf(w)
			c.Voters.From = line
			if v.voters.From.Founded() {
				c.Voters.From = v.voters.From
			}
			return
		}
	}
}
