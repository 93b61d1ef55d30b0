package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	reserveMin   = 128      // file descriptors
	operatorsMax = 32       // connections to the admin port
	sharesMin    = 16       // of each share, where the limit leaves next to nothing
	sharesMax    = 64 << 10 // of each share: memory ends before file descriptors do, at some 16 KiB for each idle connection
	filesEnough  = 1024     // with fewer the log has a word about it
	tellAgain    = time.Minute
)

// shares are how many connections may be open at once. Every connection takes a
// file descriptor, and a process that has none left can neither save its state
// nor gossip nor reach the other nodes. So strangers get a part of them:
//
//	files    = RLIMIT_NOFILE, which Go raises to the hard limit at its start
//	reserve  = max(128, files/4)
//	visitors = (files - reserve)/2
//	origins  = files - reserve - visitors
//
// A visitor's request may need a connection to the origin, hence the halves.
// Where no room has an origin, because another proxy asks or an app does,
// visitors get both.
// With HTTP/2 a visitor may have many requests at once, hence a bound on the
// connections to origins as well (see gateway.Bounds). The reserve is for the
// state, keys and logs (10), listeners and the like (10), gossip (its own bound:
// 64 streams), the admin port (32), and links to and from the other nodes (two
// for each, and a few for names to be looked up). That is more than 128 if
// everything comes together, but then the limit is too low for a node that
// anybody depends on, and 256 more make 64 more.
type shares struct{ visitors, origins int }

func sharesOf(files uint64) shares {
	n := int(min(files, 4*sharesMax))
	free := n - max(reserveMin, n/4)
	visitors := min(max(free/2, sharesMin), sharesMax)
	return shares{visitors: visitors, origins: min(max(free-visitors, sharesMin), sharesMax)}
}

// most is how many connections visitors may have open.
func (s shares) most(proxies bool) int {
	if proxies {
		return s.visitors
	}
	return min(s.visitors+s.origins, sharesMax)
}

// shares are this process's. Few of them get a word in the log.
func (s *Server) shares() shares {
	files := filesMax()
	share := sharesOf(files)
	if files < filesEnough {
		s.log.Warn("few files may be open at once, so few visitors are served: raise the limit (ulimit -n, LimitNOFILE)",
			"files", files, "visitors", share.visitors, "origins", share.origins)
	}
	return share
}

// door bounds the connections that a port has open. When it is full, the one
// that has carried no request for longest makes way for a newcomer, be it an
// idle one that is kept alive, one on which nothing was said yet, or one whose
// request has not come as a whole. Real visitors send theirs at once, and open a
// new connection when the old one is gone; so neither idle browsers nor
// strangers who hold connections, or say what they want byte by byte, keep them
// out. Only if every connection carries a request, a newcomer is closed at once.
//
// Waiting in the kernel's backlog would let the idle ones starve the others. To
// end keep-alive earlier is not needed: an idle connection costs nobody anything
// until somebody wants its place.
//
// A request touches nothing but its own connection and a counter. Who has been
// quiet for longest is found out when somebody must go, for many at a time.
type door struct {
	net.Listener
	port string
	max  int
	log  *slog.Logger
	turn atomic.Uint64 // counts how often a connection fell quiet

	mu      sync.Mutex
	guests  map[*guest]struct{}
	quiet   []quietGuest // as of looked, the longest first; some may have gone or spoken since
	looked  time.Time
	refused int       // so far
	told    time.Time // when the log was last told that it is full
}

type quietGuest struct {
	*guest
	since uint64
}

// With more guests than lookFreely, the door looks for quiet ones no more often
// than every lookEvery: it takes a while, and who comes may be a flood.
const (
	lookFreely = 1024
	lookEvery  = 5 * time.Millisecond
)

func newDoor(port string, most int, log *slog.Logger) *door {
	return &door{port: port, max: most, log: log, guests: make(map[*guest]struct{})}
}

// metrics are how full it is.
func (d *door) metrics() []prometheus.Collector {
	read := func(n func() int) func() float64 {
		return func() float64 { d.mu.Lock(); defer d.mu.Unlock(); return float64(n()) }
	}
	name := "anteroom_" + d.port + "_connections"
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: "Connections open."},
			read(func() int { return len(d.guests) })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name + "_limit", Help: "Connections that may be open at once."},
			read(func() int { return d.max })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: name + "_refused_total", Help: "Connections closed at once because all others carried requests.",
		}, read(func() int { return d.refused })),
	}
}

// keep makes h, which has not started, tell the door about its connections. It
// serves l by way of the door.
func (d *door) keep(h *http.Server, l net.Listener) net.Listener {
	d.Listener = l
	inner := h.Handler
	h.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, guestKey{}, guestOf(c))
	}
	h.ConnState = func(c net.Conn, s http.ConnState) {
		if g := guestOf(c); g != nil {
			g.rests(s == http.StateIdle)
		}
	}
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g, _ := r.Context().Value(guestKey{}).(*guest); g != nil {
			g.asks(1)
			defer g.asks(-1)
		}
		inner.ServeHTTP(w, r)
	})
	return d
}

