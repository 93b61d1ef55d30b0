package config

import (
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// check finds everything that is wrong with the values, each by itself and
// together. Of a value that could not be read it says nothing more.
func (f *File) check() {
	f.checkNode()
	f.checkFounding()
	f.checkCluster()
	f.checkSecurity()
	f.checkTokens()
	f.checkPrograms()
	f.checkPeers()
	f.checkPrefix()
	f.checkProxies()
	f.checkCountryHeader()
	f.checkAdminHosts()
	f.checkRooms()
	f.checkQueues()
	f.checkNotifications()
	f.checkNotificationThresholds()
	f.checkTracing()
	f.checkPush()
}

// fault notes an error about key unless there is one already.
func (f *File) fault(key, format string, args ...any) {
	if !f.blamed(key) {
		f.wrong(key, format, args...)
	}
}

// Names of nodes and rooms stand in logs, addresses and file names.
const (
	nodePattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`
	roomPattern = `^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`
)

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

func (f *File) checkNode() {
	n := f.Config.Node
	if !matches(nodePattern, n.ID) {
		f.fault("node.id", "%q is no name; give up to 128 letters, digits, dots, - and _, another one on each node", n.ID)
	}
	f.checkGRPC()
	listens := []struct{ key, addr string }{
		{"node.gateway", n.Gateway},
		{"node.admin", n.Admin},
		{"node.peer", n.Peer},
		{"node.gossip", n.Gossip},
	}
	if f.given("node.grpc") && n.GRPC != None {
		listens = append(listens, struct{ key, addr string }{"node.grpc", n.GRPC})
	}
	for i, l := range listens {
		if err := listenable(l.addr); err != nil {
			f.fault(l.key, "%v", err)
			continue
		}
		for _, other := range listens[:i] {
			if clash(l.addr, other.addr) {
				f.fault(l.key, "%s is taken by %s; give another port", l.addr, other.key)
			}
		}
	}
	if n.Advertise != "" {
		if host := hostOf(n.Advertise); !validHost(host) || isWildcard(host) {
			f.fault("node.advertise", "%q is no address that others can reach; give a host, or host:port where ports are mapped", n.Advertise)
		}
	}
	for i, addr := range n.Join {
		if err := dialable(addr); err != nil {
			f.fault("node.join"+index(i), "%v", err)
		}
	}
	if n.Expect < 0 || n.Expect > expectMax {
		f.fault("node.expect", "%d; give the number of nodes that start a new cluster together, up to %d, or 0", n.Expect, expectMax)
	}
}

// checkGRPC leaves out the port for programs where nobody asked for it and its
// default is wanted for something else: by this node, or by another one on this
// machine, whose gossip would find it taken.
func (f *File) checkGRPC() {
	n := &f.Config.Node
	if f.given("node.grpc") {
		return
	}
	wanted := append([]string{n.Gateway, n.Admin, n.Peer, n.Gossip}, slices.DeleteFunc(slices.Clone(n.Join), func(addr string) bool { return !isLoopback(hostOf(addr)) })...)
	for _, addr := range wanted {
		if clash(n.GRPC, addr) {
			f.warn("node.grpc", "not set, and its default %s is taken by %s: programs cannot call this node; give it a port of its own, or %s", n.GRPC, addr, None)
			n.GRPC = None
			return
		}
	}
}

// DefaultGRPC reports whether node.grpc is its default: a node does without it
// where that port is taken.
func (f *File) DefaultGRPC() bool { return !f.given("node.grpc") }

// expectMax bounds node.expect: a tree of waves is made for hundreds of nodes.
const expectMax = 1000

// checkFounding warns of nodes that could found a cluster where they should
// not, or wait for one that never comes.
func (f *File) checkFounding() {
	n, s := f.Config.Node, f.Config.Security
	if f.blamed("node.join") || f.blamed("node.expect") {
		return
	}
	elsewhere := slices.ContainsFunc(n.Join, func(addr string) bool { return addr != n.Gossip && addr != n.Advertise })
	switch {
	case len(n.Join) > 0 && !elsewhere:
		f.warn("node.join", "lists this node only; list another one, so that it finds its cluster after a restart")
	case len(n.Join) > 0 && n.Expect == 1:
		f.warn("node.expect", "1: this node starts a cluster of its own before it has met those in node.join; "+
			"give the number of nodes that start together, or 0 to wait for a cluster")
	case len(n.Join) == 0 && n.Expect > 1:
		f.warn("node.expect", "%d, and no node.join: this node cannot look for the others; list some of them in node.join", n.Expect)
	case len(n.Join) == 0 && s.hasGossipKey():
		f.warn("node.join", "empty: this node starts a cluster of one whenever it starts; if others list it in their node.join, list some of them here")
	}
}

func (f *File) checkCluster() {
	c := f.Config.Cluster
	for _, d := range []struct {
		key string
		d   Duration
	}{
		{"cluster.period", c.Period},
		{"cluster.lease", c.Lease},
		{"cluster.max_skew", c.MaxSkew},
		{"cluster.exclude_after", c.ExcludeAfter},
	} {
		f.checkDuration(d.key, d.d)
	}
	if f.blamed("cluster") {
		return
	}
	for _, err := range split(f.Config.Eviction().Validate()) {
		key, text, _ := strings.Cut(err.Error(), ": ")
		f.fault(key, "%s", text)
	}
}

// durationMax keeps sums of durations from overflowing.
const durationMax = Duration(365 * 24 * time.Hour)

func (f *File) checkDuration(key string, d Duration) {
	if d <= 0 || d > durationMax {
		f.fault(key, "%v; give a time above 0 and up to %v, such as 20s or 5m", d, durationMax)
	}
}

// split takes apart what errors.Join made.
func split(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// tokenMin is how long an admin token should be, at least.
const tokenMin = 16

// challengeKeyMin is how long the key of challenge tokens is, at least.
const challengeKeyMin = 32

func (f *File) checkSecurity() {
	s := f.Config.Security
	f.checkGossipKeys()
	t := s.TLS
	f.together("security.tls.gateway", map[string]Path{"cert": t.Gateway.Cert, "key": t.Gateway.Key})
	f.together("security.tls.admin", map[string]Path{"cert": t.Admin.Cert, "key": t.Admin.Key})
	f.together("security.tls.peer", map[string]Path{"ca": t.Peer.CA, "cert": t.Peer.Cert, "key": t.Peer.Key})
	f.checkOperators()

	token := s.AdminToken.Reveal()
	switch {
	case isSample(s.AdminToken):
		f.fault("security.admin_token", "that of the sample; make one with: openssl rand -hex 32")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		f.fault("security.admin_token", "has a space or a character outside ASCII, which no Authorization header carries; make one with: openssl rand -hex 32")
	case token != "" && len(token) < tokenMin:
		f.warn("security.admin_token", "shorter than %d characters, so it can be guessed; make one with: openssl rand -hex 32", tokenMin)
	}
	switch key := s.ChallengeKey.Reveal(); {
	case isSample(s.ChallengeKey):
		f.fault("security.challenge_key", "that of the sample; make one with: openssl rand -hex 32")
	case key == "" && !f.blamed("security.challenge_key"):
		for i, r := range f.Config.Rooms {
			if r.Challenge != "" {
				f.fault("rooms"+index(i)+".challenge", "nobody could join: there is no security.challenge_key; set one in the file or in %s, the same on all nodes", Variable("security.challenge_key"))
			}
		}
	case key != "" && len(key) < challengeKeyMin:
		f.fault("security.challenge_key", "shorter than %d characters, so it can be guessed; make one with: openssl rand -hex 32", challengeKeyMin)
	}
	if s.SigningKeys == "" && f.Config.Node.Data == "" {
		f.warn("security.signing_keys", "not set, and neither is node.data: when all nodes stop, everyone loses their place; "+
			"make keys with: anteroom keys new, or set node.data")
	}
}

// checkOperators refuses to let other machines steer without proof, or in clear
// where nobody said that the network between is theirs.
func (f *File) checkOperators() {
	s, at := f.Config.Security, f.Config.Node.Admin
	if isLoopback(hostOf(at)) || f.blamed("node.admin") {
		if s.AdminPlaintext {
			f.warn("security.admin_plaintext", "not needed: %s is on this machine alone; leave it out", at)
		}
		return
	}
	var missing []string
	if s.AdminToken.Empty() && !f.Config.TokensForAdmin() && !f.blamed("security.admin_token") {
		missing = append(missing, "security.admin_token (or "+Variable("security.admin_token")+")")
	}
	if s.TLS.Admin.Cert == "" && !s.AdminPlaintext && !f.blamed("security.tls.admin") && !f.blamed("security.admin_plaintext") {
		missing = append(missing, "security.tls.admin (a certificate and its key; or admin_plaintext: true, where the network between is yours alone)")
	}
	if len(missing) > 0 {
		f.fault("node.admin", "%s can be reached from other machines, and there is no %s; set what is missing, or listen on 127.0.0.1:9090",
			at, strings.Join(missing, " and no "))
	}
}

// isSample reports whether a secret is what docs/anteroom.yaml has in its place.
func isSample(s Secret) bool { return strings.HasPrefix(s.Reveal(), "make-one-with-") }

// together notes the files that are missing where some of a set are given.
func (f *File) together(key string, files map[string]Path) {
	var missing []string
	for name, file := range files {
		if file == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 || len(missing) == len(files) {
		return
	}
	slices.Sort(missing)
	f.fault(key, "%s missing; give all of its files, or none", strings.Join(missing, " and "))
}

// checkPeers refuses a cluster in which anybody could say that they are a node.
// Without a key a node is a cluster of one: it opens no port for others.
func (f *File) checkPeers() {
	s, n := f.Config.Security, f.Config.Node
	if s.hasGossipKey() || f.blamed("security.gossip_key") || f.blamed("security.gossip_key_file") {
		return
	}
	const remedy = "make a key with: " + MakeGossipKey + ", and give it to all nodes as security.gossip_key_file"
	switch {
	case len(n.Join) > 0 && !f.blamed("node.join"):
		f.fault("node.join", "nodes know each other by a key, and there is none; %s", remedy)
	case n.Expect > 1:
		f.fault("node.expect", "%d nodes know each other by a key, and there is none; %s", n.Expect, remedy)
	case s.TLS.Peer != MutualTLS{}:
		f.fault("security.tls.peer", "certificates do not guard gossip, and there is no key for it; %s", remedy)
	default:
		for _, port := range []struct{ key, addr string }{{"node.peer", n.Peer}, {"node.gossip", n.Gossip}} {
			if f.given(port.key) {
				f.warn(port.key, "%s is not opened: without security.gossip_key_file this node is a cluster of one; leave it out, or %s", port.addr, remedy)
			}
		}
	}
}

func (f *File) checkPrefix() {
	if p := f.Config.Prefix; !matches(`^(/[A-Za-z0-9._~-]+)+$`, p) || strings.Contains(p+"/", "/../") || strings.Contains(p+"/", "/./") {
		f.fault("prefix", "%q is no path for our own pages; give one such as /_anteroom, without a / at its end", p)
	}
}

func (f *File) checkProxies() {
	for i, text := range f.Config.TrustedProxies {
		key := "trusted_proxies" + index(i)
		p, err := parsePrefix(text)
		switch {
		case err != nil:
			f.fault(key, "%q is no address; give one such as 10.0.0.5, or a range such as 10.0.0.0/8", text)
		case p != p.Masked():
			f.fault(key, "%s has bits beyond its length; write %s, or %s for that address alone", text, p.Masked(), p.Addr())
		case p.Bits() == 0:
			f.warn(key, "%s is everyone: any visitor can then claim any address; list your proxies only", text)
		}
	}
	at, err := netip.ParseAddrPort(f.Config.Node.Gateway)
	if a := at.Addr(); err == nil && (a.IsLoopback() || a.IsPrivate()) && len(f.Config.TrustedProxies) == 0 {
		f.warn("trusted_proxies", "empty, and node.gateway is %s, which visitors reach by a proxy if they come from elsewhere: to this node they are then all one address, "+
			"for which no bound per address holds; list the proxy", f.Config.Node.Gateway)
	}
}

func (f *File) checkAdminHosts() {
	for i, host := range f.Config.AdminHosts {
		if !validHost(host) || isWildcard(host) {
			f.fault("admin_hosts"+index(i), "%q is no name; give one by which the admin port is called, such as node-1.internal, without scheme and port", host)
		}
	}
}

// parsePrefix takes a range or a single address.
func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}
