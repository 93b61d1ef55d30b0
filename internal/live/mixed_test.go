package live

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/client"
	"github.com/anteroom/anteroom/membership"
)

var mixed = flag.Bool("mixed", false, "upgrade a cluster of the commit in the file previous, and go back, which takes a minute and a half")

// Three nodes of an earlier version are upgraded one after the other, as docs/operating.md
// says, and then go back, each with the disk that it has. Old and new ones serve a crowd,
// and keep queues, side by side: nobody is lost, and no item, the limit and the order hold.
func TestAnUpgradeAndBackNodeByNode(t *testing.T) {
	if !*mixed {
		t.Skip("NOT RUN: it takes a minute and a half; .ci/run long runs it, by -mixed")
	}
	const lease = 3 * time.Second
	c := newCluster(t, 20)
	today, earlier := c.binary, previous(t)
	c.data, c.session, c.refresh = true, 15*time.Second, 20*time.Second
	c.queues = "  - {name: kept, replicas: 2, max_attempts: 0}\n  - {name: disk, durable: true, max_attempts: 0}\n"
	c.binary = earlier
	c.run(3)
	var tried repeats
	clients := c.clients(6, client.WithTry(2*time.Second), client.WithPatience(20*time.Second), tried.option())
	histories := map[string]*history{"kept": {}, "disk": {}}
	stop := crew(t.Context(), clients, histories, lease, 20*time.Millisecond)
	crowd, done := c.crowd(400, 8*time.Second, 2*time.Second, 11)
	c.until("a line", 20*time.Second, func() bool { return crowd.Counts().Waiting > 40 })
	metronome, began := c.metronome(), time.Now()
	for _, to := range []struct{ binary, what string }{{today, "today's"}, {earlier, "the earlier"}} {
		c.binary = to.binary
		for _, p := range c.nodes {
			p.signal(syscall.SIGTERM)
			c.await("end of "+p.id, 20*time.Second, func() bool { return !p.running() })
			p.start(0)
			c.settled(3)
			c.phase("%s is of %s version; %d people wait", p.id, to.what, crowd.Counts().Waiting)
		}
		rest(t.Context(), lease)
	}
	if crowd.Counts().Waiting == 0 {
		t.Error("nobody waits any more: the last nodes went back without a crowd")
	}
	stop()
	c.phase("no more is put")
	c.emptied(clients, histories, lease)
	all, o := c.told("kept", histories["kept"])
	c.none("kept", "lost", lost(all))
	c.none("kept", "delivered twice", twice(all))
	if o.away > givenBackMax {
		t.Errorf("items of one shard were overtaken %d times, one for %v; docs/queue.md says %v", o.count, o.away, givenBackMax)
	}
	all, _ = c.told("disk", histories["disk"])
	c.none("disk", "lost", lost(all))
	c.none("disk", "delivered twice", twice(tried.without("disk", all))) // a repeated put may be in two logs
	err, ended := <-done, time.Now()
	c.binary = today // which reads the logs of both
	tau, had := 0.0, float64(metronome.between(began.UnixMicro(), ended.UnixMicro()))/float64(ended.Sub(began))
	c.phase("the machine had %.0f %% of its time for us", 100*had)
	if had < awake {
		c.phase("so the order in which people waited says nothing")
		tau = 1
	}
	c.fair(crowd, err, tau)
}

// previous builds the program of the commit that the file of that name has. Nothing is
// changed in the clone, so nothing is left there by a test that is killed.
func previous(t testing.TB) (program string) {
	t.Helper()
	text, err := os.ReadFile("previous")
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
	if len(lines) != 1 {
		t.Fatalf("the file previous names %q, want one commit", lines)
	}
	commit := lines[0]
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", "../.."}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	root, err := git("rev-parse", "--show-prefix", "--is-shallow-repository")
	if err != nil || root != "false" && root != "true" { // the prefix of the root is empty
		if os.Getenv("ANTEROOM_NO_SKIP") != "" {
			t.Fatalf("the source is no clone of the repository, and ANTEROOM_NO_SKIP is set: %q, %v: %s", root, err, stderrOf(err))
		}
		t.Skipf("NOT RUN: the source is no clone of the repository, which has the earlier version: %v", err)
	}
	if _, err := git("merge-base", "--is-ancestor", commit, "HEAD"); err != nil {
		if root == "true" {
			t.Fatalf("the clone is shallow and does not go back to %s: fetch the whole history: git fetch --unshallow", commit)
		}
		t.Fatalf("%s is no commit before this one: %v: %s", commit, err, stderrOf(err))
	}
	if meta, err := git("show", commit+":membership/meta.go"); err != nil || !strings.Contains(meta, fmt.Sprintf("\tProtocol = %d\n", membership.Protocol)) {
		t.Fatalf("%s does not speak version %d of the protocol between nodes: name a commit that does in the file previous: %v", commit, membership.Protocol, err)
	}
	dir := t.TempDir()
	program = filepath.Join(dir, "anteroom")
	for _, args := range [][]string{
		{"git", "-C", "../..", "archive", "--output", filepath.Join(dir, "source.tar"), commit},
		{"tar", "-xf", filepath.Join(dir, "source.tar"), "-C", dir, "--one-top-level=source"},
		{"go", "build", "-C", filepath.Join(dir, "source"), "-trimpath", "-o", program, "./cmd/anteroom"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return program
}
