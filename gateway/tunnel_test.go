package gateway_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/rules"
	"github.com/anteroom/anteroom/internal/ticket"
)

// echoes is an origin that agrees to any upgrade that it is asked for, and says
// what comes.
func echoes(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		_, _ = fmt.Fprintf(w, "plain %s", r.Header.Get("Http2-Settings"))
		return
	}
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + r.Header.Get("Upgrade") + "\r\n\r\n")
	_ = rw.Flush()
	for {
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = rw.WriteString(line)
		_ = rw.Flush()
	}
}

// patience is how long a test waits for what must come; the machine may be slow.
const patience = 20 * time.Second

// socket is a visitor's connection that wants to be upgraded.
type socket struct {
	t   *testing.T
	c   net.Conn
	in  *bufio.Reader
	res *http.Response
}

func (w *world) socket(t *testing.T, path, protocol string, headers ...string) *socket {
	t.Helper()
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	lines := append([]string{"GET " + path + " HTTP/1.1", "Host: x", "Connection: Upgrade, HTTP2-Settings", "Upgrade: " + protocol, "HTTP2-Settings: AAMAAABkAAQAAP__"}, headers...)
	_, _ = io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n")
	s := &socket{t: t, c: c, in: bufio.NewReader(c)}
	if s.res, err = http.ReadResponse(s.in, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *socket) says(line string) {
	s.t.Helper()
	_ = s.c.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(s.c, line+"\n")
	if got, err := s.in.ReadString('\n'); got != line+"\n" {
		s.t.Fatalf("said %q, heard %q, %v", line, got, err)
	}
}

// closed waits for the end of the connection.
func (s *socket) closed() {
	s.t.Helper()
	if !s.endsWithin(patience) {
		s.t.Fatal("it stays open")
	}
}

// endsWithin reports whether the connection is at its end by then. Nothing must come
// before that.
func (s *socket) endsWithin(d time.Duration) bool {
	s.t.Helper()
	_ = s.c.SetDeadline(time.Now().Add(d))
	b, err := s.in.ReadByte()
	if err == nil {
		s.t.Fatalf("heard %q", b)
	}
	timeout := net.Error(nil)
	return !errors.As(err, &timeout) || !timeout.Timeout()
}

// A visit that is ended at the node of its tunnel takes that with it at once, however
// seldom anybody looks.
func TestATunnelEndsAtOnceWhereItsVisitIsEnded(t *testing.T) {
	w := newWorld(t, withOrigin(t, echoes, func(c *gateway.Config) { c.Bounds.Recheck = time.Hour }), shop())
	pass := w.join().Pass
	s := w.socket(t, "/ws", "websocket", cookie(pass))
	s.says("hello")
	if r := w.api("end", with("pass", pass)); r.StatusCode != 204 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	s.closed()
}

// quick looks after tunnels often.
func quick(c *gateway.Config) { c.Bounds.Recheck = quickRecheck }

const quickRecheck = 20 * time.Millisecond

func cookie(pass string) string { return "Cookie: anteroom_shop=" + pass }

func TestATunnelEndsWithItsVisit(t *testing.T) {
	for what, end := range map[string]func(w *world, pass string){
		"ended here": func(w *world, pass string) {
			if r := w.api("end", with("pass", pass)); r.StatusCode != 204 {
				w.t.Errorf("%d %s", r.StatusCode, r.body)
			}
		},
		"ended elsewhere": func(w *world, pass string) {
			p, err := w.ring.OpenPass("shop", pass)
			if err == nil {
				_, err = w.Do(w.t.Context(), ticket.Request{Op: ticket.End, Room: "shop", Pass: p})
			}
			if err != nil {
				w.t.Error(err)
			}
			w.pass(time.Second) // or nobody would be asked again
		},
		"expired": func(w *world, _ string) { w.pass(2 * shop().Session) },
		"the room is gone": func(w *world, _ string) {
			if err := w.SetRooms(nil); err != nil {
				w.t.Error(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, withOrigin(t, echoes, quick), shop())
			pass := w.join().Pass
			s := w.socket(t, "/ws", "websocket", cookie(pass))
			if s.res.StatusCode != 101 {
				t.Fatalf("%d", s.res.StatusCode)
			}
			s.says("hello")
			end(w, pass)
			s.closed()
		})
	}
}

// What the visitor sends keeps the visit, and the cookie that is older than it,
// good; a silent tunnel extends nothing.
func TestTrafficOfATunnelExtendsTheVisit(t *testing.T) {
	for _, c := range []struct {
		what          string
		renews, talks bool
		stays         bool
	}{{"talks", true, true, true}, {"is silent", true, false, false}, {"talks, and visits are not renewed", false, true, false}} {
		t.Run(c.what, func(t *testing.T) {
			w := newWorld(t, withOrigin(t, echoes, quick), eviction.Room{Name: "shop", Target: 1, Session: time.Minute, NoRenewal: !c.renews})
			pass := w.join().Pass
			s := w.socket(t, "/ws", "websocket", cookie(pass))
			s.says("hello")
			for range 10 {
				if c.talks { // the answer shows that it was noticed
					_ = s.c.SetDeadline(time.Now().Add(patience))
					_, _ = io.WriteString(s.c, "still here\n")
					if _, err := s.in.ReadString('\n'); err != nil {
						break
					}
				}
				asked := func() int { return w.count(ticket.Visit) + w.count(ticket.Refresh) }
				before := asked()
				w.pass(15 * time.Second)
				over := false
				for end := time.Now().Add(patience); !over && asked() == before; over = s.endsWithin(5 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatal("nobody looks after the tunnel")
					}
				}
				if over {
					break
				}
			}
			if !c.stays {
				s.closed()
				return
			}
			s.says("still there")
			if r := w.send("GET", "/", "", cookie(pass)); r.StatusCode != 200 || w.count(ticket.Join) != 1 {
				t.Errorf("with the first cookie: %d %s, %d joins", r.StatusCode, r.body, w.count(ticket.Join))
			}
		})
	}
}

