package live

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/client"
)

// A node whose queues' disk has not a byte free when it starts does all that needs
// none: visitors go in, its operators see why the queues on that disk refuse, other
// queues go on; and so do those, by themselves, when there is room. It is tried with
// a log that there is, and with none.
func TestNodeStartsOnAFullDisk(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	c.data, c.queues = true, "  - {name: jobs, durable: true, max_attempts: 0}\n"
	disk := newSmallDisk(t, filepath.Join(c.file("node-1"), "queues"), 40)
	disk.fill()
	c.run(1)
	n := c.nodes[0]
	q := n.client(t, client.WithPatience(20*time.Second)).Queue("jobs")
	k := &kept{puts: map[string]bool{}}
	n.enter("")
	n.goesOnWithout(disk)
	hasRoom := func() bool {
		return n.metric("anteroom_queue_storage_full") == 0 && n.metric("anteroom_queue_log_ready") == 1
	}
	disk.empty()
	c.until("room for a log", 60*time.Second, hasRoom)
	k.put(t, q, "first", 40, nil)

	n.kill()
	disk.fill()
	n.start(1)
	c.serving(1)
	n.goesOnWithout(disk)
	disk.empty()
	c.until("room, and nobody restarted anything", 60*time.Second, hasRoom)
	c.hasAll(q, "with room", k.count())
	k.put(t, q, "second", 10, nil)
	all := map[string]bool{}
	for len(all) < k.count() {
		taken, err := q.Take(t.Context(), client.Want{Items: 50, Lease: time.Minute, Wait: 5 * time.Second})
		if err != nil || len(taken.Leases) == 0 {
			t.Fatalf("%d of %d items came: %v", len(all), k.count(), err)
		}
		for _, l := range taken.Leases {
			if !k.puts[l.ID] || all[l.ID] || string(l.Payload) != string(payloadOf(l.ID)) {
				t.Errorf("%s: twice %v, %d bytes", l.ID, all[l.ID], len(l.Payload))
			}
			all[l.ID] = true
			if err := l.Ack(t.Context()); err != nil {
				t.Errorf("ack %s: %v", l.ID, err)
			}
		}
	}
}

// goesOnWithout fails the test unless all goes on but for the queues on a full disk,
// which say why.
func (p *process) goesOnWithout(disk *smallDisk) {
	t, c := p.c.t, p.c
	t.Helper()
	c.until("a warning", 20*time.Second, func() bool {
		w := strings.Join(p.cluster().Warnings, "\n")
		return strings.Contains(w, "storage_full") && strings.Contains(w, disk.dir)
	})
	c.until("metrics", 20*time.Second, func() bool {
		return p.metric("anteroom_queue_storage_full") == 1 && p.metric("anteroom_queue_log_ready") == 0
	})
	jobs := p.client(t, client.WithPatience(time.Second)).Queue("jobs")
	memory := p.client(t, client.WithPatience(20*time.Second)).Queue("memory")
	c.until("refusal of all that needs the disk", 30*time.Second, func() bool { return refusesAll(t, jobs) })
	if _, err := memory.Put(t.Context(), client.New{ID: "a"}); err != nil {
		t.Errorf("put into a queue in memory: %v", err)
	}
	if taken, err := memory.Take(t.Context(), client.Want{Lease: time.Minute, Wait: 20 * time.Second}); err != nil || len(taken.Leases) != 1 {
		t.Errorf("take from a queue in memory: %+v, %v", taken, err)
	} else if err := taken.Leases[0].Ack(t.Context()); err != nil {
		t.Error(err)
	}
	if status, page := p.browse(""); status != http.StatusOK || page == "" {
		t.Errorf("the gateway says %d: %.200s", status, page)
	}
}

// refusesAll reports whether all calls about a queue say that its disk is full.
func refusesAll(t testing.TB, q *client.Queue) bool {
	t.Helper()
	errs := make([]error, 4)
	var calls sync.WaitGroup
	calls.Go(func() { _, errs[0] = q.Put(t.Context(), client.New{ID: "refused"}) })
	calls.Go(func() { _, errs[1] = q.Take(t.Context(), client.Want{Lease: time.Second}) })
	calls.Go(func() { _, errs[2] = q.Len(t.Context()) })
	calls.Go(func() { _, errs[3] = q.Peek(t.Context(), 1) })
	calls.Wait()
	if slices.Contains(errs, nil) {
		t.Errorf("put, take, len and peek: %v", errs)
	}
	return !slices.ContainsFunc(errs, func(err error) bool { return !isStorageFull(err) })
}
