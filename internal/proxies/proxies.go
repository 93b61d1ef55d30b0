// Package proxies runs the programs of examples/ (nginx, Caddy, HAProxy) as they
// are installed on this machine, each with the very files that stand there, in
// front of a cluster of real nodes and a real shop. Its tests, and the browser
// tests, come as visitors. They run when ANTEROOM_E2E is set:
//
//	apt-get install nginx-light caddy haproxy
//	ANTEROOM_E2E=1 go test ./internal/proxies
//
// Only addresses are replaced in the files, and in the rooms the limit and the
// length of a session. A word that is not in a file any more fails the test.
//
// Its own tests run Envoy and Traefik as well, which Debian does not have, also as
// gateways of Kubernetes, by the manifests of examples/:
//
//	PATH=$(.ci/proxies):$PATH ANTEROOM_E2E=1 go test ./internal/proxies
//
// ingress-nginx is not run: its example is read, and what it sends is replayed.
package proxies

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/server"
	"github.com/anteroom/anteroom/internal/shop"
)

// Proxy is one way to put a proxy before a site.
type Proxy struct {
	Name    string
	Status  int  // of the waiting page
	Origin  bool // the nodes pass people on, the proxy does not ask
	room    string
	files   []string // of examples/; the first is the program's
	program string
	// wrap makes a whole configuration of the first file; dir is where it lies.
	wrap func(text, dir string) string
	args func(dir, file string) []string
	// made are the files of one that is not told by files of its own, but by manifests; the
	// first is the program's.
	made func(t testing.TB, at places) []file
	// apart: a new cookie does not come with the site's answer, but with a redirect before it.
	apart bool
}

// file is one that a program reads.
type file struct{ name, text string }

// here stands for the directory of the files.
const here = "@here@"

// places are where the parts of a site listen.
type places struct {
	front, site string // HOST:PORT
	nodes       []server.Addresses
}

// All returns the proxies that there are examples for, and Debian has.
func All() []Proxy {
	haproxy := func(_, file string) []string { return []string{"-db", "-f", file} }
	return []Proxy{
		{
			Name: "nginx", Status: 200, room: "anteroom.yaml", files: []string{"nginx/anteroom.conf"}, program: "nginx",
			wrap: nginxAround,
			args: func(dir, _ string) []string {
				return []string{"-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf")}
			},
		},
		{
			Name: "caddy", Status: 429, room: "anteroom.yaml", files: []string{"caddy/Caddyfile"}, program: "caddy",
			wrap: func(text, dir string) string { return "{\n\tadmin off\n\tstorage file_system " + dir + "\n}\n" + text },
			args: func(_, file string) []string { return []string{"run", "--adapter", "caddyfile", "--config", file} },
		},
		{
			Name: "haproxy", Status: 200, room: "anteroom.yaml", files: []string{"haproxy/haproxy.cfg", "haproxy/anteroom.lua"},
			program: "haproxy", args: haproxy,
		},
		{
			Name: "haproxy chain", Status: 200, Origin: true, room: "haproxy/anteroom.yaml", files: []string{"haproxy/chain.cfg"},
			program: "haproxy", args: haproxy,
		},
	}
}

// nginxAround is an nginx.conf as distributions have it, but for the places where
// it keeps things.
func nginxAround(text, dir string) string {
	main := "daemon off; master_process off; pid " + dir + "/pid; events {}\nhttp { access_log off; error_log stderr; include anteroom.conf;\n"
	for _, temp := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		main += temp + "_temp_path " + dir + "/" + temp + ";\n"
	}
	if os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(main+"}\n"), 0o600) != nil {
		return "" // nginx will say what it misses
	}
	return text
}

// Site is a proxy that runs, and all behind it.
type Site struct {
	Proxy
	URL  string // of the proxy
	Shop *shop.Shop

	mu   sync.Mutex
	seen map[string]http.Header // the last request to a path of the shop
}

// Seen returns the header of the last request for a path that reached the shop.
func (s *Site) Seen(path string) http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[path]
}

