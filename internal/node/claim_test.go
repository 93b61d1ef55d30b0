package node

import (
	"math"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// Whoever slept through n calls listens for 2^(n-1) - 1 times their silence before they are
// called again: the bound on how long they keep slots from others counts on no less, and
// nobody is to wait for more.
func TestWhoSleptThroughCallsListensForLongerEachTime(t *testing.T) {
	const silence = 30_000_000 // three times a refresh of ten seconds
	for slept, silences := range []int64{0, 0, 1, 3, 7, 15} {
		v := &visitor{stage: parked, refresh: 10_000, slept: uint8(slept), expires: math.MaxInt64}
		now := eviction.Time{Boot: 1e9}
		v.listen(now)
		if got := v.asleep(now); got != silences*silence {
			t.Errorf("after %d calls: listens for %d µs, want %d times %d", slept, got, silences, int64(silence))
		}
		now.Boot += silence
		if silences > 0 {
			v.listen(now)
			if v.asleep(now) != (silences-1)*silence {
				t.Errorf("after %d calls, and one silence in which it asked: has to listen for %d µs", slept, v.asleep(now))
			}
			now.Boot += silence + 1
			v.listen(now)
			if v.asleep(now) != silences*silence {
				t.Errorf("after %d calls, and more than a silence: has to listen for %d µs, want to begin anew", slept, v.asleep(now))
			}
		}
	}
}

// A place that was given up for silence makes way for another copy of it. That it went on to
// another browser is not forgotten with it: the tickets of the browsers before are no good.
func TestHowOftenAPlaceWasHandedOnOutlivesItsCopy(t *testing.T) {
	r := newRoomOf(t, eviction.Room{TicketTTL: time.Minute})
	for i, hand := range []uint8{0, 3} {
		v := r.visitors.add(visitor{id: numbered(i), stage: dropped, marks: unheard})
		r.spent++
		r.pasts[v.id] = past{homes: Homes{{Name: "x", Boot: 1}}, hand: hand}
		r.makeWay(numbered(i))
		if p, known := r.pasts[numbered(i)]; p.hand != hand || p.homes != (Homes{}) || known != (hand > 0) || r.visitors.get(numbered(i)) != nil {
			t.Errorf("handed on %d times: what is known is %+v, %v", hand, p, known)
		}
	}
}

// Visits that wait until an heir keeps them are handed in again when something has become of that,
// once: what does not wait any more is kept nowhere.
func TestVisitsThatWaitForAnHeirAreHandedInAgain(t *testing.T) {
	r := newRoomOf(t, eviction.Room{})
	n := r.node
	x := eviction.Account{Member: eviction.Member{Name: "x", Boot: 1}, Born: 1}
	m := &eviction.Slots{Room: "shop", From: x, To: eviction.Account{Member: n.c.Self.Member, Born: 1}, Total: 1, Visits: []eviction.Visit{{ID: numbered(1), Expires: 1}}}
	r.offered = []offeredVisits{{m: m}}
	n.copies.offers = 1
	now := eviction.Time{Boot: 1e9, Wall: 1.7e15}
	n.takeOffered(now)
	if len(r.offered) != 1 || n.copies.offers != 1 {
		t.Errorf("nothing has become of it: %d wait, %d counted, want one", len(r.offered), n.copies.offers)
	}
	n.copies.look = true
	n.takeOffered(now)
	if len(r.offered) != 0 || n.copies.offers != 0 {
		t.Errorf("it was handed in: %d wait, %d counted, want none", len(r.offered), n.copies.offers)
	}
}
