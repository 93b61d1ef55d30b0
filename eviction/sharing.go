package eviction

import "slices"

// Rooms whose sides go on with the slots that they have (OnPartition: Share), and when
// such a room begins and ends to be one.
//
// Two things are known of it. An account that has sides may act by a lease without a
// quorum, and does not lapse. A gate that has shared reckons with such an account
// anywhere: whoever is away is waited for until they are back, an operator says that they
// will not be (Room.Reclaimed), they have left, or a later life of theirs is listed.
//
// Invariant: while an account that has sides may act, every primary wave of its line has a
// reply that says shared, or lists that account, or holds it void.
//
// Proof. An account gets sides by a primary wave, W, of which every node has replied that
// it goes by a configuration that shares: they all say shared from then on, and so does
// whoever hears of a wave that one of them replied to. By lemma 6 somebody in every later
// primary wave is one of these. Shared ends by a primary wave, V, in which all go by
// another configuration, no account has sides, and nobody is away who may have one. All
// accounts that had sides until then are in V, and have not any more, or are void: those
// of nodes that an operator was wrong about are held void while the configuration says
// so (Node.holdsShare), and the others are over. Whoever replied to V installs no earlier
// wave, so none of the accounts gets sides but by a wave after V.
//
// A side without a quorum never gives sides: that it is told to share is not known to
// those who will make its slots again.

// Shares reports whether an account of the room may act on a side without a quorum, here
// or elsewhere: the room shares, or has until lately and somebody is away since.
func (g *Gate) Shares() bool { return g.shared || g.cfg.OnPartition == Share }

// share says in a primary wave's commit whether accounts may from now on act on a side,
// and whether any still may.
func (rs *roomSums) share(d *decision, c *RoomCommit) {
	if !rs.agreed {
		return
	}
	c.Sides = rs.plan.OnPartition == Share
	c.Shared = c.Sides || rs.shared && (slices.ContainsFunc(rs.nodes, func(n RoomNode) bool { return n.Sides }) ||
		slices.ContainsFunc(d.met, func(m Sighting) bool { return rs.mayAct(d, m) }))
}

// mayAct reports whether m, who is away, may be on another side and act there, if the
// room shares.
func (rs *roomSums) mayAct(d *decision, m Sighting) bool {
	return m.Member.Name != "" && !m.Left && !slices.Contains(rs.cfg.Reclaimed, m.Member) && !succeeded(d.list, m.Member)
}
