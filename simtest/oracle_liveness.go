package simtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// quorumKnows reports whether running nodes that know are a quorum of the
// newest voters among them, on some line that has begun or may.
func (w *world) quorumKnows() bool {
	for i := range w.hosts {
		h := &w.hosts[i]
		if !h.up() || !h.seen.status.Knows {
			continue
		}
		line, voters := h.seen.status.Line, h.seen.status.Voters
		for j := range w.hosts {
			if s := &w.hosts[j].seen.status; w.hosts[j].up() && s.Knows && s.Line == line && newer(s.Voters, voters) {
				voters = s.Voters
			}
		}
		if w.knowHalf(line, voters.Names) && (voters.Next == nil || w.knowHalf(line, voters.Next)) && w.mayBegin(voters) {
			return true
		}
	}
	return false
}

// mayBegin reports whether a line with these voters has begun, or the nodes of all its
// founders run: nobody can tell what one that never returns has founded, and with whom.
func (w *world) mayBegin(v eviction.Voters) bool {
	return v.At != qpid.Epoch{} || !slices.ContainsFunc(v.Founders, func(f eviction.Member) bool {
		return !slices.ContainsFunc(w.hosts, func(h host) bool { return h.name == f.Name && h.up() })
	})
}

// L1 and L3, one view. When the world has settled, every node that runs has
// just taken part in the same wave of all of them.
func (w *world) checkSettled() {
	for r := range w.checker.lastCall {
		w.checker.lastCall[r] = w.now // from here on they are due
	}
	if !w.quorumKnows() && !w.mayFound() {
		if w.checker.crashes == 0 {
			w.fail("L5", "nobody crashed and no quorum knows of the cluster: %s", w.statuses())
			return
		}
		w.reached.n[reachStuck]++
		w.printf("the quorum is lost for good")
		return
	}
	w.checkOneView()
}

// passClockRight reports whether a host's pass clock is within its bounds: that of one which
// stood still stays behind, while its wall clock is right, until somebody finds it so.
func (w *world) passClockRight(h *host) bool {
	off := w.passClockOff(h)
	return max(off, -off) <= w.o.Cluster.MaxSkew.Microseconds()
}

// passClockOff is how far a host's pass clock is ahead of true time.
func (w *world) passClockOff(h *host) int64 {
	return h.seen.status.Clock + h.clock.boot(w.now) - h.seen.status.ClockAt - wallAt(w.now)
}

// isOff reports whether a host's pass clock is so far off, or from the median of all, that
// others may leave it out: they measure it give or take half a round trip. It goes by the
// wall clock again when nothing that it timed is alive.
func (w *world) isOff(h *host) bool {
	var all []int64
	for i := range w.hosts {
		if o := &w.hosts[i]; o.up() {
			all = append(all, w.passClockOff(o))
		}
	}
	slices.Sort(all)
	most := int64(0)
	for _, from := range []int64{0, all[(len(all)-1)/2], all[len(all)/2]} {
		off := w.passClockOff(h) - from
		most = max(most, off, -off)
	}
	if most+w.o.Net.Latency.Max.Microseconds() <= w.o.Cluster.MaxSkew.Microseconds() {
		return false
	}
	w.checker.offAt[h.index] = w.now
	if h.seen.status.Leading || h.name == w.checker.lead {
		w.checker.offLed = w.now
	}
	return true
}

// anyOff reports whether a host's pass clock is so far off, or was within the last
// so many microseconds.
func (w *world) anyOff(within int64) bool {
	for i := range w.hosts {
		h := &w.hosts[i]
		if at := w.checker.offAt[h.index]; h.up() && (w.isOff(h) || at > 0 && w.now-at <= within) {
			return true
		}
	}
	return false
}

func (w *world) checkOneView() {
	if w.anyOff(w.rejoinTime()) {
		return // the others may go on without it, and measure it again when it is right
	}
	first := (*host)(nil)
	n := 0
	for i := range w.hosts {
		if w.hosts[i].up() {
			n++
			if first == nil {
				first = &w.hosts[i]
			}
		}
	}
	for i := range w.hosts {
		h := &w.hosts[i]
		switch {
		case !h.up():
		case h.seen.status.Grade < eviction.Primary:
			w.fail("L1", "%s has no primary lease: %s", h.name, w.statuses())
		case len(h.seen.status.List) != n:
			w.fail("L3", "%s sees %d of %d nodes in waves: %s", h.name, len(h.seen.status.List), n, w.statuses())
		}
	}
}

