package server

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

func TestSharesLeaveFilesForTheNodeItself(t *testing.T) {
	for _, c := range []struct {
		files uint64
		want  shares
	}{
		{0, shares{16, 16}},
		{128, shares{16, 16}},
		{256, shares{64, 64}},
		{1024, shares{384, 384}},
		{65_536, shares{24_576, 24_576}},
		{1 << 20, shares{65_536, 65_536}},
		{math.MaxUint64, shares{65_536, 65_536}},
	} {
		got := sharesOf(c.files)
		if got != c.want {
			t.Errorf("of %d files: %+v, want %+v", c.files, got, c.want)
		}
		if left := int(min(c.files, 1<<20)) - got.visitors - got.origins; c.files >= 192 && left < reserveMin {
			t.Errorf("of %d files only %d are left for the node", c.files, left)
		}
	}
}

func TestVisitorsGetTheSharesOfOriginsThatAreNotThere(t *testing.T) {
	s := sharesOf(20_000)
	if s.most(true) != 7500 || s.most(false) != 15_000 || sharesOf(math.MaxUint64).most(false) != sharesMax {
		t.Errorf("%d with and %d without origins", s.most(true), s.most(false))
	}
}

// porch is a door with few places before a server in memory. A request for
// /wait is answered when the test says so.
type porch struct {
	*door
	t    *testing.T
	in   chan net.Conn
	wait chan struct{}
	log  bytes.Buffer
}

func (p *porch) Accept() (net.Conn, error) {
	if c, ok := <-p.in; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p *porch) Close() error   { close(p.in); return nil }
func (p *porch) Addr() net.Addr { return &net.TCPAddr{} }

func onPorch(t *testing.T, places int, f func(t *testing.T, p *porch)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &porch{t: t, in: make(chan net.Conn), wait: make(chan struct{})}
		s := New(oneNode(), Options{Logger: slog.New(slog.NewTextHandler(&p.log, nil))})
		p.door = newDoor("gateway", places, s.log)
		h := s.httpServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/wait":
				<-p.wait
			case "/socket":
				if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
					<-p.wait
					_ = c.Close()
				}
				return
			}
			_, _ = io.WriteString(w, "ok")
		}))
		done := make(chan struct{})
		l := p.keep(h, p)
		go func() { _ = h.Serve(l); close(done) }()
		f(t, p)
		_ = h.Close()
		<-done
		time.Sleep(time.Second) // net/http lets what was written arrive before it closes
		if open, quiet, _ := p.count(); open != 0 || quiet != 0 {
			t.Errorf("%d connections, %d of them quiet, after all are closed", open, quiet)
		}
	})
}

// count says how many connections there are, how many of them are quiet, and
// how many were refused so far.
func (p *porch) count() (open, quiet, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for g := range p.guests {
		if g.quietSince() > 0 {
			quiet++
		}
	}
	return len(p.guests), quiet, p.refused
}

// patron is a client.
type patron struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

// comes connects and says something.
func (p *porch) comes(text string) *patron {
	p.t.Helper()
	ours, theirs := net.Pipe()
	p.t.Cleanup(func() { _ = ours.Close() })
	p.in <- theirs
	a := &patron{ours, p.t, bufio.NewReader(ours)}
	a.says(text)
	return a
}

// says returns when it was heard, or when nobody listens any more.
func (a *patron) says(text string) {
	if text != "" {
		_, _ = io.WriteString(a, text)
	}
	synctest.Wait()
}

func (a *patron) gets(what string) {
	a.t.Helper()
	r, err := http.ReadResponse(a.in, nil)
	if err != nil {
		a.t.Fatalf("%s: %v", what, err)
	}
	if b, err := io.ReadAll(r.Body); r.StatusCode != 200 || string(b) != "ok" || r.Close {
		a.t.Fatalf("%s: %d %v %q, %v", what, r.StatusCode, r.Header, b, err)
	}
	synctest.Wait()
}

func (a *patron) isShown(what string) {
	a.t.Helper()
	_ = a.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := a.in.ReadByte(); err != io.EOF {
		a.t.Errorf("%s is still open: %v", what, err)
	}
}

func (a *patron) stays(what string) {
	a.t.Helper()
	_ = a.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := a.in.ReadByte(); !os.IsTimeout(err) {
		a.t.Errorf("%s: %v, want it open", what, err)
	}
	_ = a.SetReadDeadline(time.Time{})
}

const (
	ask  = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	hold = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
)

// Idle connections, silent ones and half requests keep nobody out, and the
// longest of them goes first.
func TestWhoeverHoldsAConnectionForNothingMakesWay(t *testing.T) {
	onPorch(t, 3, func(t *testing.T, p *porch) {
		idle := p.comes(ask)
		idle.gets("the first")
		silent := p.comes("")
		half := p.comes("GET / HTTP/1.1\r\nHost: x\r\nX-A: ")
		time.Sleep(time.Second)
		for i, c := range []struct {
			what string
			*patron
		}{{"the idle one", idle}, {"the silent one", silent}, {"half a request", half}} {
			c.stays(c.what)
			p.comes(hold)
			c.isShown(c.what)
			if open, _, refused := p.count(); open != 3 || refused != 0 {
				t.Fatalf("%d connections and %d refused after %d came", open, refused, i+1)
			}
		}
		close(p.wait)
	})
}

// A connection that was used just now stays when one that was not for longer can go.
func TestTheLongestIdleGoesFirst(t *testing.T) {
	onPorch(t, 2, func(_ *testing.T, p *porch) {
		first, second := p.comes(ask), p.comes(ask)
		first.gets("the first")
		second.gets("the second")
		first.says(ask)
		first.gets("the first again")
		third := p.comes(ask)
		third.gets("the third")
		second.isShown("the one that was idle for longest")
		first.stays("the one that was used since")
		close(p.wait)
	})
}

