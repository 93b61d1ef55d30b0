package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
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

const closing = time.Second // net/http lets what was written arrive before it closes

func TestABodyThatComesTooSlowlyIsAnsweredInTime(t *testing.T) {
	const room = "/_anteroom/v1/rooms/shop/"
	sized, chunked := "Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n64\r\n"
	for _, c := range []struct {
		what, line, body, host, code string
		status                       int
	}{
		{"a join", "POST " + room + "join", sized, "x", "request_invalid", 400},
		{"a check-in in chunks", "POST " + room + "checkin", chunked, "x", "request_invalid", 400},
		{"an end", "POST " + room + "end", sized, "x", "request_invalid", 400},
		{"an unknown room", "POST /_anteroom/v1/rooms/nope/join", sized, "x", "room_unknown", 404},
		{"an unknown request", "POST " + room + "jion", chunked, "x", "not_found", 404},
		{"the wrong method", "GET " + room + "join", sized, "x", "method_not_allowed", 405},
		{"a stream", "GET " + room + "stream", chunked, "x", "ticket_invalid", 401},
		{"a status", "GET " + room + "status", sized, "x", "", 200},
		{"a proxy that asks", "GET " + room + "auth?proxy=nginx", sized, "x", "", 401},
		{"another site", "POST /", sized, "other.example.com", "not_found", 404},
		{"a mirror", "TRACE /", chunked, "shop.example.com", "method_not_allowed", 405},
		{"no path", "GET *", sized, "shop.example.com", "request_invalid", 400},
		{"a form of somebody who waits", "POST /buy", sized, "shop.example.com", "", 429},
		{"a form of a person who waits", "POST /buy", "Sec-Fetch-Mode: navigate\r\n" + sized, "shop.example.com", "", 303},
	} {
		t.Run(c.what, func(t *testing.T) {
			street(t, nil, func(t *testing.T, _ *Gateway, at pipes, _ full) {
				began := time.Now()
				visitor := at.call(t, c.line+" HTTP/1.1\r\nHost: "+c.host+"\r\n"+c.body+"{")
				var drip sync.WaitGroup
				drip.Go(func() {
					for range 90 {
						time.Sleep(time.Second)
						visitor.say(" ")
					}
				})
				r := visitor.answer()
				took(t, began, "the answer", bodyWithin)
				b, err := io.ReadAll(r.Body)
				if err != nil || r.StatusCode != c.status || !strings.Contains(string(b), `"code":"`+c.code+`"`) && c.code != "" {
					t.Errorf("%d %s, %v; want %d %s", r.StatusCode, b, err, c.status, c.code)
				}
				visitor.hangsUp()
				took(t, began, "all of it", bodyWithin+closing)
				drip.Wait()
			})
		})
	}
}

func TestAStreamThatNobodyReadsEnds(t *testing.T) {
	street(t, nil, func(t *testing.T, g *Gateway, at pipes, q full) {
		request := "GET /_anteroom/v1/rooms/shop/stream?ticket=" + q.ticket() + " HTTP/1.1\r\nHost: x\r\n\r\n"
		at.call(t, request) // and reads nothing
		stops := at.call(t, request)
		if line, err := bufio.NewReader(stops.answer().Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
			t.Fatalf("%q, %v", line, err)
		}
		if n := g.streams.Load(); n != 2 {
			t.Fatalf("%d streams, want 2", n)
		}
		time.Sleep(eventWithin + closing)
		if n := g.streams.Load(); n != 1 {
			t.Errorf("%d streams, want the one that was read once", n)
		}
		time.Sleep(g.c.Bounds.Heartbeat)
		if n := g.streams.Load(); n != 0 {
			t.Errorf("%d streams, want none", n)
		}
	})
}

// forever writes until it cannot.
func forever(gone chan<- time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 10_000)); err != nil {
				gone <- time.Now()
				return
			}
		}
	}
}