// Accept returns the next connection that there is a place for.
func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g := d.admit(c); g != nil {
			return g, nil
		}
		_ = c.Close() // full, and it has said nothing yet
	}
}

// admit gives c a place, nil if there is none. Nobody else does.
func (d *door) admit(c net.Conn) *guest {
	d.mu.Lock()
	full := len(d.guests) >= d.max
	var longest *guest
	if full {
		longest = d.longestQuiet()
	}
	d.mu.Unlock()
	switch {
	case full && longest == nil:
		d.refuse()
		return nil
	case full:
		_ = longest.Close() // and with it goes its place
	}
	g := &guest{Conn: c, door: d, quiet: d.turn.Add(1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.guests[g] = struct{}{}
	return g
}

// resize changes how many may be open. If those are too many, quiet ones are
// closed; those that carry requests are left to finish.
func (d *door) resize(most int) {
	d.mu.Lock()
	d.max = most
	d.mu.Unlock()
	for {
		d.mu.Lock()
		var longest *guest
		if len(d.guests) > d.max {
			longest = d.longestQuiet()
		}
		d.mu.Unlock()
		if longest == nil {
			return
		}
		_ = longest.Close()
	}
}

// longestQuiet finds who makes way, nil if everybody carries a request.
func (d *door) longestQuiet() *guest {
	for again := true; ; again = false {
		for len(d.quiet) > 0 {
			q := d.quiet[0]
			d.quiet = d.quiet[1:]
			if q.quietSince() == q.since { // who fell quiet later comes after all of these
				return q.guest
			}
		}
		if !again || len(d.guests) > lookFreely && time.Since(d.looked) < lookEvery {
			return nil
		}
		d.looked = time.Now()
		for g := range d.guests {
			if since := g.quietSince(); since > 0 {
				d.quiet = append(d.quiet, quietGuest{g, since})
			}
		}
		slices.SortFunc(d.quiet, func(a, b quietGuest) int { return cmp.Compare(a.since, b.since) })
	}
}

func (d *door) refuse() {
	d.mu.Lock()
	d.refused++
	tell := time.Since(d.told) >= tellAgain
	if tell {
		d.told = time.Now()
	}
	d.mu.Unlock()
	if tell {
		d.log.Warn("connections are refused: all that may be open carry requests", "port", "node."+d.port, "limit", d.max)
	}
}

// guest is a connection that has a place until it is closed.
type guest struct {
	net.Conn
	door *door

	mu       sync.Mutex
	until    time.Time // deadline of writes
	quiet    uint64    // the turn at which it fell quiet; 0: it carries a request, or is gone
	requests int       // being answered; with HTTP/2 there may be many
	idle     bool      // the server waits for a request
	gone     bool
}

type guestKey struct{}

// guestOf finds the guest below TLS; nil: there is none.
func guestOf(c net.Conn) *guest {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	g, _ := c.(*guest)
	return g
}

func (g *guest) quietSince() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.quiet
}

// asks counts a request that begins or ends.
func (g *guest) asks(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests += n
	g.settle()
}

// rests notes whether the server waits for a request.
func (g *guest) rests(idle bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle = idle
	g.settle()
}

// settle finds out whether it carries a request. After its last one it does
// until the server says that it is idle: only then is the answer out.
func (g *guest) settle() {
	switch {
	case g.requests > 0 || g.gone:
		g.quiet = 0
	case g.idle && g.quiet == 0:
		g.quiet = g.door.turn.Add(1)
	}
}

// Close gives the place back, once the file descriptor is free.
func (g *guest) Close() error {
	err := g.Conn.Close()
	g.mu.Lock()
	g.gone = true
	g.settle()
	g.mu.Unlock()
	g.door.mu.Lock()
	defer g.door.mu.Unlock()
	delete(g.door.guests, g)
	return err
}

// SetWriteDeadline leaves a deadline alone that is only a little nearer: every
// request sets one, most of them on a connection that had one a moment ago.
func (g *guest) SetWriteDeadline(t time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if sooner := t.Sub(g.until); !t.IsZero() && !g.until.IsZero() && 0 <= sooner && sooner < soonerMax {
		return nil
	}
	g.until = t
	return g.Conn.SetWriteDeadline(t)
}

// SetDeadline is both deadlines.
func (g *guest) SetDeadline(t time.Time) error {
	return errors.Join(g.SetReadDeadline(t), g.SetWriteDeadline(t))
}

// soonerMax is how much earlier a client may be given up than the gateway says.
const soonerMax = time.Second

// CloseWrite is what a server does before it closes, so that its last words
// arrive, and what ends one half of an upgraded connection.
func (g *guest) CloseWrite() error {
	if c, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
