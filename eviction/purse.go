package eviction

import "github.com/anteroom/anteroom/qpid"

// purse is the pacing tokens of one room that this node has in hand.
//
// Invariant: 0 <= tokens, and spentThen <= spent, which never falls.
type purse struct {
	paced     bool
	tokens    int
	tokenTo   int64      // boot time at which they lapse
	spent     uint64     // ever
	spentThen uint64     // by the last reply
	dealt     qpid.Epoch // of the last wave that dealt, or would have in a paced room, if only nothing, or that left a bucket
	dealtAt   int64      // boot time until which its coordinator may have, for all this node knows: of its last wave that asked this node, decided or not
	lastAsk   uint64     // number of that one
	bucket    *Bucket    // as the wave dealt left it; nil: it did not
	bucketAt  int64      // boot time of that wave
	unsureTo  int64      // boot time until which this node does not take it to know who has dealt
}

// forgotten is whoever dealt in a life before this one.
const forgotten qpid.NodeID = "?"

// forgets is of a life that began at that boot time, before which somebody may have dealt.
func (p *purse) forgets(began int64) {
	p.dealt, p.dealtAt = qpid.Epoch{Num: 1, Coordinator: forgotten}, began
}

// refill takes in what a commit of w deals to this node: what it has spent since it replied is
// of that.
func (p *purse) refill(c *RoomCommit, w *wave) {
	p.paced = c.Paced
	if (!c.Idle || c.Bucket != nil) && w.at >= p.unsureTo {
		p.dealt, p.dealtAt, p.lastAsk = w.epoch, w.at, w.epoch.Num
		p.bucket, p.bucketAt = c.Bucket, w.at
	}
	if !p.paced || c.Stay {
		return
	}
	p.tokens, p.tokenTo = 0, w.at+tokenLife
	for _, t := range c.Tokens {
		if t.Index == w.index {
			p.tokens = max(0, t.N-int(p.spent-p.spentThen))
		}
	}
}

// dealtBy is the wave that dealt last, number 0 if none did.
func (p *purse) dealtBy() qpid.Epoch {
	if p.dealt == (qpid.Epoch{}) {
		return qpid.Epoch{Coordinator: "-"} // short, and the same at all nodes
	}
	return p.dealt
}

// asks notes at boot time now that w asks this node.
func (p *purse) asks(w *wave, now int64) {
	if p.dealt.Coordinator == w.epoch.Coordinator {
		p.dealtAt, p.lastAsk = now, w.epoch.Num
	}
}

// dealtAge is for how long the coordinator that dealt last has asked nothing of this node, in
// microseconds.
func (p *purse) dealtAge(now int64) int64 {
	if p.dealt.Num == 0 {
		return 0
	}
	return max(0, now-p.dealtAt)
}

// left is what this node knows of the bucket of who dealt last, for another one that asks in w.
func (p *purse) left(w *wave, now int64) *Left {
	if p.bucket == nil || w.epoch.Coordinator == p.dealt.Coordinator {
		return nil
	}
	return &Left{Bucket: *p.bucket, Age: max(0, now-p.bucketAt), LastAsk: p.lastAsk}
}

// Tokens returns the pacing tokens in hand at boot time now; -1: not paced.
func (p *purse) Tokens(now int64) int {
	switch {
	case !p.paced:
		return -1
	case now >= p.tokenTo:
		return 0
	}
	return p.tokens
}
