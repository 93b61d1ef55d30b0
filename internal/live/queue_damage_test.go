package live

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/client"
)

// segments are the files of a node's log of queues of that kind, the oldest first.
func (p *process) segments(kind string) []string {
	p.c.t.Helper()
	all, err := filepath.Glob(filepath.Join(p.c.file(p.id), "queues", kind, "log", "*.wal"))
	if err != nil || len(all) == 0 {
		p.c.t.Fatalf("files of the %s log: %v, %v", kind, all, err)
	}
	slices.Sort(all)
	return all
}

// change does something to a file.
func change(t testing.TB, name string, do func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, do(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// queue runs anteroom queue.
func (c *cluster) queue(args ...string) (out string, code int) {
	c.t.Helper()
	b, err := exec.Command(c.binary, append([]string{"queue"}, args...)...).CombinedOutput()
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
		c.t.Fatal(err)
	} else if err != nil {
		code = ended.ExitCode()
	}
	return string(b), code
}

// What disks did to durable queues without a word: the node does not start, and says
// which file it is, what is lost and what to do. verify finds it too, and recover says
// what is gone; the rest comes as it was put.
func TestNodeWithADamagedDiskRefusesToStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	c.data, c.queues = true, "  - {name: jobs, durable: true, max_attempts: 0}\n"
	c.run(1)
	n := c.nodes[0]
	k := &kept{puts: map[string]bool{}}
	k.put(t, n.client(t, client.WithPatience(20*time.Second)).Queue("jobs"), "item", 1000, nil) // 10 MB: three files
	data := c.file(n.id)
	if out, code := c.queue("verify", "--data", data); code != 0 || !strings.Contains(out, "which runs") {
		t.Errorf("verify of a node that runs: %d, %s", code, out)
	}
	n.kill()
	all := n.segments("durable")
	if len(all) < 3 {
		t.Fatalf("%d files", len(all))
	}
	last, second := all[len(all)-1], all[1]
	whole, queues := c.file("whole"), filepath.Join(data, "queues")
	if err := os.CopyFS(whole, os.DirFS(queues)); err != nil {
		t.Fatal(err)
	}
	payload := []byte("item-7" + strings.Repeat("x", 10))
	for _, d := range []struct {
		what, file string
		do         func([]byte) []byte
	}{
		{"the last file is gone", last, nil},
		{"its first 32 bytes are zero", last, func(b []byte) []byte { clear(b[:32]); return b }},
		{"a bit of a payload is turned", "", func(b []byte) []byte { b[bytes.Index(b, payload)+8] ^= 1; return b }},
		{"all is gone", filepath.Join(queues, "durable"), nil},
		{"half a kilobyte is zero", second, func(b []byte) []byte { clear(b[100_000:100_512]); return b }},
	} {
		if err := errors.Join(os.RemoveAll(queues), os.CopyFS(queues, os.DirFS(whole))); err != nil {
			t.Fatal(err)
		}
		for _, name := range all {
			if b, _ := os.ReadFile(name); d.file == "" && bytes.Contains(b, payload) {
				d.file = name
			}
		}
		if d.do == nil {
			if err := os.RemoveAll(d.file); err != nil {
				t.Fatal(err)
			}
		} else {
			change(t, d.file, d.do)
		}
		n.log = &journal{}
		n.start(1)
		c.await("end of a node with a damaged log", 20*time.Second, func() bool { return !n.running() })
		log := n.log.String()
		for _, want := range []string{d.file, " lost", "recover --data", "--accept-loss"} {
			if !strings.Contains(log, want) {
				t.Errorf("%s: the node's log lacks %q:\n%s", d.what, want, log)
			}
		}
		out, code := c.queue("verify", "--data", data)
		if code != 1 || !strings.Contains(out, "DAMAGED: "+d.file) {
			t.Errorf("%s: verify: %d, %s", d.what, code, out)
		}
		c.phase("%s: %s", d.what, strings.TrimSpace(strings.ReplaceAll(out, c.dir, "…")))
	}
	out, code := c.queue("recover", "--data", data, "--accept-loss")
	if code != 0 || !strings.Contains(out, "Kept up to entry ") {
		t.Errorf("recover: %d, %s", code, out)
	}
	c.phase("%s", strings.TrimSpace(strings.ReplaceAll(out, c.dir, "…")))
	n.start(1)
	c.serving(1)
	came := k.take(c, n.client(t).Queue("jobs"))
	c.phase("%d of %d items came", came, k.count())
	if came == 0 || came >= k.count() {
		t.Errorf("%d of %d items came after the end of the log was given up", came, k.count())
	}
}

