package live

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/shop"
	"github.com/anteroom/anteroom/internal/visitors"
)

var verbose = flag.Bool("logs", false, "print the nodes' logs also when a test passes")

// Settings of all clusters here. D is deadline 0.5 s + lease 4 s + session 12 s +
// 2 × skew 0.5 s + margin 0.2 s.
const (
	lease   = 4 * time.Second
	session = 12 * time.Second
	delay   = 500*time.Millisecond + lease + session + time.Second + 200*time.Millisecond
)

// cluster is nodes of real processes in front of a shop that counts.
type cluster struct {
	t      *testing.T
	binary string
	dir    string
	limit  int
	keys   bool // all nodes share a key file
	data   bool // each keeps its own directory
	shop   *shop.Shop
	origin *httptest.Server
	nodes  []*process
}

// process is one node, through all its lives.
type process struct {
	c    *cluster
	id   string
	port int // of gateway; admin, peer and gossip have the next ones
	cmd  *exec.Cmd
	log  *bytes.Buffer
	done chan struct{} // closed when the life is over
}

func newCluster(t *testing.T, limit int) *cluster {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real processes; set ANTEROOM_E2E=1")
	}
	c := &cluster{t: t, dir: tempDir(t), limit: limit, shop: shop.New(shop.Config{Now: time.Now})}
	c.binary = filepath.Join(c.dir, "anteroom")
	if out, err := exec.Command("go", "build", "-o", c.binary, "../../cmd/anteroom").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	c.origin = httptest.NewServer(c.shop)
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
	c.serving(n)
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

// add makes a node that has not started.
func (c *cluster) add() *process {
	p := &process{c: c, id: fmt.Sprintf("node-%d", len(c.nodes)+1), port: freePorts(c.t), log: &bytes.Buffer{}}
	c.nodes = append(c.nodes, p)
	return p
}

// freePorts finds four free ports in a row.
func freePorts(t *testing.T) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		first := l.Addr().(*net.TCPAddr).Port
		free := first+3 < 65536
		for i := 1; i < 4 && free; i++ {
			next, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+i))
			if free = err == nil; free {
				_ = next.Close()
			}
		}
		_ = l.Close()
		if free {
			return first
		}
	}
	t.Fatal("no four free ports in a row")
	return 0
}

// start begins a life. With expect 0 the node joins a cluster and never founds one.
func (p *process) start(expect int) {
	p.c.t.Helper()
	var join []string
	for _, o := range p.c.nodes {
		if o != p {
			join = append(join, fmt.Sprintf("127.0.0.1:%d", o.port+3))
		}
	}
	c := fmt.Sprintf(`node:
  id: %s
  gateway: 127.0.0.1:%d
  admin: 127.0.0.1:%d
  peer: 127.0.0.1:%d
  gossip: 127.0.0.1:%d
  join: [%s]
  expect: %d
`, p.id, p.port, p.port+1, p.port+2, p.port+3, strings.Join(join, ", "), expect)
	if p.c.data {
		c += "  data: " + p.c.file(p.id) + "\n"
	}
	if p.c.keys {
		c += "security:\n  signing_keys: " + p.c.file("keys.json") + "\n"
	}
	c += fmt.Sprintf(`cluster: {lease: %v}
rooms:
  - name: shop
    routes: [{host: "*", path: /}]
    origin: %s
    total_active_users: %d
    session_duration: %v
    refresh_interval: 3s
    claim_window: 8s
    ticket_ttl: 1m
`, lease, p.c.origin.URL, p.c.limit, session)
	name := p.c.file(p.id + ".yaml")
	if err := os.WriteFile(name, []byte(c), 0o600); err != nil {
		p.c.t.Fatal(err)
	}
	cmd := exec.Command(p.c.binary, "serve", "--config", name, "--admissions", p.c.file(p.id+".jsonl"))
	cmd.Stderr, p.cmd, p.done = p.log, cmd, make(chan struct{})
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		p.c.t.Fatal(err)
	}
	go func(done chan struct{}) { _ = cmd.Wait(); close(done) }(p.done)
}

func (p *process) signal(s syscall.Signal) {
	p.c.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.c.t.Fatalf("%s: %v: %v", p.id, s, err)
	}
}

// kill ends the process at once, if it runs.
func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) gateway() string { return fmt.Sprintf("http://127.0.0.1:%d", p.port) }

// ask reads a JSON answer of the node's admin port.
func (p *process) ask(path string, into any) error {
	client := http.Client{Timeout: 2 * time.Second}
	a, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", p.port+1, path))
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %w", path, a.Status, err)
	}
	return json.Unmarshal(b, into)
}

func (p *process) cluster() (c admin.Cluster) {
	_ = p.ask("/v1/cluster", &c) // of one that does not answer nothing is known
	return c
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
	c.until(fmt.Sprintf("waves of all %d nodes", n), 30*time.Second, func() bool {
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
	})
}

func (c *cluster) until(what string, within time.Duration, holds func() bool) {
	c.t.Helper()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(within); !holds(); <-every.C {
		if time.Now().After(end) {
			c.t.Fatalf("no %s within %v", what, within)
		}
	}
}

// coordinator returns the node that runs the waves, and one that does not.
func (c *cluster) coordinator() (leads, follows *process) {
	c.t.Helper()
	name := ""
	c.until("coordinator", 10*time.Second, func() bool {
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
		var r admin.Room
		if p.ask("/v1/rooms/shop", &r) == nil {
			owned += r.Here.SlotsOwned
		}
	}
	return owned
}

// crowd sends people to all nodes, those that are added later too.
func (c *cluster) crowd(users int, over, stay time.Duration, seed uint64) (*visitors.Crowd, <-chan error) {
	v := visitors.Config{
		Room: "shop", Users: users, Over: over, Stay: stay, Seed: seed, Patience: 45 * time.Second,
		Site: visitors.Site{Look: "/", Exit: "/checkout"},
	}
	for _, p := range c.nodes {
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
	c.t.Logf("%d were in, %d at most at once of %d; kendall_tau %.3g, %d overtaken at most; wait p50 %.1f s, max %.1f s; %d requests repeated",
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

func tempDir(t *testing.T) string {
	if *keep == "" {
		return t.TempDir()
	}
	dir := filepath.Join(*keep, t.Name())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
