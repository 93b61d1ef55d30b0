package broker_test

import (
	"slices"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// A replicated queue whose log nobody leads, as when the whole cluster has just
// started, is not empty: nobody knows.
func TestAQueueWithoutALeaderDoesNotLookEmpty(t *testing.T) {
	c := newCluster(t, 2)
	for i, h := range c.nodes {
		conf := config(h.m)
		safe := conf.OnUse
		safe.Name, safe.Kind = "safe", broker.Replicated
		conf.Queues, conf.Logs = append(conf.Queues, safe), []broker.Kind{broker.Replicated}
		b, err := broker.New(conf, c.now)
		if err != nil {
			t.Fatal(err)
		}
		c.nodes[i].m, c.nodes[i].b = eviction.Member{Name: h.m.Name, Boot: 1}, b
	}
	c.view()
	c.pass(1_000_000)
	stats := broker.Call{Command: pqueue.Command{Op: pqueue.OpStats, Queue: "safe"}}
	if a := c.do(0, stats); a.Result.Code != pqueue.Unavailable {
		t.Fatalf("without a leader: %+v", a)
	}
	for _, h := range c.nodes {
		h.b.SetLeader(c.now, "n2")
	}
	c.nodes[1].b.Leads(c.now, broker.Replicated, true)
	if a := c.do(0, stats); a.Result.Code != pqueue.OK || len(a.Missing) > 0 {
		t.Fatalf("with one: %+v", a)
	}
	// Nor does it look empty where the rounds go on without the leader.
	c.cut = func(_, _ eviction.Member) bool { return true }
	c.nodes[0].b.Broke(c.now, c.nodes[1].m)
	c.pass(3_000_000)
	if a := c.take(0, broker.Take{Queue: "safe", Max: 1}); !slices.Equal(a.Missing, []qpid.NodeID{"n2"}) {
		t.Fatalf("with one that is in no round: %+v", a)
	}
}
