package eviction

import (
	"math"

	"github.com/anteroom/anteroom/qpid"
)

// positions are by what people at this node are told where they stand. It may delay a call,
// and permits none.
//
// All of it is of waves that heard of the whole line. A side that calls nobody hears of its
// own people only, and they are not the line: there what the last wave before the split
// said stands, as of when it was, who has joined since is told no position, and nobody is
// told one that has to be taken back when the sides meet.
//
// Invariant: the digest and what goes with it speak of one wave, and of the order that the
// queue is in; or there is none.
type positions struct {
	digest   *Digest  // of the room
	own      *Digest  // of this node's queue, in it
	sampled  *Digest  // of this node's queue, as it replied last: own, once that is installed
	first    []int    // see RoomCommit.First
	digestOf []Member // whose queues digest describes
	digestT  uint64   // who joined later is not in it

	elsewhere int    // people who waited at other members
	counted   uint64 // T of the wave that said so; 0: none has
	alone     bool   // that wave had no other members
}

// install keeps what a wave of the whole line says of it: how many wait at the others,
// and, where it has one, the room's digest for position estimates, and what part of it is
// this node's own.
func (p *positions) install(w *wave, c *RoomCommit) {
	p.elsewhere, p.counted, p.alone = 0, w.T, len(w.list) == 1
	for i, waiting := range c.Waiting {
		if i != w.index {
			p.elsewhere += waiting
		}
	}
	if c.Digest != nil {
		p.digest, p.own, p.first, p.digestOf, p.digestT = c.Digest, p.sampled, c.First, w.list, w.T
	}
}

// Position estimates how many people wait before key, and counts them from 1:
// exactly at this node, by the digest of the last second elsewhere. It is not
// known of a newcomer: the digest does not hold who joined elsewhere since.
func (g *Gate) Position(key qpid.Weight) (position int, known bool) {
	ahead := g.Queue.Rank(key) + g.Due
	if g.digest != nil && g.own != nil {
		others := g.digest.between(g.cut.Value, key) - g.own.between(g.cut.Value, key)
		ahead += max(0, int(math.Round(others)))
	}
	return ahead + 1, g.alone || key.Stamp <= g.digestT
}

// Waiting returns how many people wait in the whole room: at this node just now, at
// the others as of the last wave that heard of all of them.
func (g *Gate) Waiting() int { return g.Queue.Len() + g.Due + g.elsewhere }

// Counted returns as of when that is, pass time, where this node is on a side that hears
// of its own people only; 0: as of now, or no wave of this life has counted them yet.
func (g *Gate) Counted(at Grade) uint64 {
	if g.cfg.OnPartition.counts(at) {
		return 0
	}
	return g.counted
}
