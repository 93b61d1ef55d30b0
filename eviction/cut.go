package eviction

import (
	"math/bits"

	"github.com/anteroom/anteroom/qpid"
)

// Cut is the permission to call: every ticket at or below Value. It only ever
// grows within a keying.
type Cut struct {
	Keying uint64 // which weights it speaks of; 0 until an event re-keys the room
	Epoch  uint64 // of the wave that set it
	Value  qpid.Weight
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
func (g *Gate) applyCut(c Cut) {
	if c.Keying == g.keying && c.newer(g.cut) {
		g.cut = c
	}
}

// Cut returns the permission to call.
func (g *Gate) Cut() Cut { return g.cut }

// Keying says which weights the queue holds: 0, or the start of the event that
// re-keyed it.
func (g *Gate) Keying() uint64 { return g.keying }

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
	g.digest, g.own, g.first, g.digestOf, g.digestT = nil, nil, nil, nil, 0 // it speaks of other weights
	g.keying, g.seed, g.cut = k, seed, Cut{Keying: k}
	g.asserted.cut = g.cut // what was permitted until now was in another order
	return true
}

// Key returns the weight under which a ticket waits: its own, or its place in
// the draw among those who gathered before an event with a shuffle.
func (g *Gate) Key(w qpid.Weight) qpid.Weight {
	if g.keying == 0 || w.Stamp >= g.keying {
		return w
	}
	return g.shuffled(w)
}

// shuffled is apart from Key, which else would allocate what it returns as it was.
func (g *Gate) shuffled(w qpid.Weight) qpid.Weight {
	return qpid.Weight{Stamp: g.places.of(g.seed, g.keying, w.ID), ID: w.ID}
}

// scaled is ⌊x × below / 2⁶⁴⌋.
func scaled(x, below uint64) uint64 {
	hi, _ := bits.Mul64(x, below)
	return hi
}
