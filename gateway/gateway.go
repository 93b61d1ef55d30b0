package gateway

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/internal/challenge"
	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/internal/webpush"
	"github.com/anteroom/anteroom/qpid"
)

// Queue is the node behind the gateway, with the cluster behind that. All of
// it may be called from many goroutines at once.
type Queue interface {
	// Do carries out q here or at the node that must. Its errors are those of
	// package ticket, or the context's.
	Do(ctx context.Context, q ticket.Request) (ticket.Answer, error)
	// Room says how a room is doing. It is asked on every request.
	Room(name string) (RoomState, bool)
	// Called returns a channel that gets a value when something happens here to
	// a ticket, and a function that ends the watch. The channel is closed when so
	// many have begun to watch the ticket since that this one is too many.
	Called(room string, id qpid.ItemID) (<-chan struct{}, func())
	// Clock is the time that tickets and passes carry, in Unix microseconds.
	Clock() int64
}

// RoomState is how a room is doing, as of the last wave.
type RoomState = ticket.RoomState

// Sealer makes and opens what visitors carry. An error of opening means that
// the string is not one of ours, for that room.
type Sealer interface {
	Ticket(t ticket.Ticket) (string, error)
	OpenTicket(room, s string) (ticket.Ticket, error)
	Pass(p ticket.Pass) (string, error)
	OpenPass(room, s string) (ticket.Pass, error)
	JWT(p ticket.Pass, issuer string) (string, error)
	JWKS() []byte
}

// Config is what a gateway needs.
type Config struct {
	Queue          Queue
	Sealer         Sealer
	Pages          Pager
	Rooms          []Room
	Prefix         string // of our own paths [/_anteroom]
	Issuer         string // iss of the passes for origins [anteroom]
	TrustedProxies []netip.Prefix
	CountryHeader  string // in which they say where a visitor is, for bypass rules; empty: they do not
	Bounds         Bounds
	Addresses      *peraddress.Table     // bounds of what one address may have; nil: none
	Challenges     *challenge.Table      // what a join takes in some rooms; nil: nothing
	Push           *webpush.Sender       // tells of calls by push services; nil: that is not done
	StatusPage     http.Handler          // for the public, at Prefix/status; nil: there is none
	Metrics        prometheus.Registerer // nil: none
	Logger         *slog.Logger          // nil: none
}

// Bounds keep strangers from filling the memory. Zero means the default; InFlight,
// Streams, Bodies and Uploads have no bound when negative.
type Bounds struct {
	InFlight   int           // requests to the queue at once [4096]
	Streams    int           // event streams at once [20000]
	Bodies     int           // requests to us, or of people who wait, whose body is on its way [1024]
	Uploads    int           // the same on their way to an origin, which has not begun to answer [4096]
	Sessions   int           // passes remembered [50000]
	Pushes     int           // places whose call is told by push [10000]
	PushAfter  time.Duration // who is called has so long to come by themselves [3s]
	Answer     time.Duration // longest wait for the queue [5s]
	Recheck    time.Duration // an ended pass is refused at the latest after this [2s]
	Heartbeat  time.Duration // a stream says something at least this often [15s]
	OriginWait time.Duration // until the origin's answer begins [60s]
	// Stall is for how long a client may send nothing of a body that is on its
	// way to the origin, and take in nothing of an answer [1m]. Progress renews
	// it; connections that were upgraded have no such bound.
	Stall       time.Duration
	OriginConns int // connections to all origins [0: no bound]
}

const stallDefault = time.Minute

func (b Bounds) withDefaults() Bounds {
	b.InFlight = cmp.Or(b.InFlight, 4096)
	b.Streams = cmp.Or(b.Streams, 20_000)
	b.Bodies = cmp.Or(b.Bodies, 1024)
	b.Uploads = cmp.Or(b.Uploads, 4096)
	b.Sessions = cmp.Or(b.Sessions, 50_000)
	b.Pushes = cmp.Or(b.Pushes, 10_000)
	b.PushAfter = cmp.Or(b.PushAfter, 3*time.Second)
	b.Answer = cmp.Or(b.Answer, 5*time.Second)
	b.Recheck = cmp.Or(b.Recheck, 2*time.Second)
	b.Heartbeat = cmp.Or(b.Heartbeat, 15*time.Second)
	b.OriginWait = cmp.Or(b.OriginWait, time.Minute)
	b.Stall = cmp.Or(b.Stall, stallDefault)
	return b
}