// take takes all that there is, which must be as it was put, and counts it.
func (k *kept) take(c *cluster, q *client.Queue) int {
	c.t.Helper()
	seen := map[string]bool{}
	for {
		taken, err := q.Take(c.t.Context(), client.Want{Items: 100, Lease: time.Minute, Wait: time.Second})
		if err != nil {
			c.t.Fatalf("take, after %d: %v", len(seen), err)
		}
		if len(taken.Leases) == 0 {
			return len(seen)
		}
		for _, l := range taken.Leases {
			if !k.puts[l.ID] || seen[l.ID] || string(l.Payload) != string(payloadOf(l.ID)) {
				c.t.Errorf("%s: put %v, twice %v, %d bytes", l.ID, k.puts[l.ID], seen[l.ID], len(l.Payload))
			}
			seen[l.ID] = true
		}
	}
}

// replaced counts the directories of a node that the group does without by now: each
// time another one of its has the vote.
func (c *cluster) replaced(n *process) (count int) {
	for _, p := range c.nodes {
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, "the group has changed") && strings.Contains(line, " directory="+n.id+".") && strings.Contains(line, "change=remove") {
				count++
			}
		}
	}
	return count
}

// given counts the votes that were given to directories of replicated queues.
func (c *cluster) given() (count int) {
	for _, p := range c.nodes {
		count += strings.Count(p.log.String(), `change="give a vote"`)
	}
	return count
}

// Each of three replicas has its disk damaged, one after the other, each in another
// place: it makes its copy anew, by itself, and nothing is lost.
func TestReplicaWithADamagedDiskRepairsItself(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	c.data, c.queues = true, "  - {name: jobs, replicas: 2, max_attempts: 0}\n"
	c.run(3)
	q := c.clients(1, client.WithTry(2*time.Second), client.WithPatience(30*time.Second))[0].Queue("jobs")
	k := &kept{puts: map[string]bool{}}
	k.put(t, q, "first", 120, nil)
	c.until("votes of all three", 30*time.Second, func() bool { return c.given() == 2 }) // the founder has its own
	payload := []byte("first-7" + strings.Repeat("x", 10))
	for i, hurt := range []struct {
		what, aside string
		do          func(n *process)
	}{
		{"a bit of a payload is turned", "replicated.damaged-1", func(n *process) {
			change(t, n.segments("replicated")[0], func(b []byte) []byte { b[bytes.Index(b, payload)+8] ^= 1; return b })
		}},
		{"the log is gone", "replicated.damaged-1", func(n *process) {
			if err := os.Remove(n.segments("replicated")[0]); err != nil {
				t.Fatal(err)
			}
		}},
		{"all is gone", "", func(n *process) {
			if err := os.RemoveAll(filepath.Join(c.file(n.id), "queues")); err != nil {
				t.Fatal(err)
			}
		}},
		{"what stands beside the log is zero", "replicated.damaged-2", func(n *process) {
			change(t, filepath.Join(c.file(n.id), "queues", "replicated", "log", "meta"), func(b []byte) []byte { clear(b); return b })
		}},
	} {
		n := c.nodes[i%3]
		was := c.replaced(n)
		n.kill()
		hurt.do(n)
		n.start(0)
		c.serving(3)
		c.until(fmt.Sprintf("of %s, %s: a copy made anew", n.id, hurt.what), 60*time.Second, func() bool { return c.replaced(n) > was })
		if _, err := os.Stat(filepath.Join(c.file(n.id), "queues", hurt.aside)); err != nil {
			t.Errorf("the damaged files: %v", err)
		}
		if said := strings.Contains(n.log.String(), "this node's copy is gone"); said != (hurt.aside == "") {
			t.Errorf("%s, %s: it says that its copy is gone: %t", n.id, hurt.what, said)
		}
		k.put(t, q, fmt.Sprint("after-", i), 20, nil)
	}
	if came := k.take(c, q); came != k.count() {
		t.Errorf("%d of %d items came", came, k.count())
	}
	for _, n := range c.nodes {
		c.until("sound: "+n.id, 20*time.Second, func() bool {
			_, code := c.queue("verify", "--data", c.file(n.id))
			return code == 0
		})
	}
}
