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
//   - A call that the browser was told of, and let pass, is a missed call. One
//     that it never asked during is not: it sleeps, or is out of reach, and finds
//     its place when it is back. But whoever happens to be away at every call
//     takes no place either, so each such call counts a quarter.
//   - With claims_max missed calls the place is over: when its browser asks again
//     it is stamped anew, as if it joined then.
//
// So a place that is never taken up holds slots for at most
//
//	claim_window + claims_max × (4 × 3 × refresh_interval + ToldClaim)
//
// and for claims_max × ToldClaim if its browser asks as it is told to. Places
// that were stamped anew are behind everybody who waits. Hence T places of people
// who never come delay a person behind them, or any number of such people, by no
// more than T × that / limit, and one claim, since the slots are shared out
// among those in front while any is free: no slot waits while somebody is entitled.
const wholeCall = 4 // of a call that the browser was told of; one that it slept through counts 1

// marks say what became of a visitor's call.
type marks uint8

const (
	told  marks = 1 << iota // its browser was told of the call that stands
	tried                   // it came on that call, and the node could not let it in
	anew                    // an earlier place let too many calls pass, and is this one now
)

// claim is for how long a call stands of which the browser was not told yet, µs.
func (r *room) claim(v *visitor) int64 {
	window := r.gate.Room().ClaimWindow.Microseconds()
	if v.missed == 0 {
		return window
	}
	return min(window, v.silence())
}

// tell notes that the browser hears of its call.
func (r *room) tell(v *visitor, now eviction.Time) {
	if v.marks&told != 0 {
		return
	}
	v.marks |= told
	c := r.gate.Room()
	due := now.Boot + c.ToldClaim().Microseconds()
	if v.missed == 0 {
		due = min(due, v.due)
	}
	v.due = due
	r.wheel.add(v)
}

// pass counts a call of v that has passed.
func (v *visitor) pass() {
	more := 1
	switch {
	case v.marks&tried != 0:
		more = 0
	case v.marks&told != 0:
		more = wholeCall
	}
	v.missed = uint8(min(int(v.missed)+more, math.MaxUint8))
	v.marks &^= told | tried
}

// overdue reports whether v has let too many calls pass.
func (r *room) overdue(v *visitor) bool {
	return v.missed >= wholeCall && int(v.missed) >= wholeCall*r.gate.Room().ClaimsMax
}

// stampAnew gives the browser of v another place, at the end of the line. The
// old ticket stands for it from now on. The node must be able to stamp.
func (r *room) stampAnew(v *visitor, now eviction.Time) *visitor {
	n := r.node
	stamp := n.ev.Stamp()
	in := visitor{id: successor(v.id, stamp), stamp: stamp, seen: now.Boot, marks: anew}
	r.withdraw(v, now)
	r.record(Restamped, v.weight(), 0, in.weight())
	old := v.id
	n.use(old)
	r.retire(v, replaced, now)
	r.pasts[old] = past{next: in.id}
	waits := r.visitors.add(in)
	r.lineUp(waits)
	n.advance(now)
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
		t = Ticket{Room: t.Room, ID: r.pasts[v.id].next, Home: r.node.c.Self.Member}
		if v = r.visitors.get(t.ID); v != nil {
			t.Stamp, t.Gen = v.stamp, v.gen
		}
	}
	return t
}
