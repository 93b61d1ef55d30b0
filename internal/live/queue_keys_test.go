package live

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/client"
)

// kinds are the kinds of queue, and what makes one in a node's file.
var kinds = []struct{ name, key string }{{"memory", "replicas: 1"}, {"disk", "durable: true"}, {"kept", "replicas: 2"}}

// held is a lease for as long as it stood for sure.
type held struct {
	id, key  string
	from, to time.Time
}

// holders take items with keys, hold each for a moment and acknowledge it.
type holders struct {
	forget bool // a node that is killed takes its leases along, with their items
	mu     sync.Mutex
	all    []held
}

func (h *holders) work(ctx context.Context, q *client.Queue, lease time.Duration) {
	for ctx.Err() == nil {
		taken, err := q.Take(ctx, client.Want{Lease: lease, Wait: time.Second})
		if err != nil || len(taken.Leases) == 0 {
			continue // its node is down, or all keys are leased
		}
		l := taken.Leases[0]
		rest(ctx, holdFor)
		to := time.Now()
		if err := l.Ack(context.WithoutCancel(ctx)); err != nil && !h.forget {
			to = l.Until // nobody knows: it is another's after that
		}
		h.mu.Lock()
		h.all = append(h.all, held{l.ID, l.Key, l.Until.Add(-lease), to})
		h.mu.Unlock()
	}
}

func (h *holders) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

const (
	holdFor = 100 * time.Millisecond
	// A lease is stamped by its node's own clock, that of passes, which is not quite the
	// machine's.
	stampedEarly = 50 * time.Millisecond
)

// together returns how many leases stood at once at most, and those of one key that did.
func together(all []held) (most int, wrong []string) {
	slices.SortFunc(all, func(a, b held) int { return a.from.Compare(b.from) })
	for i, a := range all {
		n := 1
		for _, b := range all[:i] {
			if !b.to.After(a.from.Add(stampedEarly)) {
				continue
			}
			n++
			if a.key == b.key {
				wrong = append(wrong, fmt.Sprintf("%s and %s of %s: the one until %s, the other from %s", b.id, a.id, a.key, clock(b.to), clock(a.from)))
			}
		}
		most = max(most, n)
	}
	return most, wrong
}

