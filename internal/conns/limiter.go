package conns

import (
	"cmp"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const tellAgain = time.Minute

// Config says what a limiter bounds.
type Config struct {
	Name   string                // of the port: gateway, admin, peer or grpc
	Max    int                   // connections open at once
	Part   int                   // how many addresses it takes to have all of them [8]
	Exempt func(netip.Addr) bool // from the bound per address, as this machine itself always is; nil: nobody else
	Logger *slog.Logger
}

// Limiter bounds the connections of one listener. See the package's comment.
type Limiter struct {
	net.Listener
	c    Config
	turn atomic.Uint64 // counts how often a connection fell quiet

	mu      sync.Mutex
	max     int
	all     pool
	of      map[netip.Prefix]*pool // the same connections by where they come from; bounded by their number
	from    map[netip.AddrPort]*Conn
	refused [reasons]int // so far
	evicted [reasons]int
	told    [reasons]time.Time // when the log was last told
}

// A newcomer finds either the port full, or its address.
type reason int

const (
	byPort reason = iota
	byAddress
	reasons
)

func (r reason) String() string { return [...]string{"port", "address"}[r] }

// New returns a limiter of no listener yet; see HTTP and Listen.
func New(c Config) *Limiter {
	c.Part = cmp.Or(c.Part, partDefault)
	return &Limiter{c: c, max: c.Max, all: newPool(), of: make(map[netip.Prefix]*pool), from: make(map[netip.AddrPort]*Conn)}
}

// Listen makes l the listener's connections pass the limiter.
func (l *Limiter) Listen(inner net.Listener) net.Listener {
	l.Listener = inner
	return l
}

// Accept returns the next connection that there is a place for.
func (l *Limiter) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g := l.admit(c); g != nil {
			return g, nil
		}
		_ = c.Close() // full, and it has said nothing yet
	}
}

// admit gives c a place, nil if there is none. Nobody else does.
func (l *Limiter) admit(c net.Conn) *Conn {
	g := &Conn{Conn: c, limiter: l, idle: true}
	g.at, _ = addrPort(c.RemoteAddr())
	if a := g.at.Addr(); l.counted(a) {
		g.groups = groupsOf(a)
	}
	victim, why, full := l.makeRoom(g)
	switch {
	case full && victim == nil:
		l.refuse(why, g.at.Addr())
		return nil
	case full:
		_ = victim.Close() // and with it goes its place
	}
	g.quiet = l.turn.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.conns[g] = struct{}{}
	for _, p := range g.groups {
		if !p.IsValid() {
			continue
		}
		if l.of[p] == nil {
			l.of[p] = new(newPool())
		}
		l.of[p].conns[g] = struct{}{}
	}
	if g.at.IsValid() {
		l.from[g.at] = g
	}
	return g
}

// makeRoom finds who makes way for g if it finds no room. One connection that goes
// is enough: whoever shares the newcomer's address shares the port as well.
func (l *Limiter) makeRoom(g *Conn) (victim *Conn, why reason, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, prefix := range g.groups {
		if p := l.of[prefix]; p != nil && len(p.conns) >= l.perAddress()*groupTimes[i] {
			victim, why, full = p.longestQuiet(), byAddress, true
			break
		}
	}
	if !full && len(l.all.conns) >= l.max {
		victim, full = l.all.longestQuiet(), true
	}
	if victim != nil {
		l.evicted[why]++
	}
	return victim, why, full
}

// Resize changes how many may be open. If those are too many, quiet ones are
// closed; those that carry requests are left to finish.
func (l *Limiter) Resize(most int) {
	l.mu.Lock()
	l.max = most
	l.mu.Unlock()
	for {
		l.mu.Lock()
		var longest *Conn
		if len(l.all.conns) > l.max {
			longest = l.all.longestQuiet()
		}
		l.mu.Unlock()
		if longest == nil {
			return
		}
		_ = longest.Close()
	}
}

// remove gives the place of c back.
func (l *Limiter) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all.conns, c)
	for _, prefix := range c.groups {
		if p := l.of[prefix]; p != nil {
			if delete(p.conns, c); len(p.conns) == 0 {
				delete(l.of, prefix)
			}
		}
	}
	if l.from[c.at] == c {
		delete(l.from, c.at)
	}
}

func (l *Limiter) refuse(why reason, from netip.Addr) {
	l.mu.Lock()
	l.refused[why]++
	most, each := l.max, l.perAddress()
	tell := time.Since(l.told[why]) >= tellAgain
	if tell {
		l.told[why] = time.Now()
	}
	l.mu.Unlock()
	switch {
	case !tell:
	case why == byAddress:
		l.c.Logger.Warn("connections of one address are refused: all that it may have open carry requests; is it a proxy? Then list it in trusted_proxies",
			"port", "node."+l.c.Name, "address", from, "limit", each)
	default:
		l.c.Logger.Warn("connections are refused: all that may be open carry requests", "port", "node."+l.c.Name, "limit", most)
	}
}

// Metrics are how full it is.
func (l *Limiter) Metrics() []prometheus.Collector {
	read := func(n func() int) func() float64 {
		return func() float64 { l.mu.Lock(); defer l.mu.Unlock(); return float64(n()) }
	}
	name := "anteroom_" + l.c.Name + "_connections"
	all := []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: "Connections open."},
			read(func() int { return len(l.all.conns) })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name + "_limit", Help: "Connections that may be open at once."},
			read(func() int { return l.max })),
	}
	for why := range reasons {
		full := prometheus.Labels{"full": why.String()}
		all = append(all,
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: name + "_refused_total", Help: "Connections closed at once because all others, of the port or of the address, carried requests.", ConstLabels: full,
			}, read(func() int { return l.refused[why] })),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: name + "_evicted_total", Help: "Quiet connections closed for a newcomer because the port, or the address, had no more.", ConstLabels: full,
			}, read(func() int { return l.evicted[why] })),
		)
	}
	return all
}
