package eviction

import (
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// What a wave has carried to a node goes by the name of that wave from then on: the
// list of members, and the voters. A list of 1,000 is 20 kB, and it seldom changes.
//
// Invariant: an epoch names one wave, and that has one list and one commit. Who
// installed the commit has both, until it installs another.

// named returns g as it goes to others: without the list, if they may have it.
func (g Gather) named() *Gather {
	if g.As != (qpid.Epoch{}) {
		g.List = nil
	}
	return &g
}

// full returns g with its list. False: g as it is; the node has not installed the wave
// that g names, or another one since.
func (n *Node) full(g *Gather) (*Gather, bool) {
	if g.List != nil {
		return g, true
	}
	if g.As == (qpid.Epoch{}) || g.As != n.installed {
		return g, false
	}
	full := *g
	full.List = n.list
	return &full, true
}

// onAsk sends a child the list that it lacks.
func (n *Node) onAsk(now Time, from Member, a *Ask) {
	w := n.wave
	if w == nil || w.epoch != a.Epoch || !slices.Contains(w.waiting, from) {
		return
	}
	full := w.Gather
	full.Wait = max(0, w.deadline-now.Boot) * 7 / 10
	n.send(from, &full)
}

// names reports whether this node's voters are those that the gather of w names.
func (n *Node) names(w *wave) bool {
	return w.Voters != (qpid.Epoch{}) && n.voters.At == w.Voters
}

// resolve puts the coordinator's voters into the replies that name them.
func (n *Node) resolve(w *wave) {
	for i := range w.sum.Nodes {
		if r := &w.sum.Nodes[i]; r.Named {
			if !n.names(w) {
				panic(fmt.Sprintf("eviction: %v holds the voters of %v and asked for those of %v", n.self.Member, n.voters.At, w.Voters))
			}
			r.Voters, r.Named = n.voters, false
		}
	}
}

// carries reports whether c leaves the voters that the gather of w names as they are.
func (n *Node) carries(w *wave, c *Commit) bool {
	v, o := c.Voters, n.voters
	return n.names(w) && v.At == w.epoch && v.Version == o.Version && v.From == o.From &&
		slices.Equal(v.Names, o.Names) && slices.Equal(v.Next, o.Next) && (v.Next == nil) == (o.Next == nil) && slices.Equal(v.Founders, o.Founders)
}

// withVoters returns c with its voters; false: it leaves them out, and this node does
// not hold those that the gather named.
func (n *Node) withVoters(w *wave, c *Commit) (*Commit, bool) {
	if !c.Carried || c.Voters.Version > 0 {
		return c, true
	}
	if !n.names(w) {
		return nil, false
	}
	full := *c
	full.Voters = n.voters
	full.Voters.At = c.Epoch
	return &full, true
}

// same reports whether two lists are one, as they are while it goes by its name. Equal
// lists may be two.
func same(a, b []Member) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
