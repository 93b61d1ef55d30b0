package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// Config says who comes where. Zero means the default in brackets.
type Config struct {
	URLs        []string      // gateways; visitors are dealt over them
	Room        string        //
	Prefix      string        // of the gateways' own paths [/_anteroom]
	Page        string        // of the site, to look at [/]
	Connections int           // to all gateways together, at least one to each [64]
	Limit       int           // the room's total_active_users; 0: not known
	Patience    time.Duration // a visitor gives up when it gets no useful answer for so long [1m]
	Insecure    bool          // any certificate will do
	Seed        uint64        // of everything that is drawn

	Arrivals Arrivals
	Manners  Manners

	// Dial makes connections, for tests. [net.Dialer.DialContext]
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Arrivals says how many come, and when.
type Arrivals struct {
	Users       int           // in all; 0: as many as come within Duration
	Concurrency int           // closed model: so many at a time [Users, at most 10,000]
	Rate        float64       // open model: so many a second on average
	Duration    time.Duration // nobody comes later than this; 0: no bound
	Drain       time.Duration // how long after Duration those who are there may take; negative: no bound
}

// Manners says what visitors do.
type Manners struct {
	CheckInEvery time.Duration // instead of when they are told to; 0: when they are told to
	Stay         time.Duration // on the site, give or take a half
	Browse       int           // pages they look at during it
	Abandon      float64       // this share gives up while it waits
	Return       float64       // this share comes back once after its stay
	NoEnd        bool          // goes without a word: its place is taken until the pass expires
	JoinAsync    bool          // wants its ticket at once, before its position is known
	NoJWT        bool          // has no use for pass_jwt, and says so
}

// concurrencyMost is how many come at a time unless it is said.
const concurrencyMost = 10_000

// connectionsMax keeps a slip from using up the machine's ports.
const connectionsMax = 50_000

// ErrConfig is a configuration that makes no sense.
var ErrConfig = errors.New("wrong")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
}

func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, "/_anteroom")
	c.Page = cmp.Or(c.Page, "/")
	c.Connections = max(cmp.Or(c.Connections, 64), len(c.URLs))
	c.Patience = cmp.Or(c.Patience, time.Minute)
	a := &c.Arrivals
	a.Concurrency = cmp.Or(a.Concurrency, min(a.Users, concurrencyMost))
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return c
}

func (c *Config) check() error {
	a, m := &c.Arrivals, &c.Manners
	switch {
	case len(c.URLs) == 0:
		return wrong("no URL of a gateway")
	case c.Room == "":
		return wrong("no room")
	case !isPath(c.Prefix), !isPath(c.Page):
		return wrong("%q and %q: want a prefix and a page such as /_anteroom and /shop", c.Prefix, c.Page)
	case c.Connections < 1 || c.Connections > connectionsMax:
		return wrong("%d connections", c.Connections)
	case a.Rate < 0 || a.Users < 0 || a.Concurrency < 0 || a.Duration < 0:
		return wrong("a number below zero")
	case a.Rate == 0 && a.Users == 0 && (a.Concurrency == 0 || a.Duration == 0):
		return wrong("nobody comes, or they never stop: give users, or how many at a time for how long")
	case a.Rate > 0 && a.Users == 0 && a.Duration == 0:
		return wrong("a rate needs a number of users, or a duration")
	case m.Abandon < 0 || m.Abandon > 1 || m.Return < 0 || m.Return > 1:
		return wrong("a share is from 0 to 1")
	case m.Browse < 0 || m.Stay < 0 || m.CheckInEvery < 0:
		return wrong("a number below zero")
	}
	return nil
}

// isPath reports whether s can stand in a request line.
func isPath(s string) bool {
	return strings.HasPrefix(s, "/") && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// ParseURL reads the URL of a gateway, which is a scheme, a host and a port. A
// scheme that is not there is http.
func ParseURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, wrong("%q: want a gateway's URL such as http://127.0.0.1:8080, without a path", text)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}
