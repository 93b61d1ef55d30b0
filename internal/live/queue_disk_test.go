package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/anteroom/anteroom/client"
)

// smallDisk is a disk of its own for a node's data, which a test can fill.
type smallDisk struct {
	t   *testing.T
	dir string
}

func newSmallDisk(t *testing.T, dir string, megabytes int) *smallDisk {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", megabytes)); err != nil {
		needsRoot(t, "a disk of its own", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil { // a node may have it open yet
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return &smallDisk{t, dir}
}

func (d *smallDisk) ballast() string { return filepath.Join(d.dir, "ballast") }

// fill leaves not a byte.
func (d *smallDisk) fill() {
	d.t.Helper()
	f, err := os.Create(d.ballast())
	if err != nil {
		d.t.Fatal(err)
	}
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if err := f.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatal(err)
	}
}

func (d *smallDisk) empty() {
	d.t.Helper()
	if err := os.Remove(d.ballast()); err != nil {
		d.t.Fatal(err)
	}
}

// kept are the items that were put, by id: whether that was acknowledged.
type kept struct {
	mu   sync.Mutex
	puts map[string]bool
}

func (k *kept) note(id string, acknowledged bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.puts[id] = acknowledged
}

func (k *kept) count() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, acknowledged := range k.puts {
		if acknowledged {
			n++
		}
	}
	return n
}

// payloadOf is what an item has: enough to fill a disk.
func payloadOf(id string) []byte { return []byte(id + strings.Repeat("x", 10<<10)) }

// put puts items by eight hands until one is refused with an error that is why, or all n are in.
func (k *kept) put(t *testing.T, q *client.Queue, name string, n int, why error) (refused bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var hands sync.WaitGroup
	var mu sync.Mutex
	for h := range 8 {
		hands.Go(func() {
			for i := h; i < n && ctx.Err() == nil; i += 8 {
				id := fmt.Sprintf("%s-%d", name, i)
				_, err := q.Put(t.Context(), client.New{ID: id, Payload: payloadOf(id)})
				k.note(id, err == nil)
				if err == nil {
					continue
				}
				if !errors.Is(err, why) {
					t.Errorf("put: %v, want %v", err, why)
				}
				mu.Lock()
				refused = true
				mu.Unlock()
				cancel()
			}
		})
	}
	hands.Wait()
	return refused
}

// drain takes and acknowledges all, and checks that it is what was put.
func (k *kept) drain(c *cluster, q *client.Queue, done map[string]bool) {
	c.t.Helper()
	seen := map[string]bool{}
	held := func() bool { // by whoever took it and was not answered
		n, err := q.Len(c.t.Context())
		return err == nil && n.Ready+n.Leased > 0
	}
	for began, idle := time.Now(), time.Now(); time.Since(idle) < 6*time.Second || held() && time.Since(began) < 90*time.Second; {
		taken, err := q.Take(c.t.Context(), client.Want{Items: 50, Lease: 30 * time.Second, Wait: time.Second})
		if err != nil {
			continue // nodes were just lost
		}
		for _, l := range taken.Leases {
			idle = time.Now()
			_, put := k.puts[l.ID]
			if !put || seen[l.ID] || done[l.ID] || string(l.Payload) != string(payloadOf(l.ID)) {
				c.t.Errorf("%s: put %v, twice %v, acknowledged %v, %d bytes", l.ID, put, seen[l.ID], done[l.ID], len(l.Payload))
			}
			if err := l.Ack(c.t.Context()); err != nil {
				c.t.Errorf("ack %s: %v", l.ID, err)
			}
			seen[l.ID] = true
		}
	}
	lost := 0
	for id, acknowledged := range k.puts {
		if acknowledged && !seen[id] && !done[id] {
			lost++
		}
	}
	if lost > 0 {
		c.t.Errorf("%d of %d acknowledged items are lost", lost, k.count())
	}
	c.phase("%d of %d items came, %d were acknowledged", len(seen)+len(done), len(k.puts), k.count())
}

func isStorageFull(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && e.Reason == client.ErrStorageFull && e.Code == codes.ResourceExhausted
}

// hasAll fails the test unless the queue shows all that is in it.
func (c *cluster) hasAll(q *client.Queue, what string, want int) {
	c.t.Helper()
	n, err := q.Len(c.t.Context())
	if err != nil || n.Ready+n.Leased != uint64(want) || len(n.Missing) > 0 {
		c.t.Errorf("%s: Len = %+v %v, want %d", what, n, err, want)
	}
	if l, err := q.Peek(c.t.Context(), 1); err != nil || len(l.Items) != 1 {
		c.t.Errorf("%s: Peek = %d items, %v", what, len(l.Items), err)
	}
}

// fillLog has the log write, until there is no room for another file of it.
func fillLog(t *testing.T, q *client.Queue) {
	t.Helper()
	var hands sync.WaitGroup
	for range 8 {
		hands.Go(func() {
			for {
				// What is leased when there is no room stays so for that long.
				taken, err := q.Take(t.Context(), client.Want{Items: 20, Lease: 20 * time.Second})
				for _, l := range taken.Leases {
					if err != nil {
						break // each of the others would be patient for as long
					}
					err = l.Nack(t.Context(), 0, strings.Repeat("why ", 250))
				}
				if isStorageFull(err) {
					return
				}
				if err != nil {
					t.Errorf("what fills the log: %v", err)
					return
				}
			}
		})
	}
	hands.Wait()
}

