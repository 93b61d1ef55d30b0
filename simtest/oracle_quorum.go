package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// S22, quorums. Of any two primary waves of a line one knows of the other, whoever has
// gone on under a name of somebody else meanwhile; and so do a wave by which a room
// leaves a line with its slots, and every primary wave of that line. A room leaves a line once: it is not back there, nor
// leaves it for another one but where the first is over, without a primary wave later, and without a slot made there. A wave knows of
// another if one of those who replied to it had replied to that one, or had installed a
// wave that knew of it. It is the claim on which all else rests (lemma 6), so a breach is
// seen here before any slot is there twice.
//
// Of two waves the one with the higher number is to know of the other. But for a wave of
// one node alone that crashed before its disk had what it knew then, or a number that high. Nothing that follows
// from it has left the node, so nobody knows its number, and the next life may begin
// below: it takes all that it was in to have been just now, that wave with the rest, and
// waits for it as long as for any. Its number decides nothing between the two.

// knownMax bounds the waves that are remembered: the last minute or so of them.
const knownMax = 512

// epochGap is by how much the waves of a life that was restored begin above the number on its disk.
const epochGap = 1 << 20

// knowledge is a set of remembered waves.
type knowledge [knownMax / 64]uint64

func (k *knowledge) add(i int32)      { k[i/64] |= 1 << (i % 64) }
func (k *knowledge) has(i int32) bool { return k[i/64]&(1<<(i%64)) != 0 }

func (k *knowledge) learn(o *knowledge) {
	for i := range k {
		k[i] |= o[i]
	}
}

// quorumCheck is what is known of waves.
type quorumCheck struct {
	place   map[qpid.Epoch]int32
	waves   []knownWave // a ring
	next    int32
	quorums []quorum
	left    []leaving
	over    []leaving // the earlier of two, with the number of the later
	minted  []minting
}

// minting is a line on which slots of a room were made.
type minting struct {
	room string
	line eviction.Line
}

// leaving is where a room went by a quorum of the line that it was on, and by which wave.
type leaving struct {
	room     string
	from, to eviction.Line
	wave     qpid.Epoch
}

// knownWave is one wave, and what those who replied to it knew.
type knownWave struct {
	epoch   qpid.Epoch
	knew    knowledge
	unsaved int32 // life that was alone in it, and whose disk does not have what it knew then; none
}

// quorum is a wave that took a quorum of line: of the nodes, or of one room when it went
// over to another line.
type quorum struct {
	wave int32
	line eviction.Line
	room string
}

// waveAt returns the place of a wave, the oldest one's if it is new.
func (w *world) waveAt(e qpid.Epoch) int32 {
	c := &w.checker.quorums
	if c.place == nil {
		c.place, c.waves = map[qpid.Epoch]int32{}, make([]knownWave, knownMax)
	}
	i, ok := c.place[e]
	if ok {
		return i
	}
	i = c.next
	c.next = (c.next + 1) % knownMax
	delete(c.place, c.waves[i].epoch)
	c.place[e] = i
	forgotten := knowledge{}
	forgotten.add(i)
	for j := range c.waves {
		c.waves[j].knew[i/64] &^= forgotten[i/64]
	}
	for j := range w.hosts {
		w.hosts[j].knew[i/64] &^= forgotten[i/64]
	}
	kept := c.quorums[:0]
	for _, q := range c.quorums {
		if q.wave != i {
			kept = append(kept, q)
		}
	}
	c.quorums = kept
	c.waves[i] = knownWave{epoch: e, unsaved: none}
	return i
}

// answers notes that h takes part in a wave, and what it knew then.
func (w *world) answers(h *host, e qpid.Epoch) {
	i := w.waveAt(e)
	h.knew.add(i)
	w.checker.quorums.waves[i].knew.learn(&h.knew)
}

