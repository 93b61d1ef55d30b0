package qpid

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
)

// NodeID is a node's configured name. It is unique in a cluster.
type NodeID string

// ItemID is the random identity of a queued item (128 bits). It breaks ties
// between items stamped in the same microsecond, in a way that favours no node.
type ItemID [16]byte

// Weight orders items: the lightest leaves first. Stamp is the join time in
// Unix microseconds (hybrid logical clock), or any other priority. Weights are
// unique because item identities are. Weight is comparable and has a total
// order that agrees with ==.
type Weight struct {
	Stamp uint64
	ID    ItemID
}

// emptyStamp marks the weight of a queue that holds nothing.
const emptyStamp = math.MaxUint64

// Empty is the weight that the node at the given position of the member list
// reports for an empty queue. Empty weights are heavier than every item and
// differ between nodes, so that even an empty network has one lightest node:
// the first of the list.
func Empty(position int) Weight {
	w := Weight{Stamp: emptyStamp}
	binary.BigEndian.PutUint64(w.ID[8:], uint64(position))
	return w
}

// UpTo is the heaviest weight with the given stamp: every item stamped at or
// before it is no heavier.
func UpTo(stamp uint64) Weight {
	w := Weight{Stamp: stamp}
	for i := range w.ID {
		w.ID[i] = 0xff
	}
	return w
}

// IsEmpty reports whether w stands for an empty queue.
func (w Weight) IsEmpty() bool { return w.Stamp == emptyStamp }

// Compare returns -1, 0 or +1 as w is lighter than, equal to or heavier than o.
func (w Weight) Compare(o Weight) int {
	if c := cmp.Compare(w.Stamp, o.Stamp); c != 0 {
		return c
	}
	return bytes.Compare(w.ID[:], o.ID[:])
}

// Less reports whether w is lighter than o.
func (w Weight) Less(o Weight) bool {
	return w.Stamp < o.Stamp || w.Stamp == o.Stamp && bytes.Compare(w.ID[:], o.ID[:]) < 0
}

func (w Weight) String() string {
	if w.IsEmpty() {
		return fmt.Sprintf("empty/%d", binary.BigEndian.Uint64(w.ID[8:]))
	}
	return fmt.Sprintf("%d/%x", w.Stamp, w.ID[:4])
}

// Epoch names one wave: a number and the node that coordinated it. A higher
// number wins; equal numbers are ordered by name, so that two coordinators
// never share an epoch.
type Epoch struct {
	Num         uint64
	Coordinator NodeID
}

// Compare returns -1, 0 or +1 as e is older than, equal to or newer than o.
func (e Epoch) Compare(o Epoch) int {
	if c := cmp.Compare(e.Num, o.Num); c != 0 {
		return c
	}
	return cmp.Compare(e.Coordinator, o.Coordinator)
}

func (e Epoch) String() string { return fmt.Sprintf("%d@%s", e.Num, e.Coordinator) }
