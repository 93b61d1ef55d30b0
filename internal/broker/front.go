package broker

import (
	"cmp"
	"slices"

	"github.com/anteroom/anteroom/qpid"
)

// frontsMax bounds the fronts of a round. Each member has an equal part of them:
// what finds no room there counts as an empty queue in the snapshot, and is news
// after it.
const frontsMax = 8192

// fronts are the lightest items at this node, for the round that has frozen it.
func (b *Broker) fronts() []Front {
	var all []Front
	most := frontsMax / len(b.round.asked)
	for _, q := range b.queues {
		if w := q.q.Min(); !w.IsEmpty() && len(all) < most {
			all = append(all, Front{Queue: q.c.Name, Weight: w})
		}
	}
	return all
}

// merge is what all members of a round are told: the fronts by queue, without
// those of a queue in which two members have the same item, as they may while its
// log changes hands. No table can be made of these.
func merge(fronts []Front) []Front {
	fronts = slices.DeleteFunc(fronts, func(f Front) bool { return f.Weight.IsEmpty() })
	slices.SortFunc(fronts, func(a, b Front) int { return cmp.Or(cmp.Compare(a.Queue, b.Queue), a.Weight.Compare(b.Weight)) })
	twice := make(map[string]bool)
	for i := 1; i < len(fronts); i++ {
		if a, b := fronts[i-1], fronts[i]; a.Queue == b.Queue && a.Weight == b.Weight {
			twice[a.Queue] = true
		}
	}
	return slices.DeleteFunc(fronts, func(f Front) bool { return twice[f.Queue] })
}

// frontsOf are the fronts of a queue in the installed round.
func (r *round) frontsOf(queue string) []Front {
	first, _ := slices.BinarySearchFunc(r.fronts, queue, func(f Front, queue string) int { return cmp.Compare(f.Queue, queue) })
	end := first
	for end < len(r.fronts) && r.fronts[end].Queue == queue {
		end++
	}
	return r.fronts[first:end]
}

// snapshot is what the node at a position of the round's list is to know of a
// queue: the lightest weight on each side. A side without any item weighs what
// its lowest position does: 0 on the parent's side, its own on a child's.
func (r *round) snapshot(queue string, at int) qpid.Snapshot {
	parent := (at - 1) / fanout // of the root: 0
	own, above, below := qpid.Empty(at), qpid.Empty(0), map[int]qpid.Weight{}
	for _, f := range r.frontsOf(queue) {
		switch side := sideOf(at, f.At); {
		case side == at:
			own = f.Weight
		case side < at:
			above = lighter(above, f.Weight)
		default:
			if w, ok := below[side]; !ok || f.Weight.Less(w) {
				below[side] = f.Weight
			}
		}
	}
	s := qpid.Snapshot{Epoch: r.made, Position: at, Own: own}
	if at > 0 {
		s.Neighbors = append(s.Neighbors, qpid.Neighbor{ID: r.list[parent].Name, Weight: above})
	}
	for c := fanout*at + 1; c <= fanout*at+fanout && c < len(r.list); c++ {
		w, ok := below[c]
		if !ok {
			w = qpid.Empty(c)
		}
		s.Neighbors = append(s.Neighbors, qpid.Neighbor{ID: r.list[c].Name, Weight: w})
	}
	return s
}

// sideOf is the side of position at on which position to is: at itself, its
// child above to, or its parent.
func sideOf(at, to int) int {
	for to > at {
		up := (to - 1) / fanout
		if up == at {
			return to
		}
		to = up
	}
	if to == at {
		return at
	}
	return (at - 1) / fanout
}

func lighter(a, b qpid.Weight) qpid.Weight {
	if b.Less(a) {
		return b
	}
	return a
}