// ServeHTTP is the shop, with two addresses that need not wait.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen[r.URL.Path] = r.Header.Clone()
	s.mu.Unlock()
	if r.URL.Path == "/healthz" || r.URL.Path == "/webhooks/payment" {
		_, _ = w.Write([]byte("fine")) // to who asked, if they are there
		return
	}
	s.Shop.ServeHTTP(w, r)
}

// patience is how long a program takes to start at most.
const patience = 20 * time.Second

// Start starts a shop for one at a time, two nodes and a proxy. It skips the test
// where ANTEROOM_E2E is not set, and fails it where the program is missing.
func Start(t testing.TB, p Proxy, session time.Duration) *Site {
	t.Helper()
	wanted(t)
	program := find(t, p.program)
	s := &Site{Proxy: p, Shop: shop.New(shop.Config{}), seen: make(map[string]http.Header)}
	origin := httptest.NewServer(s)
	t.Cleanup(origin.Close)
	front, inner, asked := freePort(t), freePort(t), freePort(t)
	nodes := startNodes(t, strings.ReplaceAll(room(t, p.room, session), "127.0.0.1:8090", "127.0.0.1:"+inner))
	s.URL = "http://127.0.0.1:" + front
	if p.made != nil {
		s.run(t, program, p.made(t, places{"127.0.0.1:" + front, strings.TrimPrefix(origin.URL, "http://"), nodes}))
		return s
	}
	addresses := map[string]string{"127.0.0.1:9000": strings.TrimPrefix(origin.URL, "http://")}
	const server = "server node-1 127.0.0.1:8081 check inter 2s" // of HAProxy
	switch p.Name {
	case "nginx":
		addresses["listen 80 "] = "listen 127.0.0.1:" + front + " "
		addresses["server 127.0.0.1:8081;"] = "server " + nodes[0].Gateway + "; server " + nodes[1].Gateway + ";"
	case "caddy":
		addresses["127.0.0.1:8081"] = nodes[0].Gateway + " " + nodes[1].Gateway
		addresses[":80 {"] = "http://127.0.0.1:" + front + " {"
	case "haproxy":
		addresses["bind :80"], addresses["127.0.0.1:8089"] = "bind 127.0.0.1:"+front, "127.0.0.1:"+asked
		addresses["/etc/haproxy/anteroom.lua"] = here + "/anteroom.lua"
	default:
		addresses["bind :80"], addresses["127.0.0.1:8090"] = "bind 127.0.0.1:"+front, "127.0.0.1:"+inner
	}
	if p.program == "haproxy" {
		addresses[server] = strings.Replace(server, "127.0.0.1:8081", nodes[0].Gateway, 1) + "\n    server node-2 " + nodes[1].Gateway
	}
	s.run(t, program, s.read(t, addresses))
	return s
}

func wanted(t testing.TB) {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real sockets and programs; set ANTEROOM_E2E=1 (needs apt-get install nginx-light caddy haproxy)")
	}
}

// find looks for a program, also where only root does.
func find(t testing.TB, name string) string {
	t.Helper()
	for _, candidate := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	t.Fatalf("no %s in the PATH: apt-get install nginx-light caddy haproxy; envoy, traefik and jupyter-server are got by .ci/proxies, which prints where they are", name)
	return ""
}

