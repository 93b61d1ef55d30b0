package qpid

import (
	"cmp"
	"fmt"
	"slices"
)

// Neighbor is a neighbour in the tree and the lightest weight on its side of
// the link.
type Neighbor struct {
	ID     NodeID
	Weight Weight
}

// Snapshot is what a wave found out for one node. All the snapshots of an epoch
// must be made of the same weights: one per node, that of its lightest item at
// some moment between its Freeze and its Install.
type Snapshot struct {
	Epoch     Epoch
	Position  int    // of this node in the member list
	Own       Weight // this node's own; Empty(Position) if its queue was empty
	Neighbors []Neighbor
}

// Freeze begins the time between a node's part in a wave and its install. The
// node buffers deleteMins, sends no update or findRoot and drops those of the
// epoch that is still installed; those of newer epochs wait for their install.
// So no root outlives the snapshot from which the next one is made. If the wave
// dies, the node stays frozen until another one succeeds.
func (n *Node) Freeze() { n.frozen = true }

// Install replaces the weight table by a snapshot's, points at the lightest
// side and unfreezes. Then come the changes to the queue since the snapshot,
// the messages of this epoch that arrived before it, and the deleteMins that
// waited. An epoch that is not newer than the installed one changes nothing.
//
// A snapshot that cannot be right is an error, and the node stays as it was:
// frozen, until a wave brings a better one. That includes one in which two
// sides are equally light, because the two ends of a link could each take
// themselves for the lighter one. Weights are unique, so this means that an
// item is queued twice. On ErrGap the node did install, and then found that
// messages of the new epoch were dropped, so it is frozen again.
func (n *Node) Install(s Snapshot) error {
	if s.Epoch.Compare(n.epoch) <= 0 {
		return nil
	}
	table, parent, err := s.table(n.self)
	if err != nil {
		return err
	}
	n.epoch, n.position = s.Epoch, s.Position
	n.frozen = false
	n.own, n.neighbors, n.parent = s.Own, table, parent
	if parent != n.self {
		n.told = n.Report(parent)
	}
	n.settle()
	return n.catchUp()
}

// table checks a snapshot and returns its table and the lightest side.
func (s Snapshot) table(self NodeID) ([]neighbor, NodeID, error) {
	table := make([]neighbor, len(s.Neighbors))
	for i, nb := range s.Neighbors {
		table[i] = neighbor{id: nb.ID, weight: nb.Weight}
	}
	slices.SortFunc(table, func(a, b neighbor) int { return cmp.Compare(a.id, b.id) })
	parent, least, tie := self, s.Own, false
	for i, nb := range table {
		if nb.id == self || nb.id == "" || i > 0 && nb.id == table[i-1].id {
			return nil, "", fmt.Errorf("qpid: %s cannot install epoch %v: neighbour %q is itself, nameless or there twice",
				self, s.Epoch, nb.id)
		}
		switch c := nb.weight.Compare(least); {
		case c < 0:
			parent, least, tie = nb.id, nb.weight, false
		case c == 0:
			tie = true
		}
	}
	if tie {
		return nil, "", fmt.Errorf("qpid: %s cannot install epoch %v: two sides weigh %v", self, s.Epoch, least)
	}
	return table, parent, nil
}

// catchUp handles what was buffered before an install and returns the first
// error.
func (n *Node) catchUp() error {
	early, pending := n.early, n.pending
	n.early, n.pending = nil, nil
	var first error
	if n.overflow == n.epoch {
		n.Freeze()
		first = fmt.Errorf("%w: %s had no room for all that came before its install of epoch %v", ErrGap, n.self, n.epoch)
	}
	for _, m := range early { // stepTree keeps those of newer epochs still
		if err := n.stepTree(m); err != nil && first == nil {
			first = err
		}
	}
	for _, m := range pending {
		n.deleteMin(m)
	}
	return first
}

// Epoch is the last one installed.
func (n *Node) Epoch() Epoch { return n.epoch }

// Frozen reports whether the node waits for an install.
func (n *Node) Frozen() bool { return n.frozen }

// IsRoot reports whether the lightest item of the network is thought to be
// here. At most one node of an epoch is root at any time; none is while a
// findRoot travels.
func (n *Node) IsRoot() bool { return !n.frozen && n.parent == n.self }

// Parent is the neighbour through which the root is reached, or the node itself.
func (n *Node) Parent() NodeID { return n.parent }

// Min is the weight of the lightest item here, or that of an empty queue at the
// position of the installed epoch. A wave that lists the node elsewhere takes
// the empty weight of that position into its snapshot.
func (n *Node) Min() Weight {
	if w, ok := n.queue.Min(); ok {
		return w
	}
	return Empty(n.position)
}

// Report is what this node tells a neighbour: the lightest weight in its table
// on all other sides. Told to itself, it is the lightest of all.
func (n *Node) Report(to NodeID) Weight {
	w := n.own
	for i := range n.neighbors {
		if nb := &n.neighbors[i]; nb.id != to && nb.weight.Less(w) {
			w = nb.weight
		}
	}
	return w
}

// Table is a copy of the weight table, this node's own entry included, sorted
// by name.
func (n *Node) Table() []Neighbor {
	t := make([]Neighbor, 0, len(n.neighbors)+1)
	t = append(t, Neighbor{n.self, n.own})
	for _, nb := range n.neighbors {
		t = append(t, Neighbor{nb.id, nb.weight})
	}
	slices.SortFunc(t, func(a, b Neighbor) int { return cmp.Compare(a.ID, b.ID) })
	return t
}

// lightest is the side with the lightest weight. A tie goes to the node itself.
func (n *Node) lightest() NodeID {
	to, w := n.self, n.own
	for i := range n.neighbors {
		if nb := &n.neighbors[i]; nb.weight.Less(w) {
			to, w = nb.id, nb.weight
		}
	}
	return to
}