// Gateway answers visitors. It is an http.Handler.
type Gateway struct {
	c          Config
	rooms      atomic.Pointer[table]
	mux        *http.ServeMux
	ops        map[string]roomOp // by the last element of their path
	guard      *http.CrossOriginProtection
	transport  *http.Transport
	proxyLog   *log.Logger
	copying    sync.Pool // of *[copyLen]byte
	sessions   *sessions
	tunnels    tunnels
	pushes     pushes
	preflights *preflights
	metrics    *metrics
	calls      sync.Pool // of *call
	arrivals   sync.Pool // of *arrival
	bodies     arriving  // of requests that are answered from here
	uploads    arriving  // of those that go on to an origin
	noStore    []string  // a header's value, not to be changed
	texts      texts
	buffers    sync.Pool // of *bytes.Buffer, for bodies and answers
	zippers    sync.Pool // of *gzip.Writer, for pages
	inFlight   atomic.Int64
	streams    atomic.Int64
	listening  sync.WaitGroup             // streams that have left their handlers
	nobodys    *http.Request              // in whose place they ask
	proxy      atomic.Pointer[netip.Addr] // in front, and not listed; nil: none was noticed
	bulletin   bulletin
	closing    chan struct{}
	close      sync.Once
}

// New returns a gateway. The error lists everything that is wrong with c.
func New(c Config) (*Gateway, error) {
	c.Prefix = cmp.Or(c.Prefix, "/_anteroom")
	c.Issuer = cmp.Or(c.Issuer, "anteroom")
	c.Bounds = c.Bounds.withDefaults()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if !strings.HasPrefix(c.Prefix, "/") || strings.HasSuffix(c.Prefix, "/") || strings.ContainsAny(c.Prefix, "{}?#% ") {
		return nil, fmt.Errorf("%w: prefix %q: want a path such as /_anteroom, without a slash at its end", ErrConfig, c.Prefix)
	}
	g := &Gateway{
		c:          c,
		guard:      http.NewCrossOriginProtection(),
		transport:  newTransport(c.Bounds),
		proxyLog:   slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
		tunnels:    tunnels{open: make(map[sessionKey][]*tunnel)},
		pushes:     pushes{open: make(map[pushKey]*push)},
		sessions:   newSessions(c.Bounds.Sessions, c.Bounds.Recheck),
		preflights: newPreflights(),
		metrics:    newMetrics(),
		noStore:    []string{"no-store"},
		ops:        make(map[string]roomOp),
		calls:      sync.Pool{New: func() any { return new(call) }},
		buffers:    sync.Pool{New: func() any { return new(bytes.Buffer) }},
		zippers:    sync.Pool{New: func() any { return gzip.NewWriter(nil) }},
		closing:    make(chan struct{}),
		nobodys:    &http.Request{Method: http.MethodGet},
		arrivals:   sync.Pool{New: func() any { return new(arrival) }},
		bodies:     arriving{max: c.Bounds.Bodies},
		uploads:    arriving{max: c.Bounds.Uploads},
	}
	if err := g.SetRooms(c.Rooms); err != nil {
		return nil, err
	}
	if c.Metrics != nil {
		if err := g.metrics.register(c.Metrics, g); err != nil {
			return nil, fmt.Errorf("gateway: metrics: %w", err)
		}
	}
	g.mux = g.ownPaths()
	return g, nil
}

// ErrConfig is a configuration that is refused.
var ErrConfig = errors.New("gateway: invalid configuration")

// SetRooms replaces the rooms. Nobody loses a place by it.
func (g *Gateway) SetRooms(rooms []Room) error {
	t, err := newTable(rooms)
	if err != nil {
		return err
	}
	t.keepFlows(g.rooms.Load())
	g.rooms.Store(t)
	g.post()
	return nil
}

