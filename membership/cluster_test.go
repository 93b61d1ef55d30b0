package membership_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/membership"
	"github.com/anteroom/anteroom/qpid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a few nodes on one wire, in a bubble of virtual time.
type cluster struct {
	*testing.T
	wire      *wire
	nodes     []*process
	strangers []*stranger
	boots     uint64

	mu    sync.Mutex
	asked []string // addresses at which a node was to say who it is
}

// bubble runs f in virtual time and stops all nodes after it.
func bubble(t *testing.T, f func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{T: t, wire: newWire()}
		defer func() {
			for _, p := range c.nodes {
				p.cancel()
			}
			for _, s := range c.strangers {
				_ = s.Shutdown() // the test is about the others
			}
			time.Sleep(30 * time.Second) // probes, suspicions and streams under way come to their ends
		}()
		f(c)
	})
}

// process is one life of a node.
type process struct {
	*membership.Membership
	name   string
	self   eviction.Peer
	port   *port
	cancel context.CancelFunc
	done   chan struct{} // closed when Run has returned
	err    error         // what it returned
	log    *record

	mu    sync.Mutex
	views []membership.View
	times []time.Time
}

// start begins a new life of the node with that name. Change may alter its
// configuration.
func (c *cluster) start(name string, change ...func(*membership.Config)) *process {
	c.Helper()
	c.boots++
	p := &process{name: name, log: &record{}, done: make(chan struct{})}
	p.self = eviction.Peer{Member: eviction.Member{Name: qpid.NodeID(name), Boot: 1000 + c.boots}, Start: time.Now().UnixMicro() + int64(c.boots)}
	cfg := membership.Config{
		Self: p.self, PeerAddr: "0.0.0.0:7001", Logger: slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OnView: func(v membership.View) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.views, p.times = append(p.views, v), append(p.times, time.Now())
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.Transport == nil {
		cfg.Transport = c.wire.open("")
	}
	p.port, p.self = cfg.Transport.(*port), cfg.Self
	if cfg.Ask == nil {
		cfg.Ask = func(ctx context.Context, address, gossip string) (eviction.Peer, bool, error) {
			return c.ask(ctx, p, address, gossip)
		}
	}
	m, err := membership.New(cfg)
	if err != nil {
		c.Fatal(err)
	}
	p.Membership = m
	ctx, cancel := context.WithCancel(c.Context())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		p.err = m.Run(ctx)
	}()
	<-m.Ready()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = append(c.nodes, p)
	return p
}

// startAll starts n nodes, a, b, c…; all but the first join the first.
func (c *cluster) startAll(n int) []*process {
	c.Helper()
	first := c.start("a")
	for i := 1; i < n; i++ {
		c.start(string(rune('a'+i)), joining(first))
	}
	c.within(3*time.Second, "one view of all", func() bool { return agree(c.nodes...) })
	return slices.Clone(c.nodes) // callers append to it
}

// ask is how a node at from finds out whose peer service is at an address. The
// peer services are as reachable as gossip is.
func (c *cluster) ask(ctx context.Context, from *process, address, gossip string) (eviction.Peer, bool, error) {
	c.mu.Lock()
	c.asked = append(c.asked, address)
	nodes := slices.Clone(c.nodes)
	c.mu.Unlock()
	host, _, _ := net.SplitHostPort(address)
	for _, p := range slices.Backward(nodes) {
		to, back := p.port.at, from.port.at
		if to.Addr().String() == host && c.wire.reach(from.port, to.String()) == p.port && c.wire.reach(p.port, back.String()) == from.port && !p.ended() {
			p.Asked(from.self, gossip)
			return p.self, p.Settled(), nil
		}
	}
	<-ctx.Done() // as if what was sent were lost
	return eviction.Peer{}, false, ctx.Err()
}

func joining(others ...*process) func(*membership.Config) {
	return func(c *membership.Config) {
		for _, p := range others {
			c.Join = append(c.Join, p.port.at.String())
		}
	}
}

func at(p *port) func(*membership.Config) {
	return func(c *membership.Config) { c.Transport = p }
}

// kill stops a process as kill -9 does: it sends nothing any more, and nobody
// is told.
func (c *cluster) kill(p *process) {
	c.wire.kill(p.port)
	p.cancel()
	<-p.done
}

// within waits until something holds, and fails if that takes longer. It
// returns how long it took.
func (c *cluster) within(d time.Duration, what string, ok func() bool) time.Duration {
	c.Helper()
	from := time.Now()
	for {
		synctest.Wait()
		took := time.Since(from)
		switch {
		case ok():
			return took
		case took > d:
			for _, p := range c.nodes {
				c.Logf("%v sees %v", p.self, p.view().Members)
			}
			c.Fatalf("not within %v: %s", d, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// view is the last one that was handed out.
func (p *process) view() membership.View {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.views) == 0 {
		return membership.View{}
	}
	return p.views[len(p.views)-1]
}

func (p *process) handedOut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.views)
}

// agree reports whether these and no others are in the views of all of them.
func agree(nodes ...*process) bool {
	want := make([]eviction.Peer, len(nodes))
	for i, p := range nodes {
		want[i] = p.self
	}
	view := eviction.NewView(want)
	return !slices.ContainsFunc(nodes, func(p *process) bool { return !slices.Equal(p.view().Members, view) })
}

// record is a log that can be read while it is written.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(b)
}

// lines returns those that have all the words.
func (r *record) lines(words ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for line := range strings.Lines(r.b.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			found = append(found, line)
		}
	}
	return found
}

// side puts some processes on side 1 of a partition and the others on side 0.
func side(one ...*process) func(addr string) int {
	return func(addr string) int {
		if slices.ContainsFunc(one, func(p *process) bool { return p.port.at.String() == addr }) {
			return 1
		}
		return 0
	}
}

func names(v membership.View) string {
	var b strings.Builder
	for _, p := range v.Members {
		fmt.Fprint(&b, p.Name, " ")
	}
	return strings.TrimSpace(b.String())
}
