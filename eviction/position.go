package eviction

import (
	"math"

	"github.com/anteroom/anteroom/qpid"
)

// installDigest keeps the room's digest for position estimates, and what part of it is
// this node's own.
func (g *Gate) installDigest(w *wave, c *RoomCommit) {
	g.digest, g.own, g.first, g.digestOf, g.digestT = c.Digest, g.sampled, c.First, w.list, w.T
}

// Position estimates how many people wait before key, and counts them from 1:
// exactly at this node, by the digest of the last second elsewhere. It is not
// known of a newcomer: the digest does not hold who joined elsewhere since.
func (g *Gate) Position(self Member, key qpid.Weight) (position int, known bool) {
	ahead := g.Queue.Rank(key) + g.Due
	if g.digest != nil && g.own != nil {
		others := g.digest.between(g.cut.Value, key) - g.own.between(g.cut.Value, key)
		ahead += max(0, int(math.Round(others)))
	}
	alone := len(g.members) == 1 && g.members[0] == self
	return ahead + 1, alone || key.Stamp <= g.digestT
}

// Waiting returns how many people wait in the whole room: at this node just now, at
// the others as of the last wave.
func (g *Gate) Waiting(self Member) int {
	waiting := g.Queue.Len() + g.Due
	for i, m := range g.members {
		if m != self && i < len(g.waiting) {
			waiting += g.waiting[i]
		}
	}
	return waiting
}
