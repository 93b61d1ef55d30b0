// Package verifypass_test runs the three sites beside it behind a real gateway,
// and shows them good passes and bad ones.
package verifypass_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// alwaysOpen is a queue in which nobody waits.
type alwaysOpen struct{ ended atomic.Int64 }

func (q *alwaysOpen) Clock() int64 { return time.Now().UnixMicro() }

func (q *alwaysOpen) Room(name string) (gateway.RoomState, bool) {
	return gateway.RoomState{Room: eviction.Room{Name: name, Target: 10, Session: time.Minute}, Open: true}, true
}

func (q *alwaysOpen) Called(string, qpid.ItemID) (<-chan struct{}, func()) { return nil, func() {} }

func (q *alwaysOpen) Do(_ context.Context, r ticket.Request) (ticket.Answer, error) {
	switch r.Op {
	case ticket.Join:
		now := q.Clock()
		return ticket.Answer{State: ticket.Admitted, Pass: ticket.Pass{Room: r.Room, ID: r.ID, Stamp: uint64(now), Expires: now + 60e6}}, nil
	case ticket.End:
		q.ended.Add(1)
	default:
	}
	return ticket.Answer{State: ticket.Admitted, Pass: r.Pass}, nil
}

type pages struct{}

func (pages) Page(w io.Writer, v gateway.View) error { return json.NewEncoder(w).Encode(v.Kind) }

// setting is a gateway with the rooms shop and museum, the former before a site.
type setting struct {
	t       *testing.T
	queue   alwaysOpen
	ring    *seal.Ring
	gateway *httptest.Server
	site    string // its own address, past the gateway
}

func newSetting(t *testing.T, command ...string) *setting {
	t.Helper()
	s := &setting{t: t}
	s.ring = seal.New(seal.Config{Now: s.queue.Clock})
	if err := s.ring.Rotate(); err != nil {
		t.Fatal(err)
	}
	rooms := []gateway.Room{
		{Name: "shop", Routes: []gateway.Route{{Host: "*", Path: "/"}}},
		{Name: "museum", Routes: []gateway.Route{{Host: "*", Path: "/museum"}}},
	}
	g, err := gateway.New(gateway.Config{Queue: &s.queue, Sealer: s.ring, Pages: pages{}, Rooms: rooms})
	if err != nil {
		t.Fatal(err)
	}
	s.gateway = httptest.NewServer(g)
	t.Cleanup(func() { g.Close(); s.gateway.Close() })
	s.site = "http://" + start(t, append(command, s.gateway.URL+"/_anteroom/.well-known/jwks.json", "shop", "0"))
	u, err := url.Parse(s.site)
	if err != nil {
		t.Fatal(err)
	}
	rooms[0].Origin = u
	if err := g.SetRooms(rooms); err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs a site and returns the address that it says it listens on.
func start(t *testing.T, command []string) string {
	t.Helper()
	site := exec.CommandContext(t.Context(), command[0], command[1:]...)
	site.Stderr, site.Env = t.Output(), append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := site.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := site.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = site.Process.Kill(); _ = site.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	_, address, ok := strings.Cut(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("%v: said %q: %v", command, line, err)
	}
	return address
}

// get asks, with these headers, "Name: value".
func (s *setting) get(address string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		s.t.Fatal(err)
	}
	return res, string(b)
}

// pass is one of the visitor 0102… that ends after a while.
func (s *setting) pass(ring *seal.Ring, room, issuer string, after time.Duration) string {
	s.t.Helper()
	jwt, err := ring.JWT(ticket.Pass{Room: room, ID: qpid.ItemID{1, 2}, Stamp: 1, Expires: time.Now().Add(after).UnixMicro()}, issuer)
	if err != nil {
		s.t.Fatal(err)
	}
	return jwt
}