func TestOnlyListedProtocolsAreUpgradedTo(t *testing.T) {
	for _, c := range []struct {
		upgrades []string
		asked    string
		status   int
	}{
		{nil, "websocket", 101},
		{nil, "WebSocket", 101},
		{nil, "h2c", 200},
		{nil, "websocket, h2c", 200},
		{nil, "spdy/3.1", 200},
		{[]string{}, "websocket", 200},
		{[]string{"spdy/3.1"}, "SPDY/3.1", 101},
		{[]string{"spdy/3.1"}, "websocket", 200},
	} {
		w := newWorld(t, withOrigin(t, echoes, func(g *gateway.Config) { g.Rooms[0].Upgrades = c.upgrades }), shop())
		s := w.socket(t, "/ws", c.asked, cookie(w.join().Pass))
		if s.res.StatusCode != c.status {
			t.Errorf("%q of %q: %d", c.asked, c.upgrades, s.res.StatusCode)
		}
		if b, _ := io.ReadAll(io.LimitReader(s.res.Body, s.res.ContentLength)); c.status == 200 && string(b) != "plain " {
			t.Errorf("%q of %q: the origin got %q", c.asked, c.upgrades, b)
		}
	}
}

// Neither a place in line nor a pass that is over or of another room brings a
// connection to the origin.
func TestATunnelNeedsAPass(t *testing.T) {
	var opened atomic.Int32
	origin := func(w http.ResponseWriter, r *http.Request) { opened.Add(1); echoes(w, r) }
	for what, brings := range map[string]func(w *world, inside gateway.Place) string{
		"nothing":           func(*world, gateway.Place) string { return "X-A: 1" },
		"a ticket":          func(w *world, _ gateway.Place) string { return cookie(w.join().Ticket) },
		"a bearer's ticket": func(w *world, _ gateway.Place) string { return "Authorization: Bearer " + w.join().Ticket },
		"a pass that is over": func(w *world, inside gateway.Place) string {
			w.api("end", with("pass", inside.Pass))
			w.pass(time.Second)
			w.join() // the room is full again
			return cookie(inside.Pass)
		},
		"another room's pass": func(w *world, _ gateway.Place) string {
			var p gateway.Place
			r := w.send("POST", "/_anteroom/v1/rooms/other/join", "")
			if r.json(w.t, &p); p.Pass == "" {
				w.t.Fatalf("%d %s", r.StatusCode, r.body)
			}
			return cookie(p.Pass)
		},
	} {
		t.Run(what, func(t *testing.T) {
			opened.Store(0)
			w := newWorld(t, withOrigin(t, origin), shop(), eviction.Room{Name: "other", Target: 1, Session: time.Minute})
			s := w.socket(t, "/ws", "websocket", "Sec-Fetch-Dest: websocket", "Sec-Fetch-Mode: websocket", brings(w, w.join()))
			if s.res.StatusCode != 429 || opened.Load() != 0 {
				t.Errorf("%d, and the origin was asked %d times", s.res.StatusCode, opened.Load())
			}
		})
	}
}

// A tunnel that came without a pass is closed when that holds no more.
func TestATunnelWithoutAPassEndsWithItsReason(t *testing.T) {
	set, err := rules.NewSet([]rules.Rule{{Expression: `starts_with(path, "/live/")`}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*gateway.Config){
		"suspended": func(c *gateway.Config) { c.Rooms[0].Suspended = true },
		"bypassed":  func(c *gateway.Config) { c.Rooms[0].Bypass = set },
	} {
		t.Run(what, func(t *testing.T) {
			var rooms []gateway.Room
			w := newWorld(t, withOrigin(t, echoes, quick, change, func(c *gateway.Config) { rooms = append(rooms, c.Rooms...) }), shop())
			w.join()
			s := w.socket(t, "/live/ws", "websocket")
			s.says("hello")
			time.Sleep(100 * time.Millisecond) // several looks
			s.says("still here")
			rooms[0].Suspended, rooms[0].Bypass = false, nil
			if err := w.SetRooms(rooms); err != nil {
				t.Fatal(err)
			}
			s.closed()
		})
	}
}

// A visit has 50 tunnels at most. Others are not held against it, nor is one that
// is closed.
func TestTunnelsOfAVisitAreBounded(t *testing.T) {
	room := shop()
	room.Target = 2
	w := newWorld(t, withOrigin(t, echoes), room)
	pass, other := w.join().Pass, w.join().Pass
	var last *socket
	for range 50 {
		if last = w.socket(t, "/ws", "websocket", cookie(pass)); last.res.StatusCode != 101 {
			t.Fatalf("%d", last.res.StatusCode)
		}
	}
	s := w.socket(t, "/ws", "websocket", cookie(pass))
	if s.res.StatusCode != 429 || s.res.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %v", s.res.StatusCode, s.res.Header)
	}
	if r := w.send("GET", "/", "", cookie(pass)); r.StatusCode != 200 {
		t.Errorf("a page meanwhile: %d", r.StatusCode)
	}
	if s := w.socket(t, "/ws", "websocket", cookie(other)); s.res.StatusCode != 101 {
		t.Errorf("of another visit: %d", s.res.StatusCode)
	}
	_ = last.c.Close()
	for range 1000 { // the gateway notices that it is gone
		if s := w.socket(t, "/ws", "websocket", cookie(pass)); s.res.StatusCode == 101 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("a tunnel that was closed is counted for ever")
}