// Of the items of a key one is leased at a time, and of all so many, while a node is
// killed and comes back; and all that nobody's memory has lost is done in the end.
func TestKeysAreExclusiveThroughAKill(t *testing.T) {
	t.Parallel()
	const keys, each, slots, lease = 6, 14, 3, 2 * time.Second
	c := newCluster(t, 10)
	c.data = true
	for _, kind := range kinds {
		c.queues += fmt.Sprintf("  - {name: keyed/%s, %s, exclusive_keys: true, max_in_flight: %d, lease: %v, lease_max: %[4]v, max_attempts: 0}\n", kind.name, kind.key, slots, lease)
	}
	c.run(3)
	all := c.clients(6, client.WithTry(2*time.Second), client.WithPatience(20*time.Second))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working sync.WaitGroup
	done := map[string]*holders{}
	for _, kind := range kinds {
		name := "keyed/" + kind.name
		var items []client.New
		for i := range keys * each {
			items = append(items, client.New{ID: fmt.Sprintf("item-%02d", i), Key: fmt.Sprint("key-", i%keys)})
		}
		if _, err := all[0].Queue(name).PutAll(ctx, items); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range kinds { // once all are in: the last log is founded first
		h := &holders{forget: kind.name == "memory"}
		done[kind.name] = h
		for _, at := range all {
			working.Go(func() { h.work(ctx, at.Queue("keyed/"+kind.name), lease) })
		}
	}
	for _, kind := range kinds {
		c.await("some of keyed/"+kind.name, 30*time.Second, func() bool { return done[kind.name].count() > keys*each/8 })
	}
	c.nodes[1].kill()
	c.phase("killed %s, when %d, %d and %d of %d were done", c.nodes[1].id, done["memory"].count(), done["disk"].count(), done["kept"].count(), keys*each)
	rest(ctx, time.Second)
	c.nodes[1].start(0)
	c.serving(3)
	for _, kind := range kinds {
		c.until("no item in keyed/"+kind.name, 60*time.Second, func() bool {
			n, err := all[0].Queue("keyed/" + kind.name).Len(ctx)
			return err == nil && n.Ready+n.Leased+n.Delayed == 0 && len(n.Missing) == 0
		})
	}
	stop()
	working.Wait()
	for _, kind := range kinds {
		h := done[kind.name]
		most, wrong := together(h.all)
		ids := map[string]bool{}
		for _, l := range h.all {
			ids[l.id] = true
		}
		c.phase("%s: %d of %d items, %d leases, %d at once at most", kind.name, len(ids), keys*each, len(h.all), most)
		c.none(kind.name, "of one key at once", wrong)
		if most > slots || kind.name != "memory" && len(ids) != keys*each {
			t.Errorf("%s: %d leases at once, and %d may be; %d of %d items came", kind.name, most, slots, len(ids), keys*each)
		}
	}
}

// Keys take turns, before a node is killed and once it is back.
func TestKeysTakeTurnsThroughAKill(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	c.data = true
	for _, kind := range kinds {
		c.queues += fmt.Sprintf("  - {name: fair/%s, %s, fair_keys: true}\n", kind.name, kind.key)
	}
	c.run(3)
	at := c.clients(1, client.WithTry(2*time.Second), client.WithPatience(20*time.Second))[0]
	keys := map[string]int{"noisy": 40, "a": 8, "b": 8, "c": 8, "d": 8}
	for _, kind := range kinds {
		var items []client.New
		for _, key := range []string{"noisy", "a", "b", "c", "d"} {
			for i := range keys[key] {
				items = append(items, client.New{ID: fmt.Sprintf("%s-%02d", key, i), Key: key})
			}
		}
		if _, err := at.Queue("fair/"+kind.name).PutAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		c.inTurn(at, "fair/"+kind.name, 15)
	}
	c.nodes[1].kill()
	c.phase("killed %s", c.nodes[1].id)
	c.nodes[1].start(0)
	c.serving(3)
	for _, kind := range kinds {
		q := at.Queue("fair/" + kind.name)
		var has client.Counts
		c.until("all of "+q.Name(), 30*time.Second, func() (ok bool) {
			var err error
			has, err = q.Len(t.Context())
			return err == nil && len(has.Missing) == 0
		})
		if want := uint64(40 + 4*8 - 15); kind.name != "memory" && has.Ready != want {
			t.Errorf("%s: %d items are left, want %d", q.Name(), has.Ready, want)
		}
		c.inTurn(at, q.Name(), int(has.Ready))
	}
}

// inTurn takes n items, one after the other: before each of a key goes one of another
// key at most, as long as there are any, and those of a key come in their order.
func (c *cluster) inTurn(at *client.Client, queue string, n int) {
	c.t.Helper()
	var got []string
	last := map[string]string{}
	since := map[string]map[string]int{} // by key: of each other one, how many went since its last one
	left := map[string]int{}
	list, err := at.Queue(queue).Peek(c.t.Context(), 1000)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, i := range list.Items {
		left[i.Key]++
		since[i.Key] = map[string]int{}
	}
	for range n {
		taken, err := at.Queue(queue).Take(c.t.Context(), client.Want{Lease: time.Minute, Wait: 5 * time.Second})
		if err != nil || len(taken.Leases) != 1 {
			c.t.Fatalf("%s, after %v: %+v, %v", queue, got, taken, err)
		}
		l := taken.Leases[0]
		if err := l.Ack(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
		got = append(got, l.ID)
		if l.ID < last[l.Key] {
			c.t.Errorf("%s: %s comes after %s: %v", queue, l.ID, last[l.Key], got)
		}
		last[l.Key], since[l.Key] = l.ID, map[string]int{}
		left[l.Key]--
		for key, passed := range since {
			if passed[l.Key]++; key != l.Key && left[key] > 0 && passed[l.Key] > 1 {
				c.t.Errorf("%s: %s is the second of %s to go before the next of %s: %v", queue, l.ID, l.Key, key, got)
			}
		}
	}
	c.phase("%s: %v", queue, got)
}
