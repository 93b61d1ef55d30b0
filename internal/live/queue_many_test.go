package live

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/client"
)

var many = flag.Int("items", 1600, "items of each kind of queue in TestManyItemsOfRandomPriority")

// Items of random priority are put and taken at three nodes at once, and then put, and
// taken when all are in: in each kind of queue, none is lost, none comes twice, and they
// are in order, but for those that came a moment ago where no log is led, and those of a
// node of which the take says that it is missing.
func TestManyItemsOfRandomPriority(t *testing.T) {
	const workers = 6
	c := newCluster(t, 10)
	c.data = true
	for _, kind := range kinds {
		c.queues += fmt.Sprintf("  - {name: many/%s, %s, max_attempts: 0}\n", kind.name, kind.key)
	}
	c.run(3)
	var at []*client.Client
	for i := range workers {
		at = append(at, c.nodes[i%3].client(t, client.WithPatience(30*time.Second)))
	}
	for _, kind := range kinds {
		name := "many/" + kind.name
		busy, quiet := &history{}, &history{}
		var group sync.WaitGroup
		for who, cl := range at {
			w := &batches{toil: toil{queue: cl.Queue(name), who: who, r: rand.New(rand.NewPCG(uint64(who), 3)), lease: time.Minute}}
			group.Go(func() {
				w.h = busy
				for n := *many / 2 / workers; w.puts < n; {
					w.put(t.Context(), min(1+w.r.IntN(20), n-w.puts))
					w.take(t.Context(), 1+w.r.IntN(20))
				}
			})
		}
		group.Wait()
		c.emptiedBy(at, name, busy)
		for who, cl := range at {
			w := &batches{toil: toil{queue: cl.Queue(name), h: quiet, who: workers + who, r: rand.New(rand.NewPCG(uint64(who), 4)), lease: time.Minute}}
			group.Go(func() {
				for n := *many / 2 / workers; w.puts < n; {
					w.put(t.Context(), min(200, n-w.puts))
				}
			})
		}
		group.Wait()
		c.emptiedBy(at[:1], name, quiet)
		for what, h := range map[string]*history{"put and taken at once": busy, "at rest": quiet} {
			all, o := c.told(name+", "+what, h)
			if want := *many / 2 / workers * workers; len(all) != want {
				t.Errorf("%s, %s: %d items of %d were seen", name, what, len(all), want)
			}
			c.none(name, "lost", lost(all))
			c.none(name, "delivered twice", twice(all))
			c.none(name, "out of order in an answer", h.wrong)
			if (h == quiet || kind.name == "kept") && o.count > 0 || o.age > overtakenMax {
				t.Errorf("%s, %s: %d overtakings of %d pairs, within %v: %s", name, what, o.count, len(all)*(len(all)-1)/2, o.age, o.which)
			}
			if kind.name == "kept" && (o.excused > 0 || o.clocks > 0) || o.clocks > clocksMax {
				t.Errorf("%s, %s: clocks differ by %v, and %d overtakings are of nodes that were said to be missing", name, what, o.clocks, o.excused)
			}
		}
	}
}