func TestAnAnswerThatNobodyReadsIsGivenUp(t *testing.T) {
	gone := make(chan time.Time, 1)
	street(t, func(w http.ResponseWriter, r *http.Request) { forever(gone)(w, r) }, func(t *testing.T, _ *Gateway, at pipes, q full) {
		gone = make(chan time.Time, 1) // of this bubble
		began := time.Now()
		visitor := at.call(t, "GET /film HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\n\r\n")
		film := visitor.answer().Body
		for range 10 { // slow is not stopped
			time.Sleep(writeWithin / 2)
			if _, err := io.CopyN(io.Discard, film, 40_000); err != nil {
				t.Fatal(err)
			}
		}
		stopped := time.Now()
		took(t, stopped, "giving up at the origin", (<-gone).Sub(stopped)+writeWithin)
		took(t, began, "all of it", 6*writeWithin+closing)
	})
}

func TestAnUploadMayTakeItsTime(t *testing.T) {
	street(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %v", b, err)
	}, func(t *testing.T, _ *Gateway, at pipes, q full) {
		visitor := at.call(t, "POST /photo HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\nContent-Length: 5\r\n\r\n")
		for _, b := range "hello" {
			time.Sleep(20 * time.Minute)
			visitor.say(string(b))
		}
		if b, err := io.ReadAll(visitor.answer().Body); string(b) != "hello <nil>" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// echo answers each line when it has come, which is before the body ends.
func echo(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	_ = c.EnableFullDuplex()
	_ = c.Flush()
	for in := bufio.NewScanner(r.Body); in.Scan(); {
		_, _ = io.WriteString(w, in.Text()+" back\n")
		_ = c.Flush()
	}
}

func TestAnOriginMayAnswerBeforeItHasHeardAll(t *testing.T) {
	street(t, echo, func(t *testing.T, _ *Gateway, at pipes, q full) {
		visitor := at.call(t, "POST / HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\nTransfer-Encoding: chunked\r\n\r\n")
		out := bufio.NewReader(visitor.answer().Body)
		for i := range 3 {
			time.Sleep(time.Minute)
			visitor.say(fmt.Sprintf("2\r\n%d\n\r\n", i))
			if line, err := out.ReadString('\n'); err != nil || line != fmt.Sprintf("%d back\n", i) {
				t.Fatalf("%q, %v", line, err)
			}
		}
		visitor.say("0\r\n\r\n")
		if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
	})
}

func TestAnUploadThatNobodyWantsAnyMoreIsGivenUp(t *testing.T) {
	street(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Content-Length", "1048576")
		w.Header().Set("Connection", "close") // or net/http stumbles over the body that it was not to read
		_, _ = w.Write(make([]byte, 1<<20))
	}, func(t *testing.T, _ *Gateway, at pipes, q full) {
		began := time.Now()
		visitor := at.call(t, "POST / HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\nContent-Length: 100\r\n\r\nx")
		if n, err := io.Copy(io.Discard, visitor.answer().Body); n != 1<<20 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
		took(t, began, "the answer", time.Second)
		visitor.hangsUp()
		took(t, began, "all of it", bodyWithin+closing)
	})
}

// Where connections carry many streams, a deadline ends a stream even if
// nothing is being written.
func TestQuietStreamsGoOnOverHTTP2(t *testing.T) {
	street(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "%d\n", i)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Minute)
		}
	}, func(t *testing.T, _ *Gateway, at pipes, q full) {
		tr := &http.Transport{DialContext: at.dial, Protocols: new(http.Protocols)}
		tr.Protocols.SetUnencryptedHTTP2(true)
		defer tr.CloseIdleConnections()
		open := func(path string) *http.Response {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://shop.example.com"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Cookie", "anteroom_shop="+q.pass())
			a, err := tr.RoundTrip(r)
			if err != nil || a.StatusCode != 200 || a.ProtoMajor != 2 {
				t.Fatalf("%s: %v, %v", path, a, err)
			}
			return a
		}
		if b, err := io.ReadAll(open("/slow").Body); string(b) != "0\n1\n2\n" || err != nil {
			t.Errorf("the origin's: %q, %v", b, err)
		}
		ours := open("/_anteroom/v1/rooms/shop/stream?ticket=" + q.ticket()).Body
		in := bufio.NewScanner(ours)
		for beats := 0; beats < 10; {
			if !in.Scan() {
				t.Fatalf("after %d beats: %v", beats, in.Err())
			}
			if in.Text() == ":" {
				beats++
			}
		}
		_ = ours.Close()
	})
}
