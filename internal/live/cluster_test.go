package live

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/shop"
	"github.com/anteroom/anteroom/internal/visitors"
)

var (
	verbose = flag.Bool("logs", false, "print the nodes' logs also when a test passes")
	program = flag.String("anteroom", "", "`program` to run; empty: it is built")
)

// cluster is nodes of real processes in front of a shop that counts.
type cluster struct {
	t        testing.TB
	began    time.Time
	binary   string
	dir      string
	limit    int
	lease    time.Duration // 0: the default
	period   time.Duration // the same
	session  time.Duration
	refresh  time.Duration // 0: 3 s
	claim    time.Duration
	ttl      time.Duration // of tickets; 0: 1 min
	room     string        // further lines of the room's configuration, indented by four
	rooms    string        // further rooms: a list, indented by two
	queues   string        // those of the priority queues: the same
	top      string        // further lines of the file, such as trusted_proxies
	secret   string        // the cluster's key, in base64 [random]; "": none
	operator string        // what the admin ports ask for; "": nothing
	files    int           // how many files a node may have open; 0: as many as the test
	keys     bool          // all nodes share a key file
	data     bool          // each keeps its own directory
	users    bool          // each runs as a user of its own, see cutTo
	env      []string
	// Further lines of these sections, indented by two.
	node     func(*process) string
	security string
	// Where ports listen, by their names (gateway, admin, peer, gossip, grpc) [127.0.0.1].
	listen map[string]string
	shop   *shop.Shop
	high   atomic.Int64 // most live passes since it was set
	origin *httptest.Server
	nodes  []*process
}

func newCluster(t testing.TB, limit int) *cluster {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real processes; set ANTEROOM_E2E=1")
	}
	c := &cluster{
		t: t, began: time.Now(), dir: tempDir(t), limit: limit, lease: 4 * time.Second, session: 12 * time.Second, claim: 8 * time.Second,
		shop: shop.New(shop.Config{Now: time.Now}), secret: newSecret(),
	}
	if c.binary = *program; c.binary == "" {
		c.binary = build(t)
	}
	c.origin = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.shop.ServeHTTP(w, r)
		for now := int64(c.shop.Stats().Now); ; {
			if had := c.high.Load(); had >= now || c.high.CompareAndSwap(had, now) {
				return
			}
		}
	}))
	t.Cleanup(func() {
		for _, p := range c.nodes {
			p.kill()
		}
		c.origin.Close()
		if t.Failed() || *verbose {
			for _, p := range c.nodes {
				t.Logf("%s:\n%s", p.id, p.log)
			}
		}
	})
	return c
}

// built is the program that all tests of this process run.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	status := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // a leftover in the temporary directory
	}
	os.Exit(status)
}

// build builds the program once: linking it takes longer than many a test.
func build(t testing.TB) (file string) {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "anteroom-live"); built.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", built.dir, "../../cmd/anteroom").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "anteroom")
}

// newSecret makes a key that seals gossip.
func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return base64.StdEncoding.EncodeToString(key)
}

// run starts n nodes that found the cluster together.
func (c *cluster) run(n int) {
	c.t.Helper()
	if c.keys {
		if out, err := exec.Command(c.binary, "keys", "new", "--out", c.file("keys.json")).CombinedOutput(); err != nil {
			c.t.Fatalf("keys new: %v\n%s", err, out)
		}
	}
	for range n {
		c.add()
	}
	for _, p := range c.nodes {
		p.start(n)
	}
	c.phase("start %d nodes", n)
	c.serving(n)
}

