package eviction

import (
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// company is with whom a node was in waves, and with whom it should have been.
//
// Invariant: met is by member, one sight of each.
// Invariant: who is cut off has somebody in unsynced.
type company struct {
	met        []sight
	metAt      []int    // where in met the members of the last gather's list were, see metIn
	ranked     int64    // see rank; -1: find out
	unsynced   []Member // who may have taken people of this node over
	unsyncedAt int64
	cutOff     bool  // has heard of none of them since it came back
	lostAt     int64 // boot time of the last wave with whoever was lost last; never: nobody was
}

// sight is when this node was last in a wave with a member.
type sight struct {
	member Member
	at     int64  // boot time
	epoch  uint64 // of that wave, or of one that this node may have forgotten
	left   bool
	wave   uint64 // of that wave, as far as this node knows
	guess  bool   // at and epoch are as late as they can be: an earlier life was in that wave
	first  int64  // boot time: it ran by then
}

func (n *Node) findMet(m Member) (int, bool) {
	return slices.BinarySearchFunc(n.met, m, func(s sight, m Member) int { return s.member.Compare(m) })
}

// metIn finds the member at place k of a list. Lists seldom change, nor does met: it is
// most often where it was.
func (n *Node) metIn(list []Member, k int) (int, bool) {
	if len(n.metAt) < len(list) {
		n.metAt = make([]int, len(list))
	}
	if i := n.metAt[k]; i < len(n.met) && n.met[i].member == list[k] {
		return i, true
	}
	i, ok := n.findMet(list[k])
	n.metAt[k] = i
	return i, ok
}

// saw notes that m was in a wave with this node at boot time at.
func (n *Node) saw(m Member, at int64, epoch uint64, left bool) {
	i, ok := n.findMet(m)
	if !ok {
		n.met = slices.Insert(n.met, i, sight{m, at, epoch, left, 0, false, at})
		n.ranked = -1
		return
	}
	s := &n.met[i]
	if left && !s.left {
		s.left, n.ranked = true, -1
	}
	if epoch > s.epoch || s.guess { // an old wave heard of again is no newer for it: ages travel, and must not shrink on the way
		s.at, s.epoch, s.guess = max(s.at, at), max(s.epoch, epoch), false
	}
}

// lose notes since when those are missing who are in no list from now on.
func (n *Node) lose(list []Member) {
	for _, m := range n.list {
		if i, ok := n.findMet(m); ok && !n.met[i].left && m != n.self.Member && !slices.Contains(list, m) {
			n.lostAt = max(n.lostAt, n.met[i].at)
		}
	}
}

// LostAt returns when a member was last in a wave with this node that was not in the
// following ones: what is asked of it since may have no answer yet. It is a boot time, far
// in the past if nobody was lost.
func (n *Node) LostAt() int64 { return n.lostAt }

// SeenAt returns when m was last in a wave with this node, a boot time, far in the past if
// it was in none.
func (n *Node) SeenAt(m Member) int64 {
	if i, ok := n.findMet(m); ok {
		return n.met[i].at
	}
	return never
}

// sawWave notes that m was in wave number num for certain.
func (n *Node) sawWave(m Member, num uint64) {
	if i, ok := n.findMet(m); ok {
		n.met[i].wave = max(n.met[i].wave, num)
	}
}

// recall ends what this node only guesses: by what a quorum remembers, or for good.
func (n *Node) recall(others bool) {
	n.restored = false
	before := len(n.met)
	if others {
		n.met = slices.DeleteFunc(n.met, func(s sight) bool { return s.guess })
	}
	if len(n.met) < before {
		n.ranked = -1
	}
	for i := range n.met {
		n.met[i].guess = false
	}
}

// miss notes who of list may have taken people of this node over: those that
// it was in no wave with for about exclude_after. If that is everyone, it was
// cut off, and calls nobody until it has heard from them.
func (n *Node) miss(now Time, list []Member) {
	if !n.line.Founded() {
		return // nobody has joined here yet
	}
	// Others do not take anybody over before the longest exclude_after that they know of,
	// which this node's own is among, from a wave on whose deadline was at most this.
	exclude := micros(n.c.ExcludeAfter)
	soonest := max(exclude-n.c.waits.Deadline, exclude/2)
	missed, others := 0, 0
	for k, m := range list {
		if m.Name == n.self.Name {
			continue // an earlier life, too, that somebody has not heard the end of: nobody answers for it
		}
		others++
		i, ok := n.metIn(list, k)
		if ok && now.Boot-n.met[i].at < soonest {
			continue
		}
		if !slices.Contains(n.unsynced, m) {
			n.unsynced = append(n.unsynced, m)
		}
		n.unsyncedAt = now.Boot
		missed++
	}
	n.cutOff = n.cutOff || missed > 0 && missed == others
}

// Synced notes that m has said so.
func (n *Node) Synced(m Member) {
	n.unsynced = slices.DeleteFunc(n.unsynced, func(u Member) bool { return u == m })
	n.cutOff = n.cutOff && len(n.unsynced) > 0
}

// Listed reports whether m took part in the last committed wave.
func (n *Node) Listed(m Member) bool { return m == n.self.Member || slices.Contains(n.list, m) }

// Members lists who took part in the last committed wave. It must not be changed.
func (n *Node) Members() []Member { return n.list }

// MemberOf returns the listed member called name.
func (n *Node) MemberOf(name qpid.NodeID) (Member, bool) {
	for _, m := range n.list {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// Aside reports whether this node has been in no primary wave for as long as it takes
// until others may take its people over, or its clock is off: they may have gone on
// without it.
func (n *Node) Aside(now Time) bool {
	return n.grade < Primary || !n.Clear() || now.Boot-n.installedAt >= n.c.waits.Exclude
}

// IsAside is Aside at the last time that the node was told.
func (n *Node) IsAside() bool { return n.Aside(n.clock.last) }

// LongestExclude is the longest exclude_after of all nodes that this one reckons with, in
// microseconds.
func (n *Node) LongestExclude() int64 { return n.c.waits.Exclude }

// Gone reports whether m may be taken for lost: it was not in a wave with this
// node for the longest exclude_after of all, or it never was and nobody believes it alive.
func (n *Node) Gone(m Member, now Time) bool {
	in, ok := n.GoneIn(m, now)
	return ok && in == 0
}

// GoneIn returns in how long m, if it stays away, may be taken for lost, in
// microseconds. With !ok time alone does not make it so.
func (n *Node) GoneIn(m Member, now Time) (in int64, ok bool) {
	if n.Listed(m) {
		return 0, false
	}
	if i, ok := n.findMet(m); ok {
		if n.met[i].left {
			return 0, true
		}
		return max(0, n.met[i].at+n.c.waits.Exclude-now.Boot), true
	}
	return 0, n.view.index(m) < 0
}

// Met returns the members that were in a wave with this node and are not
// forgotten yet.
func (n *Node) Met() []Member {
	met := make([]Member, len(n.met))
	for i := range n.met {
		met[i] = n.met[i].member
	}
	return met
}

// HasMet reports whether m was in a wave with this node and is not forgotten yet.
func (n *Node) HasMet(m Member) bool {
	_, ok := n.findMet(m)
	return ok
}

// Absent returns those whom it met, who are not in the list, did not take their leave
// and have no later life there: who runs, if at all, at another side of a split.
func (n *Node) Absent() (gone []Member) {
	for i := range n.met {
		if m := n.met[i].member; !n.met[i].left && !n.Listed(m) && !succeeded(n.list, m) {
			gone = append(gone, m)
		}
	}
	return gone
}

// hasLeft reports whether m has said goodbye, as far as this node knows.
func (n *Node) hasLeft(m Member) bool {
	i, met := n.findMet(m)
	return met && n.met[i].left
}
