package origin_test

import (
	"crypto/ecdsa"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/anteroom/anteroom/gateway/origin"
	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

const keysAt = "http://gateway.test/_anteroom/.well-known/jwks.json"

// cluster is the keys of one, and a node that publishes them without a socket.
type cluster struct {
	t    testing.TB
	ring *seal.Ring

	mu      sync.Mutex
	now     time.Time
	fetched int
	answer  func() (int, string, error) // in place of the keys; nil: the keys
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{t: t, now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	c.ring = seal.New(seal.Config{Now: func() int64 { return c.clock().UnixMicro() }})
	c.rotate()
	return c
}

func (c *cluster) rotate() {
	c.t.Helper()
	if err := c.ring.Rotate(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *cluster) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *cluster) fetches() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fetched
}

// answers makes the node say something else; nil: the keys again.
func (c *cluster) answers(f func() (int, string, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

func down() (int, string, error) { return 0, "", errors.New("nobody there") }

// RoundTrip is the node.
func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.fetched++
	answer := c.answer
	c.mu.Unlock()
	status, body := 200, string(c.ring.JWKS())
	if answer != nil {
		var err error
		if status, body, err = answer(); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// checker is an origin's, with change made to its configuration.
func (c *cluster) checker(change func(*origin.Config)) *origin.Passes {
	c.t.Helper()
	config := origin.Config{Room: "shop", JWKS: keysAt, Client: &http.Client{Transport: c}, Now: c.clock}
	if change != nil {
		change(&config)
	}
	p, err := origin.New(config)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// issue makes a pass as the gateway does.
func (c *cluster) issue(room, issuer string, good time.Duration) string {
	c.t.Helper()
	now := c.clock()
	s, err := c.ring.JWT(ticket.Pass{
		Room: room, ID: qpid.ItemID{1, 2, 3}, Stamp: uint64(now.Add(-time.Minute).UnixMicro()), Expires: now.Add(good).UnixMicro(),
	}, issuer)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// good is a pass that is.
func (c *cluster) good() string { return c.issue("shop", "anteroom", 5*time.Minute) }

// signed is a pass that somebody else makes: of the claims of a good one with
// change made to them.
func signed(t testing.TB, now time.Time, method jwt.SigningMethod, key any, change func(*jwt.Token, jwt.MapClaims)) string {
	t.Helper()
	claims := jwt.MapClaims{
		"iss": "anteroom", "aud": "shop", "sub": "01", "jti": "01-1",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Minute).Unix(), "joined_at": now.Unix(),
	}
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = "mine"
	if change != nil {
		change(token, claims)
	}
	s, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends a request with these headers, "Name: value", through h.
func ask(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// site says who has come.
var site = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	c, ok := origin.FromContext(r.Context())
	if !ok {
		_, _ = io.WriteString(w, "nobody")
		return
	}
	_, _ = io.WriteString(w, c.Visitor)
})

// publish makes the node's key set the one key, by the name of mine.
func (c *cluster) publish(key *ecdsa.PrivateKey) {
	c.t.Helper()
	set := keySet(c.t, key)
	c.answers(func() (int, string, error) { return 200, set, nil })
}
