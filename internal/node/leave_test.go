package node_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// Places are taken in from a node that is in the waves, by one that knows what became of its
// own. What comes late from one that was left out may have gone on elsewhere since.
func TestPlacesAreTakenInFromAListedNodeByOneThatIsInTouch(t *testing.T) {
	for _, test := range []struct {
		name  string
		apart func(c *cluster) // of a and b, who go on together
		queue int
	}{
		{"together", func(*cluster) {}, 1},
		{"from a node that was left out", func(c *cluster) {
			c.split([]qpid.NodeID{"a0", "b0"}, []qpid.NodeID{"c0"})
			c.run(5 * time.Second)
		}, 0},
		{"by a node that hears nothing", func(c *cluster) {
			c.split([]qpid.NodeID{"a0"}, []qpid.NodeID{"b0"}, []qpid.NodeID{"c0"})
			c.run(3 * time.Second)
		}, 0},
	} {
		c := founded(t, 3, waiting())
		a, from := c.node[0], c.node[2].cfg.Self.Member
		test.apart(c)
		place := eviction.Place{ID: qpid.ItemID{7}, Stamp: uint64(a.Status().Clock) - 1000, Gen: 1, Refresh: 2000}
		m := eviction.Message{From: from, To: a.cfg.Self.Member, Body: &eviction.Places{Room: "shop", Places: []eviction.Place{place}}}
		if err := a.Step(c.at(a), m); err != nil {
			t.Fatal(err)
		}
		if r := c.room(a, "shop"); r.Queued != test.queue {
			t.Errorf("%s: %d wait, want %d", test.name, r.Queued, test.queue)
		}
	}
}

// A node that leaves says once what it gives away, and again a period later if nobody has
// answered: not whenever it looks at what there is to do.
func TestANodeThatLeavesRepeatsItsPlacesOnceAPeriod(t *testing.T) {
	c := founded(t, 2, waiting())
	leaves := c.node[1]
	for range 5 {
		c.join(leaves, "shop")
	}
	given := 0
	c.pass = func(m eviction.Message) []eviction.Message {
		if p, ok := m.Body.(*eviction.Places); ok {
			given += len(p.Places)
			return nil
		}
		return []eviction.Message{m}
	}
	leaves.Goodbye(c.at(leaves))
	c.deliver()
	if given != 5 {
		t.Errorf("%d places are given away at first, want all 5", given)
	}
	period := leaves.cfg.Cluster.WithDefaults().Period
	for range 3 {
		given = 0
		c.run(period)
		if given != 5 {
			t.Errorf("%d places are given away in a period in which no answer came, want all 5 once", given)
		}
	}
}
