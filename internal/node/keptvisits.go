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
	rooms  []roomVisits
}

type roomVisits struct {
	room  *room
	until map[qpid.ItemID]int64 // pass time up to which a pass of it may be good
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
		if err != nil || len(c.Visits)+len(c.Ended) == 0 {
			continue
		}
		for _, id := range c.Ended {
			n.dropVisit(r, from, id)
		}
		kept += n.visitsOf(from, r).keep(c.Visits, r.oldest(now))
	}
	return kept
}

func (n *Node) visitsOf(home eviction.Member, r *room) *roomVisits {
	i, known := n.keptVisitsOf(home)
	if !known {
		n.visitsKept = slices.Insert(n.visitsKept, i, keptVisits{member: home})
	}
	h := &n.visitsKept[i]
	j := slices.IndexFunc(h.rooms, func(v roomVisits) bool { return v.room == r })
	if j < 0 {
		j, h.rooms = len(h.rooms), append(h.rooms, roomVisits{r, make(map[qpid.ItemID]int64), pruneAt})
	}
	return &h.rooms[j]
}

// keep keeps all of visits, or none if there are too many.
func (k *roomVisits) keep(visits []eviction.VisitKept, oldest int64) int {
	if len(k.until)+len(visits) > k.prune {
		k.runOut(oldest)
		k.prune = max(pruneAt, 2*len(k.until))
	}
	if len(k.until)+len(visits) > keptVisitsMax {
		return 0
	}
	for _, v := range visits {
		k.until[v.ID] = max(k.until[v.ID], v.Until)
	}
	return len(visits)
}

// runOut drops those of which no pass is good any more.
func (k *roomVisits) runOut(oldest int64) {
	for id, until := range k.until { //puretest:sorted none depends on another
		if until < oldest {
			delete(k.until, id)
		}
	}
}

// oldest is the pass time before which a pass has run out by every clock.
func (r *room) oldest(now eviction.Time) int64 { return r.node.ev.Now(now) - 2*r.skew() }

// dropVisit forgets a visit of home.
func (n *Node) dropVisit(r *room, home eviction.Member, id qpid.ItemID) {
	i, known := n.keptVisitsOf(home)
	if !known {
		return
	}
	for j := range n.visitsKept[i].rooms {
		if k := &n.visitsKept[i].rooms[j]; k.room == r {
			delete(k.until, id)
		}
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
		for j := range h.rooms {
			if k := &h.rooms[j]; k.room == r {
				if k.runOut(oldest); len(k.until) > 0 {
					counts = append(counts, eviction.VisitCount{Member: h.member, Visits: len(k.until)})
				}
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
	i, known := n.keptVisitsOf(home)
	if err != nil || !known {
		return 0
	}
	for _, k := range n.visitsKept[i].rooms {
		if k.room == r {
			return k.until[id]
		}
	}
	return 0
}
