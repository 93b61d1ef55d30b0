package node

import (
	"time"

	"github.com/anteroom/anteroom/eviction"
)

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
// there is none, and everybody else is answered at once. Who has only just been heard of
// is not asked: a wave comes for all who wait here in a moment, in their order, and who
// asked first would be called before it.
type Relays struct {
	view    []sighted
	known   eviction.Member // answered last; the zero one: nobody is known to
	next    int
	againAt int64 // boot time before which no other is tried
	since   int64 // boot time since which nobody is known to answer; 0: somebody is, or nobody asked
}

// sighted is a member that is believed to be alive, since a boot time.
type sighted struct {
	member eviction.Member
	since  int64
}

const (
	searchEvery = 500_000   // µs; how often another member is tried
	searchTakes = 5_000_000 // µs; as good as all have been tried by then
	searchAgain = time.Second
)

// See takes in who is believed to be alive from boot time now on.
func (r *Relays) See(now int64, v eviction.View) {
	view := make([]sighted, len(v))
	for i, p := range v {
		view[i] = sighted{p.Member, now}
		for _, s := range r.view {
			if s.member == p.Member {
				view[i].since = s.since
			}
		}
	}
	r.view = view
}

// Pick returns the member that is to be asked at boot time now, if any: one that has been
// heard of for exclude, in microseconds.
func (r *Relays) Pick(now, exclude int64, self eviction.Member) (eviction.Member, bool) {
	heardOf := func(s sighted) bool { return s.member != self && now-s.since >= exclude }
	for _, s := range r.view {
		if s.member == r.known && heardOf(s) {
			return r.known, true
		}
	}
	if r.since == 0 {
		r.since = now
	}
	if now < r.againAt {
		return eviction.Member{}, false
	}
	r.againAt = now + searchEvery
	for range r.view {
		r.next++
		if s := r.view[r.next%len(r.view)]; heardOf(s) {
			return s.member, true
		}
	}
	return eviction.Member{}, false
}

// Answered notes whether m, which was picked, has carried the request out.
func (r *Relays) Answered(m eviction.Member, ok bool) {
	switch {
	case ok:
		r.known, r.since = m, 0
	case r.known == m:
		r.known = eviction.Member{}
	}
}

// Refresh is when somebody who waits is to ask again, instead of in refresh, if nobody
// answered for this node at boot time now: soon, while somebody may be found in a moment,
// or others would be called before them.
func (r *Relays) Refresh(now int64, refresh time.Duration) time.Duration {
	if r.since > 0 && now-r.since < searchTakes {
		return min(refresh, searchAgain)
	}
	return refresh
}

// Clear ends the search: this node can answer by itself.
func (r *Relays) Clear() { r.since = 0 }

// Known is the member that answered last; the zero one if nobody is known to.
func (r *Relays) Known() eviction.Member { return r.known }
