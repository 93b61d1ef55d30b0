package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/memberlist"

	"github.com/anteroom/anteroom/eviction"
)

// Config is what a node needs to know to gossip.
type Config struct {
	Self      eviction.Peer // this life of the node; Boot must be new at every start
	Bind      string        // host:port that gossip listens on, TCP and UDP; port 0: any free one
	Advertise string        // host or host:port that others reach it at [what Bind says, or a fitting address of this machine]
	// PeerAddr is the host:port of the node's peer service, given to the others.
	// For a wildcard host they take the address at which they gossip with it.
	PeerAddr string
	Version  string   // of the program, for the others to show
	Join     []string // host:port of any members; all addresses of a name are tried
	Alone    bool     // a cluster of one: no sockets, and one view of this node for ever
	// Keys are AES keys of 16, 24 or 32 bytes: the first seals, all of them open.
	// Without one gossip is in the clear, which is for tests.
	Keys [][]byte

	// Ask asks the node whose peer service is at address which life of which node it
	// is, and whether that is Settled, over a connection on which both ends prove
	// themselves. It says that this node gossips at the other address.
	Ask func(ctx context.Context, address, gossip string) (who eviction.Peer, settled bool, err error)
	// Silent is for how long who has a name may give no answer before it gives way
	// to another process of that name [2s].
	Silent time.Duration

	Logger *slog.Logger // [none]
	// OnView gets every new view, the first before Ready, one call at a time. A
	// slow one delays the next view and holds up nothing else.
	OnView func(View)

	Transport  memberlist.Transport // in place of Bind's sockets, for tests
	Debounce   time.Duration        // how long changes gather before they become a view [75ms]
	Rejoin     time.Duration        // between calls at missing members, ±50 % [2s]
	RejoinIdle time.Duration        // the same, if none was lost of late [5 × Rejoin]
}

const (
	nameMax  = 128  // bytes of a name
	namesMax = 1024 // names known at a time, alive and lost
)

func (c *Config) setDefaults() {
	c.Debounce = cmp.Or(c.Debounce, 75*time.Millisecond)
	c.Rejoin = cmp.Or(c.Rejoin, 2*time.Second)
	c.Silent = cmp.Or(c.Silent, 2*time.Second)
	c.RejoinIdle = cmp.Or(c.RejoinIdle, 5*c.Rejoin)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Join, c.Keys = slices.Clone(c.Join), slices.Clone(c.Keys)
}

// validate lists everything that is wrong with c.
func (c *Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := checkName(string(c.Self.Name)); err != nil {
		bad("node.id: %w", err)
	}
	if c.Self.Boot == 0 {
		bad("boot: 0; draw another one at every start")
	}
	if c.Self.Start <= 0 {
		bad("start: %d is no time in Unix microseconds", c.Self.Start)
	}
	if c.Alone && len(c.Join) > 0 {
		bad("node.join: a cluster of one joins nobody; set security.gossip_key")
	}
	if c.Transport == nil && !c.Alone {
		if err := checkHostPort(c.Bind, true); err != nil {
			bad("node.gossip: %w", err)
		}
	}
	if c.Advertise != "" {
		if host, _, err := splitAdvertise(c.Advertise); err != nil {
			bad("node.advertise: %w", err)
		} else if isWildcard(host) {
			bad("node.advertise: %q is no address that others can reach; give one, or leave it out", c.Advertise)
		}
	}
	if _, err := encode(saying{Peer: c.Self, addr: c.PeerAddr}); err != nil && !c.Alone {
		bad("node.peer: %w", err)
	}
	for _, j := range c.Join {
		if err := checkHostPort(j, false); err != nil {
			bad("node.join: %w", err)
		} else if host, _, _ := net.SplitHostPort(j); isWildcard(host) {
			bad("node.join: %q is no address that can be called; give a member's", j)
		}
	}
	for _, k := range c.Keys {
		if err := memberlist.ValidateKey(k); err != nil {
			bad("security.gossip_key: %d bytes; an AES key has 16, 24 or 32", len(k))
		}
	}
	if c.OnView == nil {
		bad("OnView: nobody would get the views")
	}
	if c.Ask == nil && !c.Alone {
		bad("Ask: nobody could tell who has the name")
	}
	if min(c.Debounce, c.Rejoin, c.RejoinIdle, c.Silent) < 0 {
		bad("debounce %v, rejoin %v, %v, silent %v: none may be negative", c.Debounce, c.Rejoin, c.RejoinIdle, c.Silent)
	}
	return errors.Join(errs...)
}

