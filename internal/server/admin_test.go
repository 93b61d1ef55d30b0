package server

import (
	"slices"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// A room that has stopped sharing goes on to wait for who was away then, and an operator
// has to see that; one that a majority goes on with waits for nobody.
func TestWhoARoomWaitsFor(t *testing.T) {
	absent := []eviction.Member{{Name: "n1", Boot: 1}, {Name: "n2", Boot: 1}, {Name: "n2", Boot: 2}}
	for _, test := range []struct {
		policy eviction.Policy
		shares bool
		want   []string
	}{
		{eviction.Majority, false, nil},
		{eviction.Majority, true, []string{"n2"}},
		{eviction.Share, true, []string{"n2"}},
		{eviction.Stop, false, []string{"n2"}},
	} {
		rs := &node.RoomStatus{Room: eviction.Room{OnPartition: test.policy, Reclaimed: absent[:1]}, Shares: test.shares}
		if got := waitsFor(rs, absent); !slices.Equal(got, test.want) {
			t.Errorf("%v, shares %v: %v, want %v", test.policy, test.shares, got, test.want)
		}
	}
}
