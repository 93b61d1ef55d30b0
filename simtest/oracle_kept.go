package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// keptAfter is for how long a home and an heir have had each other in the waves when what
// the home says of what the heir keeps is held to be true, in µs: longer than anything
// takes that either has to hear.
const keptAfter = 3_000_000

// S24, kept places. Whoever waits at a node and counts there as kept by another is kept
// by it, while both have had each other in all waves for some time: else a death of the
// node would pass them over, and no wave would wait for them.
func (w *world) checkKept() {
	if w.o.Cluster.Copies == 0 {
		return
	}
	for i := range w.hosts {
		h := &w.hosts[i]
		if !h.running() || w.now-h.apartAt < keptAfter {
			continue
		}
		for r := range w.checker.rooms {
			name := w.checker.rooms[r].name
			h.n.Copied(name, func(id qpid.ItemID, heir eviction.Member) {
				l := &w.lives[w.lifeOf(heir)]
				o := &w.hosts[l.host]
				if l.over || !o.running() || w.now-o.apartAt < keptAfter || !slices.Contains(o.seen.status.List, h.member(w)) {
					return
				}
				w.reached.n[reachKept]++
				if !o.n.Keeps(name, h.member(w), id) {
					w.fail("S24", "%s room %s: takes ticket %d for kept at %s, which does not keep it", h.name, name, w.ticketOf(id), o.name)
				}
			})
		}
	}
}

// S24, who is kept by nobody. A node that says in a wave where those begin whom nobody
// else keeps leaves none of them out, but for who has joined since T: the cut does not pass
// them. One that asks others adds up what it heard.
func (w *world) checkBare(h *host, b *eviction.Reply) {
	if len(b.Nodes) != 1 || h.seen.gatherAt != h.clock.boot(w.now) { // what it has said was true when it was asked
		return
	}
	for i := range b.Rooms {
		for _, n := range b.Rooms[i].Nodes {
			if first := h.n.FirstUnkept(b.Rooms[i].Room); n.Bare > first && first <= h.seen.gatherT {
				w.fail("S24", "%s room %s: says that those whom nobody keeps begin at %d, and one waits at %d", h.name, b.Rooms[i].Room, int64(n.Bare)-epochWall, int64(first)-epochWall)
			}
		}
	}
}

// S24, until another has it. No heir is told to forget a place that it is the one to keep.
func (w *world) checkGone(h *host, to eviction.Member, b *eviction.Copies) {
	for i := range b.Rooms {
		for _, id := range b.Rooms[i].Gone {
			if h.n.KeptBy(b.Rooms[i].Room, id) == to {
				w.fail("S24", "%s room %s: tells %v to forget ticket %d, whose place that one keeps", h.name, b.Rooms[i].Room, to, w.ticketOf(id))
			}
		}
	}
}

func (h *host) member(w *world) eviction.Member { return w.lives[h.life].member }

// meets notes, as h installs a wave, whether anybody is in it who was not before, or the
// other way round.
func (w *world) meets(h *host, before, list []eviction.Member) {
	if !slices.Equal(before, list) {
		h.apartAt = w.now
	}
}