// checkName says why a node may not have the name, or nil. Names stand in logs,
// on pages and in cookies.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("empty; give the node a name that no other node has")
	case len(name) > nameMax:
		return fmt.Errorf("%d bytes are more than the %d that a name may have", len(name), nameMax)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return fmt.Errorf("%q has characters that cannot be shown", name)
	}
	return nil
}

// checkHostPort says why s is not the host:port of a listener, or of somebody
// to call, or nil. Port 0 is for listeners that take any free port.
func checkHostPort(s string, zero bool) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not host:port, such as 10.0.0.2:7946 or [fd00::2]:7946", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 && !zero {
		return fmt.Errorf("%q has no port from 1 to 65535", s)
	}
	return checkHost(host)
}

// checkHost says why host is neither an address nor a name. What comes from
// other members ends in dial strings, where a slash or a percent sign would
// mean something.
func checkHost(host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		if strings.Contains(host, "%") {
			return fmt.Errorf("%q has a zone, which means something on one machine only; give an address without", host)
		}
		return nil
	}
	odd := func(r rune) bool {
		return r != '.' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	if len(host) > 253 || strings.ContainsFunc(host, odd) {
		return fmt.Errorf("%.60q is neither an address nor a host name", host)
	}
	return nil
}

// splitAdvertise takes a host, or host:port; without one the port is 0.
func splitAdvertise(s string) (host string, port int, err error) {
	if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		s = net.JoinHostPort(ip.String(), "0")
	} else if !strings.Contains(s, ":") {
		s += ":0"
	}
	if err := checkHostPort(s, true); err != nil {
		return "", 0, err
	}
	host, p, _ := net.SplitHostPort(s)
	port, _ = strconv.Atoi(p) // checked above
	return host, port, nil
}

// isWildcard reports whether a listener at host takes calls at every address.
func isWildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.Unmap().IsUnspecified()
}

// profile is memberlist's configuration, with the figures that find a killed
// node in under two seconds. A suspect is given up after
//
//	SuspicionMult × max(1, log10 n) × ProbeInterval
//
// when enough members agree, and after SuspicionMaxTimeoutMult times that on
// one member's word.
func (c *Config) profile(d *delegate, out *log.Logger) *memberlist.Config {
	p := memberlist.DefaultLANConfig()
	p.Name = string(c.Self.Name)
	p.ProbeInterval, p.ProbeTimeout = 300*time.Millisecond, 100*time.Millisecond
	p.SuspicionMult, p.SuspicionMaxTimeoutMult = 3, 3
	p.GossipInterval, p.GossipNodes = 50*time.Millisecond, 4
	p.RetransmitMult = 8 // with 4, one of eight who join at once is missed every thirtieth time
	p.TCPTimeout = streamTimeout
	// Anti-entropy with a member at random: what tells a node that was given up
	// by mistake, and by everyone, that it was.
	p.PushPullInterval = 10 * time.Second
	p.GossipToTheDeadTime = deadFor
	p.DeadNodeReclaimTime = 5 * time.Second
	p.EnableCompression = false // all there is to say fits into a packet or two
	if len(c.Keys) > 0 {
		p.Keyring, _ = memberlist.NewKeyring(c.Keys, c.Keys[0]) // validated
	}
	p.Logger = out
	p.Delegate, p.Events, p.Alive, p.Conflict = d, d, d, d
	return p
}

const (
	streamTimeout = 2 * time.Second
	deadFor       = 10 * time.Minute // memberlist forgets a dead member after this
)
