package conns

import (
	"bufio"
	"bytes"
	"io"
	"log"
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
	const gib = 1 << 30
	for _, c := range []struct {
		files, memory uint64
		want          Shares
	}{
		{0, 0, Shares{16, 16, 32, 32, 32, 65_536}},
		{256, gib, Shares{16, 16, 32, 32, 32, 65_536}},
		{512, gib, Shares{144, 144, 32, 32, 32, 65_536}},
		{1024, 32 * gib, Shares{368, 368, 32, 64, 64, 524_288}},
		{65_536, gib, Shares{28_112, 28_112, 32, 1024, 4096, 65_536}},
		{1 << 20, 4 * gib, Shares{65_536, 65_536, 32, 1024, 4096, 65_536}},
		{1 << 20, 8 * gib, Shares{131_072, 131_072, 32, 1024, 4096, 131_072}},
		{1 << 20, 64 * gib, Shares{488_912, 488_912, 32, 1024, 4096, 1_048_576}},
		{math.MaxUint64, 4 * gib, Shares{65_536, 65_536, 32, 1024, 4096, 65_536}},
		{math.MaxUint64, math.MaxUint64, Shares{1 << 30, 1 << 30, 32, 1024, 4096, 1 << 30}},
	} {
		got := SharesOf(c.files, c.memory)
		if got != c.want {
			t.Errorf("of %d files: %+v, want %+v", c.files, got, c.want)
		}
		taken := got.Visitors + got.Origins + got.Admin + got.Peer + got.GRPC + gossipMax
		if left := int(min(c.files, 1<<32)) - taken; c.files >= 320 && left < ownMin {
			t.Errorf("of %d files only %d are left for the node", c.files, left)
		}
	}
}

func TestVisitorsGetTheSharesOfOriginsThatAreNotThere(t *testing.T) {
	s := SharesOf(20_000, 0)
	if s.Gateway(true) != s.Visitors || s.Gateway(false) != s.Visitors+s.Origins || SharesOf(math.MaxUint64, 8<<30).Gateway(false) != 131_072 {
		t.Errorf("%d with and %d without origins, of %+v", s.Gateway(true), s.Gateway(false), s)
	}
}

// site is a limiter of few connections before a server in memory. A request for
// /wait is answered when the test says so.
type site struct {
	*Limiter
	t    *testing.T
	in   chan net.Conn
	wait chan struct{}
	log  bytes.Buffer
}

func (p *site) Accept() (net.Conn, error) {
	if c, ok := <-p.in; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p *site) Close() error   { close(p.in); return nil }
func (p *site) Addr() net.Addr { return &net.TCPAddr{} }

func atSite(t *testing.T, places int, f func(t *testing.T, p *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &site{t: t, in: make(chan net.Conn), wait: make(chan struct{})}
		p.Limiter = New(Config{Name: "gateway", Max: places, Logger: slog.New(slog.NewTextHandler(&p.log, nil))})
		h := &http.Server{ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
		})}
		done := make(chan struct{})
		l := p.HTTP(h, p)
		go func() { _ = h.Serve(l); close(done) }()
		defer func() { // also of a test that has failed
			select {
			case <-p.wait:
			default:
				close(p.wait)
			}
			_ = h.Close()
			<-done
		}()
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
func (p *site) count() (open, quiet, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for g := range p.all.conns {
		if g.quietSince() > 0 {
			quiet++
		}
	}
	return len(p.all.conns), quiet, p.refused[byPort]
}

// client is a client.
type client struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

// comes connects and says something.
func (p *site) comes(text string) *client {
	p.t.Helper()
	ours, theirs := net.Pipe()
	p.t.Cleanup(func() { _ = ours.Close() })
	p.in <- theirs
	a := &client{ours, p.t, bufio.NewReader(ours)}
	a.says(text)
	return a
}

// says returns when it was heard, or when nobody listens any more.
func (a *client) says(text string) {
	if text != "" {
		_, _ = io.WriteString(a, text)
	}
	synctest.Wait()
}

