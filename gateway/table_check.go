package gateway

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/anteroom/anteroom/internal/rules"
)

// Probe is a request that nobody makes: what would become of it?
type Probe struct {
	Method string
	URL    *url.URL // with its host
	From   netip.Addr
	Header http.Header
}

// Fate is what becomes of a request. The texts are for programs to compare.
type Fate string

const (
	FateOwn       Fate = "own"       // below our prefix: the API and our pages
	FateNone      Fate = "none"      // no room has it: 404
	FateSuspended Fate = "suspended" // the room lets everyone through
	FateBypass    Fate = "bypass"    // it meets a rule
	FateRefused   Fate = "refused"   // servers read its path in different ways: 400
	FateQueue     Fate = "queue"     // it needs a pass, or waits for one
)

// Finding is the room and the rule that a request meets.
type Finding struct {
	Prefix string // of our own pages
	Fate   Fate
	Room   *Room           // nil: none
	Route  Route           // by which it is the room's
	Others []string        // rooms that servers may take it to, which read its path in another way; their passes are needed too
	Path   string          // as rules see it; empty: ambiguous, so that no rule about paths is met
	Rules  []rules.Verdict // all rules of the room
}

// Find says what would become of a request at a gateway of that configuration,
// as the browser's own: what trusted proxies would add is taken from the probe.
func Find(c Config, p Probe) (Finding, error) {
	t, err := newTable(c.Rooms)
	if err != nil {
		return Finding{}, err
	}
	return t.finding(&c, p, unasked), nil
}

// Find says what would become of a request here and now. It may be called from
// many goroutines at once.
func (g *Gateway) Find(p Probe) Finding { return g.rooms.Load().finding(&g.c, p, g.strictness) }

func (t *table) finding(c *Config, p Probe, strictness func(*Room) int) Finding {
	host := hostName(bare(p.URL.Host))
	f := Finding{Prefix: c.Prefix, Fate: FateNone, Path: rules.Path(p.URL)}
	if own, ok := strings.CutPrefix(p.URL.Path, c.Prefix); ok && c.Prefix != "" && (own == "" || own[0] == '/') {
		f.Fate = FateOwn
		return f
	}
	to := t.meet(host, p.URL, strictness)
	if to.route == nil {
		return f
	}
	r := to.route
	f.Room, f.Route = r.room, Route{r.host, r.path}
	for _, o := range to.others {
		f.Others = append(f.Others, o.room.Name)
	}
	from := client{trusted: true, https: p.URL.Scheme == "https", host: host}
	q := from.ask(asked{p.Method, p.URL, p.From}, p.Header, c.CountryHeader)
	f.Rules = r.room.Bypass.Explain(&q)
	met, _ := r.room.Bypass.Match(&q)
	switch {
	case to.refused():
		f.Fate = FateRefused
	case f.Room.Suspended:
		f.Fate = FateSuspended
	case met != nil:
		f.Fate = FateBypass
	default:
		f.Fate = FateQueue
	}
	return f
}
