package broker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
)

// What the sharded interval queue (hrishioa/sharded-interval-queue) promises,
// one test each, of the queue "slow": two items in any second, over all nodes.

// paced takes want items, at one node after the other, and returns their ids and
// when each was granted.
func paced(c *cluster, want int) (ids []string, at []int64) {
	c.t.Helper()
	for i := 0; len(ids) < want; i++ {
		if i > 20*want {
			c.t.Fatalf("%d of %d items after %d takes", len(ids), want, i)
		}
		h := i % len(c.nodes)
		if c.nodes[h].down {
			continue
		}
		a := c.take(h, broker.Take{Queue: "slow", Max: 1, Wait: 5_000_000, For: 3_600_000_000})
		ids = append(ids, names(a)...)
		for _, p := range a.Parts {
			at = append(at, p.Result.Until-3_600_000_000)
		}
	}
	return ids, at
}

func wantPace(t *testing.T, at []int64) {
	t.Helper()
	slices.Sort(at)
	for i := 2; i < len(at); i++ {
		if at[i]-at[i-2] < 1_000_000 {
			t.Errorf("three items within %d µs", at[i]-at[i-2])
		}
	}
}

func fill(c *cluster, n int, home func(int) int) {
	for i := range n {
		c.insert(0, "slow", fmt.Sprintf("i%02d@n%d", i, home(i)), 0)
		c.now.Clock++
	}
}

func TestOrderIsKeptAcrossNodes(t *testing.T) {
	c := newCluster(t, 4)
	fill(c, 24, func(i int) int { return i*7%4 + 1 })
	ids, _ := paced(c, 24)
	if !slices.IsSorted(ids) {
		t.Errorf("order: %v", ids)
	}
}

func TestThereIsAnIntervalBetweenItems(t *testing.T) {
	c := newCluster(t, 4)
	fill(c, 16, func(i int) int { return i%4 + 1 })
	_, at := paced(c, 16)
	wantPace(t, at)
}

func TestAllNodesButOneMayBeLost(t *testing.T) {
	c := newCluster(t, 4)
	fill(c, 20, func(int) int { return 4 }) // all at the one that stays
	var all []string
	var times []int64
	for lost := range 3 {
		ids, at := paced(c, 4)
		all, times = append(all, ids...), append(times, at...)
		c.nodes[lost].down = true
		c.pass(200_000)
	}
	ids, at := paced(c, 8)
	all, times = append(all, ids...), append(times, at...)
	if len(all) != 20 || !slices.IsSorted(all) {
		t.Errorf("items: %v", all)
	}
	wantPace(t, times)
}

func TestAnyNodeCanPauseAndItStaysPaused(t *testing.T) {
	c := newCluster(t, 3)
	fill(c, 6, func(i int) int { return i%3 + 1 })
	for by := range 3 {
		c.do(by, broker.Call{Command: pqueue.Command{Op: pqueue.OpMode, Queue: "slow", Mode: pqueue.ModeSetting{Mode: pqueue.Paused}}})
		c.pass(5_000_000)
		for at := range 3 {
			if a := c.take(at, broker.Take{Queue: "slow", Max: 1, Wait: 2_000_000}); len(a.Parts) > 0 || !a.Paused {
				t.Fatalf("paused at %d, and at %d it gives %+v", by, at, a)
			}
		}
		c.do((by+1)%3, broker.Call{Command: pqueue.Command{Op: pqueue.OpMode, Queue: "slow", Mode: pqueue.ModeSetting{Mode: pqueue.Running}}})
		if ids, _ := paced(c, 2); !slices.IsSorted(ids) {
			t.Fatalf("after it: %v", ids)
		}
	}
}

func TestLostTimeIsNotCaughtUpAndTimeNeverGoesBack(t *testing.T) {
	c := newCluster(t, 3)
	fill(c, 12, func(i int) int { return i%3 + 1 })
	first, at := paced(c, 4)
	c.pass(20_000_000) // nobody asks: room for 40 items goes by
	c.nodes[2].down = true
	c.pass(3_000_000)
	c.nodes[2].down = false // it was only silent
	c.pass(3_000_000)
	rest, later := paced(c, 8)
	wantPace(t, append(at, later...))
	if all := append(first, rest...); !slices.IsSorted(all) {
		t.Errorf("order: %v", all)
	}
}
