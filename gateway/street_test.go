package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// pipes is a listener in memory. Nothing is buffered: who does not read holds
// up who writes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p <- theirs
	return ours, nil
}

// serve has a server without bounds of its own answer until the test ends.
func serve(t *testing.T, h http.Handler) pipes {
	t.Helper()
	p := make(pipes)
	s := http.Server{Handler: h, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan error)
	go func() { done <- s.Serve(p) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return p
}

// full is a room in which everybody waits, unless they are admitted already.
type full struct{ sealer *seal.Ring }

func (full) Do(_ context.Context, q ticket.Request) (ticket.Answer, error) {
	if q.Op == ticket.Visit || q.Op == ticket.Refresh {
		return ticket.Answer{State: ticket.Admitted, Pass: q.Pass}, nil
	}
	q.Ticket.Room = q.Room
	return ticket.Answer{State: ticket.Waiting, Ticket: q.Ticket, Position: 1, Refresh: time.Hour}, nil
}

func (full) Room(name string) (RoomState, bool) {
	return RoomState{Room: eviction.Room{Name: name, Target: 1, Session: 24 * time.Hour}}, name == "shop"
}
func (full) Called(string, qpid.ItemID) (<-chan struct{}, func()) { return nil, func() {} }
func (full) Clock() int64                                         { return time.Now().UnixMicro() }

func (f full) ticket() string {
	s, _ := f.sealer.Ticket(ticket.Ticket{Room: "shop", Stamp: 1})
	return s
}

func (f full) pass() string {
	s, _ := f.sealer.Pass(ticket.Pass{Room: "shop", Expires: f.Clock() + 24*time.Hour.Microseconds()})
	return s
}

// street runs f in virtual time, with a gateway in front of an origin.
func street(t *testing.T, origin http.HandlerFunc, f func(t *testing.T, g *Gateway, at pipes, q full)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := full{seal.New(seal.Config{Now: full{}.Clock})}
		if err := q.sealer.Rotate(); err != nil {
			t.Fatal(err)
		}
		g, err := New(Config{Queue: q, Sealer: q.sealer, Rooms: []Room{{
			Name: "shop", Routes: []Route{{"shop.example.com", "/"}}, Origin: &url.URL{Scheme: "http", Host: "origin"},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		g.transport.DialContext = serve(t, origin).dial
		f(t, g, serve(t, g), q)
	})
}

// caller is a client that can stop in the middle.
type caller struct {
	t     *testing.T
	in    *bufio.Reader
	words chan string // what is left to send
}

func (c *caller) say(text string) { c.words <- text }

func (p pipes) call(t *testing.T, text string) *caller {
	t.Helper()
	c, _ := p.dial(t.Context(), "", "")
	d := &caller{t, bufio.NewReader(c), make(chan string, 100)}
	d.say(text)
	go func() {
		for s := range d.words {
			_, _ = io.WriteString(c, s) // perhaps nobody reads any more
		}
	}()
	t.Cleanup(func() { close(d.words); _ = c.Close() })
	return d
}

// answer reads the head of an answer.
func (c *caller) answer() *http.Response {
	c.t.Helper()
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// hangsUpAfterMore is the same where more was written first.
func (c *caller) hangsUpAfterMore() {
	c.t.Helper()
	if _, err := io.Copy(io.Discard, c.in); err != nil {
		c.t.Error(err)
	}
}

// hangsUp waits until the other end has closed the connection.
func (c *caller) hangsUp() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.in); err != nil || len(rest) > 0 {
		c.t.Errorf("%q, %v; want the end of the connection", rest, err)
	}
}

func took(t *testing.T, since time.Time, what string, most time.Duration) {
	t.Helper()
	if d := time.Since(since); d > most {
		t.Errorf("%s took %v, want at most %v", what, d, most)
	}
}
