package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/store"
)

// testKey proves membership among the nodes of a test.
const testKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func oneNode() config.Config {
	c := config.Default("")
	c.Node.ID = "a"
	c.Node.Gateway, c.Node.Admin, c.Node.Peer, c.Node.GRPC, c.Node.Gossip = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	r := config.DefaultRoom()
	r.Name, r.TotalActiveUsers = "shop", 1
	c.Rooms = []config.Room{r}
	return c
}

// asking returns the status of what a guard answers, 418 of what it hands on. Who
// is sent away is told when to try again.
func asking(t *testing.T, guard func(http.Handler) http.Handler, method string) func(path string) int {
	h := guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	return func(path string) int {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code == http.StatusServiceUnavailable && (w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"code":"unavailable"`)) {
			t.Errorf("%s: %v %s; want when to try again, and the code", path, w.Header(), w.Body)
		}
		return w.Code
	}
}

// Until a node has keys, a ticket is neither good nor bad.
func TestNodeWithoutKeysCallsNoTicketBad(t *testing.T) {
	s := New(oneNode(), Options{})
	s.keys = &keys{ring: seal.New(seal.Config{Now: s.passTime})}
	ask := asking(t, s.keyed, http.MethodPost)
	for path, want := range map[string]int{
		"/_anteroom/v1/rooms/shop/checkin": 503, "/_anteroom/v1/rooms/shop/leave": 503, "/_anteroom/v1/rooms/shop/refresh": 503,
		"/_anteroom/v1/rooms/shop/stream": 503, "/_anteroom/v1/rooms/shop/status": 418, "/checkin": 418,
	} {
		if got := ask(path); got != want {
			t.Errorf("%s without keys: %d, want %d", path, got, want)
		}
	}
	if err := s.keys.ring.Rotate(); err != nil {
		t.Fatal(err)
	}
	if got := ask("/_anteroom/v1/rooms/shop/checkin"); got != 418 {
		t.Errorf("check-in with keys: %d, want it handed on", got)
	}
}

// Until a node has heard of the rooms, none is unknown.
func TestNodeWithoutRoomsCallsNoRoomUnknown(t *testing.T) {
	s := New(oneNode(), Options{})
	ask := asking(t, s.roomed, http.MethodGet)
	for path, want := range map[string]int{
		"/_anteroom/v1/rooms/shop/checkin": 503, "/_anteroom/v1/rooms/shop/status": 503, "/tea/rooibos": 503, "/_anteroom/.well-known/jwks.json": 418,
	} {
		if got := ask(path); got != want {
			t.Errorf("%s without rooms: %d, want %d", path, got, want)
		}
	}
	s.hasRooms.Store(true)
	if got := ask("/tea/rooibos"); got != 418 {
		t.Errorf("a page with rooms: %d, want it handed on", got)
	}
}

func TestDataOfAnotherNodeIsRefused(t *testing.T) {
	c := oneNode()
	c.Node.Data = config.Path(t.TempDir())
	d, err := store.Open(string(c.Node.Data))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Save(&eviction.Record{Member: eviction.Member{Name: "b", Boot: 1}}); err != nil {
		t.Fatal(err)
	}
	s := New(c, Options{})
	s.self.Name = "a"
	if _, err := s.openStore(); err == nil || !strings.Contains(err.Error(), `node "b"`) {
		t.Errorf("%v; want an error that names the other node", err)
	}
	s.self.Name = "b"
	if r, err := s.openStore(); err != nil || r == nil {
		t.Errorf("its own: %v, %v", r, err)
	}
}

// sockets skips a test that needs real ones, unless they were asked for.
func sockets(t *testing.T) {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real sockets; set ANTEROOM_E2E=1")
	}
}

func TestNodeThatCannotGossipEndsAndSaysWhy(t *testing.T) {
	sockets(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	c := oneNode()
	c.Security.GossipKey = []config.Secret{config.NewSecret(testKey)}
	c.Node.Gossip = taken.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := New(c, Options{}).Run(ctx); err == nil || !strings.Contains(err.Error(), "node.gossip") || ctx.Err() != nil {
		t.Errorf("%v; want an error at once that names node.gossip", err)
	}
}

// Without a key nobody can be told from a member. So there are none: neither
// port of theirs is open, on loopback either.
func TestNodeWithoutAKeyIsAClusterOfOneAndOpensNoPortForOthers(t *testing.T) {
	sockets(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	c := oneNode()
	c.Node.Peer, c.Node.Gossip = taken.Addr().String(), taken.Addr().String() // to open either would fail
	ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	s, over := New(c, Options{}), make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-over:
		t.Fatal(err)
	}
	if at := s.Addresses(); at.Peer != "" || at.Gossip != "" || at.Gateway == "" {
		t.Errorf("it listens at %+v", at)
	}
	for r, ok := s.Snapshot().Room("shop"); !ok || !r.MayAdmit; r, ok = s.Snapshot().Room("shop") {
		select {
		case <-time.After(10 * time.Millisecond):
		case err := <-over:
			t.Fatal(err)
		}
	}
	end()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// A script that waits until status says that a node serves may send people there.
func TestNodeSaysThatItServesWhenItHasSigningKeys(t *testing.T) {
	sockets(t)
	ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	s, over := New(oneNode(), Options{}), make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-over:
		t.Fatal(err)
	}
	for serves := false; !serves; {
		if serves = (source{s}).Cluster().Waiting == ""; serves && s.keys.ring.Empty() {
			t.Error("it says that it serves, and has no signing keys")
		}
		select {
		case <-time.After(time.Millisecond):
		case err := <-over:
			t.Fatal(err)
		}
	}
	end()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// With keys from before, or with new ones of a file, a room opens only when no pass
// can be out any more. The log says when that is.
func TestNodeSaysWhenARoomOpens(t *testing.T) {
	sockets(t)
	dir := t.TempDir()
	c := oneNode()
	c.Security.SigningKeys = config.Path(dir + "/keys.json")
	ring := seal.New(seal.Config{Now: func() int64 { return time.Now().UnixMicro() }})
	if err := errors.Join(ring.Rotate(), ring.Save(string(c.Security.SigningKeys))); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	said := make(lines, 100)
	s, over := New(c, Options{Logger: slog.New(slog.NewTextHandler(said, nil))}), make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	opens := ""
	for opens == "" {
		select {
		case line := <-said:
			if strings.Contains(line, "nobody goes in yet") {
				opens = line
			}
		case err := <-over:
			t.Fatalf("nothing was said of when the room opens: %v", err)
		}
	}
	at, err := time.Parse(time.RFC3339, value(opens, "opens"))
	if d := time.Until(at); err != nil || d < 4*time.Minute || d > 5*time.Minute+13*time.Second || value(opens, "room") != "shop" {
		t.Errorf("the room opens in %v (%v): %s", d, err, opens)
	}
	end()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// lines takes in a log; what nobody reads any more is lost.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

// value is that of a key in a line of the log.
func value(line, key string) string {
	_, rest, _ := strings.Cut(line, " "+key+"=")
	text, _, _ := strings.Cut(rest, " ")
	return text
}

func TestNodeThatIsToJoinWithoutAKeyEndsAndSaysWhy(t *testing.T) {
	sockets(t)
	c := oneNode()
	c.Node.Join, c.Node.GRPC = []string{"127.0.0.1:1"}, config.None
	if err := New(c, Options{}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "security.gossip_key") {
		t.Errorf("%v; want an error that says what to set", err)
	}
}

func TestNodeLeavesWhileItWaitsForItsFounders(t *testing.T) {
	sockets(t)
	c := oneNode()
	c.Security.GossipKey = []config.Secret{config.NewSecret(testKey)}
	c.Node.Join, c.Node.Expect = []string{"127.0.0.1:1"}, 3
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := New(c, Options{})
	told, leave := context.WithCancel(ctx)
	go func() { <-s.Ready(); leave() }()
	if err := s.Run(told); err != nil || ctx.Err() != nil {
		t.Errorf("%v, %v; want a quiet end at once", err, ctx.Err())
	}
	if s.Snapshot().Status.Line.Founded() {
		t.Error("it founded a cluster")
	}
}

// Nobody who did not ask for node.grpc has a node that does not start for its
// sake; who did is told.
func TestATakenPortForProgramsEndsOnlyWhoSetIt(t *testing.T) {
	sockets(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	c := oneNode()
	c.Node.GRPC = taken.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := New(c, Options{}).Run(ctx); err == nil || !strings.Contains(err.Error(), "node.grpc: ") || ctx.Err() != nil {
		t.Errorf("set: %v; want an error that names node.grpc", err)
	}
	var log bytes.Buffer
	s := New(c, Options{DefaultGRPC: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	told, leave := context.WithCancel(ctx)
	go func() { <-s.Ready(); leave() }()
	if err := s.Run(told); err != nil || ctx.Err() != nil {
		t.Errorf("by default: %v, %v; want a node without", err, ctx.Err())
	}
	if at := s.Addresses().GRPC; at != "" || !strings.Contains(log.String(), "level=WARN msg=\"node.grpc: the default port is taken") {
		t.Errorf("by default it listens at %q and says:\n%s", at, log.String())
	}
}
