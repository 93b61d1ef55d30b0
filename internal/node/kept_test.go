package node

import (
	"slices"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// Who is in a list of many is looked up, and lists change: to others of as many, too.
func TestMembersAreThoseOfTheListAskedFor(t *testing.T) {
	var among members
	one := make([]eviction.Member, fewMembers+1)
	for i := range one {
		one[i].Boot = uint64(1 + i)
	}
	another := slices.Clone(one)
	another[0].Boot = 100
	for _, list := range [][]eviction.Member{one, another, one, one[:fewMembers], nil} {
		for boot := uint64(1); boot <= 100; boot++ {
			m := eviction.Member{Boot: boot}
			if want := slices.Contains(list, m); among.has(list, m) != want {
				t.Errorf("%v is among %v: %v, want %v", m, list, !want, want)
			}
		}
	}
}

// As many visits are kept of one node as may be, and then none of a batch that is too many.
func TestVisitsAreKeptUpToABound(t *testing.T) {
	k := &roomVisits{make(map[qpid.ItemID]int64), pruneAt}
	visit := func(i int) eviction.VisitKept {
		return eviction.VisitKept{ID: qpid.ItemID{byte(i), byte(i >> 8), byte(i >> 16), 1}, Until: 100}
	}
	if n := k.keep([]eviction.VisitKept{visit(0), visit(1)}, 0); n != 2 {
		t.Fatalf("%d visits are kept of 2", n)
	}
	for i := range keptVisitsMax - 1 {
		k.until[visit(i).ID] = 100
	}
	if n := k.keep([]eviction.VisitKept{visit(keptVisitsMax), visit(keptVisitsMax + 1)}, 0); n != 0 || len(k.until) != keptVisitsMax-1 {
		t.Errorf("%d are kept of two, and there is room for one; there are %d", n, len(k.until))
	}
	if n := k.keep([]eviction.VisitKept{visit(keptVisitsMax)}, 0); n != 1 {
		t.Errorf("%d are kept of one, and there is room for it", n)
	}
	if n := k.keep([]eviction.VisitKept{visit(keptVisitsMax + 1)}, 101); n != 1 {
		t.Errorf("%d are kept of one, and all others have run out", n)
	}
}

// The first who is kept is not one who is parked, and whoever came first, wherever their
// record is: whether the places are in order yet or not.
func TestTheFirstWhoIsKeptIsTheFirstInLine(t *testing.T) {
	k := &keptRoom{room: newRoomOf(t, eviction.Room{})}
	if first := k.first(); first != 0 {
		t.Errorf("the first of nobody has the stamp %d", first)
	}
	for i, p := range []eviction.Place{{Stamp: 5, Parked: true}, {Stamp: 30}, {Stamp: 10}, {Stamp: 20}} {
		p.ID = numbered(i)
		k.places.put(&p)
	}
	if first := k.first(); first != 10 {
		t.Errorf("the first of those who are not in order has the stamp %d, want 10", first)
	}
	k.sort()
	if k.first() != 10 {
		t.Errorf("the first of those who are in order has the stamp %d, want 10", k.first())
	}
	k.places.take(numbered(2))
	if first := k.first(); first != 20 {
		t.Errorf("when the first has gone the first has the stamp %d, want 20", first)
	}
}

// That a visit has ended is known for as long as its pass would be good: somebody may come
// with it, and a visit that nobody knows of would go on.
func TestAVisitThatHasEndedIsRememberedUntilItsPassWouldBe(t *testing.T) {
	k := &roomVisits{map[qpid.ItemID]int64{numbered(1): 100, numbered(2): -100, numbered(3): 49, numbered(4): -49}, pruneAt}
	if n := k.runOut(50); n != 1 {
		t.Errorf("%d visits have not ended, want 1", n)
	}
	if k.until[numbered(1)] != 100 || k.until[numbered(2)] != -100 || len(k.until) != 2 {
		t.Errorf("known are %v, want one that goes on and one that has ended", k.until)
	}
}
