package node

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// keptVisits are the visits that this node keeps of one other: it counts them in a wave
// when that one is lost, see eviction.Keeping. What is kept of places goes with their lane;
// a visit stays until its home says that it is over, until no pass of it is good any more,
// or until it is one of this node's own.
//
// Invariant: Node.visitsKept is by member, one of each.
type keptVisits struct {
	member eviction.Member
	acked  int64 // boot time of the last batch of it that was acknowledged
	rooms  map[*room]*roomVisits
}

type roomVisits struct {
	until map[qpid.ItemID]int64 // pass time up to which a pass of it may be good; negative: that, of one that has ended
	prune int                   // how many there may be until those are looked for that have run out
}

// keptVisitsMax bounds the visits of a room that are kept of one node. Past it none is
// acknowledged, and that node is as one whose visits nobody keeps.
const keptVisitsMax = 1 << 20

// pruneAt is the fewest visits among which those that have run out are looked for.
const pruneAt = 1024

func (n *Node) keptVisitsOf(m eviction.Member) (int, bool) {
	return slices.BinarySearchFunc(n.visitsKept, m, func(h keptVisits, m eviction.Member) int { return h.member.Compare(m) })
}

// keepVisits keeps what a batch says of visits, and returns how many. The batch is of a member
// that is in the waves: of another one this node may have said in a wave how many it keeps.
func (n *Node) keepVisits(now eviction.Time, from eviction.Member, b *eviction.Copies) (kept int) {
	for i := range b.Rooms {
		c := &b.Rooms[i]
		r, err := n.room(c.Room)
		if err != nil || len(c.Visits)+len(c.Ended)+len(c.Moved) == 0 {
			continue
		}
		k := n.visitsOf(from, r)
		for _, id := range c.Ended {
			if until := k.until[id]; until > 0 {
				k.until[id] = -until
			}
		}
		for _, id := range c.Moved {
			delete(k.until, id)
		}
		if r.gate.MayKeep(from) {
			kept += k.keep(c.Visits, r.oldest(now))
		}
	}
	if i, known := n.keptVisitsOf(from); known {
		n.visitsKept[i].acked = now.Boot
	}
	return kept
}

func (n *Node) visitsOf(home eviction.Member, r *room) *roomVisits {
	i, known := n.keptVisitsOf(home)
	if !known {
		n.visitsKept = slices.Insert(n.visitsKept, i, keptVisits{member: home, rooms: make(map[*room]*roomVisits)})
	}
	k := n.visitsKept[i].rooms[r]
	if k == nil {
		k = &roomVisits{make(map[qpid.ItemID]int64), pruneAt}
		n.visitsKept[i].rooms[r] = k
	}
	return k
}

// keep keeps all of visits, or none if there are too many.
func (k *roomVisits) keep(visits []eviction.VisitKept, oldest int64) int {
	if len(k.until)+len(visits) > k.prune {
		k.runOut(oldest)
		k.prune = min(max(pruneAt, 2*len(k.until)), keptVisitsMax)
	}
	if len(k.until)+len(visits) > keptVisitsMax {
		return 0
	}
	for _, v := range visits {
		k.until[v.ID] = max(k.until[v.ID], v.Until)
	}
	return len(visits)
}

// runOut drops those of which no pass is good any more, and counts those that have not ended.
func (k *roomVisits) runOut(oldest int64) (n int) {
	for id, until := range k.until { //puretest:sorted none depends on another
		switch {
		case max(until, -until) < oldest:
			delete(k.until, id)
		case until > 0:
			n++
		}
	}
	return n
}

// oldest is the pass time before which a pass has run out by every clock.
func (r *room) oldest(now eviction.Time) int64 { return r.node.ev.Now(now) - 2*r.skew() }

// keptVisit is until when a pass of a visit of home may be good that this node keeps, and
// negative if that has ended; 0: it keeps none.
func (n *Node) keptVisit(r *room, home eviction.Member, id qpid.ItemID) int64 {
	if i, known := n.keptVisitsOf(home); known {
		if k := n.visitsKept[i].rooms[r]; k != nil {
			return k.until[id]
		}
	}
	return 0
}

// ends reports whether the visit of a lost home may be ended here, of which this node keeps it.
// Not as long as the home may have a word of this node from which it goes on with the visit.
func (n *Node) ends(now eviction.Time, home eviction.Member) bool {
	i, known := n.keptVisitsOf(home)
	return !known || now.Boot-n.visitsKept[i].acked >= n.ev.LongestExclude()
}

// dropVisit forgets a visit of home.
func (n *Node) dropVisit(r *room, home eviction.Member, id qpid.ItemID) {
	if n.keptVisit(r, home, id) > 0 {
		delete(n.visitsOf(home, r).until, id)
	}
}

// ours forgets the visit of v as one of a lost node: it is this node's own.
func (r *room) ours(v *visitor) {
	p := r.pasts[v.id]
	if p.adopted == (eviction.Account{}) {
		return
	}
	r.node.dropVisit(r, p.adopted.Member, v.id)
	for _, a := range p.earlier {
		r.node.dropVisit(r, a.Member, v.id)
	}
}

// countVisits returns how many visits of the room are kept of members that are not in list.
func (r *room) countVisits(list []eviction.Member) (counts []eviction.VisitCount) {
	oldest := r.node.ev.LastNow() - 2*r.skew()
	for i := range r.node.visitsKept {
		h := &r.node.visitsKept[i]
		if r.node.among.has(list, h.member) {
			continue
		}
		if k := h.rooms[r]; k != nil {
			if kept := k.runOut(oldest); kept > 0 {
				counts = append(counts, eviction.VisitCount{Member: h.member, Visits: kept})
			}
		}
	}
	return counts
}

// forgetVisits forgets those of members that nobody remembers: nothing of them can act.
func (n *Node) forgetVisits() {
	n.visitsKept = slices.DeleteFunc(n.visitsKept, func(h keptVisits) bool { return !n.ev.Listed(h.member) && !n.ev.HasMet(h.member) })
}

// KeepsVisit is the pass time until which this node keeps a visit of home, 0 if it does
// not: a simulator asks.
func (n *Node) KeepsVisit(name string, home eviction.Member, id qpid.ItemID) int64 {
	r, err := n.room(name)
	if err != nil {
		return 0
	}
	return max(0, n.keptVisit(r, home, id))
}
