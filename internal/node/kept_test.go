package node

import (
	"slices"
	"testing"

	"github.com/anteroom/anteroom/eviction"
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
