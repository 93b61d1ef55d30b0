package live

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/client"
)

// The last of three nodes has the higher name of the last two, and so no quorum:
// the other one may be cut off, and count on. It lets nothing out of a queue with
// an interval, and neither hangs nor hides what it does not know.
func TestTheLastNodeWithoutAQuorumSaysWhoIsMissing(t *testing.T) {
	t.Parallel()
	const wait = time.Second
	c := newCluster(t, 10)
	c.session = 2 * time.Second // a dead node is forgotten soon
	c.queues = "  - {name: paced, interval: 100ms}\n"
	c.run(3)
	last := c.nodes[2].client(t, client.WithPatience(20*time.Second)).Queue("paced")
	for i := range 60 { // ids have their homes all over the cluster
		if _, err := last.Put(t.Context(), client.New{ID: fmt.Sprintf("item-%03d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	take := func() (client.Taken, time.Duration) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		taken, err := last.Take(ctx, client.Want{Wait: wait})
		if err != nil {
			t.Fatalf("take, after %v: %v", time.Since(began), err)
		}
		return taken, time.Since(began)
	}
	missing := func(name string) func() bool {
		return func() bool {
			n, err := last.Len(t.Context())
			return err == nil && slices.Contains(n.Missing, name)
		}
	}
	gets := func() bool {
		taken, _ := take()
		return len(taken.Leases) > 0
	}
	c.until("an item", 20*time.Second, gets)
	c.nodes[0].kill()
	c.until("who is missing", 10*time.Second, missing(c.nodes[0].id))
	c.until("an item without the first", 20*time.Second, gets)
	c.until("quorum without it", 30*time.Second, func() bool { return len(c.nodes[2].cluster().Voters) == 2 })
	c.until("nobody missing", 10*time.Second, func() bool { return !missing(c.nodes[0].id)() })
	c.nodes[1].kill()
	c.until("who is missing", 10*time.Second, missing(c.nodes[1].id))
	c.until("a take that says so", 10*time.Second, func() bool {
		taken, _ := take()
		return len(taken.Leases) == 0 && slices.Contains(taken.Missing, c.nodes[1].id)
	})
	for range 3 {
		taken, took := take()
		c.phase("a take that waits for %v brings %d items after %v, missing %v", wait, len(taken.Leases), took, taken.Missing)
		if len(taken.Leases) > 0 || took > wait+4*time.Second || !missing(c.nodes[1].id)() {
			t.Errorf("alone: %d items after %v, missing %v", len(taken.Leases), took, taken.Missing)
		}
	}
}
