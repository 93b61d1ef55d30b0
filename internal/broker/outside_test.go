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
	back(c)
	if a := c.take(1, broker.Take{Queue: "q", Max: 1}); a.Result.Code != pqueue.Empty || len(a.Missing) > 0 {
		t.Errorf("when they are back: %+v", a)
	}
}

// back has the links of those that were left out work again.
func back(c *cluster) {
	c.cut = nil
	for _, h := range c.nodes[2:] {
		h.b.Broke(c.now, c.nodes[0].m)
		c.nodes[0].b.Broke(c.now, h.m)
	}
	c.pass(2_000_000)
}

// What a node has that is in no round may go before what comes. Who takes is told, also
// if it is back before the answer is complete; and not of what was over before.
func TestTakeThatBringsItemsNamesWhoIsInNoRound(t *testing.T) {
	c := leftOut(t)
	c.insert(0, "q", "later@n1", 9)
	c.insert(0, "q", "last@n1", 10)
	c.insert(3, "q", "first@n4", 0)
	want := []qpid.NodeID{"n3", "n4"}
	if a := c.take(1, broker.Take{Queue: "q", Max: 1}); !slices.Equal(names(a), []string{"later@n1"}) || !slices.Equal(a.Missing, want) {
		t.Errorf("while they are out: %+v, want %v missing", a, want)
	}
	c.nodes[0].b.Broke(c.now, c.nodes[1].m) // another round, after which a take looks for more for a while
	c.settle()
	id := c.begin(1, broker.Take{Queue: "q", Max: 2})
	if a, over := c.nodes[1].answers[id]; over {
		t.Fatalf("it ends at once: %+v", a)
	}
	back(c)
	if a := c.nodes[1].answers[id]; !slices.Equal(names(a), []string{"first@n4", "last@n1"}) || !slices.Equal(a.Missing, want) {
		t.Errorf("when they come back meanwhile: %+v, want %v missing", a, want)
	}
	c.insert(0, "q", "another@n1", 0)
	if a := c.take(1, broker.Take{Queue: "q", Max: 1}); len(a.Parts) != 1 || len(a.Missing) > 0 {
		t.Errorf("when they are back: %+v", a)
	}
}

// The root does not know what those have without which its round goes on. It does not
// tell them that nothing waits: the swarm's seed 916 has an item at one that asks. Nor
// does it give them an item, before which that one goes.
func TestRootHasNoAnswerForThoseOutsideItsRound(t *testing.T) {
	for what, heavy := range map[string]bool{"nothing waits": false, "a heavier item waits": true} {
		c := leftOut(t)
		c.cut = nil
		c.loses = func(m broker.Message) bool { return m.Kind == broker.MsgGather }
		c.insert(2, "q", "there@n3", 0)
		if heavy {
			c.insert(0, "q", "here@n1", 9)
		}
		id := c.begin(2, broker.Take{Queue: "q", Max: 1})
		if a, over := c.nodes[2].answers[id]; over {
			t.Fatalf("%s, and it ends at once: %+v", what, a)
		}
		c.loses = nil
		back(c)
		if a := c.nodes[2].answers[id]; !slices.Equal(names(a), []string{"there@n3"}) {
			t.Errorf("%s, when all are in a round: %+v", what, a)
		}
	}
}
