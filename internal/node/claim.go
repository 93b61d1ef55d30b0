package node

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// A call sets a slot aside for somebody who may never come, so how long all the
// calls of one place may hold slots has a bound:
//
//   - The first call of a place stands for claim_window, so that somebody who is
//     away for a moment finds it. Any later one stands for three of the refresh
//     intervals that its browser was told.
//   - From the answer that tells the browser of the call on it stands for as long
//     as that may take to come in, eviction.Room.ToldClaim, at most.
//   - A call that the browser was told of, and let pass, is a missed call. With
//     claims_max of them the place is over: when its browser asks again it is
//     stamped anew, as if it joined then.
//   - A call that it never asked during is not missed: it sleeps, or is out of
//     reach, and its place is where it was when it is back. But whoever slept
//     through n calls, two or more, is parked until it has listened: asked for
//     2^(n-1) - 1 times its silence, without falling silent. So of the time that
//     it is about it holds a slot for an ever smaller part.
//
// Before call k, that is, somebody who sleeps through all of them has spent
// (2^(k-1) - 2) times a silence. A silence is 5.4 s at the least, and 3.3 refresh
// intervals at most, with the tenth by which refreshAfter spreads them. So in a
// time t a place that is never taken up holds slots for at most
//
//	claim_window + 3.3 × refresh_interval × log2(2 + t / 5.4 s) + claims_max × (3.3 × refresh_interval + ToldClaim)
//
// and for claims_max × ToldClaim if its browser asks as it is told to. A program
// that does not check in (quiet) has a silence of ticket_ttl: its later calls stand
// for claim_window, and it has to listen for the more of ticket_ttl between them. Places
// that were stamped anew are behind everybody who waits. Hence T places of people
// who never come delay a person behind them, or any number of such people, by no
// more than T × that / limit, and one claim, since the slots are shared out
// among those in front while any is free: no slot waits while somebody is entitled.

// marks say what became of a visitor's calls.
type marks uint8

const (
	told     marks = 1 << iota // its browser was told of the call that stands, or has the pass of one of an earlier life
	tried                      // it came on that call, and the node could not let it in
	anew                       // an earlier place let too many calls pass, and is this one now
	entitled                   // its turn is certain
	quiet                      // its program does not check in while it waits
	handed                     // another browser than the one that joined has it: see links
	walkedIn                   // while nobody waited
	unheard                    // its place was given up, and for nothing but silence
)

func (v *visitor) has(m marks) bool { return v.marks&m != 0 }

// neverCalled reports whether this is the first time that v is called.
func (v *visitor) neverCalled() bool { return v.missed == 0 && v.slept == 0 }

// claim is for how long a call stands of which the browser was not told yet, µs.
func (r *room) claim(v *visitor) int64 {
	window := r.gate.Room().ClaimWindow.Microseconds()
	if v.neverCalled() {
		return window
	}
	return min(window, v.silence())
}

// tell notes that the browser hears of its call.
func (r *room) tell(v *visitor, now eviction.Time) {
	if v.has(told) {
		return
	}
	v.marks |= told
	r.guard(v, now)
	c := r.gate.Room()
	due := now.Boot + c.ToldClaim().Microseconds()
	if v.neverCalled() {
		due = min(due, v.due)
	}
	v.due = due
	r.schedule(v)
}

// pass counts a call of v that has passed.
func (v *visitor) pass() {
	switch {
	case v.has(tried):
	case v.has(told):
		v.missed++
	default:
		v.slept = min(v.slept+1, sleptMost)
		v.expires = math.MaxInt64
	}
	v.marks &^= told | tried | walkedIn
}

// sleptMost is where the count of calls slept through ends: 18 hours of listening.
const sleptMost = 14

// listen notes that v asks, and since when it has been: from the first request
// after it was silent.
func (v *visitor) listen(now eviction.Time) {
	if v.stage == parked && (v.expires == math.MaxInt64 || now.Boot-v.seen > v.silence()) {
		v.expires = now.Boot
		if v.slept > 1 {
			v.expires += (1<<(v.slept-1) - 1) * v.silence()
		}
	}
	v.seen = now.Boot
}

// asleep is for how long v, which is parked, has to listen yet, in µs.
func (v *visitor) asleep(now eviction.Time) int64 {
	if v.stage != parked {
		return 0
	}
	return max(v.expires-now.Boot, 0)
}

// overdue reports whether v has let too many calls pass.
func (r *room) overdue(v *visitor) bool { return int(v.missed) >= r.gate.Room().ClaimsMax }

// stampAnew gives the browser of v another place, at the end of the line. The
// old ticket stands for it from now on. The node must be able to stamp.
func (r *room) stampAnew(v *visitor, now eviction.Time) *visitor {
	n := r.node
	stamp := n.ev.Stamp()
	in := visitor{id: successor(v.id, stamp), stamp: stamp, seen: now.Boot, marks: anew | v.marks&(quiet|handed)}
	hand := r.pasts[v.id].hand
	r.withdraw(v, now)
	r.record(Restamped, v.weight(), 0, in.weight())
	old := v.id
	n.use(old)
	r.retire(v, replaced, now)
	r.pasts[old] = past{next: in.id, hand: hand}
	waits := r.visitors.add(in)
	r.passOn(waits, hand)
	r.lineUp(waits)
	n.carryOn(now)
	return waits
}

// successor is the id of a place that is stamped anew: nobody can choose it.
func successor(id qpid.ItemID, stamp uint64) (next qpid.ItemID) {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(id[:], stamp))
	copy(next[:], sum[:])
	return next
}

// renewed is the ticket that t stands for: of a place that was stamped anew, else
// t itself.
func (r *room) renewed(t Ticket) Ticket {
	v := r.visitors.get(t.ID)
	for v != nil && v.stage == replaced {
		t = Ticket{Room: t.Room, ID: r.pasts[v.id].next, Home: r.node.c.Self.Member, Issued: t.Issued, Quiet: t.Quiet, Hand: t.Hand}
		v = r.visitors.get(t.ID)
		if v != nil {
			t.Stamp, t.Gen = v.stamp, v.gen
		}
	}
	return t
}
