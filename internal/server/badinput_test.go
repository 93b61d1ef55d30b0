package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/seal"
)

// street is a node as it runs, its gateway behind the server that it has in
// production, but in memory and in virtual time. One person is on the site, and
// that is all that fit; one waits.
type street struct {
	t      *testing.T
	door   chan net.Conn
	log    bytes.Buffer
	place  string // the ticket of the person who waits
	pass   string // of the person on the site
	joined time.Time
}

func (s *street) Accept() (net.Conn, error) {
	if c, ok := <-s.door; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (s *street) Close() error   { close(s.door); return nil }
func (s *street) Addr() net.Addr { return &net.TCPAddr{} }

// onStreet runs f in a bubble, which ends only if no goroutine is left.
func onStreet(t *testing.T, f func(t *testing.T, s *street)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &street{t: t, door: make(chan net.Conn)}
		began := time.Now()
		c := oneNode()
		c.Rooms[0].Routes, c.Rooms[0].Origin = []config.Route{{Host: "shop.example.com", Path: "/"}}, "http://127.0.0.1:9"
		node := New(c, Options{
			Logger: slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Clock: func() eviction.Time {
				return eviction.Time{Boot: time.Since(began).Microseconds() + 1e9, Wall: time.Now().UnixMicro()}
			},
		})
		node.at.Peer = "127.0.0.1:9" // nobody calls there
		if err := node.build(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		public := node.httpServer(node.roomed(node.keyed(node.gateway)))
		t.Cleanup(func() {
			node.gateway.Close()
			_ = public.Close()
			stop()
			time.Sleep(time.Second) // net/http lets what was written arrive before it closes
			if strings.Contains(s.log.String(), "panic") {
				t.Error(s.log.String())
			}
		})
		go func() { _ = node.loop.Run(ctx) }()
		go func() { _ = public.Serve(s) }()
		node.loop.SetView(eviction.NewView([]eviction.Peer{node.self}))
		if err := node.keys.ring.Rotate(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // it founds its cluster
		node.followRooms()
		s.pass = s.join().Pass
		p := s.join()
		s.place, s.joined = p.Ticket, p.JoinedAt
		if s.pass == "" || s.place == "" {
			t.Fatalf("pass %q, ticket %q; want one of each", s.pass, s.place)
		}
		f(t, s)
	})
}

// ask sends bytes and reads one answer. What cannot be read as one is nil.
func (s *street) ask(raw string) (*http.Response, string) {
	s.t.Helper()
	ours, theirs := net.Pipe()
	s.door <- theirs
	defer func() { _ = ours.Close() }()
	go func() { _, _ = io.WriteString(ours, raw) }() // perhaps not all of it is read
	method, _, _ := strings.Cut(raw, " ")
	r, err := http.ReadResponse(bufio.NewReader(ours), &http.Request{Method: method})
	if err != nil {
		return nil, err.Error()
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("%v in the answer to %.80q", err, raw)
	}
	return r, string(b)
}

// api is a request to the API about the room.
func api(op, body string) string {
	return fmt.Sprintf("POST /_anteroom/v1/rooms/shop/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", op, len(body), body)
}

func (s *street) join() (p gateway.Place) {
	s.t.Helper()
	return s.told(api("join", ""), http.StatusCreated)
}

func (s *street) told(raw string, status int) (p gateway.Place) {
	s.t.Helper()
	r, body := s.ask(raw)
	if r == nil || r.StatusCode != status {
		s.t.Fatalf("%.80q: %s, want %d", raw, body, status)
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// nothingIsLost fails the test unless the person who waits still has the place
// and the one on the site the session.
func (s *street) nothingIsLost(after string) {
	s.t.Helper()
	p := s.told(api("checkin", `{"ticket":"`+s.place+`"}`), http.StatusOK)
	if p.State != "waiting" || !p.JoinedAt.Equal(s.joined) || p.Position == nil || *p.Position != 1 {
		s.t.Errorf("after %s the place is %+v", after, p)
	}
	if p := s.told(api("refresh", `{"pass":"`+s.pass+`"}`), http.StatusOK); p.Pass == "" {
		s.t.Errorf("after %s the session is %+v", after, p)
	}
}

// TestWhatIsNoGoodRequestIsRefused has status 0 where no answer is one. What
// net/http refuses by itself has no code.
func TestWhatIsNoGoodRequestIsRefused(t *testing.T) {
	const room = "/_anteroom/v1/rooms/shop/"
	type row struct {
		what, raw string
		status    int
		code      string
	}
	get := func(target, headers string) string { return "GET " + target + " HTTP/1.1\r\n" + headers + "\r\n" }
	post := func(op, headers string) string { return "POST " + room + op + " HTTP/1.1\r\nHost: x\r\n" + headers }
	onStreet(t, func(t *testing.T, s *street) {
		for _, c := range []row{
			// Forms of a request that are good.
			{"HTTP/1.0 without a host", "GET " + room + "status HTTP/1.0\r\n\r\n", 200, ""},
			{"a whole URL", get("http://shop.example.com"+room+"status", "Host: x\r\n"), 200, ""},
			{"only the head", "HEAD " + room + "status HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""},
			{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""},
			{"many headers", get(room+"status", "Host: x\r\n"+strings.Repeat("a: b\r\n", 5000)), 200, ""},
			{"two slashes", get("/_anteroom//v1/./rooms/shop/../shop/status", "Host: x\r\n"), 200, ""},
			{"a path behind ours, as Envoy's", get(room+"auth//x/../y?proxy=nginx", "Host: x\r\n"), 429, ""},
			// Hosts, paths and methods.
			{"no host", get(room+"status", ""), 400, ""},
			{"a host that is none", get(room+"status", "Host: a/b\r\n"), 400, ""},
			{"two hosts", get(room+"status", "Host: x\r\nHost: y\r\n"), 400, ""},
			{"an unknown host", get("/", "Host: other.example.com\r\n"), 404, "not_found"},
			{"an unknown host in a whole URL", get("http://other.example.com/", "Host: shop.example.com\r\n"), 404, "not_found"},
			{"an unknown room", get("/_anteroom/v1/rooms/nope/status", "Host: x\r\n"), 404, "room_unknown"},
			{"a room of NUL", get("/_anteroom/v1/rooms/%00/status", "Host: x\r\n"), 404, "room_unknown"},
			{"a room that is not UTF-8", get("/_anteroom/v1/rooms/%ff%fe/status", "Host: x\r\n"), 404, "room_unknown"},
			{"bytes that are not UTF-8", get("/_anteroom/v1/rooms/\xff\xfe/status", "Host: x\r\n"), 404, "room_unknown"},
			{"a room of 10,000 letters", get("/_anteroom/v1/rooms/"+strings.Repeat("x", 10_000)+"/status", "Host: x\r\n"), 404, "room_unknown"},
			{"a room that leads out", get("/_anteroom/v1/rooms/%2e%2e/status", "Host: x\r\n"), 404, "room_unknown"},
			{"out of our paths", get("/_anteroom/../x", "Host: x\r\n"), 404, "not_found"},
			{"NUL", get("/\x00", "Host: x\r\n"), 400, ""},
			{"a bad escape", get("/%zz", "Host: x\r\n"), 400, ""},
			{"no path", get("*", "Host: shop.example.com\r\n"), 400, "request_invalid"},
			{"no slash", get("x", "Host: shop.example.com\r\n"), 400, ""},
			{"a tunnel", "CONNECT other.example.com:443 HTTP/1.1\r\nHost: other.example.com:443\r\n\r\n", 405, "method_not_allowed"},
			{"a mirror", "TRACE / HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop=" + s.place + "\r\n\r\n", 405, "method_not_allowed"},
			{"an unknown method", "BREW " + room + "join HTTP/1.1\r\nHost: x\r\n\r\n", 405, "method_not_allowed"},
			{"a small method", "post " + room + "join HTTP/1.1\r\nHost: x\r\n\r\n", 405, "method_not_allowed"},
			{"a method that is none", "P(ST " + room + "join HTTP/1.1\r\nHost: x\r\n\r\n", 400, ""},
			// Versions.
			{"HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "request_invalid"},
			{"HTTP/2 in letters", "GET / HTTP/2.0\r\nHost: shop.example.com\r\n\r\n", 505, ""},
			{"HTTP/0.9", "GET /\r\n\r\n", 400, ""},
			{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, ""},
			{"nothing like HTTP", "hello\r\n\r\n", 400, ""},
			// Headers.
			{"a huge header", get(room+"status", "Host: x\r\nX-A: "+strings.Repeat("x", 70<<10)+"\r\n"), 431, ""},
			{"too many headers", get(room+"status", "Host: x\r\n"+strings.Repeat("a: b\r\n", 15_000)), 431, ""},
			{"a huge path", get("/"+strings.Repeat("x", 70<<10), "Host: x\r\n"), 431, ""},
			{"NUL in a header", get(room+"status", "Host: x\r\nX-A: \x00\r\n"), 400, ""},
			{"a name with a space", get(room+"status", "Host: x\r\nX A: b\r\n"), 400, ""},
			{"a header without a name", get(room+"status", "Host: x\r\n: b\r\n"), 400, ""},
			{"a bare line", get(room+"status", "Host: x\r\nhello\r\n"), 400, ""},
			{"another expectation", post("join", "Expect: cake\r\nContent-Length: 2\r\n\r\n{}"), 417, ""},
			// Bodies and their lengths.
			{"two lengths", post("join", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), 400, ""},
			{"a negative length", post("join", "Content-Length: -1\r\n\r\n"), 400, ""},
			{"a length beyond numbers", post("join", "Content-Length: 99999999999999999999\r\n\r\n"), 400, ""},
			{"a strange coding", post("join", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 501, ""},
			{"a chunk of no size", post("checkin", "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n"), 400, "request_invalid"},
			{"a chunk beyond numbers", post("checkin", "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n"), 400, "request_invalid"},
			{"chunks and a length", post("checkin", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), 401, "ticket_invalid"},
			{"a body over 4 KiB", api("checkin", `{"ticket":"`+strings.Repeat("x", 5<<10)+`"}`), 400, "request_invalid"},
			{"a body of 4 MiB", api("checkin", strings.Repeat("[", 4<<20)), 400, "request_invalid"},
			{"chunks over 4 KiB", post("checkin", "Transfer-Encoding: chunked\r\n\r\n"+strings.Repeat("400\r\n"+strings.Repeat(" ", 1024)+"\r\n", 5)+"0\r\n\r\n"), 400, "request_invalid"},
			{"a compressed body", api("checkin", "\x1f\x8b\x08\x00\x00"), 400, "request_invalid"},
			{"brackets", api("checkin", strings.Repeat("[", 4000)), 400, "request_invalid"},
			{"NUL for a body", api("checkin", "\x00\x00"), 400, "request_invalid"},
			{"UTF-16", api("checkin", "\xff\xfe{\x00}\x00"), 400, "request_invalid"},
		} {
			r, body := s.ask(c.raw)
			var p gateway.Problem
			_ = json.Unmarshal([]byte(body), &p)
			switch {
			case r == nil || r.StatusCode != c.status || p.Code != c.code:
				t.Errorf("%s: %.200s (%+v), want %d %s", c.what, body, r, c.status, c.code)
			case c.code != "" && (p.Status != c.status || r.Header.Get("Content-Type") != "application/problem+json" || r.Header.Get("Cache-Control") != "no-store"):
				t.Errorf("%s: %v %s", c.what, r.Header, body)
			case c.status == 405 && r.Header.Get("Allow") == "":
				t.Errorf("%s: no Allow", c.what)
			case strings.Contains(fmt.Sprint(r.Header)+body, s.place):
				t.Errorf("%s: the ticket came back: %v %s", c.what, r.Header, body)
			}
			s.nothingIsLost(c.what)
		}
		if strings.Contains(s.log.String(), s.place) || strings.Contains(s.log.String(), s.pass) {
			t.Error("a ticket or a pass is in the log")
		}
	})
}

// A connection on which nothing good comes is closed, and in time.
func TestConnectionsThatSayTooLittleAreClosed(t *testing.T) {
	for _, c := range []struct {
		what, said string
		drip       string // every second
		most       time.Duration
	}{
		{"nothing", "", "", 10 * time.Second},
		{"half a line", "GET /_ante", "", 10 * time.Second},
		{"a byte a second", "GET / HTTP/1.1\r\nHost: x\r\nX-A: ", "a", 10 * time.Second},
		{"a header a second", "GET / HTTP/1.1\r\nHost: x\r\n", "X-A: b\r\n", 10 * time.Second},
		{"one request and no more", "GET /_anteroom/v1/rooms/shop/status HTTP/1.1\r\nHost: x\r\n\r\n", "", 2 * time.Minute},
	} {
		t.Run(c.what, func(t *testing.T) {
			onStreet(t, func(t *testing.T, s *street) {
				ours, theirs := net.Pipe()
				defer func() { _ = ours.Close() }()
				s.door <- theirs
				began := time.Now()
				var words sync.WaitGroup
				words.Go(func() {
					_, err := io.WriteString(ours, c.said)
					for err == nil && c.drip != "" {
						time.Sleep(time.Second)
						_, err = io.WriteString(ours, c.drip)
					}
				})
				if _, err := io.Copy(io.Discard, ours); err != nil {
					t.Error(err)
				}
				if d := time.Since(began); d > c.most+time.Second {
					t.Errorf("closed after %v, want at most %v", d, c.most)
				}
				_ = ours.Close()
				words.Wait()
				s.nothingIsLost(c.what)
			})
		})
	}
}

// A node that cannot answer yet says so without the body, and does not wait for
// it for longer than anybody else.
func TestABodyForANodeThatIsNotReadyHoldsNothing(t *testing.T) {
	for what, path := range map[string]string{"no rooms": "/buy", "no keys": "/_anteroom/v1/rooms/shop/checkin"} {
		for _, kind := range []string{"Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n64\r\n{"} {
			synctest.Test(t, func(t *testing.T) {
				s := New(oneNode(), Options{})
				s.keys = &keys{ring: seal.New(seal.Config{Now: s.passTime})}
				h := s.httpServer(s.roomed(s.keyed(http.NotFoundHandler())))
				if what == "no keys" {
					s.hasRooms.Store(true)
				}
				l := &street{door: make(chan net.Conn)}
				done := make(chan struct{})
				go func() { _ = h.Serve(l); close(done) }()
				ours, theirs := net.Pipe()
				l.door <- theirs
				began := time.Now()
				_, _ = io.WriteString(ours, "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+kind)
				_ = ours.SetReadDeadline(time.Now().Add(time.Hour))
				in := bufio.NewReader(ours)
				r, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatalf("%s: %v after %v", what, err, time.Since(began))
				}
				if _, err := io.Copy(io.Discard, in); r.StatusCode != 503 || err != nil || time.Since(began) > 11*time.Second {
					t.Errorf("%s: %d, %v after %v; want 503 and the end of the connection within 11 s", what, r.StatusCode, err, time.Since(began))
				}
				_ = ours.Close()
				_ = h.Close()
				<-done
			})
		}
	}
}

// A client of the admin port has as little time, and a profile takes as long as
// was asked for.
func TestTheAdminPortWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(oneNode(), Options{})
		h := s.adminServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/metrics":
				_, _ = w.Write(make([]byte, 1<<20))
			case "/profile":
				_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(3 * time.Minute)) // as net/http/pprof does
				time.Sleep(2 * time.Minute)
				_, _ = io.WriteString(w, "profile")
			}
		}))
		l := &street{door: make(chan net.Conn)}
		done := make(chan struct{})
		go func() { _ = h.Serve(l); close(done) }()
		say := func(text string) net.Conn {
			ours, theirs := net.Pipe()
			l.door <- theirs
			_, _ = io.WriteString(ours, text)
			_ = ours.SetReadDeadline(time.Now().Add(time.Hour))
			return ours
		}
		began := time.Now()
		stalls := say("POST /v1/cluster HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
		if b, err := io.ReadAll(stalls); err != nil || time.Since(began) > 11*time.Second {
			t.Errorf("a body: %q, %v after %v", b, err, time.Since(began))
		}
		deaf := say("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
		time.Sleep(time.Minute + time.Second)
		if n, err := io.Copy(io.Discard, deaf); err != nil || n >= 1<<20 {
			t.Errorf("an answer that nobody read: %d bytes, %v; want it broken off", n, err)
		}
		patient := say("GET /profile HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if b, err := io.ReadAll(patient); err != nil || !strings.Contains(string(b), "profile") {
			t.Errorf("a profile: %q, %v", b, err)
		}
		_ = h.Close()
		<-done
	})
}

// FuzzSettings: whatever a room's settings are, a gateway takes the room or
// says why not.
func FuzzSettings(f *testing.F) {
	r := oneNode().Rooms[0]
	r.Routes, r.Origin, r.Message = []config.Route{{Host: "*", Path: "/"}}, "http://127.0.0.1:9", "é"
	f.Add("shop", roomOf(r).Settings)
	f.Add("shop", "")
	f.Add("", `{"origin":":","queueing_status_code":-1}`)
	f.Add("a/b", `{"routes":[{"host":"","path":"x"}],"cookie_suffix":"\u0000","origin":"http://[::1"}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		room, err := gatewayRoom(eviction.Room{Name: name, Settings: text})
		if err != nil {
			return
		}
		g, err := gateway.New(gateway.Config{Queue: queue{}, Rooms: []gateway.Room{room}})
		if err == nil {
			g.Close()
		}
	})
}
