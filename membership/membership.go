package membership

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/anteroom/anteroom/eviction"
)

// ErrNameTaken is what Run returns when another process has this node's name and
// answers.
var ErrNameTaken = errors.New("the name is taken")

// Membership is one node's part in the gossip.
type Membership struct {
	c       Config
	roster  *roster
	meta    []byte
	told    *limiter // of lines about other processes of this node's name
	ready   chan struct{}
	started atomic.Bool
	last    View // what OnView got last; Run's own
}

// New returns a Membership that has not started yet. The error lists everything
// that is wrong with c.
func New(c Config) (*Membership, error) {
	c.setDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	self := saying{Peer: c.Self, addr: c.PeerAddr, version: c.Version}
	m := &Membership{c: c, roster: newRoster(self), told: newLimiter(30*time.Second, 2), ready: make(chan struct{})}
	if c.Alone {
		return m, nil
	}
	var err error
	if m.meta, err = encode(self); err != nil {
		return nil, err
	}
	return m, nil
}

// Ready is closed when gossip is up and the first view, of this node alone, has
// been handed out. It stays open if Run fails before that.
func (m *Membership) Ready() <-chan struct{} { return m.ready }

// Addr is the host:port at which others gossip with this node, to be listed in
// their Join. It is empty before Ready, and in a cluster of one.
func (m *Membership) Addr() string {
	m.roster.mu.Lock()
	defer m.roster.mu.Unlock()
	if !m.roster.at.IsValid() {
		return ""
	}
	return m.roster.at.String()
}

// Settled reports whether this process has its name to itself: it has been among
// the others, or has run for a while, and no rival was found that it gives way to.
// Of two processes of one name the settled one stays.
func (m *Membership) Settled() bool { return m.roster.settled(time.Now()) }

// Members returns who is alive now, by seniority, this node included. It may be
// ahead of the last view.
func (m *Membership) Members() []Member { return m.roster.members() }

// NumMembers is how many Members there are.
func (m *Membership) NumMembers() int { return len(m.roster.members()) }

// Run gossips until ctx is done, says goodbye and returns nil. Any other end is
// an error: the sockets could not be had, or ErrNameTaken. It can run once, and
// calls OnView on the goroutine that it was called on.
func (m *Membership) Run(ctx context.Context) error {
	if !m.started.CompareAndSwap(false, true) {
		return errors.New("gossip: Run was called twice")
	}
	if m.c.Alone {
		m.alone(ctx)
		return nil
	}
	list, err := m.start(ctx)
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	m.publish()
	close(m.ready)

	seeking, cancel := context.WithCancel(ctx)
	defer cancel()
	taken := make(chan error, 1)
	sought := make(chan struct{})
	go func() {
		defer close(sought)
		var both sync.WaitGroup
		both.Go(func() { m.seek(seeking, list) })
		if err := m.contend(seeking); err != nil {
			taken <- err
		}
		both.Wait()
	}()
	err = m.watch(ctx, taken)
	cancel()
	_, ours := m.roster.view() // false: the goodbye might be in another process's name
	m.stop(list, err == nil && ours, sought)
	return err
}

// alone hands out the one view that there is, until ctx is done.
func (m *Membership) alone(ctx context.Context) {
	m.roster.begin(netip.AddrPort{}, time.Now())
	m.publish()
	close(m.ready)
	<-ctx.Done()
}

// watch hands out views until ctx is done or the name turns out to be taken.
func (m *Membership) watch(ctx context.Context, taken <-chan error) error {
	var due <-chan time.Time // set from the first change until the view of it
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-taken:
			return err
		case <-m.roster.changed:
			if due == nil {
				due = time.After(m.c.Debounce)
			}
		case <-due:
			due = nil
			m.publish()
		}
	}
}

// publish hands out the view if it is another than before.
func (m *Membership) publish() {
	v, ok := m.roster.view()
	if !ok || slices.Equal(v.Members, m.last.Members) && maps.Equal(v.Addr, m.last.Addr) {
		return
	}
	came, went := changes(m.last.Members, v.Members)
	m.c.Logger.Info("view", "members", len(v.Members), "came", came, "went", went)
	m.last = v
	m.roster.meet(len(v.Members) > 1)
	m.c.OnView(v)
}

func changes(before, after eviction.View) (came, went []string) {
	for _, p := range after {
		if !slices.Contains(before, p) {
			came = append(came, p.String())
		}
	}
	for _, p := range before {
		if !slices.Contains(after, p) {
			went = append(went, p.String())
		}
	}
	return came, went
}

