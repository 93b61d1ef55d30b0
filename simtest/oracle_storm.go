package simtest

import (
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// L1 while faults last, one view. Wherever well hosts have reached one another for
// stormTime, each with the same process all the while, and are a quorum of the newest
// voters that they know of, on a line that has begun, one of them has installed a primary wave within that
// time, whatever goes on among the others, or between the others and them.
//
// L2 while faults last is at checkStormCalls.

// stormCheck is what the oracles know of it.
type stormCheck struct {
	well    []int64           // by host: true time since when it is well; -1: it is not
	lives   []int32           // by host: its life then
	pairs   [][]int64         // by two hosts, the earlier one first: true time since when they reach each other; -1: they do not
	primary []int64           // by host: true time of its last primary wave
	list    []eviction.Member // of the waves of those who are together
	idle    []int64           // by room: true time since when a call is due; -1: none is
}

func (c *stormCheck) init(rooms, places int) {
	c.well, c.lives, c.primary = slices.Repeat([]int64{-1}, places), slices.Repeat([]int32{none}, places), make([]int64, places)
	c.pairs, c.idle = make([][]int64, places), slices.Repeat([]int64{-1}, rooms)
	for i := range c.pairs {
		c.pairs[i] = slices.Repeat([]int64{-1}, places)
	}
}

// isWell reports whether a host can do its part: its process runs, its clocks are right, as
// noteClocks has just found, and its disk takes writes.
func (w *world) isWell(h *host) bool {
	return h.running() && !h.leaving && !h.stopped && !h.deaf && !h.disk.failing && h.disk.unsaved == nil && !h.disk.visits.hung && w.clockRight(h) && w.checker.offAt[h.index] < w.now &&
		!(w.checker.gray.on && w.checker.gray.host == h.index)
}

// reachEachOther reports whether two hosts can: both ways, as fast as links are, and the
// gossip of each has told it of the other.
func (w *world) reachEachOther(a, b *host) bool {
	for _, l := range []*link{w.wires.link(a.index, b.index), w.wires.link(b.index, a.index)} {
		if l.cut > 0 || l.slow > 0 || l.gray > 0 {
			return false
		}
	}
	return w.gossip.pair(a.index, b.index).life == b.life && w.gossip.pair(b.index, a.index).life == a.life
}

// followWell notes since when hosts are well and reach each other, as seen by the samples.
func (w *world) followWell() {
	c := &w.checker.storm
	for i := range w.hosts {
		h := &w.hosts[i]
		switch {
		case !h.up() || !w.isWell(h):
			c.well[i] = -1
		case c.well[i] < 0 || c.lives[i] != h.life:
			c.well[i], c.lives[i] = w.now, h.life
		}
		for j := range w.hosts[:i] {
			switch at := &c.pairs[j][i]; {
			case c.well[i] < 0 || c.well[j] < 0 || !w.reachEachOther(h, &w.hosts[j]):
				*at = -1
			case *at < 0:
				*at = w.now
			}
		}
	}
}

// company returns hosts that have been well since true time since, and have reached one
// another; first is among them, if it has been well, and after it whoever comes first.
func (w *world) company(first int, since int64) (set []int) {
	c := &w.checker.storm
	for i := range w.hosts {
		j := (first + i) % len(w.hosts)
		apart := func(k int) bool {
			at := c.pairs[min(j, k)][max(j, k)]
			return at < 0 || max(at, c.well[j], c.well[k]) > since
		}
		if c.well[j] >= 0 && c.well[j] <= since && !slices.ContainsFunc(set, apart) {
			set = append(set, j)
		}
	}
	return set
}

// quorate reports on which line, if any, hosts are a quorum of the newest voters that one of
// them knows of: of those of whom only others know they cannot tell that they are enough.
func (w *world) quorate(set []int) (eviction.Line, bool) {
	for _, i := range set {
		s := &w.hosts[i].seen.status
		if !s.Knows {
			continue
		}
		line, voters := s.Line, s.Voters
		for _, j := range set {
			if o := &w.hosts[j].seen.status; o.Knows && o.Line == line && newer(o.Voters, voters) {
				voters = o.Voters
			}
		}
		votes := func(name qpid.NodeID) bool {
			return slices.ContainsFunc(set, func(j int) bool {
				h := &w.hosts[j]
				return h.name == name && h.seen.status.Knows && h.seen.status.Line == line && w.votes(h)
			})
		}
		if voters.At != (qpid.Epoch{}) && half(voters.Names, votes) && (voters.Next == nil || half(voters.Next, votes)) {
			return line, true
		}
	}
	return eviction.Line{}, false
}

// stormTime is how long it may take until hosts that can have a primary wave, beside so many
// others that need not be well. One coordinator after the other that is silent is waited for
// exclude_after, by rank, and each that takes over asks around for a deadline; two more of both for
// members that make waves fail before they are left out, or come in meanwhile. Of an older
// line that somebody knows of they wait for a lease. Then a wave takes a period,
// and up to two more until somebody is asked again.
func (w *world) stormTime(others int) time.Duration {
	c := w.o.slowest()
	return time.Duration(others+2)*(c.ExcludeAfter+c.Deadline) + c.Lease + 3*c.Period + 8*w.o.Net.Latency.Max + w.lossTime()
}

// lossTime is how long so many waves in a row take that one of them is complete but once in
// a million times: each is three messages for every node, and fails if one of them is lost.
func (w *world) lossTime() time.Duration {
	if w.o.Net.Loss == 0 {
		return 0
	}
	c := w.o.slowest()
	complete := math.Pow(1-float64(w.o.Net.Loss)/10_000, float64(3*len(w.hosts)))
	return time.Duration(math.Ceil(math.Log(1e-6)/math.Log(1-complete))) * max(c.Deadline, c.Period)
}

// checkStorm runs with every sample until the world has settled.
func (w *world) checkStorm() {
	if w.phase >= settled {
		return
	}
	w.followWell()
	c := &w.checker.storm
	for first := range w.hosts {
		set := w.company(first, w.now-w.stormTime(0).Microseconds())
		most := w.stormTime(len(w.hosts) - len(set)).Microseconds()
		set = w.company(first, w.now-most)
		line, ok := w.quorate(set)
		if !ok {
			continue
		}
		w.reached.n[reachStormWaves]++
		last := int64(0)
		for _, i := range set {
			last = max(last, c.primary[i])
		}
		if w.now-last > most {
			w.fail("L1", "no primary wave for %v, where %s are well and a quorum: %s", micros(w.now-last), w.namesOf(set), w.statuses())
			return
		}
		w.checkStormCalls(set, line)
		return
	}
	w.noCallsDue()
}

func (w *world) namesOf(set []int) (names []qpid.NodeID) {
	for _, i := range set {
		names = append(names, w.hosts[i].name)
	}
	return names
}

func (w *world) noCallsDue() {
	for r := range w.checker.storm.idle {
		w.checker.storm.idle[r] = -1
	}
}

// checkStormCalls is L2 while faults last, among hosts of checkStorm: while visitors wait at them and
// slots are free there, somebody is called. It is asked where waves are of these
// hosts alone, and have been so all the while: who waits at another one may be next in
// line, and those slots are for them. What excuses a room is as in checkCalls. Beyond
// what that allows, waves may fail for a while, the people of those who were lost are
// waited for, and who does not check in has their place, and is not called, until their ticket runs out.
func (w *world) checkStormCalls(set []int, line eviction.Line) {
	c := &w.checker.storm
	list := w.hosts[set[0]].seen.status.List
	alone := len(list) == len(set)
	for _, i := range set {
		h := &w.hosts[i]
		alone = alone && slices.Contains(list, w.lives[h.life].member) && slices.Equal(h.seen.status.List, list)
	}
	if !alone || !slices.Equal(c.list, list) {
		w.noCallsDue()
	}
	if c.list = list; !alone {
		return
	}
	s := w.o.slowest()
	for r := range w.o.Rooms {
		if !w.callDue(set, line, r) {
			c.idle[r] = -1
			continue
		}
		if c.idle[r] < 0 {
			c.idle[r] = w.now
		}
		o := &w.o.Rooms[r]
		patience := 5*s.Period + 4*s.Deadline + s.ExcludeAfter + 2*time.Second + o.Refresh*22/10 + o.TicketTTL + w.lossTime()
		since := w.now - max(c.idle[r], w.checker.lastCall[r])
		w.reached.n[reachStormCalls]++
		if since > patience.Microseconds() {
			w.fail("L2", "room %s: slots are free and visitors wait at %s, and nobody was called for %v: %s", o.Name, w.namesOf(set), micros(since), w.ledgers(r))
			return
		}
	}
}

// callDue reports whether somebody waits in room r at hosts of a set for whom there is a slot.
func (w *world) callDue(set []int, line eviction.Line, r int) bool {
	free, waiting := 0, 0
	for _, i := range set {
		h := &w.hosts[i]
		rs := &h.seen.rooms[r]
		if !w.mayAct(h, r) || rs.Line != line || !admits(rs.Room.OnPartition, h.seen.status.Grade) || w.excused(rs) {
			return false
		}
		free, waiting = free+max(0, rs.Free), waiting+rs.Queued
	}
	return free > 0 && waiting > 0
}

// excused reports whether a room calls nobody for a while, or for good, by what it is set to.
func (w *world) excused(rs *node.RoomStatus) bool {
	return rs.Now.Target == 0 || rs.Now.NewPerMinute > 0 || rs.Now.Event.Start > wallAt(w.now)-1_000_000 || rs.Now.Method >= eviction.Passthrough ||
		rs.Room.Mode == eviction.Held || rs.Room.Mode == eviction.Deleted || rs.Closed
}
