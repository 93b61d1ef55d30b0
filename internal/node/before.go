package node

import (
	"github.com/anteroom/anteroom/eviction"
)

// VisitTerms is a digest of what bounds the visits to a room, never 0: as long as it is
// the same, visits of before tell how long those of now will last.
func VisitTerms(r *eviction.Room) uint32 {
	const offset, prime = 2166136261, 16777619 // FNV-1a
	h := uint32(offset)
	renewal := int64(1)
	if r.NoRenewal {
		renewal = 0
	}
	for _, v := range [...]int64{r.Session.Microseconds(), r.SessionMax.Microseconds(), renewal} {
		for range 8 {
			h = (h ^ uint32(v&0xff)) * prime
			v >>= 8
		}
	}
	return max(1, h)
}

func (r *room) visitTerms() uint32 {
	c := r.gate.Room()
	return VisitTerms(&c)
}

// Before tells a room how long visits lasted before this node counted any, those that had
// these terms: estimates begin with that. Where the room has other terms by now it is told
// nothing.
func (n *Node) Before(name string, terms uint32, lasted []Lasted) {
	r, err := n.room(name)
	if err != nil || terms != r.visitTerms() {
		return
	}
	r.waits.visits.Before(lasted)
	r.waits.terms = terms
}
