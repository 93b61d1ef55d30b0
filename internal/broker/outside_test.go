package broker_test

import (
	"slices"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// leftOut is a cluster of four whose rounds go on without the last two, since links to
// them lose everything and nobody has heard of that yet.
func leftOut(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, 4)
	for at := range c.nodes { // all know the queue, and have for long
		c.take(at, broker.Take{Queue: "q", Max: 1})
	}
	c.pass(1_000_000)
	early := func(m eviction.Member) bool { return m == c.nodes[0].m || m == c.nodes[1].m }
	c.cut = func(from, to eviction.Member) bool { return early(from) != early(to) }
	c.nodes[0].b.Broke(c.now, c.nodes[1].m) // so that there are rounds
	c.pass(3_000_000)
	if a := c.do(0, broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: "x@n1"}}); a.Result.Code != pqueue.OK {
		t.Fatalf("put: %+v", a)
	}
	if a := c.take(1, broker.Take{Queue: "q", Max: 1}); len(a.Parts) != 1 {
		t.Fatalf("those that are left are in no round: %+v", a)
	}
	return c
}

// A node without which the rounds go on may have items, also where the waves still
// have it: nobody who takes is told that there are none, without its name.
func TestTakeNamesWhoIsInNoRound(t *testing.T) {
	c := leftOut(t)
	for at := range 2 {
		a := c.take(at, broker.Take{Queue: "q", Max: 1})
		if want := []qpid.NodeID{"n3", "n4"}; a.Result.Code != pqueue.Empty || !slices.Equal(a.Missing, want) {
			t.Errorf("a take at n%d: %+v, want %v missing", at+1, a, want)
		}
	}
	c.cut = nil
	for _, h := range c.nodes[2:] {
		h.b.Broke(c.now, c.nodes[0].m)
		c.nodes[0].b.Broke(c.now, h.m)
	}
	c.pass(2_000_000)
	if a := c.take(1, broker.Take{Queue: "q", Max: 1}); a.Result.Code != pqueue.Empty || len(a.Missing) > 0 {
		t.Errorf("when they are back: %+v", a)
	}
}

// The root does not know what those have without which its round goes on. It does not
// tell them that nothing waits: the swarm's seed 916 has an item at one, and another asks.
func TestRootDoesNotTellThoseOutsideItsRoundThatNothingWaits(t *testing.T) {
	c := leftOut(t)
	c.cut = func(_, to eviction.Member) bool { return to == c.nodes[3].m }
	c.insert(3, "q", "there@n4", 0)
	id := c.begin(2, broker.Take{Queue: "q", Max: 1})
	if a, over := c.nodes[2].answers[id]; over {
		t.Fatalf("it ends at once: %+v", a)
	}
	c.cut = nil
	for _, h := range c.nodes[2:] {
		h.b.Broke(c.now, c.nodes[0].m)
		c.nodes[0].b.Broke(c.now, h.m)
	}
	c.pass(2_000_000)
	if a := c.nodes[2].answers[id]; !slices.Equal(names(a), []string{"there@n4"}) {
		t.Errorf("when all are in a round: %+v", a)
	}
}
