package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/server"
	"github.com/anteroom/anteroom/internal/shop"
)

// rig is nodes in this process, over real sockets, in front of a shop that
// counts. Their links can be cut while gossip goes on, and their clocks be wrong.
type rig struct {
	t      *testing.T
	began  time.Time
	limit  int
	shop   *shop.Shop
	origin *httptest.Server
	nodes  []*member

	mu    sync.Mutex
	peers map[string]*member // by address of the peer port
}

// member is one node of a rig.
type member struct {
	*server.Server
	r    *rig
	id   string
	cut  atomic.Bool  // its links carry nothing, either way
	off  atomic.Int64 // µs by which its wall clock is ahead
	boot atomic.Int64 // the same of its boot clock
	end  func()       // takes its leave, or is over
	log  journal

	mu    sync.Mutex
	wires map[*wire]bool
}

func newRig(t *testing.T, limit int) *rig {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real sockets; set ANTEROOM_E2E=1")
	}
	r := &rig{t: t, began: time.Now(), limit: limit, shop: shop.New(shop.Config{Now: time.Now}), peers: map[string]*member{}}
	_ = t.TempDir() // so that directories of this test are removed after its nodes, which write to them until their end
	r.origin = httptest.NewServer(r.shop)
	t.Cleanup(func() {
		var all sync.WaitGroup
		for _, m := range r.nodes {
			all.Go(m.end)
		}
		all.Wait()
		r.origin.Close()
		for _, m := range r.nodes {
			if t.Failed() {
				t.Logf("%s:\n%s", m.id, m.log.String())
			}
		}
	})
	return r
}