// A durable queue whose disk is full says so, shows what it has, and goes on by
// itself when there is room.
func TestQueueOnAFullDiskSaysSoAndGoesOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	c.data, c.queues = true, "  - {name: jobs, durable: true, max_attempts: 0}\n"
	disk := newSmallDisk(t, c.file("node-1"), 40)
	c.run(1)
	n := c.nodes[0]
	q := n.client(t, client.WithPatience(4*time.Second)).Queue("jobs")
	k := &kept{puts: map[string]bool{}}
	done := map[string]bool{}

	if !k.put(t, q, "first", 100_000, client.ErrStorageFull) {
		t.Fatal("the disk is never full")
	}
	c.phase("%d items are in, then: nearly full", k.count())
	c.hasAll(q, "nearly full", k.count())
	if full, free := n.metric("anteroom_queue_storage_full"), n.metric("anteroom_queue_storage_free_bytes"); full != 1 || free <= 0 {
		t.Errorf("metrics: full %v, free %v", full, free)
	}
	if w := strings.Join(n.cluster().Warnings, "\n"); !strings.Contains(w, "storage_full") || !strings.Contains(w, disk.dir) {
		t.Errorf("status warns of %q", w)
	}
	if !strings.Contains(n.log.String(), "the disk is nearly full") {
		t.Error("nobody was warned before")
	}
	for range 20 { // what is in can be worked off
		taken, err := q.Take(t.Context(), client.Want{Lease: time.Minute})
		if err != nil || len(taken.Leases) != 1 {
			t.Fatalf("take from a disk that is nearly full: %d, %v", len(taken.Leases), err)
		}
		if err := taken.Leases[0].Ack(t.Context()); err != nil {
			t.Fatalf("ack on a disk that is nearly full: %v", err)
		}
		done[taken.Leases[0].ID] = true
	}

	disk.fill()
	fillLog(t, q)
	if _, err := q.Take(t.Context(), client.Want{Lease: time.Second}); !isStorageFull(err) {
		t.Errorf("take from a full disk: %v", err)
	}
	if _, err := q.Put(t.Context(), client.New{ID: "refused"}); !isStorageFull(err) {
		t.Errorf("put on a full disk: %v", err)
	}
	c.hasAll(q, "full", k.count()-len(done))

	disk.empty()
	c.until("room, and nobody restarted anything", 20*time.Second, func() bool {
		taken, err := q.Take(t.Context(), client.Want{Lease: time.Minute})
		if err != nil || len(taken.Leases) != 1 || taken.Leases[0].Ack(t.Context()) != nil {
			return false
		}
		done[taken.Leases[0].ID] = true
		return true
	})
	n.kill()
	n.start(1)
	c.serving(1)
	k.drain(c, n.client(t).Queue("jobs"), done)
	c.until("room, where what was worked off has been", 30*time.Second, func() bool { return n.metric("anteroom_queue_storage_full") == 0 })
	if k.put(t, q, "last", 100, client.ErrStorageFull) {
		t.Error("what was worked off takes room yet")
	}
}

// One of three replicas has a full disk: the others go on, and when there is room
// it catches up, so that another one may be lost then.
func TestReplicaWithAFullDiskComesBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	c.data, c.queues = true, "  - {name: jobs, replicas: 2, max_attempts: 0}\n"
	if os.Getenv("ANTEROOM_E2E") == "" {
		return
	}
	disk := newSmallDisk(t, c.file("node-2"), 96)
	c.run(3)
	q := c.clients(1, client.WithPatience(20*time.Second))[0].Queue("jobs")
	k := &kept{puts: map[string]bool{}}
	k.put(t, q, "first", 200, nil)
	disk.fill()
	k.put(t, q, "second", 2000, nil)
	full := c.nodes[1]
	c.until("node-2 says that its disk is full", 20*time.Second, func() bool {
		return full.metric("anteroom_queue_storage_full") == 1 && strings.Contains(strings.Join(full.cluster().Warnings, " "), "storage_full")
	})
	c.hasAll(q, "with a full replica", k.count())
	disk.empty()
	k.put(t, q, "third", 200, nil)
	c.until("node-2 has room", 30*time.Second, func() bool {
		return full.metric("anteroom_queue_storage_full") == 0 && full.metric("anteroom_queue_log_ready") == 1
	})
	// Of the other two the one with all is taken away: now it takes node-2.
	for _, n := range []*process{c.nodes[0], c.nodes[2]} {
		n.kill()
		c.until("puts without "+n.id, 60*time.Second, func() bool {
			id := "without-" + n.id
			_, err := q.Put(t.Context(), client.New{ID: id, Payload: payloadOf(id)})
			k.note(id, err == nil)
			return err == nil
		})
		n.start(0)
		c.serving(3)
	}
	k.drain(c, q, nil)
}
