package wire_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/proto/wire"
	"github.com/anteroom/anteroom/simtest"
)

// TestWavesKeepToTheirBudget holds what package eviction thinks that its
// messages weigh against what they weigh.
func TestWavesKeepToTheirBudget(t *testing.T) {
	const rooms = 8
	for _, test := range []struct{ nodes, users, budget int }{
		{2, 60, 4 << 10},
		{3, 800, 16 << 10},
		{3, 4000, 32 << 10},
		{16, 1200, 32 << 10},
		{16, 4000, 48 << 10},
	} {
		t.Run(fmt.Sprintf("nodes=%d/users=%d", test.nodes, test.users), func(t *testing.T) {
			o := simtest.Options{Seed: 1, Nodes: test.nodes, Users: test.users, Span: 3 * time.Second, Limit: 10 * time.Second}
			o.Cluster.WaveBytes = test.budget
			for i := range rooms {
				o.Rooms = append(o.Rooms, eviction.Room{Name: fmt.Sprintf("room-%02d", i), Target: 2, Session: time.Minute})
			}
			largest, turns := 0, false
			o.Wire = func(m eviction.Message) (eviction.Message, error) {
				switch b := m.Body.(type) {
				case *eviction.Gather:
					turns = turns || len(b.Rooms) < rooms
				case *eviction.Reply, *eviction.Commit:
				default:
					return m, nil
				}
				data, err := wire.Marshal(m.Body)
				largest = max(largest, len(data))
				return m, err
			}
			_, _ = simtest.Run(o) // it ends while people wait, and says so
			if !turns {
				t.Error("rooms never had to take turns")
			}
			if largest > test.budget*5/4 || largest < test.budget/4 { // it allows for all who are next to wait at one node
				t.Errorf("the largest message of a wave has %d bytes; the budget is %d", largest, test.budget)
			}
		})
	}
}
