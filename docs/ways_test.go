package docs_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var walkWays = flag.Bool("ways", false, "have nodes print the stations of architecture.md as they pass them; compiles a node anew")

// Nodes that print each station as they pass it pass them as architecture.md says: in
// that order, none left out and none twice.
func TestWaysAreAsTheyAre(t *testing.T) {
	if !*walkWays {
		t.Skip("NOT RUN: compiles a node anew; run it with -ways")
	}
	all := ways(t)
	w := &walkers{t: t, dir: t.TempDir()}
	w.build(all)
	if out, err := exec.Command(w.binary(), "keys", "cluster", "--out", filepath.Join(w.dir, "cluster.key")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := w.start("first", "")
	first.asks("join", "") // is called, and everybody after them waits
	first.walk("A join", all, func() { first.asks("join", "") })
	waiting := first.asks("join", "")
	first.walk("A check-in", all, func() { first.asks("checkin", waiting) })
	first.walk("A put", all, func() { first.queue("put", "--queue", "jobs", "x") })
	first.walk("A take", all, func() { first.queue("take", "--queue", "jobs") })
	second := w.start("second", first.gossip)
	first.widen()
	second.until("slots at the second node", second.hasSlots)
	second.walk("A commit, and the call that it permits", all, func() { second.asks("join", "") })
}

// walkers are nodes of a program that prints where it is.
type walkers struct {
	t   *testing.T
	dir string
}

func (w *walkers) binary() string { return filepath.Join(w.dir, "anteroom") }

const walked = "walked "

// build compiles the program so that it prints each station that it comes to.
func (w *walkers) build(all map[string][]station) {
	w.t.Helper()
	at := map[string]map[int]station{} // by file and place
	for _, way := range all {
		for _, s := range way {
			body, err := bodyOf(s)
			if err != nil {
				w.t.Fatal(err)
			}
			if at[s.file] == nil {
				at[s.file] = map[int]station{}
			}
			at[s.file][body] = s
		}
	}
	replace := map[string]string{}
	for file, stations := range at {
		name, err := filepath.Abs(filepath.Join("..", filepath.FromSlash(file)))
		if err != nil {
			w.t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, body := range backwards(stations) {
			text = slices.Concat(text[:body], fmt.Appendf(nil, " println(%q);", walked+stations[body].String()), text[body:])
		}
		replace[name] = filepath.Join(w.dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replace[name], text, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	config, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		w.t.Fatal(err)
	}
	overlay := filepath.Join(w.dir, "overlay.json")
	if err := os.WriteFile(overlay, config, 0o600); err != nil {
		w.t.Fatal(err)
	}
	c := exec.Command("go", "build", "-overlay", overlay, "-o", w.binary(), "./cmd/anteroom")
	c.Dir = ".."
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("compile: %v\n%s", err, out)
	}
}

func backwards(stations map[int]station) (places []int) {
	for place := range stations {
		places = append(places, place)
	}
	slices.Sort(places)
	slices.Reverse(places)
	return places
}

// walker is one node.
type walker struct {
	*walkers
	gateway, admin, grpc, gossip string

	mu   sync.Mutex
	seen []string // stations, in the order in which they were passed
	said []string // the rest of its log
}

// start runs a node, alone or with another, until it is ready.
func (w *walkers) start(name, join string) *walker {
	w.t.Helper()
	n := &walker{walkers: w}
	for _, at := range []*string{&n.gateway, &n.admin, &n.grpc, &n.gossip} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			w.t.Fatal(err)
		}
		*at = l.Addr().String()
		_ = l.Close()
	}
	peer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	_ = peer.Close()
	if join != "" {
		join = ", join: [" + join + "]"
	}
	config := filepath.Join(w.dir, name+".yaml")
	text := fmt.Sprintf(`node: {id: %s, gateway: "%s", admin: "%s", grpc: "%s", peer: "%s", gossip: "%s", advertise: 127.0.0.1%s}
security: {gossip_key_file: cluster.key}
rooms: [{name: site, routes: [{host: "*", path: /}], origin: "http://127.0.0.1:9", total_active_users: 1, session_duration: 5m, queue_all: true}]
queues: [{name: jobs}]
`, name, n.gateway, n.admin, n.grpc, peer.Addr(), n.gossip, join)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	c := exec.Command(w.binary(), "serve", "--config", config)
	said, err := c.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	go n.read(bufio.NewScanner(said))
	w.t.Cleanup(func() { _, _ = c.Process.Kill(), c.Wait() })
	n.until("it is ready", func() bool {
		answer, err := http.Get("http://" + n.admin + "/readyz")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	time.Sleep(3 * time.Second) // waves of all, and quiet
	return n
}

func (n *walker) read(s *bufio.Scanner) {
	for s.Scan() {
		n.mu.Lock()
		if station, ok := strings.CutPrefix(s.Text(), walked); ok {
			n.seen = append(n.seen, station)
		} else {
			n.said = append(n.said, s.Text())
		}
		n.mu.Unlock()
	}
}

func (n *walker) until(what string, done func() bool) {
	n.t.Helper()
	for range 200 {
		if done() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	n.t.Fatalf("20 s passed without: %s\n%s", what, strings.Join(n.said, "\n"))
}

// walk demands that act passes the stations of a way, one right after the other. A wave
// may come between: then it is tried again.
func (n *walker) walk(of string, all map[string][]station, act func()) {
	n.t.Helper()
	want := make([]string, len(all[of]))
	for i, s := range all[of] {
		want[i] = s.String()
	}
	var seen []string
	for range 5 {
		n.mu.Lock()
		n.seen = nil
		n.mu.Unlock()
		act()
		time.Sleep(500 * time.Millisecond)
		n.mu.Lock()
		seen = slices.DeleteFunc(n.seen, func(s string) bool { return !slices.Contains(want, s) })
		n.seen = nil
		n.mu.Unlock()
		for i := range seen {
			if len(seen)-i >= len(want) && slices.Equal(seen[i:i+len(want)], want) {
				n.t.Logf("%s: %d stations", of, len(want))
				return
			}
		}
	}
	n.t.Errorf("%s: want\n%s\nseen\n%s", of, strings.Join(want, "\n"), strings.Join(seen, "\n"))
}

// asks does something at the HTTP API and returns the ticket that comes of it.
func (n *walker) asks(what, ticket string) string {
	n.t.Helper()
	body, _ := json.Marshal(map[string]string{"ticket": ticket})
	if ticket == "" {
		body = nil
	}
	answer, err := http.Post("http://"+n.gateway+"/_anteroom/v1/rooms/site/"+what, "application/json", strings.NewReader(string(body)))
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var place struct{ Ticket string }
	if err := json.NewDecoder(answer.Body).Decode(&place); err != nil || answer.StatusCode >= http.StatusBadRequest {
		n.t.Fatalf("%s: %s, %v", what, answer.Status, err)
	}
	return place.Ticket
}

// widen lets everybody in, each by a wave.
func (n *walker) widen() {
	n.t.Helper()
	r, err := http.NewRequest(http.MethodPatch, "http://"+n.admin+"/v1/rooms/site", strings.NewReader(`{"total_active_users": 1000}`))
	if err != nil {
		n.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
		n.t.Fatalf("a wider room: %s", answer.Status)
	}
}

func (n *walker) hasSlots() bool {
	answer, err := http.Get("http://" + n.admin + "/v1/rooms/site")
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	var room struct {
		Here struct {
			Free int `json:"slots_free"`
		}
	}
	return json.NewDecoder(answer.Body).Decode(&room) == nil && room.Here.Free > 100
}

func (n *walker) queue(args ...string) {
	n.t.Helper()
	if out, err := exec.Command(n.binary(), append([]string{"queue", "--node", n.grpc}, args...)...).CombinedOutput(); err != nil {
		n.t.Fatalf("queue %v: %v\n%s", args, err, out)
	}
}
