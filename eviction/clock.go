package eviction

import "github.com/anteroom/anteroom/qpid"

// slewMax bounds how fast the pass clock follows the wall clock, in
// microseconds per second.
const slewMax = 500

// Clock is a node's pass time: boot time plus an offset that is fixed at the
// start and only slewed; it never goes back. A wall clock that steps does not
// move it, but puts the node in quarantine until a coordinator has measured it.
// Only a clock of which nothing that it timed is alive follows such a step, or one
// that is behind, see stoodStill.
type Clock struct {
	skew     int64 // µs: the largest step of the wall clock that is not a jump
	offset   int64 // pass time minus boot time
	last     Time
	now      int64
	slewedAt int64  // boot time up to which the offset was slewed
	hlc      uint64 // hybrid logical clock, Unix µs
	told     uint64 // the latest T that another node goes by

	quarantined bool
	probed      bool  // a coordinator has asked for a reading since
	jumpedAt    int64 // boot time at which it last jumped, or was found wrong
	leased      bool  // something that it timed may be alive
	given       int64 // the latest end of a pass that it timed
	counts      int64 // until then, pass time, something else may count that went by it: a join stamp, or a pass of another node or life
	vouched     bool  // a quorum took it for right, once since it last followed the wall clock
	agreed      bool  // others took it for right, and nobody has found it wrong, or doubted it, since
	off         bool  // others have found it wrong since it last timed a pass: it was no quorum by itself
	stoodTo     int64 // boot time at which it last followed the wall clock as the machine had stood still
}

func newClock(skew int64, now Time) Clock {
	return Clock{skew: skew, offset: now.Wall - now.Boot, last: now, now: now.Wall, slewedAt: now.Boot, jumpedAt: never, stoodTo: never}
}

// read advances the clock to now and reports whether the wall clock jumped, and
// whether the clock was set by it.
func (c *Clock) read(now Time) (jumped, set bool) {
	step := (now.Wall - now.Boot) - (c.last.Wall - c.last.Boot)
	jumped = step > c.skew || step < -c.skew
	if jumped {
		c.quarantined, c.probed, c.jumpedAt = true, false, now.Boot
	}
	ahead := now.Wall - (now.Boot + c.offset)
	room := (now.Boot - c.slewedAt) * slewMax / 1_000_000
	if room > 0 { // else what has elapsed counts at a later reading: there may be many
		c.slewedAt = now.Boot
	}
	bound := c.leased || c.agreed || ahead < 0 && !c.off && c.given+2*c.skew >= now.Wall // else a pass that is over would be good again
	switch {
	case !bound && (ahead > c.skew || ahead < -c.skew || c.quarantined && (4*ahead > c.skew || -4*ahead > c.skew)):
		// Of a clock that others find wrong a quarter is enough: theirs may be off to the other side.
		c.offset, c.now, c.vouched, c.agreed, set = c.offset+ahead, 0, false, false, true
		// What it promised itself by the wrong time binds nobody.
		c.hlc = max(c.told, min(c.hlc, uint64(max(0, now.Wall+2*c.skew))))
	case ahead > c.skew, ahead < -c.skew: // others agreed with it: it is the wall clock that is off
	case ahead > 0:
		c.offset += min(ahead, room)
	default:
		c.offset -= min(-ahead, room)
	}
	c.last = now
	c.now = max(c.now, now.Boot+c.offset)
	return jumped, set
}

// stamp returns the next join stamp: later than every stamp and every promise
// this node has made.
func (c *Clock) stamp() uint64 {
	c.hlc = max(uint64(c.now), c.hlc+1)
	c.counts = max(c.counts, int64(c.hlc))
	return c.hlc
}

// promise keeps the node from stamping anything at or before t.
func (c *Clock) promise(t uint64) { c.hlc = max(c.hlc, t) }

// distrust notes at boot time at that others have found the clock wrong.
func (c *Clock) distrust(at int64) {
	c.quarantined, c.agreed, c.off, c.jumpedAt = true, false, true, at
}

// behind reports whether another node's clock, which showed at some time ago, is
// further ahead of this one than two clocks that are right can be.
func (c *Clock) behind(at int64) bool { return at-c.now > 2*c.skew }

// doubt notes at boot time at that another node's clock is too far ahead: one of
// the two is off. It may be this one, if its machine stood still and the clocks of
// the machine with it, which no reading of them shows. Until a wave has measured
// it, it is as if it had jumped; and if it is the other one that is off, that takes
// no longer than one wave of a coordinator whose clock is right. Where there is no
// quorum of clocks that could tell, the machine's wall clock can, see read.
func (c *Clock) doubt(at int64) {
	c.quarantined, c.jumpedAt = true, at
	c.agreed = false
}

// stoodStill reports whether this clock is so far behind others as it is behind its wall
// clock: the machine stood still, the wall clock was set right since, and this one kept
// the time of before, as others agreed with that.
func (c *Clock) stoodStill(behind int64) bool {
	wall := c.last.Wall - (c.last.Boot + c.offset)
	return wall > c.skew && abs(wall-behind) <= c.skew
}

// followWall sets a clock that stood still by its wall clock, at once: what it timed is over
// the sooner. From here on nobody has vouched for it. It returns for how long it stood.
func (c *Clock) followWall() (stood int64) {
	stood = c.last.Wall - (c.last.Boot + c.offset)
	c.offset += stood
	c.now = max(c.now, c.last.Wall)
	c.vouched, c.agreed, c.stoodTo = false, false, c.last.Boot
	return stood
}

// beganAhead reports whether this clock is ahead of others by as much as of its wall clock: it
// began by that when it was wrong, and goes on alone. It may go back once all that went by it is over by
// that clock, too. No pass comes back, so that no slot is used twice: its own, those of other nodes whose
// clocks agreed with it, or those of an earlier life, whose clock may have begun ahead as well. And who
// joins from then on is stamped later than everybody who waits.
func (c *Clock) beganAhead(ahead int64) bool {
	wall := c.last.Wall - (c.last.Boot + c.offset)
	return wall < -c.skew && abs(wall-ahead) <= c.skew && max(c.given, c.counts)+2*c.skew < c.last.Wall
}

// reading is one measurement of another clock against the coordinator's.
type reading struct {
	offset int64 // µs ahead
	err    int64 // at most this wrong
	ok     bool
}

func measure(sent, received, clock int64) reading {
	half := (received - sent) / 2
	return reading{offset: clock - (sent + half), err: half, ok: true}
}

// median returns the middle of offsets, which include this clock's own 0; of two
// middles the one nearer to this clock, unless it stood still while the other went on, or
// began ahead.
func (c *Clock) median(sorted []int64) int64 {
	n := len(sorted)
	lo, hi := sorted[(n-1)/2], sorted[n/2]
	if abs(lo) <= abs(hi) && !c.stoodStill(hi) || c.beganAhead(lo) {
		return lo
	}
	return hi
}

func abs(x int64) int64 { return max(x, -x) }

// draw gives ticket id its place in the draw of one epoch: the same on every
// node, unrelated to its place in any other epoch's draw.
func draw(key qpid.Epoch, id qpid.ItemID) qpid.Weight {
	h := mix(key.Num + 0x9e3779b97f4a7c15)
	for i := range len(key.Coordinator) {
		h = mix(h ^ uint64(key.Coordinator[i]))
	}
	for i := 0; i < 16; i += 8 {
		var x uint64
		for _, b := range id[i : i+8] {
			x = x<<8 | uint64(b)
		}
		h = mix(h ^ x)
	}
	return qpid.Weight{Stamp: h >> 1, ID: id}
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
