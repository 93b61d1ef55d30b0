package node

import "github.com/anteroom/anteroom/eviction"

// Aside reports whether this node is in no primary wave, so that its visitors stand
// still while the others may go on without it. See Relays.
func (n *Node) Aside(now eviction.Time) bool { return n.ev.Aside(now) }

// Relays knows which member carries out what visitors ask of this node while it cannot:
// it is left out, or does not reach the home of a place, and one bad link is enough for
// either. That member goes on with it as with what its own visitors ask, so places are
// taken over by the same rules as when a browser asks there.
//
// Who answers is asked from then on, until it does not. While nobody is known to, one
// member is tried every so often, in turn, by one request: on a side without a quorum
// there is none, and everybody else is answered at once.
type Relays struct {
	known   eviction.Member // answered last; the zero one: nobody is known to
	next    int
	againAt int64 // boot time before which no other is tried
}

// searchEvery is how often another member is tried, in microseconds.
const searchEvery = 500_000

// Pick returns the member of view that is to be asked at boot time now, if any.
func (r *Relays) Pick(now int64, self eviction.Member, view eviction.View) (eviction.Member, bool) {
	for _, p := range view {
		if p.Member == r.known {
			return r.known, true
		}
	}
	if now < r.againAt {
		return eviction.Member{}, false
	}
	r.againAt = now + searchEvery
	for range view {
		r.next++
		if m := view[r.next%len(view)].Member; m != self {
			return m, true
		}
	}
	return eviction.Member{}, false
}

// Answered notes whether m, which was picked, has carried the request out.
func (r *Relays) Answered(m eviction.Member, ok bool) {
	switch {
	case ok:
		r.known = m
	case r.known == m:
		r.known = eviction.Member{}
	}
}
