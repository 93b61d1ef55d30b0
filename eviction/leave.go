package eviction

import "slices"

// Leave has the node let nobody in from now on. It stays in the waves, or goes on
// running them, while its owner gives away what it has: so a wave counts everybody who
// waits here until somebody else does, and no wave has to wait for what is on its way.
func (n *Node) Leave(now Time) {
	n.read(now)
	n.leaving, n.heirs = true, nil
	for _, g := range n.gates {
		n.urge(g)
	}
}

// Released reports whether the others need this node no more, since it is no voter. A
// voter that left while a newcomer was on its way to become one may be missed by the
// quorum that the change needs, and stay one for good.
func (n *Node) Released() bool {
	return !slices.Contains(n.voters.Names, n.self.Name) && !slices.Contains(n.voters.Next, n.self.Name)
}

// Given reports whether the last wave, and everybody to whom something was given, knows
// that there is nothing left here of g: nobody waits, and no visit is on its way.
func (n *Node) Given(g *Gate) bool {
	i := slices.Index(g.members, n.self.Member)
	return len(g.ledger.given) == 0 && (i < 0 || i >= len(g.waiting) || g.waiting[i] == 0)
}

// Left reports whether the node has said goodbye.
func (n *Node) Left() bool { return n.parted }

// Goodbye hands over the free slots and tells everyone. The node stays for as
// long as its owner lets the transfers be repeated, and calls nobody.
func (n *Node) Goodbye(now Time) {
	n.read(now)
	n.leaving, n.parted, n.lead.active = true, true, false
	for _, g := range n.gates {
		n.handOn(g)
	}
	for _, m := range n.list {
		if m != n.self.Member {
			n.send(m, &Goodbye{})
		}
	}
}

// handOn sends the free slots of a node that leaves to another.
func (n *Node) handOn(g *Gate) {
	for _, m := range n.list {
		if msg := g.SendTo(n.self.Member, m.Name, g.ledger.Free()); msg != nil {
			n.out = append(n.out, *msg)
		}
	}
}

// onGoodbye lets go of a node that leaves. If it ran the waves the next one need
// not wait to find out that it does so no longer.
func (n *Node) onGoodbye(now Time, from Member) {
	n.saw(from, now.Boot, n.epoch.Num, true)
	n.lead.drop(from)
	if n.follow.Member == from {
		n.follow = Peer{}
	}
}