// mayFound reports whether all nodes that run were told how many to expect and
// as many are here, so that a cluster which forgot everything begins anew.
func (w *world) mayFound() bool {
	need, n := 0, 0
	for i := range w.hosts {
		h := &w.hosts[i]
		if !h.up() {
			continue
		}
		n++
		need = max(need, h.expect)
		if h.seen.status.Line.Founded() {
			return false
		}
	}
	return need > 0 && n >= need
}

// rejoinTime is how long it takes at most until a node whose clock is right, and which
// answers, has installed a wave.
func (w *world) rejoinTime() int64 {
	c := w.o.slowest()
	return (c.Deadline + 2*c.Period + 200*time.Millisecond).Microseconds() + 8*w.o.Net.Latency.Max.Microseconds()
}

// noteClocks notes with every sample whose pass clock is off.
func (w *world) noteClocks() {
	for i := range w.hosts {
		if h := &w.hosts[i]; h.up() {
			w.isOff(h)
		}
	}
}

// checkProgress runs with every sample once the world has settled.
func (w *world) checkProgress() {
	w.noteClocks()
	if w.phase < settled || w.reached.n[reachStuck] > 0 {
		return
	}
	bound, led := w.rejoinTime(), w.checker.offLed
	for i := range w.hosts {
		h := &w.hosts[i]
		if !h.up() {
			continue
		}
		since, off := w.now-w.checker.installs[h.index], w.isOff(h) || len(w.hosts) == 2 && w.anyOff(bound) // of two nobody can tell whose clock it is
		if since <= bound || off && since <= w.wholeTime() || w.now-w.checker.offAt[h.index] <= bound {
			continue
		}
		if takenOver := bound + w.o.slowest().ExcludeAfter.Microseconds(); since <= takenOver && led > 0 && w.now-led <= takenOver {
			continue // others take over
		}
		w.fail("L1", "%s has installed no wave for %v: %s", h.name, micros(since), w.statuses())
		return
	}
	for r := range w.o.Rooms {
		w.checkCalls(r)
	}
}

// L2, no idle slots. While visitors wait and slots are free, somebody is called
// at least every few periods. Paced rooms, rooms before their event and rooms
// that hold a cut after a cold start may wait longer, and a room that stops
// while a voter is missing waits for its operator.
func (w *world) checkCalls(r int) {
	c := w.o.slowest()
	free, waiting, target := 0, 0, 0
	for i := range w.hosts {
		if h := &w.hosts[i]; h.up() {
			rs := &h.seen.rooms[r]
			free, waiting, target = free+max(0, rs.Free), waiting+rs.Queued, rs.Now.Target
			if w.excused(rs) || rs.Room.OnPartition == eviction.Stop && w.anyGone() {
				target = 0
			}
		}
	}
	if free == 0 || waiting == 0 || target == 0 {
		w.checker.lastCall[r] = w.now
		return
	}
	patience := 5*c.Period + 2*c.Deadline + 2*time.Second + w.o.Rooms[r].Refresh*11/10
	if since := w.now - w.checker.lastCall[r]; since > patience.Microseconds() {
		w.fail("L2", "room %s: %d slots are free and %d visitors wait, and nobody was called for %v: %s",
			w.o.Rooms[r].Name, free, waiting, micros(since), w.ledgers(r))
	}
}

