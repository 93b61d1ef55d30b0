package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/client"
)

// What programs do with a queue, in each of its kinds, and that what is on disks is
// as it was when all nodes are killed at once.
func TestEachKindOfQueueDoesWhatProgramsExpect(t *testing.T) {
	c := newCluster(t, 10)
	c.data = true
	c.queues = "  - {name: kept, replicas: 2}\n  - {name: disk, durable: true}\n"
	c.run(3)
	ctx := t.Context()
	at := c.clients(1, client.WithTry(2*time.Second), client.WithPatience(20*time.Second))[0]
	for _, name := range []string{"kept", "disk", "memory"} {
		q := at.Queue(name)
		var items []client.New
		for i := range 60 {
			items = append(items, client.New{ID: fmt.Sprintf("%02d", i), Priority: uint32(i / 20)})
		}
		if results, err := q.PutAll(ctx, items); err != nil || len(results) != 60 {
			t.Fatalf("%s: %v", name, err)
		}
		var receipts []string
		for len(receipts) < 10 {
			taken, err := q.Take(ctx, client.Want{Items: 10 - len(receipts), Lease: 20 * time.Second, Wait: 5 * time.Second})
			if err != nil || len(taken.Leases) == 0 {
				t.Fatalf("%s: %+v, %v", name, taken, err)
			}
			for _, l := range taken.Leases {
				receipts = append(receipts, l.Receipt)
			}
		}
		if errs, err := q.AckAll(ctx, receipts[:5]); err != nil {
			t.Errorf("%s: %v", name, errs)
		}
		if lasts, err := q.ExtendAll(ctx, receipts[5:], time.Hour); err != nil {
			t.Errorf("%s: %v", name, lasts)
		}
		if n, missing, err := q.Purge(ctx); n != 50 || len(missing) > 0 || err != nil {
			t.Errorf("%s: purged %d, missing %v, %v", name, n, missing, err)
		}
		if _, err := q.PutAll(ctx, []client.New{{ID: "after"}, {ID: "wards"}}); err != nil {
			t.Error(err)
		}
		if _, err := q.Change(ctx, "wards", client.Change{Payload: []byte("changed"), NotBefore: time.Now().Add(time.Hour)}); err != nil {
			t.Error(err)
		}
		if i, err := q.Change(ctx, "wards", client.Change{NotBefore: time.Unix(1, 0)}); err != nil || i.State != client.Ready {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
	}
	c.phase("kill all")
	for _, p := range c.nodes {
		p.kill()
	}
	for _, p := range c.nodes {
		p.start(0)
	}
	c.serving(3)
	for name, want := range map[string][2]uint64{"kept": {2, 5}, "disk": {2, 5}} {
		var has client.Counts
		c.until("the items of "+name, 20*time.Second, func() bool {
			var err error
			has, err = at.Queue(name).Len(ctx)
			return err == nil && len(has.Missing) == 0
		})
		if got := [2]uint64{has.Ready, has.Leased}; got != want {
			t.Errorf("%s: %v are ready and leased, want %v", name, got, want)
		}
		if l, err := at.Queue(name).Peek(ctx, 2); err != nil || len(l.Items) != 2 || string(l.Items[1].Payload) != "changed" {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}