// bad are passes that must not be taken.
func (s *setting) bad() map[string]string {
	s.t.Helper()
	strangers := seal.New(seal.Config{Now: s.queue.Clock})
	if err := strangers.Rotate(); err != nil {
		s.t.Fatal(err)
	}
	good, museum := s.pass(s.ring, "shop", "anteroom", time.Minute), s.pass(s.ring, "museum", "anteroom", time.Minute)
	part, other := strings.Split(good, "."), strings.Split(museum, ".")
	enc := base64.RawURLEncoding.EncodeToString
	turned, err := base64.RawURLEncoding.DecodeString(part[2])
	if err != nil {
		s.t.Fatal(err)
	}
	turned[40] ^= 1
	head, err := base64.RawURLEncoding.DecodeString(part[0])
	if err != nil {
		s.t.Fatal(err)
	}
	hmac, err := jwt.SigningMethodHS256.Sign(enc([]byte(strings.Replace(string(head), "ES256", "HS256", 1)))+"."+part[1], s.ring.JWKS())
	if err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256(nil)
	return map[string]string{
		"none": "", "garbage": "hello", "dots": "..", "two parts": part[0] + "." + part[1], "four": good + ".x",
		"another room": museum, "another issuer": s.pass(s.ring, "shop", "somebody", time.Minute),
		"over": s.pass(s.ring, "shop", "anteroom", -time.Minute), "another cluster's": s.pass(strangers, "shop", "anteroom", time.Minute),
		"another's claims": part[0] + "." + part[1] + "." + other[2], "one bit": part[0] + "." + part[1] + "." + enc(turned),
		"zeros": part[0] + "." + part[1] + "." + enc(make([]byte, 64)), "half a signature": part[0] + "." + part[1] + "." + enc(sum[:]),
		"alg none": enc([]byte(`{"alg":"none"}`)) + "." + part[1] + ".", "no JSON": enc([]byte("hello")) + "." + part[1] + "." + part[2],
		"a list":      enc([]byte("[]")) + "." + part[1] + "." + part[2],
		"HMAC":        enc([]byte(strings.Replace(string(head), "ES256", "HS256", 1))) + "." + part[1] + "." + enc(hmac),
		"a huge one":  part[0] + "." + strings.Repeat("A", 8<<10) + "." + part[2],
		"no key name": enc([]byte(`{"alg":"ES256"}`)) + "." + part[1] + "." + part[2],
	}
}

func TestTheExamplesCheckPasses(t *testing.T) {
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real processes; set ANTEROOM_E2E=1")
	}
	built := filepath.Join(t.TempDir(), "site")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", built, "./go").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for language, command := range map[string][]string{"go": {built}, "node": {"node", "node/server.mjs"}, "python": {"python3", "python/server.py"}} {
		t.Run(language, func(t *testing.T) {
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skipf("NOT RUN: %s is not installed", command[0])
			}
			newSetting(t, command...).check()
		})
	}
}

func (s *setting) check() {
	t := s.t
	if res, body := s.get(s.gateway.URL + "/"); res.StatusCode != 200 || !strings.HasPrefix(body, "welcome ") {
		t.Fatalf("through the gateway: %d %s", res.StatusCode, body)
	}
	good := s.pass(s.ring, "shop", "anteroom", time.Minute)
	welcome := func(when string) {
		t.Helper()
		if res, body := s.get(s.site+"/", "X-Anteroom-Pass: "+good); res.StatusCode != 200 || !strings.Contains(body, "01020000000000000000000000000000") {
			t.Errorf("%s, with a pass: %d %s", when, res.StatusCode, body)
		}
	}
	welcome("past the gateway")
	for what, pass := range s.bad() {
		var headers []string
		if what != "none" {
			headers = []string{"X-Anteroom-Pass: " + pass}
		}
		if res, body := s.get(s.site+"/", headers...); res.StatusCode != 403 {
			t.Errorf("a bad pass, %s: %d %s", what, res.StatusCode, body)
		}
	}
	if res, body := s.get(s.gateway.URL+"/done", "Accept: */*"); res.StatusCode != 200 || res.Header.Get("Anteroom-Command") != "" {
		t.Errorf("at the end: %d %v %s", res.StatusCode, res.Header, body)
	}
	if got := s.queue.ended.Load(); got != 1 {
		t.Errorf("%d visits have ended, want 1", got)
	}
	// Passes signed with a key that is as old as the site's knowledge of it.
	s.gateway.CloseClientConnections()
	s.gateway.Close()
	welcome("while the gateway is down")
}

func TestTheExamplesAreShort(t *testing.T) {
	for _, name := range []string{"go/main.go", "node/server.mjs", "python/server.py", "python/p256.py"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), "\n"); n > 60 {
			t.Errorf("%s has %d lines", name, n)
		}
	}
}