func TestNewcomersAreRefusedOnlyWhenAllCarryRequests(t *testing.T) {
	onPorch(t, 2, func(t *testing.T, p *porch) {
		a, socket := p.comes(hold), p.comes("GET /socket HTTP/1.1\r\nHost: x\r\n\r\n")
		if r, err := http.ReadResponse(socket.in, nil); err != nil || r.StatusCode != 101 {
			t.Fatalf("%+v, %v", r, err)
		}
		time.Sleep(time.Hour) // a connection that was taken over is nobody's to close either
		for range 5 {
			p.comes("").isShown("one too many")
		}
		if _, _, n := p.count(); n != 5 {
			t.Errorf("%d refused, want 5", n)
		}
		if n := strings.Count(p.log.String(), "connections are refused"); n != 1 {
			t.Errorf("the log says so %d times, want once a minute:\n%s", n, p.log.String())
		}
		close(p.wait)
		a.gets("who was in all the time")
		visitor := p.comes(ask)
		visitor.gets("who comes afterwards")
		if _, _, n := p.count(); n != 5 {
			t.Errorf("%d refused", n)
		}
	})
}

// A door that becomes smaller lets go of who is quiet, and of nobody else.
func TestSmallerDoorClosesQuietConnections(t *testing.T) {
	onPorch(t, 4, func(t *testing.T, p *porch) {
		busy := p.comes(hold)
		idle, other := p.comes(ask), p.comes(ask)
		idle.gets("the first")
		other.gets("the second")
		p.resize(2)
		idle.isShown("the one that was idle for longest")
		other.stays("the other")
		p.resize(0)
		other.isShown("the other")
		busy.stays("the busy one")
		p.resize(2)
		close(p.wait)
		busy.gets("the busy one")
	})
}

// A flood of strangers who hold whatever they can keeps no real visitor out.
func TestVisitorsGetThroughAFlood(t *testing.T) {
	onPorch(t, 20, func(t *testing.T, p *porch) {
		var flood sync.WaitGroup
		over := make(chan struct{})
		for i := range 40 {
			flood.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
					}
					ours, theirs := net.Pipe()
					p.in <- theirs
					if i%2 == 0 {
						_, _ = io.WriteString(ours, "GET / HTTP/1.1\r\nX: ")
					}
					_, _ = io.Copy(io.Discard, ours) // until it is shown the door
					time.Sleep(time.Duration(1+i) * time.Millisecond)
				}
			})
		}
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			visitor := p.comes(ask)
			visitor.gets("a visitor")
			if n, _, _ := p.count(); n > 20 {
				t.Errorf("%d connections", n)
			}
		}
		close(over)
		time.Sleep(10 * time.Second) // of ReadHeaderTimeout
		flood.Wait()
		close(p.wait)
	})
}

func TestMetricsOfTheDoorAreGood(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newDoor("gateway", 3, slog.New(slog.DiscardHandler)).metrics()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	want := "anteroom_gateway_connections anteroom_gateway_connections_limit anteroom_gateway_connections_refused_total"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// A port with very many connections, all but a few at work, lets newcomers in
// one for one as others fall quiet, and does not look through all of them for
// each of a flood.
func TestALargeDoorLooksForQuietOnesNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor("gateway", lookFreely+1, slog.New(slog.DiscardHandler))
		comes := func() *guest { _, theirs := net.Pipe(); return d.admit(theirs) }
		guests := make([]*guest, d.max)
		for i := range guests {
			guests[i] = comes()
			guests[i].asks(1)
		}
		quiet := func(g *guest) { g.asks(-1); g.rests(true) }
		quiet(guests[7])
		quiet(guests[3])
		a, b := comes(), comes()
		if a == nil || b == nil || !guests[7].gone || !guests[3].gone {
			t.Fatal("two newcomers did not take the places of two quiet ones")
		}
		a.asks(1)
		b.asks(1)
		quiet(guests[5])
		if comes() != nil {
			t.Error("it looked through everybody again at once")
		}
		time.Sleep(lookEvery)
		if comes() == nil || !guests[5].gone {
			t.Error("it did not find who fell quiet")
		}
	})
}

// slow takes nothing in, and remembers how often it was given a deadline.
type slow struct {
	net.Conn
	set int
	now time.Time
}

func (s *slow) SetWriteDeadline(t time.Time) error { s.set++; s.now = t; return nil }

// A deadline of writes is never later than was asked for, and at most a second
// earlier; none means none.
func TestWriteDeadlineIsRenewedNowAndThen(t *testing.T) {
	began := time.Now()
	s := &slow{}
	g := &guest{Conn: s}
	for i, c := range []struct {
		ask, has time.Duration // 0: no deadline
		set      int
	}{
		{time.Minute, time.Minute, 1},
		{time.Minute + time.Second/2, time.Minute, 1},
		{time.Minute + time.Second, time.Minute + time.Second, 2},
		{time.Minute, time.Minute, 3},
		{0, 0, 4},
		{time.Minute, time.Minute, 5},
		{-time.Hour, -time.Hour, 6},
	} {
		var ask, has time.Time
		if c.ask != 0 {
			ask, has = began.Add(c.ask), began.Add(c.has)
		}
		if err := g.SetWriteDeadline(ask); err != nil || s.set != c.set || !s.now.Equal(has) {
			t.Errorf("%d: asked for %v it has %v, set %d times, %v", i, ask, s.now, s.set, err)
		}
	}
}
