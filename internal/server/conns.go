package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
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
type door struct {
	net.Listener
	port string
	max  int
	log  *slog.Logger

	mu      sync.Mutex
	open    int
	quiet   list.List // of *guest: those that carry no request, the longest first
	refused int       // so far
	told    time.Time // when the log was last told that it is full
}

func newDoor(port string, most int, log *slog.Logger) *door {
	return &door{port: port, max: most, log: log}
}

// metrics are how full it is.
func (d *door) metrics() []prometheus.Collector {
	read := func(n *int) func() float64 {
		return func() float64 { d.mu.Lock(); defer d.mu.Unlock(); return float64(*n) }
	}
	name := "anteroom_" + d.port + "_connections"
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: "Connections open."}, read(&d.open)),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name + "_limit", Help: "Connections that may be open at once."}, read(&d.max)),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: name + "_refused_total", Help: "Connections closed at once because all others carried requests.",
		}, read(&d.refused)),
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
			d.change(g, func() { g.idle = s == http.StateIdle })
		}
	}
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g, _ := r.Context().Value(guestKey{}).(*guest); g != nil {
			d.change(g, func() { g.requests++ })
			defer d.change(g, func() { g.requests-- })
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

// admit gives c a place, nil if there is none.
func (d *door) admit(c net.Conn) *guest {
	if !d.room() {
		return nil
	}
	g := &guest{Conn: c, door: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open++
	g.place = d.quiet.PushBack(g)
	return g
}

// room makes room for one more if it can.
func (d *door) room() bool {
	d.mu.Lock()
	full := d.open >= d.max
	longest := d.quiet.Front()
	if full && longest == nil {
		d.refused++
		tell := time.Since(d.told) >= tellAgain
		if tell {
			d.told = time.Now()
		}
		d.mu.Unlock()
		if tell {
			d.log.Warn("connections are refused: all that may be open carry requests", "port", "node."+d.port, "limit", d.max)
		}
		return false
	}
	d.mu.Unlock()
	if full {
		_ = longest.Value.(*guest).Close() // and with it goes its place
	}
	return true
}

// change does what says how a guest stands, and finds out whether it carries a
// request from then on. After its last one it does until the server says that it
// is idle: only then is the answer out.
func (d *door) change(g *guest, do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
	switch {
	case g.gone:
	case g.requests > 0 && g.place != nil:
		d.quiet.Remove(g.place)
		g.place = nil
	case g.requests == 0 && g.idle && g.place == nil:
		g.place = d.quiet.PushBack(g)
	}
}

// guest is a connection that has a place until it is closed.
type guest struct {
	net.Conn
	door     *door
	place    *list.Element // among the quiet ones; nil: it carries a request
	requests int           // being answered; with HTTP/2 there may be many
	idle     bool          // the server waits for a request
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

// Close gives the place back, once the file descriptor is free.
func (g *guest) Close() error {
	err := g.Conn.Close()
	d := g.door
	d.mu.Lock()
	defer d.mu.Unlock()
	if !g.gone {
		g.gone = true
		d.open--
		if g.place != nil {
			d.quiet.Remove(g.place)
			g.place = nil
		}
	}
	return err
}

// CloseWrite is what a server does before it closes, so that its last words
// arrive, and what ends one half of an upgraded connection.
func (g *guest) CloseWrite() error {
	if c, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
