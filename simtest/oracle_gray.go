package simtest

import (
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// L6, gray nodes. A node that lives, and answers all, too late for any wave, is not
// for the others to wait for: from the moment that its links are slow, waves stand
// for less than grayTime in any minute, 2 s by default. If it was the coordinator, the others must first find that it leads no more, once: that may take
// two detections and two deadlines besides. Waves stand while none commits for longer
// than a deadline and a period, which is what one may take; of such a gap all counts
// but the period.
//
// This is demanded where nothing else goes wrong, and of two nodes as long as they are
// two. A third one has no vote yet and follows the one that is well, which may be none of
// a quorum: as often as the gray one hears of that it leaves the lead to it for a while.

// grayCheck is what the oracle knows.
type grayCheck struct {
	host   int32
	on     bool
	judged bool
	pair   bool // it was one of two nodes: the other one may have no quorum, and it goes on
	led    bool // it was the coordinator when it turned gray, or one of two
	last   int64
	gaps   []gap
	ended  int64 // true time at which its links were fast again; 0: they are not, or none was gray
}

// gap is a time in which waves stood.
type gap struct{ from, to int64 }

// turnGray makes all links of h slow, so that no round trip fits a wave's deadline:
// 260 to 400 ms each way, for one of 500 ms. It needs somebody to be left out by, and
// the others, all of whom vote, a quorum of their own.
func (w *world) turnGray(h *host) {
	c := &w.checker.gray
	s := &h.seen.status
	if c.on || s.Grade < eviction.Primary || len(s.List) < 2 || len(s.List) < len(w.runningHosts()) || len(s.Voters.Names) < len(s.List) {
		return
	}
	f := &w.o.Faults
	pair := len(s.List) == 2
	*c = grayCheck{host: h.index, on: true, pair: pair, led: s.Leading || pair, last: w.now}
	c.judged = f.Every == 0 && f.Kills+f.Adds+f.Partitions+f.Standstills == 0 && w.o.Net.Loss == 0
	w.reached.n[reachGray]++
	if c.judged {
		w.reached.n[reachGrayAlone]++
	}
	w.mishap(h)
	w.afflict(h.index, 1)
	w.slowDown(h, w.o.Cluster.Deadline*52/100)
}

// slowDown has every message from and to h take so much longer, and up to half as
// much again.
func (w *world) slowDown(h *host, by time.Duration) {
	for i := range w.wires.places {
		w.wires.link(h.index, i).gray, w.wires.link(i, h.index).gray = by.Microseconds(), by.Microseconds()
	}
}

func (w *world) endGray() {
	if c := &w.checker.gray; c.on {
		c.on, c.ended = false, w.now
		w.afflict(c.host, -1)
		w.slowDown(&w.hosts[c.host], 0)
	}
}

// parts reports whether h is gray, or was at true time since or later.
func (c *grayCheck) parts(h *host, since int64) bool {
	return c.host == h.index && (c.on || c.ended > 0 && c.ended >= since)
}

// waveOfGray notes that h has installed a wave. Of two nodes the gray one may be the
// one that goes on.
func (w *world) waveOfGray(h *host, s *node.Status) {
	c := &w.checker.gray
	if !c.on || h.index == c.host && !c.pair || s.Grade < eviction.Primary {
		return
	}
	if w.now-c.last > w.waveTime() {
		c.gaps = append(c.gaps, gap{c.last + w.o.Cluster.Period.Microseconds(), w.now})
	}
	c.last = w.now
}

// waveTime is how long it may be from one wave's commit to the next.
func (w *world) waveTime() int64 { return (w.o.Cluster.Deadline + w.o.Cluster.Period).Microseconds() }

// grayTime is how long waves may stand for a node that is slow. It is left out by the
// first wave that fails after its second slow round trip. That one is asked for within three
// periods of the last commit, and takes up to 1.56 deadlines and twice what its links took
// before, 1.75 in all. Until then a wave fails in every period or, if that is longer,
// deadline, the first one a period after the last commit: no more than four of them. The one
// that ends it may take a deadline itself.
func (w *world) grayTime() time.Duration {
	c := &w.o.Cluster
	failed := min(4, math.Ceil(1.75+2*float64(c.Period)/float64(c.Deadline)))
	return time.Duration(failed)*max(c.Deadline, c.Period) + c.Deadline
}

// stood is for how long of the last minute waves have stood.
func (c *grayCheck) stood(now int64) (total int64) {
	for _, g := range c.gaps {
		total += max(0, g.to-max(g.from, now-time.Minute.Microseconds()))
	}
	return total
}

// checkGray runs with every sample.
func (w *world) checkGray() {
	c := &w.checker.gray
	if !c.on || !c.judged || c.pair && len(w.runningHosts()) > 2 {
		return
	}
	now := *c
	if w.now-c.last > w.waveTime() { // it is not over yet
		now.gaps = append(slices.Clone(c.gaps), gap{c.last + w.o.Cluster.Period.Microseconds(), w.now})
	}
	most := w.grayTime()
	if c.led {
		most += 2*w.o.Cluster.ExcludeAfter + 2*w.o.Cluster.Deadline
	}
	if stood := now.stood(w.now); stood >= most.Microseconds() {
		w.fail("L6", "%s is gray, and waves stood for %v of the last minute: %s", w.hosts[c.host].name, micros(stood), w.statuses())
	}
}
