package live

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/client"
)

// script is the code block in docs/queue.md that is marked as this test's, with
// the nodes of this cluster.
func (c *cluster) script() string {
	c.t.Helper()
	text, err := os.ReadFile("../../docs/queue.md")
	if err != nil {
		c.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- test: internal/live TestTheJobRunnerOfTheDocs -->\n```sh\n")
	s, _, ok := strings.Cut(rest, "```")
	if lines := strings.Count(s, "\n"); !ok || lines > 10 {
		c.t.Fatalf("the runner in docs/queue.md has %d lines; it says ten at most:\n%s", lines, s)
	}
	for i, p := range c.nodes {
		s = strings.ReplaceAll(s, fmt.Sprintf("10.0.0.%d:7002", i+1), p.grpc())
	}
	name := c.file("jobs")
	if err := os.WriteFile(name, []byte(s), 0o700); err != nil {
		c.t.Fatal(err)
	}
	return name
}

func TestTheJobRunnerOfTheDocs(t *testing.T) {
	t.Parallel()
	const photos = 60
	c := newCluster(t, 10)
	c.data = true
	c.queues = "  - {name: images, replicas: 2}\n"
	c.run(3)
	jobs := c.script()
	for _, dir := range []string{"photos", "small", "bin"} {
		if err := os.Mkdir(c.file(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range photos {
		if err := os.WriteFile(c.file(fmt.Sprintf("photos/%02d.png", i)), []byte("a photo"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// An image takes half a second, and a copy will do.
	if err := os.WriteFile(c.file("bin/convert"), []byte("#!/bin/sh\nsleep 0.5; cp \"$1\" \"$4\"; echo done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(c.binary, c.file("bin/anteroom")); err != nil {
		t.Fatal(err)
	}
	command := func(arg string) *exec.Cmd {
		cmd := exec.Command(jobs, arg)
		cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "PATH="+c.file("bin")+":"+os.Getenv("PATH"))
		return cmd
	}
	if out, err := command("put").CombinedOutput(); err != nil || strings.Count(string(out), "\n") != photos {
		t.Fatalf("put: %v\n%s", err, out)
	}
	c.phase("%d jobs are put", photos)
	logs := make([]journal, 2)
	var runners []*exec.Cmd
	for i := range logs {
		r := command("run")
		r.Stdout, r.Stderr = &logs[i], &logs[i]
		r.WaitDelay = time.Second
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		runners = append(runners, r)
	}
	defer func() {
		for i, r := range runners {
			_ = r.Process.Kill()
			_ = r.Wait()
			if t.Failed() {
				t.Logf("runner %d:\n%s", i, &logs[i])
			}
		}
	}()
	small := func() int {
		names, _ := filepath.Glob(c.file("small/*.png"))
		return len(names)
	}
	c.until("ten small images", 30*time.Second, func() bool { return small() >= 10 })
	c.nodes[1].kill()
	c.phase("killed node-2")
	c.until("twenty small images", 30*time.Second, func() bool { return small() >= 20 })
	_ = runners[0].Process.Kill()
	c.phase("killed a runner")
	c.until("all of them", time.Minute, func() bool { return small() == photos })
	q := dial(t, []string{c.nodes[0].grpc(), c.nodes[2].grpc()}).Queue("images")
	c.until("an empty queue", 20*time.Second, func() bool {
		n, err := q.Len(t.Context())
		return err == nil && n.Ready+n.Delayed+n.Leased+n.Dead == 0
	})
}

// grant is an item that went out at some time.
type grant struct {
	id string
	at time.Time // by the node's clock, which is the only one here
}

// grants are what takers at all nodes got.
type grants struct {
	mu  sync.Mutex
	all []grant
}

// takers take at nodes until ctx ends, one at each.
func (g *grants) takers(ctx context.Context, t *testing.T, nodes []*process) *sync.WaitGroup {
	var group sync.WaitGroup
	for _, p := range nodes {
		q := p.client(t, client.WithTry(time.Second), client.WithPatience(5*time.Second)).Queue("paced")
		group.Go(func() {
			for ctx.Err() == nil {
				taken, err := q.Take(ctx, client.Want{Items: 5, Lease: time.Minute, Wait: 2 * time.Second})
				if err != nil {
					rest(ctx, 100*time.Millisecond) // its node is down
				}
				for _, l := range taken.Leases {
					g.mu.Lock()
					g.all = append(g.all, grant{l.ID, l.Until.Add(-time.Minute)})
					g.mu.Unlock()
					_ = l.Ack(context.WithoutCancel(ctx))
				}
			}
		})
	}
	return &group
}

func (g *grants) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.all)
}

// The five promises of an interval queue, in the order of docs/queue.md.
func TestIntervalQueueKeepsItsPromises(t *testing.T) {
	const interval, slack = 300 * time.Millisecond, 20 * time.Millisecond // a lease's end is stamped on the way
	c := newCluster(t, 10)
	c.session = 2 * time.Second // a dead node is forgotten soon
	c.queues = fmt.Sprintf("  - {name: paced, interval: %v}\n", interval)
	c.run(3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	put := func(p *process, from, n int) {
		var items []client.New
		for i := range n {
			items = append(items, client.New{ID: fmt.Sprintf("item-%03d", from+i)})
		}
		if _, err := p.client(t, client.WithPatience(20*time.Second)).Queue("paced").PutAll(ctx, items); err != nil {
			t.Fatal(err)
		}
	}
	var g grants
	for i := range 12 {
		put(c.nodes[i%3], i, 1)
	}
	group := g.takers(ctx, t, c.nodes)
	c.until("the first items", 20*time.Second, func() bool { return g.count() >= 12 })
	if !slices.IsSortedFunc(g.all, func(a, b grant) int { return strings.Compare(a.id, b.id) }) {
		t.Errorf("1. they went out as %v", g.all)
	}
	rest(ctx, 5*interval) // a quiet time, after which nothing may come in a burst
	put(c.nodes[1], 100, 10)
	c.until("items after a quiet time", 20*time.Second, func() bool { return g.count() >= 16 })
	if missing, err := c.nodes[2].client(t).Queue("paced").Pause(ctx); err != nil || len(missing) > 0 {
		t.Fatalf("3. pause: missing %v, %v", missing, err)
	}
	rest(ctx, interval)
	was := g.count()
	c.stays("3. nothing comes out of a paused queue", 5*interval, func() bool { return g.count() == was })
	if _, err := c.nodes[1].client(t).Queue("paced").Resume(ctx); err != nil {
		t.Fatal(err)
	}
	c.until("all items", 20*time.Second, func() bool { return g.count() >= 22 })
	put(c.nodes[0], 200, 150) // ids have their homes all over the cluster, and none is to run out of items
	still := c.nodes[2]
	still.signal(syscall.SIGSTOP)
	c.phase("%s stands still", still.id)
	was = g.count()
	c.until("4. items from the others", 30*time.Second, func() bool { return g.count() > was+5 })
	still.signal(syscall.SIGCONT)
	c.until("it is back", 30*time.Second, func() bool { return c.inWaves(3) })
	was = g.count()
	c.until("4. items after it woke", 30*time.Second, func() bool { return g.count() > was+5 })
	for _, last := range []int{2, 1} {
		c.nodes[last].kill()
		c.phase("killed %s", c.nodes[last].id)
		was = g.count()
		c.until(fmt.Sprintf("4. items from the other %d", last), 30*time.Second, func() bool { return g.count() > was+5 })
		c.until("quorum without it", 30*time.Second, func() bool { return len(c.nodes[0].cluster().Voters) == last })
	}
	cancel()
	group.Wait()
	slices.SortFunc(g.all, func(a, b grant) int { return a.at.Compare(b.at) })
	least := time.Hour
	for i := 1; i < len(g.all); i++ {
		if d := g.all[i].at.Sub(g.all[i-1].at); d < least {
			least = d
		}
	}
	c.phase("%d items went out, the closest %v apart", len(g.all), least)
	if least < interval-slack {
		t.Errorf("2. and 5. two items went out within %v, the interval is %v", least, interval)
	}
}

func TestQueuesComeBackWhenAllNodesWereKilled(t *testing.T) {
	t.Parallel()
	const items = 40
	c := newCluster(t, 10)
	c.data = true
	c.queues = "  - {name: kept, replicas: 2}\n  - {name: disk, durable: true}\n"
	c.run(3)
	names := []string{"kept", "disk"}
	all := c.clients(1, client.WithPatience(30*time.Second))[0]
	for _, name := range names {
		for i := range items {
			if _, err := all.Queue(name).Put(t.Context(), client.New{ID: fmt.Sprintf("item-%02d", i), Priority: uint32(items - i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, p := range c.nodes {
		p.kill()
	}
	c.phase("killed all nodes")
	for _, p := range c.nodes {
		p.start(3)
	}
	c.serving(3)
	for _, name := range names {
		got := map[string]bool{}
		c.until("all items of "+name, 30*time.Second, func() bool {
			taken, err := all.Queue(name).Take(t.Context(), client.Want{Items: items, Lease: time.Minute, Wait: time.Second})
			for _, l := range taken.Leases {
				if got[l.ID] {
					t.Errorf("%s: %s came twice", name, l.ID)
				}
				got[l.ID] = true
			}
			return err == nil && len(got) == items
		})
	}
}
