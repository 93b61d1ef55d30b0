package eviction

// Goodbye hands over the free slots and tells everyone. The node stays for as
// long as its owner lets the transfers be repeated, and calls nobody.
func (n *Node) Goodbye(now Time) {
	n.read(now)
	n.leaving, n.lead.active = true, false
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