// L3, whole. D after the last fault every room has exactly its limit of slots.
func (w *world) checkWhole() {
	if w.reached.n[reachStuck] > 0 {
		return
	}
	w.checkOneView()
	if w.anyOff(w.wholeTime()) {
		return
	}
	for r := range w.o.Rooms {
		c := &w.checker.rooms[r]
		if w.o.After == Measure && c.shares {
			continue // nobody has reclaimed what was lost
		}
		owned, used, target := 0, 0, 0
		var line eviction.Line
		for i := range w.hosts {
			if h := &w.hosts[i]; h.up() {
				rs := &h.seen.rooms[r]
				owned, used, target, line = owned+rs.Owned, used+rs.Used, rs.Now.Target, rs.Line
			}
		}
		if owned == target {
			continue // a void that one node alone has known and died with is none
		}
		if inside := w.supply(r, line, c.voided(line)); inside != target && !(inside > target && owned-used <= 0) {
			w.fail("L3", "room %s: %d slots, %d of them with nodes that run and %d used, the limit is %d: %s",
				c.name, inside, owned, used, target, w.ledgers(r))
		}
	}
}

// L3, drained: everybody got in or gave up, nothing is used and nothing waits.
func (w *world) checkDrained() {
	if w.reached.n[reachStuck] > 0 {
		return
	}
	if w.crowd.active > 0 {
		w.fail("L3", "%d visitors are not done %v after the last fault: %s", w.crowd.active, w.o.Limit, w.statuses())
		return
	}
	if w.o.After == Measure {
		return
	}
	for r := range w.o.Rooms {
		owned, target := 0, 0
		for i := range w.hosts {
			h := &w.hosts[i]
			if !h.up() {
				continue
			}
			rs := &h.seen.rooms[r]
			owned, target = owned+rs.Owned, rs.Now.Target
			if rs.Used != 0 || rs.Queued != 0 || rs.Called != 0 || rs.OnSite != 0 || rs.Parked != 0 {
				w.fail("L3", "room %s at %s when all are gone: %d used, %d queued, %d called, %d on site, %d parked",
					rs.Room.Name, h.name, rs.Used, rs.Queued, rs.Called, rs.OnSite, rs.Parked)
			}
		}
		if owned != target && !w.anyOff(w.wholeTime()) {
			w.fail("L3", "room %s when all are gone: %d slots, the limit is %d: %s", w.o.Rooms[r].Name, owned, target, w.ledgers(r))
		}
	}
}

// L4: every deleteMin was answered, unless its node went down.
func (w *world) checkTakes() {
	for _, t := range w.checker.takes {
		if !t.answered && !w.lives[t.life].over {
			w.fail("L4", "%s never heard of %v, called at %v", w.name(w.lives[t.life].member), t.op, micros(t.at))
		}
	}
}

// newer reports whether v was decided, or proposed, after o.
func newer(v, o eviction.Voters) bool {
	return v.Version > o.Version || v.Version == o.Version && v.Next != nil && o.Next == nil
}

func (w *world) knowHalf(line eviction.Line, names []qpid.NodeID) bool {
	return half(names, func(name qpid.NodeID) bool { return w.knows(line, name) })
}

// half reports whether those that count are a quorum of the voters: more than half of them,
// or half with the first.
func half(voters []qpid.NodeID, counts func(qpid.NodeID) bool) bool {
	n := 0
	for _, v := range voters {
		if counts(v) {
			n++
		}
	}
	return 2*n > len(voters) || 2*n == len(voters) && n > 0 && counts(voters[0])
}

// statuses describes all nodes.
func (w *world) statuses() string {
	var b strings.Builder
	for i := range w.hosts {
		h := &w.hosts[i]
		if !h.up() {
			fmt.Fprintf(&b, "\n  %s is down, gone %t", h.name, h.gone)
			continue
		}
		s := &h.seen.status
		fmt.Fprintf(&b, "\n  %s %v epoch %s installed %s lease %v line %d/%s knows %t voters %d %v next %v list [%s] frozen %t leads %t quarantined %t %s",
			w.name(w.lives[h.life].member), s.Grade, w.epoch(s.Epoch), w.epoch(s.Installed), micros(s.LeaseUntil-h.clock.boot(w.now)), s.Line.Stamp, s.Line.By,
			s.Knows, s.Voters.Version, s.Voters.Names, s.Voters.Next, w.members(s.List), s.Frozen, s.Leading, s.Quarantined, s.Waiting)
	}
	return b.String()
}

// anyGone reports whether some node never returns.
func (w *world) anyGone() bool {
	for i := range w.hosts {
		if w.hosts[i].gone {
			return true
		}
	}
	return false
}
