package gateway

import (
	"bufio"
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
)

// multiplexed is a client that speaks HTTP/2.
func (p pipes) multiplexed(t *testing.T) *http.Transport {
	t.Helper()
	tr := &http.Transport{DialContext: p.dial, Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// withPass is a request for the site.
func withPass(t *testing.T, q full, method, path string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://shop.example.com"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Cookie", "anteroom_shop="+q.pass())
	return r
}

// broken is an origin that says when, and with what error, a body broke off.
func broken(off chan<- error) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		off <- err
	}
}

func TestAnUploadThatStallsIsGivenUp(t *testing.T) {
	for what, c := range map[string]struct{ headers, body, drip string }{
		"nothing at all":               {"Content-Length: 100", "", ""},
		"half of it":                   {"Content-Length: 100", strings.Repeat("x", 50), ""},
		"much of a film":               {"Content-Length: 100000000", strings.Repeat("x", 500_000), ""},
		"half of the chunks":           {"Transfer-Encoding: chunked", "1\r\nx\r\n", ""},
		"a chunk that says no content": {"Transfer-Encoding: chunked", "1\r\nx\r\n1;", "x"},
		"what was not asked for":       {"Content-Length: 100\r\nExpect: 100-continue", "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			off := make(chan error, 1)
			street(t, func(w http.ResponseWriter, r *http.Request) { broken(off)(w, r) }, func(t *testing.T, g *Gateway, at pipes, q full) {
				off = make(chan error, 1)           // of this bubble
				g.c.Bounds.Stall = 20 * time.Second // not the default
				began := time.Now()
				visitor := at.call(t, "POST / HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\n"+c.headers+"\r\n\r\n"+c.body)
				var drip sync.WaitGroup
				drip.Go(func() {
					for range 30 {
						if time.Sleep(time.Second); c.drip != "" {
							visitor.say(c.drip)
						}
					}
				})
				r := visitor.answer()
				for r.StatusCode == http.StatusContinue { // ours, and the origin's if it was quick: the standard allows both
					r = visitor.answer()
				}
				took(t, began, "the answer", 20*time.Second)
				b, err := io.ReadAll(r.Body)
				if r.StatusCode != 408 || err != nil || !strings.Contains(string(b), `"code":"request_timeout"`) || !r.Close {
					t.Errorf("%d %v %s, %v", r.StatusCode, r.Header, b, err)
				}
				visitor.hangsUp()
				if err := <-off; err == nil {
					t.Error("the origin took the body for whole")
				}
				took(t, began, "all of it", 20*time.Second+closing)
				drip.Wait()
			})
		})
	}
}

func TestAnUploadThatStallsOverHTTP2IsGivenUp(t *testing.T) {
	off := make(chan error, 1)
	street(t, func(w http.ResponseWriter, r *http.Request) { broken(off)(w, r) }, func(t *testing.T, _ *Gateway, at pipes, q full) {
		off = make(chan error, 1) // of this bubble
		tr := at.multiplexed(t)
		began := time.Now()
		body, words := io.Pipe()
		defer func() { _ = words.Close() }()
		go func() { _, _ = io.WriteString(words, "half of i") }()
		r, err := tr.RoundTrip(withPass(t, q, "POST", "/", body))
		if err != nil {
			t.Fatal(err)
		}
		took(t, began, "the answer", stallDefault)
		if b, err := io.ReadAll(r.Body); r.ProtoMajor != 2 || r.StatusCode != 408 || err != nil || !strings.Contains(string(b), `"code":"request_timeout"`) {
			t.Errorf("%d %s, %v", r.StatusCode, b, err)
		}
		if err := <-off; err == nil {
			t.Error("the origin took the body for whole")
		}
	})
}

func TestAnAnswerThatNobodyReadsOverHTTP2IsGivenUp(t *testing.T) {
	gone := make(chan time.Time, 1)
	street(t, func(w http.ResponseWriter, r *http.Request) { forever(gone)(w, r) }, func(t *testing.T, _ *Gateway, at pipes, q full) {
		gone = make(chan time.Time, 1) // of this bubble
		r, err := at.multiplexed(t).RoundTrip(withPass(t, q, "GET", "/film", nil))
		if err != nil {
			t.Fatal(err)
		}
		for range 10 { // slow is not stopped
			time.Sleep(stallDefault / 2)
			if _, err := io.CopyN(io.Discard, r.Body, 10_000_000); err != nil {
				t.Fatal(err)
			}
		}
		stopped := time.Now()
		if d := (<-gone).Sub(stopped); d > stallDefault {
			t.Errorf("the origin was let go after %v, want at most %v", d, stallDefault)
		}
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			t.Error("the answer ended as if it were whole")
		}
	})
}

// late is an origin that reads nothing for a while.
func late(w http.ResponseWriter, r *http.Request) {
	time.Sleep(10 * stallDefault)
	n, err := io.Copy(io.Discard, r.Body)
	_, _ = fmt.Fprintf(w, "%d %v", n, err)
}

func TestAnOriginThatReadsLateIsNotAClientThatStalls(t *testing.T) {
	const size = 3_000_000 // more than fits into the buffers on the way
	want := fmt.Sprintf("%d <nil>", size)
	street(t, late, func(t *testing.T, _ *Gateway, at pipes, q full) {
		visitor := at.call(t, fmt.Sprintf("POST / HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop=%s\r\nContent-Length: %d\r\n\r\n", q.pass(), size)+strings.Repeat("x", size))
		if b, err := io.ReadAll(visitor.answer().Body); string(b) != want {
			t.Errorf("HTTP/1: %q, %v", b, err)
		}
		r, err := at.multiplexed(t).RoundTrip(withPass(t, q, "POST", "/", strings.NewReader(strings.Repeat("x", size))))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r.Body); string(b) != want {
			t.Errorf("HTTP/2: %q, %v", b, err)
		}
	})
}

