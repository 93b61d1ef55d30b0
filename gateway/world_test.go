package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// world is a cluster of one node, whose clock a test moves by hand, behind a
// gateway that listens, in front of an origin.
type world struct {
	*gateway.Gateway
	t    testing.TB
	ring *seal.Ring
	url  string

	mu     sync.Mutex
	now    eviction.Time
	node   *node.Node
	watch  map[qpid.ItemID][]chan struct{}
	asked  map[ticket.Op]int
	broken func(ticket.Request) error // fails requests; nil: none
	late   bool                       // Room tells of one who has just come that they are not there yet
}

var _ gateway.Queue = (*world)(nil)

// morning is when every test begins.
var morning = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func newWorld(t testing.TB, change func(*gateway.Config), rooms ...eviction.Room) *world {
	t.Helper()
	w := &world{
		t: t, watch: make(map[qpid.ItemID][]chan struct{}), asked: make(map[ticket.Op]int),
		now: eviction.Time{Boot: 1e9, Wall: morning.UnixMicro() - 5e6},
	}
	for i := range rooms {
		rooms[i] = rooms[i].WithDefaults()
	}
	self := eviction.Peer{Member: eviction.Member{Name: "node-1", Boot: 1}, Start: w.now.Wall}
	n, err := node.New(node.Config{Self: self, Rooms: rooms}, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.node = n
	n.SetView(w.now, eviction.NewView([]eviction.Peer{self}))
	w.pass(5 * time.Second) // it founds its cluster
	w.ring = seal.New(seal.Config{Now: w.Clock})
	if err := w.ring.Rotate(); err != nil {
		t.Fatal(err)
	}
	c := gateway.Config{Queue: w, Sealer: w.ring, Pages: viewPager{}, Issuer: "https://shop.example.com"}
	for _, r := range rooms {
		c.Rooms = append(c.Rooms, gateway.Room{Name: r.Name, Routes: []gateway.Route{{Host: "*", Path: "/" + r.Name}}})
	}
	if change != nil {
		change(&c)
	}
	if w.Gateway, err = gateway.New(c); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.Gateway)
	t.Cleanup(func() { w.Close(); server.Close() })
	w.url = server.URL
	return w
}

// withOrigin puts an origin behind the first room.
func withOrigin(t testing.TB, h http.HandlerFunc, more ...func(*gateway.Config)) func(*gateway.Config) {
	t.Helper()
	origin := httptest.NewServer(h)
	t.Cleanup(origin.Close)
	u, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *gateway.Config) {
		c.Rooms[0].Origin, c.Rooms[0].Routes = u, []gateway.Route{{Host: "*", Path: "/"}}
		for _, f := range more {
			f(c)
		}
	}
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := w.now.Boot + d.Microseconds()
	for {
		step := min(max(w.ready().Deadline-w.now.Boot, 1), end-w.now.Boot)
		w.now.Boot += step
		w.now.Wall += step
		w.node.Tick(w.now)
		if w.now.Boot >= end {
			w.ready()
			return
		}
	}
}

// ready does the work that the node wants done. There is nobody to send to.
func (w *world) ready() node.Ready {
	r := w.node.Ready(w.now)
	for _, a := range r.Log {
		if a.Event == node.Entitled {
			continue
		}
		for _, c := range w.watch[a.Weight.ID] {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
	return r
}

func (w *world) Do(_ context.Context, q ticket.Request) (ticket.Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[q.Op]++
	if w.broken != nil {
		if err := w.broken(q); err != nil {
			return ticket.Answer{}, err
		}
	}
	a, err := loop.Ask(w.node, w.now, q)
	w.ready()
	return a, err
}

func (w *world) Room(name string) (gateway.RoomState, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.node.Room(name, w.now)
	state := gateway.RoomState{Room: s.Now, Draw: s.Draw, Queued: s.Total, Called: s.Called, Active: s.OnSite, Open: s.Open}
	if w.late {
		state.Open, state.Active = true, max(0, state.Active-1)
	}
	if s.Now.Method == eviction.FIFO {
		state.Front = max(1, s.Cut.Value.Stamp)
	}
	return state, ok
}

func (w *world) Called(_ string, id qpid.ItemID) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan struct{}, 1)
	if all := w.watch[id]; len(all) == 2 {
		close(all[0])
		w.watch[id] = all[1:]
	}
	w.watch[id] = append(w.watch[id], c)
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.watch[id] = slices.DeleteFunc(w.watch[id], func(o chan struct{}) bool { return o == c })
	}
}

