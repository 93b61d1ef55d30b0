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
	for kind, key := range map[string]string{"kept": "replicas: 2", "disk": "durable: true", "memory": "replicas: 1"} {
		c.queues += fmt.Sprintf("  - {name: failing/%s, %s, max_attempts: 2, backoff: {base: 2s}, dead_letter_queue: dead/%[1]s}\n  - {name: dead/%[1]s, %s}\n", kind, key)
	}
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
	c.phase("letters")
	fail(t, c, at)
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
		c.until("its letter and settings", 20*time.Second, func() bool {
			s, err := at.Queue("failing/" + name).Settings(ctx)
			return err == nil && s.MaxAttempts == 7 && s.ChangedBy != "" && letter(t, at, name)
		})
	}
}

// fail has an item come to nothing, twice, in a queue of each kind that has a backoff
// and a dead letter queue. Then the queues are given more attempts.
func fail(t *testing.T, c *cluster, at *client.Client) {
	t.Helper()
	const lease = time.Minute
	ctx, kinds := t.Context(), []string{"kept", "disk", "memory"}
	take := func(q *client.Queue) *client.Lease {
		taken, err := q.Take(ctx, client.Want{Lease: lease, Wait: 30 * time.Second})
		if err != nil || len(taken.Leases) != 1 || taken.Leases[0].ID != "letter" {
			t.Fatalf("%s: %+v, %v", q.Name(), taken, err)
		}
		return taken.Leases[0]
	}
	ready := map[string]time.Time{} // when it is to be, by the clock of who keeps it
	for _, kind := range kinds {
		q := at.Queue("failing/" + kind)
		if _, err := q.Put(ctx, client.New{ID: "letter"}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := take(q).Nack(ctx, 0, "not now"); err != nil {
			t.Fatal(err)
		}
		i, err := q.Change(ctx, "letter", client.Change{Payload: []byte("to Ada")})
		if err != nil || i.State != client.Delayed || i.NotBefore.Before(began.Add(time.Second)) {
			t.Errorf("%s: given back at %v: %+v, %v", q.Name(), began, i, err)
		}
		ready[kind] = i.NotBefore
	}
	for _, kind := range kinds {
		q := at.Queue("failing/" + kind)
		l := take(q)
		if given := l.Until.Add(-lease); given.Before(ready[kind]) || l.Attempts != 2 {
			t.Errorf("%s: it is to wait until %v, and comes at %v: %+v", q.Name(), ready[kind], given, l.Item)
		}
		if err := l.Nack(ctx, 0, "no such user"); err != nil {
			t.Fatal(err)
		}
		c.until("the letter of "+kind, 20*time.Second, func() bool { return letter(t, at, kind) })
		if s, missing, err := q.Configure(ctx, client.NewSettings{MaxAttempts: new(uint32(7))}); err != nil || s.MaxAttempts != 7 {
			t.Errorf("%s: %+v, missing %v, %v", q.Name(), s, missing, err)
		}
	}
}

// letter reports whether the dead letter queue of a kind has the letter, and nothing else.
func letter(t *testing.T, at *client.Client, kind string) bool {
	t.Helper()
	l, err := at.Queue("dead/"+kind).Peek(t.Context(), 2)
	if err != nil || len(l.Items) != 1 {
		return false
	}
	i := l.Items[0]
	return i.ID == "letter" && i.OriginQueue == "failing/"+kind && i.Reason == "no such user" && string(i.Payload) == "to Ada"
}