// journal is what a node logs. It may be read while that runs.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// rigKey is the key of all rigs' nodes.
var rigKey = config.Setting{Key: "security.gossip_key", Value: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", From: "test"}

const rigFile = `
node: {gateway: "127.0.0.1:0", admin: "127.0.0.1:0", peer: "127.0.0.1:0", grpc: "127.0.0.1:0", gossip: "127.0.0.1:0"}
cluster: {lease: 4s}
rooms:
  - {name: shop, routes: [{host: "*", path: /}], origin: %s, total_active_users: %d, session_duration: 10s, refresh_interval: 3s, ticket_ttl: 1m}
`

// start runs one more node, whose clock is off by that much. It joins those
// that there are.
func (r *rig) start(expect int, off time.Duration) *member {
	r.t.Helper()
	return r.startWith(fmt.Sprintf(rigFile, r.origin.URL, r.limit), expect, off)
}

// startWith runs a node with a file of its own.
func (r *rig) startWith(file string, expect int, off time.Duration) *member {
	r.t.Helper()
	m := &member{r: r, id: fmt.Sprintf("node-%d", len(r.nodes)+1), wires: map[*wire]bool{}}
	m.off.Store(off.Microseconds())
	set := []config.Setting{{Key: "node.expect", Value: fmt.Sprint(expect), From: "test"}, rigKey}
	var join []string
	for _, o := range r.nodes {
		join = append(join, o.Addresses().Gossip)
	}
	if len(join) > 0 {
		set = append(set, config.Setting{Key: "node.join", Value: strings.Join(join, ","), From: "test"})
	}
	f := config.Parse("test", []byte(file), config.Options{Host: m.id, Set: set})
	if err := f.Err(); err != nil {
		r.t.Fatal(err)
	}
	clock := loop.SystemClock()
	m.Server = server.New(f.Config, server.Options{
		Logger: slog.New(slog.NewTextHandler(&m.log, nil)), Dial: m.dial, Adopts: f.AdoptsCluster(),
		Clock: func() eviction.Time {
			now := clock()
			return eviction.Time{Boot: now.Boot + m.boot.Load(), Wall: now.Wall + m.off.Load()}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- m.Run(ctx) }()
	m.end = sync.OnceFunc(func() {
		cancel()
		if err := <-over; err != nil {
			r.t.Errorf("%s: %v", m.id, err)
		}
	})
	r.nodes = append(r.nodes, m)
	select {
	case <-m.Ready():
	case err := <-over:
		over <- nil
		r.t.Fatalf("%s: %v", m.id, err)
	}
	r.mu.Lock()
	r.peers[m.Addresses().Peer] = m
	r.mu.Unlock()
	return m
}

// wire is a connection that a cut at either end turns into a hole: what goes in
// is lost, and nobody is told.
type wire struct {
	net.Conn
	from, to *member
}

func (w *wire) dead() bool { return w.from.cut.Load() || w.to.cut.Load() }

func (w *wire) Read(b []byte) (int, error) {
	for {
		n, err := w.Conn.Read(b)
		if err != nil || !w.dead() {
			return n, err
		}
	}
}

func (w *wire) Write(b []byte) (int, error) {
	if w.dead() {
		return len(b), nil
	}
	return w.Conn.Write(b)
}

func (w *wire) Close() error {
	w.from.mu.Lock()
	delete(w.from.wires, w)
	w.from.mu.Unlock()
	return w.Conn.Close()
}

// dial is how m reaches the peer port at address.
func (m *member) dial(ctx context.Context, address string) (net.Conn, error) {
	m.r.mu.Lock()
	to := m.r.peers[address]
	m.r.mu.Unlock()
	if to == nil {
		return nil, fmt.Errorf("nobody listens at %s yet", address)
	}
	if m.cut.Load() || to.cut.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, from: m, to: to}
	m.mu.Lock()
	m.wires[w] = true
	m.mu.Unlock()
	return w, nil
}

// mend makes m's links carry again. What was lost in those of before is not
// made good, so they break.
func (m *member) mend() {
	for _, from := range m.r.nodes {
		from.mu.Lock()
		for w := range from.wires {
			if w.dead() {
				_ = w.Conn.Close()
			}
		}
		from.mu.Unlock()
	}
	m.cut.Store(false)
}

// phase prints a line of the test's story.
func (r *rig) phase(format string, args ...any) {
	r.t.Helper()
	r.t.Logf("%5.1f s  %s", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

func (r *rig) until(what string, within time.Duration, holds func() bool) {
	r.t.Helper()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	began := time.Now()
	for ; !holds(); <-every.C {
		if time.Since(began) > within {
			r.t.Fatalf("no %s within %v", what, within)
		}
	}
	r.phase("%s, after %.1f s", what, time.Since(began).Seconds())
}

// stays fails the test unless something holds all the time.
func (r *rig) stays(what string, during time.Duration, holds func() bool) {
	r.t.Helper()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for began := time.Now(); time.Since(began) < during; <-every.C {
		if !holds() {
			r.t.Fatalf("after %v no longer: %s", time.Since(began), what)
		}
	}
	r.phase("%s, for %v", what, during)
}

// sees reports whether m serves, knows that many members, and knows exactly
// that many of them to be in the waves.
func (m *member) sees(members, inWave int) bool {
	s, in := m.cluster(), 0
	for _, o := range s.Members {
		if o.InWave {
			in++
		}
	}
	return s.Waiting == "" && len(s.Members) == members && in == inWave
}

// serving waits until all nodes are in the waves.
func (r *rig) serving() {
	r.t.Helper()
	r.until(fmt.Sprintf("waves of all %d nodes", len(r.nodes)), 40*time.Second, func() bool {
		for _, m := range r.nodes {
			if !m.sees(len(r.nodes), len(r.nodes)) {
				return false
			}
		}
		return true
	})
}

func (m *member) cluster() (c admin.Cluster) {
	a, err := http.Get("http://" + m.Addresses().Admin + "/v1/cluster")
	if err != nil {
		m.r.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	if err := json.NewDecoder(a.Body).Decode(&c); err != nil {
		m.r.t.Fatal(err)
	}
	return c
}

// reply is what a visitor reads of one.
type reply struct {
	Status   int    `json:"-"`
	State    string `json:"state"`
	Ticket   string `json:"ticket"`
	Pass     string `json:"pass"`
	Position int    `json:"position"`
	Joined   string `json:"joined_at"`
	Paused   string `json:"paused"`
	Code     string `json:"code"`
	Detail   string `json:"detail"`
	Wait     *struct {
		P50 float64 `json:"p50"`
	} `json:"estimated_wait_seconds"`
}

// visit asks for something in the shop's room, with a ticket or a pass if name
// says which.
func (m *member) visit(what, name, value string) reply {
	m.r.t.Helper()
	return m.prefer("", what, name, value)
}

// prefer does what visit does with a preference of RFC 7240, if there is one.
func (m *member) prefer(preference, what, name, value string) (a reply) {
	m.r.t.Helper()
	var b []byte
	if name != "" {
		b, _ = json.Marshal(map[string]string{name: value}) // strings
	}
	q, err := http.NewRequestWithContext(m.r.t.Context(), http.MethodPost, "http://"+m.Addresses().Gateway+"/_anteroom/v1/rooms/shop/"+what, bytes.NewReader(b))
	if err != nil {
		m.r.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	if preference != "" {
		q.Header.Set("Prefer", preference)
	}
	c := http.Client{Timeout: 5 * time.Second}
	p, err := c.Do(q)
	if err != nil {
		m.r.t.Fatalf("%s: %s: %v", m.id, what, err)
	}
	defer func() { _ = p.Body.Close() }()
	if b, err = io.ReadAll(p.Body); err == nil && len(b) > 0 {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		m.r.t.Fatalf("%s: %s: %v: %s", m.id, what, err, b)
	}
	a.Status = p.StatusCode
	return a
}

// enter goes the way of a visitor until there is a pass, and into the shop.
func (m *member) enter(ticket string) (pass string) {
	m.r.t.Helper()
	m.r.until("pass for a visitor at "+m.id, 20*time.Second, func() bool {
		a := reply{}
		if ticket == "" {
			a = m.visit("join", "", "")
		} else if a = m.visit("checkin", "ticket", ticket); a.State == "called" {
			a = m.visit("leave", "ticket", a.Ticket)
		}
		if a.Ticket != "" {
			ticket = a.Ticket
		}
		pass = a.Pass
		return a.State == "admitted"
	})
	if status := m.browse(http.MethodGet, "/", pass); status != http.StatusOK {
		m.r.t.Errorf("%s: the shop with a pass: %d", m.id, status)
	}
	return pass
}

// browse asks for a page of the shop, with a pass.
func (m *member) browse(method, path, pass string) int {
	m.r.t.Helper()
	q, err := http.NewRequest(method, "http://"+m.Addresses().Gateway+path, nil)
	if err != nil {
		m.r.t.Fatal(err)
	}
	q.AddCookie(&http.Cookie{Name: "anteroom_shop", Value: pass})
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		m.r.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, a.Body)
	_ = a.Body.Close()
	return a.StatusCode
}

// withinLimit checks what the shop has counted.
func (r *rig) withinLimit() {
	r.t.Helper()
	if s := r.shop.Stats(); s.Peak > r.limit {
		r.t.Errorf("the shop counted %d live passes at once, the limit is %d", s.Peak, r.limit)
	}
}

// three starts nodes that found a cluster together.
func (r *rig) three() (a, b, c *member) {
	r.t.Helper()
	a, b, c = r.start(3, 0), r.start(3, 0), r.start(3, 0)
	r.serving()
	return a, b, c
}