// learns notes that h has installed a wave, and looks at a primary one when its
// coordinator has: it has just decided it.
func (w *world) learns(h *host, s *node.Status) {
	if len(s.List) == 1 { // its gather and its reply went to nobody
		w.answers(h, s.Installed)
		if h.disk.unsaved != nil || h.disk.kept != nil && s.Installed.Num > h.disk.kept.Epoch+epochGap {
			w.checker.quorums.waves[w.waveAt(s.Installed)].unsaved = h.life
		}
	}
	i := w.waveAt(s.Installed)
	h.knew.learn(&w.checker.quorums.waves[i].knew)
	if s.Grade >= eviction.Primary && s.List[0] == w.lives[h.life].member {
		w.checkQuorum(quorum{wave: i, line: s.Line})
	}
}

// crosses looks at a room that leaves a line by a quorum of it, and not because its own
// survivor_after is over, which an operator may set while it runs.
func (w *world) crosses(h *host, e qpid.Epoch, rc *eviction.RoomCommit) {
	rs, ok := h.n.Room(rc.Room, h.clock.read(w.now))
	if !ok || rs.Room.Survivor != 0 || rs.Room.OnPartition == eviction.Share || !rc.From.Founded() || rc.From == rc.Line {
		return
	}
	w.checkQuorum(quorum{w.waveAt(e), rc.From, rc.Room})
	c := &w.checker.quorums
	for i, l := range c.left {
		if l.room == rc.Room && l.from == rc.From {
			if l.to != rc.Line {
				if slices.Contains(c.minted, minting{l.room, l.to}) {
					w.fail("S22", "room %s leaves %v for %v by wave %s, and slots were made on %v, to which it had left: %s", l.room, l.from, rc.Line, w.epoch(e), l.to, w.statuses())
				}
				l.wave = e
				c.over = append(c.over, l)
				c.left[i] = leaving{rc.Room, rc.From, rc.Line, e}
			}
			return
		}
	}
	c.left = append(c.left, leaving{rc.Room, rc.From, rc.Line, e})
}

// mints notes that slots of a room were made on its line.
func (w *world) mints(rc *eviction.RoomCommit) {
	c, m := &w.checker.quorums, minting{rc.Room, rc.Line}
	if rc.Mint > 0 && !slices.Contains(c.minted, m) {
		c.minted = append(c.minted, m)
	}
}

// checkQuorum compares a quorum with all others of its line.
func (w *world) checkQuorum(q quorum) {
	c := &w.checker.quorums
	own := &c.waves[q.wave]
	for _, l := range c.left {
		if q.room == "" && l.from == q.line && own.epoch.Num > l.wave.Num {
			w.fail("S22", "wave %s of line %v has a quorum, and room %s has left it by %s: %s", w.epoch(own.epoch), q.line, l.room, w.epoch(l.wave), w.statuses())
			return
		}
	}
	for _, l := range c.over {
		if q.room == "" && l.to == q.line && own.epoch.Num > l.wave.Num {
			w.fail("S22", "wave %s of line %v has a quorum, and room %s has left %v for it and by %s for another: %s", w.epoch(own.epoch), q.line, l.room, l.from, w.epoch(l.wave), w.statuses())
			return
		}
	}
	for _, o := range c.quorums {
		if o == q {
			return
		}
		if o.line != q.line || o.wave == q.wave || o.room != q.room && o.room != "" && q.room != "" {
			continue
		}
		other := &c.waves[o.wave]
		knows := (own.epoch.Num >= other.epoch.Num || w.forgotten(other)) && own.knew.has(o.wave) || own.epoch.Num <= other.epoch.Num && other.knew.has(q.wave)
		if !knows {
			w.fail("S22", "wave %s of line %v %s has a quorum, and so had %s %s, of which it does not know: %s",
				w.epoch(own.epoch), q.line, q.room, w.epoch(other.epoch), o.room, w.statuses())
			return
		}
	}
	c.quorums = append(c.quorums, q)
}

// forgotten reports whether the only node that was in a wave has crashed since, and has
// not saved its record meanwhile.
func (w *world) forgotten(k *knownWave) bool { return k.unsaved != none && w.lives[k.unsaved].over }

// saved notes that h's disk has what it knows.
func (w *world) saved(h *host) {
	for i := range w.checker.quorums.waves {
		if k := &w.checker.quorums.waves[i]; k.unsaved == h.life {
			k.unsaved = none
		}
	}
}
