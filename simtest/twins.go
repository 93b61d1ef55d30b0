package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// twin cuts a node off and starts another one under its name. What the first had on
// disk is not there.
func (w *world) twin(t *trouble) {
	w.reached.n[reachTwin]++
	t.at = without(t.at, t.host)
	w.split(t, []int32{t.host}, t.at)
	h := w.addHost(0)
	h.name = w.hosts[t.host].name
	w.cutBoth(t, t.host, h.index)
	w.start(h)
	t.at = append(t.at, h.index)
}

// chooseSides has some of the others reach the first node of a name alone, and the rest
// the second.
func (w *world) chooseSides(t *trouble) bool {
	if t.stage > 1 {
		return false
	}
	for _, c := range t.cuts {
		w.mend(c.from, c.to)
	}
	t.cuts = t.cuts[:0]
	k := w.rngFaults.IntN(len(t.at))
	w.split(t, append([]int32{t.host}, t.at[:k]...), t.at[k:])
	return true
}

// leaveLast has whoever had the name before the node that t started go for good: all of
// them, since a second one may have been started for the same first one meanwhile. Of two
// nodes of a name that find out about each other one ends, see package membership.
func (w *world) leaveLast(t *trouble) {
	last := &w.hosts[t.at[len(t.at)-1]]
	for i := range w.hosts[:last.index] {
		if h := &w.hosts[i]; h.name == last.name {
			w.goesForGood(h, t.kind.String())
		}
	}
}

// isTwin reports whether an earlier host has the name of h, and runs.
func (w *world) isTwin(h *host) bool {
	for i := range w.hosts[:h.index] {
		if o := &w.hosts[i]; o.name == h.name && o.up() {
			return true
		}
	}
	return false
}

// met notes whom a gather lists that h sends or gets, for votes.
func (w *world) met(h *host, g *eviction.Gather) {
	if h.since == 0 {
		h.since = g.Epoch.Num
	}
	for _, m := range listOf(h, g) {
		if o := &w.hosts[w.lives[w.lifeOf(m)].host]; o != h {
			o.metIn = max(o.metIn, g.Epoch.Num)
		}
	}
}

// votes reports whether h stands for its name: no wave has listed another host of that
// name since the last primary one that h was in; of two waves of one number the order of
// the lives decides. A quorum that has lost the lives that
// vote is lost for good, as one that forgot is.
func (w *world) votes(h *host) bool {
	return !slices.ContainsFunc(w.hosts, func(o host) bool {
		if o.index == h.index || o.name != h.name {
			return false
		}
		return o.metIn > h.since || o.metIn == h.since && w.bootOf(&o) > w.bootOf(h)
	})
}

// bootOf names the last life of h, whether it runs or not; 0: it has had none.
func (w *world) bootOf(h *host) uint64 {
	for i := len(w.lives) - 1; i >= 0; i-- {
		if w.lives[i].host == h.index {
			return w.lives[i].member.Boot
		}
	}
	return 0
}

// knows reports whether a host that runs knows of the line and votes under the name.
func (w *world) knows(line eviction.Line, name qpid.NodeID) bool {
	return slices.ContainsFunc(w.hosts, func(h host) bool {
		return h.name == name && h.up() && h.seen.status.Knows && h.seen.status.Line == line && w.votes(&h)
	})
}