func TestATalkMayHavePausesOverHTTP2(t *testing.T) {
	street(t, echo, func(t *testing.T, _ *Gateway, at pipes, q full) {
		body, words := io.Pipe()
		r, err := at.multiplexed(t).RoundTrip(withPass(t, q, "POST", "/", body))
		if err != nil {
			t.Fatal(err)
		}
		out := bufio.NewReader(r.Body)
		for i := range 3 {
			time.Sleep(10 * stallDefault)
			_, _ = fmt.Fprintln(words, i)
			if line, err := out.ReadString('\n'); err != nil || line != fmt.Sprintf("%d back\n", i) {
				t.Fatalf("%q, %v", line, err)
			}
		}
		_ = words.Close()
		if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
	})
}

// The origin says something after ten minutes, a WebSocket after an hour, and
// one connection serves one request after the other for longer than a client
// may stall: no bound of one request is left behind for the next.
func TestSilencesThatAreNobodysStall(t *testing.T) {
	street(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 3 {
				_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * stallDefault)
			}
		case "/socket":
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			_ = rw.Flush()
			_, _ = io.Copy(c, rw)
		default:
			time.Sleep(stallDefault / 2) // less than Bounds.OriginWait
			b, err := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s %v", b, err)
		}
	}, func(t *testing.T, _ *Gateway, at pipes, q full) {
		head := "HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop=" + q.pass() + "\r\n"
		events := at.call(t, "GET /events "+head+"\r\n")
		if b, err := io.ReadAll(events.answer().Body); string(b) != "data: 0\n\ndata: 1\n\ndata: 2\n\n" {
			t.Errorf("events: %q, %v", b, err)
		}
		socket := at.call(t, "GET /socket "+head+"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		if r := socket.answer(); r.StatusCode != 101 {
			t.Fatalf("upgrade: %d", r.StatusCode)
		}
		for range 3 {
			time.Sleep(time.Hour)
			socket.say("hello\n")
			if line, err := socket.in.ReadString('\n'); line != "hello\n" {
				t.Fatalf("socket: %q, %v", line, err)
			}
		}
		kept := at.call(t, "")
		for i := range 3 {
			for _, text := range []string{"Content-Length: 2\r\n\r\n:)", "Transfer-Encoding: chunked\r\n\r\n2\r\n:)\r\n0\r\n\r\n"} {
				kept.say("POST / " + head + text)
				r := kept.answer()
				if b, err := io.ReadAll(r.Body); r.StatusCode != 200 || string(b) != ":) <nil>" {
					t.Fatalf("request %d of a connection: %d %q, %v", i, r.StatusCode, b, err)
				}
				time.Sleep(2 * stallDefault)
			}
		}
	})
}

// Connections to origins are bounded in all. One that no request uses gives way,
// whichever origin it is to; if all are in use, who waits too long is told so.
func TestConnectionsToOriginsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Bounds{OriginConns: 2}.withDefaults()
		open := 0
		tr := newTransport(b)
		o := &origins{places: make(chan struct{}, 2), idle: tr.CloseIdleConnections}
		slow := make(pipes)
		origin := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				time.Sleep(time.Minute / 2)
			}
			_, _ = io.WriteString(w, "ok")
		})}
		done := make(chan struct{})
		go func() { _ = origin.Serve(slow); close(done) }()
		defer func() {
			tr.CloseIdleConnections()
			_ = origin.Close()
			<-done
		}()
		o.dial = slow.dial
		tr.DialContext = o.DialContext
		ask := func(host, path string) error {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, (&url.URL{Scheme: "http", Host: host, Path: path}).String(), nil)
			if err != nil {
				return err
			}
			a, err := tr.RoundTrip(r)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, a.Body)
			return errors.Join(err, a.Body.Close())
		}
		for i := range 10 {
			if err := ask(fmt.Sprintf("origin-%d", i), "/"); err != nil {
				t.Fatalf("origin %d: %v", i, err)
			}
			synctest.Wait()
			if open = len(o.places); open > 2 {
				t.Fatalf("%d connections", open)
			}
		}
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				if err := ask(fmt.Sprintf("origin-%d", i), "/slow"); err != nil {
					t.Errorf("one that is in: %v", err)
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		if err := ask("origin-0", "/"); !errors.Is(err, errOriginsFull) {
			t.Errorf("one too many: %v", err)
		}
		took(t, began, "refusing it", originWithin)
		all.Wait()
		if err := ask("origin-5", "/"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		tr.CloseIdleConnections()
		synctest.Wait()
		if n := len(o.places); n != 0 {
			t.Errorf("%d places are not given back", n)
		}
	})
}

// Who gets no connection to the origin is told so: it is neither down nor slow.
func TestTooManyRequestsToTheSite(t *testing.T) {
	street(t, nil, func(t *testing.T, g *Gateway, at pipes, q full) {
		g.transport.DialContext = (&origins{places: make(chan struct{}), idle: func() {}}).DialContext
		visitor := at.call(t, "GET / HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\n\r\n")
		r := visitor.answer()
		b, err := io.ReadAll(r.Body)
		if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" || err != nil || !strings.Contains(string(b), `"code":"unavailable"`) {
			t.Errorf("%d %v %s, %v", r.StatusCode, r.Header, b, err)
		}
	})
}

var _ net.Conn = (*originConn)(nil)