// start opens the sockets and begins to gossip.
func (m *Membership) start(ctx context.Context) (*memberlist.Memberlist, error) {
	out := log.New(newGossipLog(m.c.Logger), "", 0)
	d := &delegate{meta: m.meta, roster: m.roster, log: m.c.Logger, told: newLimiter(30*time.Second, 2), own: m.told}
	p := m.c.profile(d, out)
	inner := m.c.Transport
	if inner == nil {
		sockets, err := m.listen(ctx, p)
		if err != nil {
			return nil, err
		}
		inner = sockets
	}
	ip, port, err := inner.FinalAdvertiseAddr(p.AdvertiseAddr, p.AdvertisePort)
	addr, ok := netip.AddrFromSlice(ip)
	if err == nil && !ok {
		err = fmt.Errorf("%v is no address", ip)
	}
	if err != nil {
		_ = inner.Shutdown() // the other error says more
		return nil, err
	}
	m.roster.begin(netip.AddrPortFrom(addr.Unmap(), uint16(port)), time.Now())
	transport := limitStreams(inner)
	p.Transport = transport
	list, err := memberlist.Create(p)
	if err != nil {
		_ = transport.Shutdown() // as above
		return nil, err
	}
	transport.listen()
	m.c.Logger.Info("gossip is up", "address", m.Addr(), "encrypted", len(m.c.Keys) > 0)
	return list, nil
}

// listen opens the sockets that Bind asks for, and settles in p what to
// advertise.
func (m *Membership) listen(ctx context.Context, p *memberlist.Config) (*memberlist.NetTransport, error) {
	host, ports, _ := net.SplitHostPort(m.c.Bind) // checked by New
	port, _ := strconv.Atoi(ports)                // the same
	advertised, bound := netip.Addr{}, host       // "" is every address, IPv4 and IPv6
	if !isWildcard(host) {
		ip, err := lookupOne(ctx, host)
		if err != nil {
			return nil, fmt.Errorf("node.gossip %s: %w", m.c.Bind, err)
		}
		advertised, bound = ip, ip.String()
	}
	if m.c.Advertise != "" {
		host, port, _ := splitAdvertise(m.c.Advertise) // checked by New
		ip, err := lookupOne(ctx, host)
		if err != nil {
			return nil, fmt.Errorf("node.advertise %s: %w", m.c.Advertise, err)
		}
		advertised, p.AdvertisePort = ip, port
	} else {
		p.AdvertisePort = 0
	}
	if !advertised.IsValid() {
		advertised = outward(m.c.Join, host == "0.0.0.0")
	}
	p.AdvertiseAddr = advertised.String()

	sockets, err := openSockets(&memberlist.NetTransportConfig{BindAddrs: []string{bound}, BindPort: port, Logger: p.Logger})
	if err != nil {
		return nil, fmt.Errorf("node.gossip %s: %w", m.c.Bind, err)
	}
	if p.AdvertisePort == 0 {
		p.AdvertisePort = sockets.GetAutoBindPort()
	}
	return sockets, nil
}

// openSockets tries a few times if any port will do: one that is free for TCP
// may not be for UDP.
func openSockets(c *memberlist.NetTransportConfig) (*memberlist.NetTransport, error) {
	tries := 1
	if c.BindPort == 0 {
		tries = 10
	}
	for {
		sockets, err := memberlist.NewNetTransport(c)
		tries--
		if err == nil || tries == 0 {
			return sockets, err
		}
	}
}

const (
	leaveWithin = time.Second     // the goodbye takes a few gossip rounds of 50 ms
	stopWithin  = 4 * time.Second // all of it; streams under way have a timeout of 2 s
)

// stop says goodbye, if it is ours to say, closes the sockets, and waits for
// what is under way, all within a bound.
func (m *Membership) stop(list *memberlist.Memberlist, goodbye bool, sought <-chan struct{}) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if goodbye {
			if err := list.Leave(leaveWithin); err != nil {
				m.c.Logger.Warn("goodbye", "error", err)
			}
		}
		if err := list.Shutdown(); err != nil {
			m.c.Logger.Warn("gossip shutdown", "error", err)
		}
		<-sought
	}()
	select {
	case <-stopped:
	case <-time.After(stopWithin):
		m.c.Logger.Warn("gossip is slow to stop; not waiting for it", "after", stopWithin)
	}
}