// While a node stands still the others go on without what it keeps. Every take that passes
// it over says so, and none does when it is back.
func TestTakesSayThatANodeIsMissing(t *testing.T) {
	c := newCluster(t, 10)
	c.queues = "  - {name: spread, max_attempts: 0}\n"
	c.run(3)
	at := []*client.Client{c.nodes[0].client(t, client.WithPatience(30*time.Second)), c.nodes[1].client(t, client.WithPatience(30*time.Second))}
	h := &history{}
	w := &batches{toil: toil{queue: at[0].Queue("spread"), h: h, lease: 5 * time.Second}}
	for i := range 150 {
		d := done{what: "put", id: fmt.Sprintf("%d@node-%d", i, i%3+1), priority: uint32(2 - i%3)} // the lightest at the last
		w.record(d, func(*done) error {
			_, err := w.queue.Put(t.Context(), client.New{ID: d.id, Priority: d.priority, Payload: []byte(d.id)})
			return err
		})
	}
	c.phase("node-3 stands still")
	c.nodes[2].standStill()
	c.until("items without it", 30*time.Second, func() bool { return w.take(t.Context(), 3) > 0 && len(w.missing) > 0 })
	for range 5 {
		w.take(t.Context(), 3)
	}
	c.nodes[2].signal(syscall.SIGCONT)
	c.serving(3)
	c.emptiedBy(at, "spread", h)
	all, o := c.told("spread", h)
	c.none("spread", "lost", lost(all))
	c.none("spread", "delivered twice", twice(all))
	c.none("spread", "out of order in an answer", h.wrong)
	if o.count > 0 || o.excused == 0 {
		t.Errorf("%d overtakings without a word, and %d that were told of: %s", o.count, o.excused, o.which)
	}
	if found := w.take(t.Context(), 1); found > 0 || len(w.missing) > 0 {
		t.Errorf("when all is taken, a take brings %d, and misses %v", found, w.missing)
	}
}

// batches is a client that puts, takes and acknowledges many at a time.
type batches struct {
	toil
	missing []string // as the last take has said
}

func (w *batches) put(ctx context.Context, n int) {
	var items []client.New
	var all []done
	for range n {
		w.puts++
		d := done{what: "put", id: fmt.Sprintf("%d-%d", w.who, w.puts), priority: uint32(w.r.IntN(1000))}
		all = append(all, d)
		items = append(items, client.New{ID: d.id, Priority: d.priority, Payload: []byte(d.id)})
	}
	began := time.Now()
	_, err := w.queue.PutAll(ctx, items)
	w.note(all, began, err)
}

func (w *batches) note(all []done, began time.Time, err error) {
	now := time.Now()
	for _, d := range all {
		d.call, d.end, d.err = began, now, err
		w.h.add(d)
	}
}

// take takes up to n items, which must be in order, and acknowledges them.
func (w *batches) take(ctx context.Context, n int) (found int) {
	began := time.Now()
	taken, err := w.queue.Take(ctx, client.Want{Items: n, Lease: w.lease, Wait: 20 * time.Millisecond})
	w.missing = taken.Missing
	var all, acks []done
	var receipts []string
	for i, l := range taken.Leases {
		if i > 0 {
			last := taken.Leases[i-1]
			if l.Priority < last.Priority || l.Priority == last.Priority && l.InsertedAt.Before(last.InsertedAt) {
				w.h.isWrong(fmt.Sprintf("%s (priority %d) comes after %s (%d) in one answer", l.ID, l.Priority, last.ID, last.Priority))
			}
		}
		all = append(all, came(l, w.lease, taken.Missing))
		acks = append(acks, done{what: "ack", id: l.ID, receipt: l.Receipt})
		receipts = append(receipts, l.Receipt)
	}
	w.note(all, began, err)
	if len(receipts) > 0 {
		began = time.Now()
		_, err = w.queue.AckAll(ctx, receipts)
		w.note(acks, began, err)
	}
	return len(receipts)
}

// emptiedBy has clients take all that is left of a queue.
func (c *cluster) emptiedBy(at []*client.Client, name string, h *history) {
	c.t.Helper()
	c.until("no item in "+name, 2*time.Minute, func() bool {
		var group sync.WaitGroup
		for who, cl := range at {
			w := &batches{toil: toil{queue: cl.Queue(name), h: h, who: who, lease: time.Minute}}
			group.Go(func() {
				for w.take(c.t.Context(), 50) > 0 {
				}
			})
		}
		group.Wait()
		n, err := at[0].Queue(name).Len(c.t.Context())
		return err == nil && n.Ready+n.Delayed+n.Leased == 0 && len(n.Missing) == 0
	})
}
