package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// TestThreeNodesCallInOrder is the smallest whole story: three nodes found a
// cluster, twelve people come for two places, and everyone gets in in turn.
func TestThreeNodesCallInOrder(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 2, Session: time.Second, QueueAll: true})
	var tickets []node.Ticket
	for range 4 {
		for _, m := range c.node {
			tickets = append(tickets, c.join(m, "shop").Ticket)
			c.now += 1000
		}
	}
	c.admitAll(tickets, 8*time.Second)
	entitled := c.entitlements()
	if len(entitled) != 12 || !slices.IsSortedFunc(entitled, qpid.Weight.Compare) {
		t.Errorf("entitled %v, want all twelve in order", entitled)
	}
}
