package eviction

import (
	"math"

	"github.com/anteroom/anteroom/qpid"
)

// positions are by what people at this node are told where they stand. It may delay a call,
// and permits none.
//
// Invariant: all of it speaks of one wave, and of the order that the queue is in; or there
// is none.
type positions struct {
	digest   *Digest  // of the room
	own      *Digest  // of this node's queue, in it
	sampled  *Digest  // of this node's queue, as it replied last: own, once that is installed
	first    []int    // see RoomCommit.First
	digestOf []Member // whose queues digest describes
	digestT  uint64   // who joined later is not in it
}

// install keeps the room's digest for position estimates, and what part of it is
// this node's own.
func (p *positions) install(w *wave, c *RoomCommit) {
	if c.Digest != nil {
		p.digest, p.own, p.first, p.digestOf, p.digestT = c.Digest, p.sampled, c.First, w.list, w.T
	}
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
