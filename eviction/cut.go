package eviction

import (
	"math/bits"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// Cut is the permission to call: every ticket at or below Value. It only ever
// grows within a keying.
type Cut struct {
	Keying uint64 // which weights it speaks of; 0 until an event re-keys the room
	Epoch  uint64 // of the wave that set it
	Value  qpid.Weight
}

// order is how the queue stands, and how far down it people may be called.
//
// Invariant: the cut speaks of the weights that the queue holds: its keying is keying.
// Invariant: keying never falls, nor does the cut within one.
type order struct {
	cut      Cut
	before   Cut      // of an earlier wave, as heard last
	cuts     []Cut    // the last ones, the oldest first, up to cut: of one keying
	keying   uint64   // of the queue's weights
	seed     [32]byte // of the draw that keying speaks of, whatever the configuration says by now
	told     uint64   // the coordinator's keying, and its seed
	toldSeed [32]byte
	places   places
}

// newer reports whether c supersedes o.
func (c Cut) newer(o Cut) bool {
	if c.Keying != o.Keying {
		return c.Keying > o.Keying
	}
	return o.Value.Less(c.Value)
}

// applyCut raises the cut. A cut under a newer keying than the queue's waits
// until the owner has re-keyed.
func (o *order) applyCut(c Cut) {
	if c.Keying == o.keying && c.newer(o.cut) {
		o.cut = c
		o.cuts = append(o.cuts[max(0, len(o.cuts)-cutsMax):], c)
	}
}

// hearOf raises the cut to that of an earlier wave, which may have missed this node. Two
// coordinators may give their waves one number.
func (o *order) hearOf(c Cut) {
	o.before = c
	o.applyCut(c)
}

// cutsMax is how many cuts are remembered, and one.
const cutsMax = 255

// WaveOf returns the number of the wave whose cut passed key first, as far as this node
// remembers. The cut is beyond key.
func (o *order) WaveOf(key qpid.Weight) uint64 {
	i, _ := slices.BinarySearchFunc(o.cuts, key, func(c Cut, key qpid.Weight) int { return c.Value.Compare(key) })
	if i == len(o.cuts) {
		return o.cut.Epoch
	}
	return o.cuts[i].Epoch
}

// Cut returns the permission to call.
func (o *order) Cut() Cut { return o.cut }

// Keying says which weights the queue holds: 0, or the start of the event that
// re-keyed it.
func (o *order) Keying() uint64 { return o.keying }

// Rekey gives the queue the keying that holds at time t; the owner then puts
// everyone back under their new weights. It reports whether that is needed. A
// keying is never taken back.
func (g *Gate) Rekey(t uint64) bool {
	k, seed := g.cfg.keyingAt(t)
	if g.told >= k {
		k, seed = g.told, g.toldSeed // also of the same draw: the coordinator's seed counts
	}
	if k < g.keying || k == 0 || k == g.keying && (g.told != k || seed == g.seed) {
		return false
	}
	g.digest, g.own, g.first, g.digestOf, g.digestT, g.bare = nil, nil, nil, nil, 0, nil // they speak of other weights
	g.back = g.back.anew()
	g.keying, g.seed, g.cut, g.cuts = k, seed, Cut{Keying: k}, nil
	g.asserted.cut = g.cut // what was permitted until now was in another order
	return true
}

// Key returns the weight under which a ticket waits: its own, or its place in
// the draw among those who gathered before an event with a shuffle.
func (o *order) Key(w qpid.Weight) qpid.Weight {
	if o.keying == 0 || w.Stamp >= o.keying {
		return w
	}
	return o.shuffled(w)
}

// shuffled is apart from Key, which else would allocate what it returns as it was.
func (o *order) shuffled(w qpid.Weight) qpid.Weight {
	return qpid.Weight{Stamp: o.places.of(o.seed, o.keying, w.ID), ID: w.ID}
}

// scaled is ⌊x × below / 2⁶⁴⌋.
func scaled(x, below uint64) uint64 {
	hi, _ := bits.Mul64(x, below)
	return hi
}
