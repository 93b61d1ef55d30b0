package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// bid is by what right somebody would run the waves. Links may be cut so that the senior coordinator
// reaches a few, and these reach the rest: if it were for seniority alone, the few would
// follow it, the rest would leave the lead to it as well, and nobody would have a quorum. So
// whoever has a quorum goes first; and of two who have one, or have none, the senior one.
//
// A node leaves waves only for those of one who goes before, and says in whose it is.
// A coordinator lists only who would come, and says that it lists a quorum if those, as far as it knows, are one.
// It leaves the lead to others if it has none and hears of somebody who goes before. So
//
//   - of two who each list a quorum of a line one gets there: a node that is in both lists stays with
//     the senior one, as everybody in the waves of that, and without them the other has no quorum;
//   - who has no quorum takes nobody out of waves that are primary, and who follows it goes to one who lists a quorum;
//   - where nobody has one, seniority decides, as at the founding.
//
// That is of no help where nobody who reaches a quorum runs waves: as if only one node reaches all others, and follows
// a senior one that reaches no more than it. So who has been in no primary waves for long asks around whether it lists a
// quorum, and goes on following meanwhile (seeks). If not, it has sent some probes, and was in every wave. If
// so, it gathers, and is a coordinator as any other, of whom the above is true. So while one who votes reaches a quorum of
// nodes that would come, there are primary waves after a while; who is in them seeks no more.
//
// Nobody seeks before its turn, the senior ones first, nor again before it has gone without primary waves for about twice as
// long. Nor does anybody whose view is no quorum, or is all in the waves that it follows: a clean split
// costs no message. To list a quorum in vain costs a side some waves, that seldom: as where fanout and one are none,
// and those further down the tree are reached by whoever gathers alone.
//
// It is a matter of progress alone: what a wave may decide is for authority to say, by the replies. Who
// lists a quorum may be mistaken, as where another life of a name has its vote; it says so no more for a while then.
type bid struct {
	lead   Peer // zero: nobody
	quorum bool // of the voters of its line: its waves are primary, or would be
}

// before reports whether b goes before o. Nobody goes last.
func (b bid) before(o bid) bool {
	switch {
	case b.lead.Member == (Member{}) || o.lead.Member == (Member{}):
		return b.lead.Member != o.lead.Member && o.lead.Member == (Member{})
	case b.quorum != o.quorum:
		return b.quorum
	}
	return Seniority(b.lead, o.lead) < 0
}

// follows returns in whose waves this node is, other than its own: of a coordinator that is at
// work and believed alive.
func (n *Node) follows(now Time) bid {
	f := n.follow
	if f.Member == (Member{}) || now.Boot-n.followedAt >= micros(n.c.ExcludeAfter) || n.view.index(f.Member) < 0 {
		return bid{}
	}
	return bid{f, n.primaryOf(now, f.Member) || n.bidBy(now, f.Member)}
}

// with returns in whose waves this node is, its own perhaps, if those have a quorum.
func (n *Node) with(now Time) bid {
	own, other := bid{}, n.follows(now)
	if n.leads(now) || n.lead.open && n.bidBy(now, n.self.Member) {
		own = bid{n.self, true}
	}
	if other.before(own) {
		return other
	}
	return own
}

// bidBy reports whether this node is in a wave of m, which lists a quorum, until that
// has had time to show.
func (n *Node) bidBy(now Time, m Member) bool {
	w := n.wave
	return w != nil && w.Lead.Member == m && w.Quorum && now.Boot-w.at <= micros(n.c.Deadline)
}

// leads reports whether the node's own waves have a quorum.
func (n *Node) leads(now Time) bool {
	return n.lead.active && !n.clock.quarantined && n.primaryOf(now, n.self.Member)
}

// primaryOf reports whether the waves of m, in which this node is, are primary.
func (n *Node) primaryOf(now Time, m Member) bool {
	return n.grade >= Primary && n.list[0] == m && now.Boot-n.installedAt < micros(n.c.ExcludeAfter)
}

// answers is what this node says to who would list it: in whose waves it is, if that may keep it
// from coming.
func (n *Node) answers(now Time, to Peer) bid {
	c := n.with(now)
	if !c.quorum && !c.before(bid{lead: to}) || c.lead.Member == to.Member {
		return bid{}
	}
	return c
}

// candidates lists this node and all who are ready and would come, and says whether they are a quorum.
func (n *Node) candidates(now Time, mid int64) (list []Member, quorum bool) {
	for _, quorum := range []bool{true, false} {
		list = []Member{n.self.Member}
		know := []qpid.NodeID{n.self.Name}
		for _, p := range n.others() {
			c := n.lead.find(p.Member)
			if !n.ready(now, c, mid) || c.with.before(bid{n.self, quorum}) {
				continue
			}
			list = append(list, p.Member)
			if !c.forgot && c.line == n.line {
				know = append(know, p.Name)
			}
		}
		if quorum && n.voting() && n.voters.quorum(know) && now.Boot >= n.lead.doubts {
			return list, true
		}
	}
	return list, false
}

// outdone reports whether this coordinator hears of somebody who goes before mine.
func (n *Node) outdone(now Time, mine bid) bool {
	return slices.ContainsFunc(n.lead.peers, func(c candidate) bool {
		return c.with.before(mine) && now.Boot-c.heard < micros(n.c.ExcludeAfter)
	})
}

// voting reports whether this node counts as one who knows where its line is.
func (n *Node) voting() bool {
	return n.knows && !n.forgot
}
