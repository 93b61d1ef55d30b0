package node_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// Nodes whose waves would come more often or less are one cluster, whichever of them
// leads: the limit holds, a lost node's slots are made again, and everybody gets in.
func TestNodesOfOtherPeriodsAreOneCluster(t *testing.T) {
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	shop := eviction.Room{Name: "shop", Target: 6, Session: 5 * time.Second}
	for i, period := range []time.Duration{200 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		c.add(node.Config{Expect: 3, Joins: true, Rooms: []eviction.Room{shop}, Cluster: eviction.Config{Period: period}}, string(rune('a'+i))+"0")
	}
	c.gossip()
	c.run(4 * time.Second)
	for leads := range 3 {
		if !c.node[leads].Status().Leading {
			t.Fatalf("%s does not lead: %+v", c.node[leads].cfg.Self.Name, c.node[leads].Status())
		}
		var tickets []node.Ticket
		for i := range 9 {
			if a := c.join(c.node[i%3], "shop"); a.State != node.Admitted {
				tickets = append(tickets, a.Ticket)
			} else {
				c.end(c.node[0], a.Pass)
			}
		}
		c.admitAll(tickets, 5*time.Second)
		if owned, _ := c.supply("shop"); owned != 6 {
			t.Fatalf("%d slots, want 6", owned)
		}
		c.restart(c.node[leads]) // it is the most junior now
		c.gossip()
		c.run(25 * time.Second)
	}
}