func (a *client) gets(what string) {
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

func (a *client) isClosed(what string) {
	a.t.Helper()
	_ = a.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := a.in.ReadByte(); err != io.EOF {
		a.t.Errorf("%s is still open: %v", what, err)
	}
}

func (a *client) stays(what string) {
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
	atSite(t, 3, func(t *testing.T, p *site) {
		idle := p.comes(ask)
		idle.gets("the first")
		silent := p.comes("")
		half := p.comes("GET / HTTP/1.1\r\nHost: x\r\nX-A: ")
		time.Sleep(time.Second)
		for i, c := range []struct {
			what string
			*client
		}{{"the idle one", idle}, {"the silent one", silent}, {"half a request", half}} {
			c.stays(c.what)
			p.comes(hold)
			c.isClosed(c.what)
			if open, _, refused := p.count(); open != 3 || refused != 0 {
				t.Fatalf("%d connections and %d refused after %d came", open, refused, i+1)
			}
		}
		close(p.wait)
	})
}

// A connection that was used just now stays when one that was not for longer can go.
func TestTheLongestIdleGoesFirst(t *testing.T) {
	atSite(t, 2, func(_ *testing.T, p *site) {
		first, second := p.comes(ask), p.comes(ask)
		first.gets("the first")
		second.gets("the second")
		first.says(ask)
		first.gets("the first again")
		third := p.comes(ask)
		third.gets("the third")
		second.isClosed("the one that was idle for longest")
		first.stays("the one that was used since")
		close(p.wait)
	})
}

func TestNewcomersAreRefusedOnlyWhenAllCarryRequests(t *testing.T) {
	atSite(t, 2, func(t *testing.T, p *site) {
		a, socket := p.comes(hold), p.comes("GET /socket HTTP/1.1\r\nHost: x\r\n\r\n")
		if r, err := http.ReadResponse(socket.in, nil); err != nil || r.StatusCode != 101 {
			t.Fatalf("%+v, %v", r, err)
		}
		time.Sleep(time.Hour) // a connection that was taken over is nobody's to close either
		for range 5 {
			p.comes("").isClosed("one too many")
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

// A limiter that becomes smaller lets go of who is quiet, and of nobody else.
func TestASmallerLimitClosesQuietConnections(t *testing.T) {
	atSite(t, 4, func(t *testing.T, p *site) {
		busy := p.comes(hold)
		idle, other := p.comes(ask), p.comes(ask)
		idle.gets("the first")
		other.gets("the second")
		p.Resize(2)
		idle.isClosed("the one that was idle for longest")
		other.stays("the other")
		p.Resize(0)
		other.isClosed("the other")
		busy.stays("the busy one")
		p.Resize(2)
		close(p.wait)
		busy.gets("the busy one")
	})
}

// A flood of strangers who hold whatever they can keeps no real visitor out.
func TestVisitorsGetThroughAFlood(t *testing.T) {
	atSite(t, 20, func(t *testing.T, p *site) {
		var flood sync.WaitGroup
		over := make(chan struct{})
		defer func() {
			close(over)
			time.Sleep(10 * time.Second) // of ReadHeaderTimeout
			flood.Wait()
		}()
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
					_, _ = io.Copy(io.Discard, ours) // until it is closed
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
	})
}

func TestMetricsOfTheLimiterAreGood(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(New(Config{Name: "gateway", Max: 3, Logger: slog.New(slog.DiscardHandler)}).Metrics()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	want := "anteroom_gateway_connections anteroom_gateway_connections_evicted_total anteroom_gateway_connections_limit anteroom_gateway_connections_refused_total"
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
func TestALargePortLooksForQuietOnesNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Name: "gateway", Max: lookFreely + 1, Logger: slog.New(slog.DiscardHandler)})
		comes := func() *Conn { _, theirs := net.Pipe(); return l.admit(theirs) }
		all := make([]*Conn, l.max)
		for i := range all {
			all[i] = comes()
			all[i].asks(1)
		}
		quiet := func(g *Conn) { g.asks(-1); g.rests(true) }
		quiet(all[7])
		quiet(all[3])
		a, b := comes(), comes()
		if a == nil || b == nil || !all[7].gone || !all[3].gone {
			t.Fatal("two newcomers did not take the places of two quiet ones")
		}
		a.asks(1)
		b.asks(1)
		quiet(all[5])
		if comes() != nil {
			t.Error("it looked through everybody again at once")
		}
		time.Sleep(lookEvery)
		if comes() == nil || !all[5].gone {
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
	g := &Conn{Conn: s}
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
