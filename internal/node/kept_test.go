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