// Close ends all event streams and idle connections to origins, and tells nobody
// of their call any more. Call it when
// the server begins to shut down: it waits for requests, and streams do not
// end by themselves.
func (g *Gateway) Close() {
	g.close.Do(func() { close(g.closing) })
	g.bulletin.close()
	g.transport.CloseIdleConnections()
}

// Closed waits, after Close and when the server answers nothing any more, until the
// streams have ended that no server knows of, or ctx has.
func (g *Gateway) Closed(ctx context.Context) {
	over := make(chan struct{})
	go func() { g.listening.Wait(); close(over) }()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// ServeHTTP answers one request, and measures how long that takes.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.serve(w, r, nil) }

// serve is ServeHTTP; next stands in the place of the rooms' origins, see Before.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	m := &measured{ResponseWriter: w, began: time.Now(), inside: next != nil}
	defer func() { // deferred: an answer that breaks off is a panic
		if !m.lasts {
			g.metrics.served(r.Method, m)
		}
	}()
	g.answer(m, r, next)
	if m.status == 0 && r.Context().Err() == nil { // else the visitor has gone, and nobody answers
		m.status = http.StatusOK
	}
}

func (g *Gateway) answer(w *measured, r *http.Request, next http.Handler) {
	if next == nil {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(g.c.Bounds.Stall)) // a writer without deadlines is a test's
	}
	own, ok := strings.CutPrefix(r.URL.Path, g.c.Prefix)
	switch {
	case ok && (own == "" || own[0] == '/'):
		hurry(w, r)
		if op, name := g.plain(r.URL, own); op.answer != nil {
			w.route = op.route
			op.answer(w, r, name)
			return
		}
		r = g.asWritten(r)
		g.mux.ServeHTTP(w, r)
		w.route = routeOf(r.Pattern)
	case r.URL.Path != "" && r.URL.Path[0] != '/': // *, and the preface of HTTP/2 where that was not agreed on
		hurry(w, r)
		g.rest(w, r)
		g.fail(w, r, invalid("The request names no path."))
	default:
		w.route = "/"
		g.visit(w, r, next)
	}
}

// asWritten is r with a path that the mux takes. It would send others to the
// tidied path, and so the visitors of an Envoy, which calls us with their own
// path behind ours, to an address that is not for them. Theirs is tidied by
// itself: it must not climb out to a request of ours that anybody may send.
func (g *Gateway) asWritten(r *http.Request) *http.Request {
	written := r.URL.EscapedPath()
	ours := g.questionIn(written)
	tidy := path.Clean(written[ours:])
	if strings.HasSuffix(written, "/") && tidy != "/" {
		tidy += "/"
	}
	tidy = written[:ours] + tidy
	if tidy == written {
		return r
	}
	plain, err := url.PathUnescape(tidy)
	if err != nil {
		return r
	}
	u, q := *r.URL, *r
	u.Path, u.RawPath, q.URL = plain, tidy, &u
	return &q
}

// do has the queue carry out q for somebody who is on the site, or was: of them
// no address is asked.
func (g *Gateway) do(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	return g.c.Addresses.Do(ctx, peraddress.Visitor{}, q, g.ask)
}

// ask puts q to the queue, within the bounds of this node.
func (g *Gateway) ask(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	if n := g.inFlight.Add(1); g.c.Bounds.InFlight > 0 && n > int64(g.c.Bounds.InFlight) {
		g.inFlight.Add(-1)
		g.metrics.shed.Inc()
		return ticket.Answer{}, ticket.ErrBusy
	}
	defer g.inFlight.Add(-1)
	asked := &patience{Context: ctx, longest: g.c.Bounds.Answer}
	defer asked.end()
	a, err := g.c.Queue.Do(asked, q)
	if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("%w: no answer to a %v in %v", ticket.ErrUnavailable, q.Op, g.c.Bounds.Answer)
	}
	g.metrics.asked(q.Op, err)
	return a, err
}