// phase prints a line of the test's story.
func (c *cluster) phase(format string, args ...any) {
	c.t.Helper()
	c.t.Logf("%5.1f s  %s", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}

// delay is D: deadline, lease, session, twice the skew, and the margin.
func (c *cluster) delay() time.Duration {
	return 500*time.Millisecond + c.lease + c.session + time.Second + 200*time.Millisecond
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

// add makes a node that has not started.
func (c *cluster) add() *process {
	p := &process{c: c, id: fmt.Sprintf("node-%d", len(c.nodes)+1), port: freePorts(c.t), log: &journal{}}
	c.nodes = append(c.nodes, p)
	return p
}

// up returns the nodes that run.
func (c *cluster) up() (up []*process) {
	for _, p := range c.nodes {
		if p.running() {
			up = append(up, p)
		}
	}
	return up
}

// serving waits until all n nodes that run are in the same wave.
func (c *cluster) serving(n int) {
	c.t.Helper()
	c.until(fmt.Sprintf("waves of all %d nodes", n), 30*time.Second, func() bool { return c.inWaves(n) })
}

// inWaves reports whether n nodes run and are in the same wave.
func (c *cluster) inWaves(n int) bool {
	for _, p := range c.up() {
		s := p.cluster()
		in := 0
		for _, m := range s.Members {
			if m.InWave {
				in++
			}
		}
		if s.Waiting != "" || in != n || len(s.Members) != n {
			return false
		}
	}
	return len(c.up()) == n
}

// until waits for something and says so.
func (c *cluster) until(what string, within time.Duration, holds func() bool) {
	c.t.Helper()
	c.phase("%s, after %.1f s", what, c.await(what, within, holds).Seconds())
}

func (c *cluster) await(what string, within time.Duration, holds func() bool) time.Duration {
	c.t.Helper()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	began := time.Now()
	for ; !holds(); <-every.C {
		if time.Since(began) > within {
			c.t.Fatalf("no %s within %v", what, within)
		}
	}
	return time.Since(began)
}

// stays fails the test unless something holds all the time.
func (c *cluster) stays(what string, during time.Duration, holds func() bool) {
	c.t.Helper()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for began := time.Now(); time.Since(began) < during; <-every.C {
		if !holds() {
			c.t.Fatalf("after %v no longer: %s", time.Since(began), what)
		}
	}
	c.phase("%s, for %v", what, during)
}

// coordinator returns the node that runs the waves, and one that does not.
func (c *cluster) coordinator() (leads, follows *process) {
	c.t.Helper()
	name := ""
	c.await("coordinator", 10*time.Second, func() bool {
		for _, p := range c.up() {
			if name = p.cluster().Coordinator; name != "" {
				return true
			}
		}
		return false
	})
	for _, p := range c.up() {
		if p.id == name {
			leads = p
		} else {
			follows = p
		}
	}
	return leads, follows
}

// slots returns how many slots the nodes that run own.
func (c *cluster) slots() (owned int) {
	for _, p := range c.up() {
		owned += p.room().Here.SlotsOwned
	}
	return owned
}

// crowd sends people to nodes, or to all that there are.
func (c *cluster) crowd(users int, over, stay time.Duration, seed uint64, nodes ...*process) (*visitors.Crowd, <-chan error) {
	if len(nodes) == 0 {
		nodes = c.nodes
	}
	v := visitors.Config{
		Room: "shop", Users: users, Over: over, Stay: stay, Seed: seed, Patience: 45 * time.Second,
		Site: visitors.Site{Look: "/", Exit: "/checkout"},
	}
	for _, p := range nodes {
		v.Gateways = append(v.Gateways, p.gateway())
	}
	crowd, done := visitors.New(v), make(chan error, 1)
	go func() { done <- crowd.Run(c.t.Context()) }()
	return crowd, done
}

// fairness measures by the logs of all nodes.
func (c *cluster) fairness() fairness.Report {
	c.t.Helper()
	args := []string{"report", "--json", "--over-limit", fmt.Sprint(max(0, c.shop.Stats().Peak-c.limit))}
	logs, _ := filepath.Glob(c.file("*.jsonl"))
	out, err := exec.Command(c.binary, append(args, logs...)...).Output()
	if err != nil {
		c.t.Fatalf("report: %v", err)
	}
	var r struct{ Report fairness.Report }
	if err := json.Unmarshal(out, &r); err != nil {
		c.t.Fatalf("report: %v\n%s", err, out)
	}
	return r.Report
}

// fair checks what must hold of every crowd, and prints the figures.
func (c *cluster) fair(crowd *visitors.Crowd, err error, tau float64) {
	c.t.Helper()
	n, s, r := crowd.Counts(), c.shop.Stats(), c.fairness()
	c.phase("%d were in, %d at most at once of %d; kendall_tau %.3g, %d overtaken at most; wait p50 %.1f s, max %.1f s; %d requests repeated",
		n.Done, s.Peak, c.limit, r.KendallTau, r.MaxOvertakenBy, r.Wait.P50, r.MaxWait, n.Retries)
	if err != nil {
		c.t.Errorf("%d people were not let in; the first: %v", n.Lost, err)
	}
	if s.Peak > c.limit {
		c.t.Errorf("the shop counted %d live passes at once, the limit is %d", s.Peak, c.limit)
	}
	if r.KendallTau > tau {
		c.t.Errorf("strict kendall_tau %g, want at most %g", r.KendallTau, tau)
	}
}

var keep = flag.String("keep", "", "`directory` for what the nodes leave behind; empty: it is deleted")

func tempDir(t testing.TB) string {
	if *keep == "" {
		return t.TempDir()
	}
	dir := filepath.Join(*keep, t.Name())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