// Example reads a file of examples/.
func Example(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "examples", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Replaced is text with all of these words replaced, each of which is in it.
func Replaced(t testing.TB, text string, words map[string]string) string {
	t.Helper()
	var pairs []string
	for was, is := range words {
		if !strings.Contains(text, was) {
			t.Errorf("%q is not in the example any more", was)
		}
		pairs = append(pairs, was, is)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// freePort returns a port that nobody listens on, and that the system gives to no
// connection of its own accord: those begin at 32768. Somebody else may take it
// before the program listens; then that says so.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(20_000 + rand.IntN(12_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("there is no free port from 20000 to 31999")
	return ""
}

// journal is what programs and nodes say. It may be read while they do.
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

// room is a node's file of examples/ for one person on the site.
func room(t testing.TB, name string, session time.Duration) string {
	t.Helper()
	return Replaced(t, Example(t, name), map[string]string{
		"total_active_users: 200": "total_active_users: 1", "session_duration: 5m": "session_duration: " + session.String(),
	})
}

const gossipKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=" // of the cluster

// startNodes starts a cluster of two and returns where they listen.
func startNodes(t testing.TB, file string) (at []server.Addresses) {
	t.Helper()
	var said journal
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the nodes:\n%s", said.String())
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	var servers []*server.Server
	gossip := ""
	for i := range 2 {
		set := []config.Setting{{Key: "node.expect", Value: "2", From: "test"}, {Key: "security.gossip_key", Value: gossipKey, From: "test"}}
		for _, key := range []string{"node.gateway", "node.admin", "node.peer", "node.grpc", "node.gossip"} {
			set = append(set, config.Setting{Key: key, Value: "127.0.0.1:0", From: "test"})
		}
		if gossip != "" {
			set = append(set, config.Setting{Key: "node.join", Value: gossip, From: "test"})
		}
		f := config.Parse("test", []byte(file), config.Options{Host: "node-" + strconv.Itoa(i+1), Set: set})
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		n := server.New(f.Config, server.Options{Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn})), Adopts: f.AdoptsCluster()})
		all.Go(run(t, ctx, n))
		gossip = n.Addresses().Gossip
		servers, at = append(servers, n), append(at, n.Addresses())
	}
	eventually(t, "both nodes let people in", func() bool {
		for _, n := range servers {
			if room, ok := n.Snapshot().Room("shop"); !ok || !room.MayAdmit || !room.Open {
				return false
			}
		}
		return true
	})
	return at
}

// run runs a node, and returns what waits for its end.
func run(t testing.TB, ctx context.Context, n *server.Server) func() {
	t.Helper()
	over := make(chan error, 1)
	go func() { over <- n.Run(ctx) }()
	select {
	case <-n.Ready():
	case err := <-over:
		t.Fatalf("a node: %v", err)
	}
	return func() {
		if err := <-over; err != nil {
			t.Errorf("a node: %v", err)
		}
	}
}

// read is the proxy's files, with other addresses.
func (s *Site) read(t testing.TB, addresses map[string]string) []file {
	t.Helper()
	text := make([]string, len(s.files))
	for i, name := range s.files {
		text[i] = Example(t, name)
	}
	const between = "\x00" // so that a word may be in any of the files
	text = strings.Split(Replaced(t, strings.Join(text, between), addresses), between)
	all := make([]file, len(text))
	for i, name := range s.files {
		all[i] = file{filepath.Base(name), text[i]}
	}
	return all
}

// run starts the proxy with its files, and waits until it answers.
func (s *Site) run(t testing.TB, program string, files []file) {
	t.Helper()
	dir := t.TempDir()
	first := filepath.Join(dir, files[0].name)
	if s.wrap != nil {
		files[0].text = s.wrap(files[0].text, dir)
	}
	for _, f := range files {
		text := strings.ReplaceAll(f.text, here, dir)
		if err := os.WriteFile(filepath.Join(dir, f.name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var said journal
	cmd := exec.Command(program, s.args(dir, first)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
	cmd.Env = append(os.Environ(), "HOME="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var failure error
	ended := make(chan struct{})
	go func() {
		failure = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(patience / 4):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s:\n%s", s.program, said.String())
		}
	})
	eventually(t, s.program+" answers", func() bool {
		select {
		case <-ended:
			t.Fatalf("%s ended: %v", s.program, failure)
		default:
		}
		resp, err := http.Get(s.URL + "/healthz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// eventually looks again and again whether something holds. Programs do not say
// when they are ready, so there is nothing better.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	enough := time.After(patience)
	for !holds() {
		select {
		case <-look.C:
		case <-enough:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