func (w *world) Clock() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.node.Status().Clock
}

// count says how often the queue was asked for op.
func (w *world) count(op ticket.Op) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[op]
}

func (w *world) breakWith(f func(ticket.Request) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = f
}

// viewPager writes the view itself, so that a test can look at it.
type viewPager struct{}

func (viewPager) Page(w io.Writer, v gateway.View) error { return json.NewEncoder(w).Encode(v) }

// reply is an answer, read to its end.
type reply struct {
	*http.Response
	body string
}

// json decodes the answer, or fails the test.
func (r reply) json(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
}

// code is the problem's code; "" if it is none.
func (r reply) code() string {
	var p gateway.Problem
	_ = json.Unmarshal([]byte(r.body), &p)
	return p.Code
}

// send makes a request. Headers are given as "Name: value".
func (w *world) send(method, path, body string, headers ...string) reply {
	w.t.Helper()
	return w.do(http.DefaultTransport, w.request(method, path, body, headers...))
}

func (w *world) request(method, path, body string, headers ...string) *http.Request {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header[name] = append(r.Header[name], value) // as it is written
	}
	return r
}

// sendRaw makes a request whose path is written as it stands here.
func (w *world) sendRaw(method, path string, headers ...string) reply {
	w.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: shop.example.com", "Connection: close"}, headers...)
	_, _ = io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
	_ = res.Body.Close()
	return reply{res, string(b)}
}

func (w *world) do(rt http.RoundTripper, r *http.Request) reply {
	w.t.Helper()
	res, err := rt.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = res.Body.Close()
	return reply{res, string(b)}
}

// api is a request to the API about the room shop.
func (w *world) api(op, body string, headers ...string) reply {
	w.t.Helper()
	return w.send("POST", "/_anteroom/v1/rooms/shop/"+op, body, headers...)
}

// place asks the API and returns the waiting object.
func (w *world) place(status int, op, body string, headers ...string) gateway.Place {
	w.t.Helper()
	r := w.api(op, body, headers...)
	if r.StatusCode != status {
		w.t.Fatalf("%s %s: %d %s, want %d", op, body, r.StatusCode, r.body, status)
	}
	var p gateway.Place
	r.json(w.t, &p)
	return p
}

func (w *world) join() gateway.Place {
	w.t.Helper()
	return w.place(201, "join", "")
}

// with is a body that carries a ticket or a pass.
func with(kind, sealed string) string {
	b, err := json.Marshal(map[string]string{kind: sealed})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// browser is a visitor's: it keeps cookies and says what it wants.
type browser struct {
	w   *world
	jar map[string]string
}

func (w *world) browser() *browser { return &browser{w, make(map[string]string)} }

// navigation is what a browser sends when a person goes somewhere.
var navigation = []string{
	"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document",
	"Accept: text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Language: nl",
}

func (b *browser) send(method, path, body string, headers ...string) reply {
	b.w.t.Helper()
	for name, value := range b.jar {
		headers = append(headers, "Cookie: "+name+"="+value)
	}
	r := b.w.send(method, path, body, headers...)
	for _, c := range r.Cookies() {
		if b.jar[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.jar, c.Name)
		}
	}
	return r
}

// open goes to a page.
func (b *browser) open(path string) reply {
	b.w.t.Helper()
	return b.send("GET", path, "", navigation...)
}

// view opens a path that shows one of our pages.
func (b *browser) view(path string) gateway.View {
	b.w.t.Helper()
	r := b.open(path)
	var v gateway.View
	r.json(b.w.t, &v)
	return v
}
