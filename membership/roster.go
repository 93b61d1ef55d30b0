package membership

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/anteroom/anteroom/eviction"
)

// View is what one node believes about who is alive. Once handed out it never
// changes; whoever gets it must not change it either.
type View struct {
	Members eviction.View              // by seniority, the node itself included
	Addr    map[eviction.Member]string // host:port of each one's peer service
}

// Member is a member for an operator to see.
type Member struct {
	eviction.Peer
	Gossip netip.AddrPort // where it gossips
	Addr   string         // host:port of its peer service
	// Version is that of its program; empty: it does not say.
	Version string
	Since   time.Time // when this node first saw this life of it
}

// roster is what gossip has reported: the mailbox between memberlist's
// delegates, which hold its locks and must not wait, and Run. It keeps the
// latest state and not the events, so it cannot fill up, however slow Run is.
type roster struct {
	self    saying
	changed chan struct{} // capacity 1: there is something to publish
	alarm   chan struct{} // capacity 1: there is a rival to be called

	mu    sync.Mutex
	at    netip.AddrPort    // where the node itself gossips; not valid before it does
	begun time.Time         // when it began to
	known map[string]*known // other names, at most namesMax
	moved time.Time         // when gossip last reported anything
	rival *rival            // another process under this node's name, the last one heard of
	free  bool              // a rival was called, and none answered that this one gives way to: the name is its own
	met   bool              // a view with others in it was handed out
}

// known is one name that gossip has reported.
type known struct {
	saying
	odd   error // not nil: what it says of itself cannot be read, it is no member
	at    netip.AddrPort
	lost  bool
	since time.Time // of this life, or of the loss
}

const (
	// lostFor is how long lost members are called. It is longer than memberlist
	// keeps them, so that namesMax bounds its list too.
	lostFor = time.Hour
	// lostSoon is how long a loss is recent, and the calls are frequent.
	lostSoon = deadFor
	// settleFor is how long news is fresh: longer than the cluster needs to
	// give up an old life and let its name move to another address.
	settleFor = 20 * time.Second
)

func newRoster(self saying) *roster {
	return &roster{
		self:    self,
		changed: make(chan struct{}, 1),
		alarm:   make(chan struct{}, 1),
		known:   make(map[string]*known),
	}
}

// wake fills a mailbox of one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // somebody is on the way already
	}
}

func (r *roster) begin(at netip.AddrPort, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.begun, r.moved = at, now, now
}

// admits says why memberlist must not take n in, or nil. A known name that
// starts to say odd things is let through: what it was is no longer true.
func (r *roster) admits(n *memberlist.Node, now time.Time) error {
	if !gossipAddr(n).IsValid() {
		return errors.New("no address")
	}
	if n.PMin > memberlist.ProtocolVersion2Compatible || n.PMax < memberlist.ProtocolVersion2Compatible || n.DMin > 0 {
		return errors.New("it gossips in another way: run the same release on all nodes")
	}
	_, err := decode(n.Name, n.Meta)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[n.Name] != nil || n.Name == string(r.self.Name) {
		return nil
	}
	if err != nil {
		return err
	}
	if !r.room(now) {
		return fmt.Errorf("there are %d names already; if these are not your nodes, change the cluster's key", namesMax)
	}
	return nil
}

// room forgets members lost long ago and reports whether one more name fits.
func (r *roster) room(now time.Time) bool {
	if len(r.known) < namesMax {
		return true
	}
	maps.DeleteFunc(r.known, func(_ string, k *known) bool { return k.lost && now.Sub(k.since) > deadFor+5*time.Minute })
	return len(r.known) < namesMax
}

// alive takes in that n has joined, or that it says something new of itself.
func (r *roster) alive(n *memberlist.Node, now time.Time) {
	if n.Name == string(r.self.Name) {
		return
	}
	said, err := decode(n.Name, n.Meta)
	r.mu.Lock()
	defer r.mu.Unlock()
	k := &known{saying: said, odd: err, at: gossipAddr(n), since: now}
	if old := r.known[n.Name]; old != nil && !old.lost && old.Peer == said.Peer {
		k.since = old.since
	}
	r.known[n.Name] = k
	r.moved = now
	wake(r.changed)
}

// gone takes in that n was given up, or has said goodbye.
func (r *roster) gone(n *memberlist.Node, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.known[n.Name]; k != nil && !k.lost {
		k.lost, k.since, r.moved = true, now, now
		wake(r.changed)
	}
}

// view returns the members as reported so far; false while it is not known
// whether this process has its name to itself.
func (r *roster) view() (View, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.doubtful() {
		return View{}, false
	}
	members := r.list()
	v := View{Members: make(eviction.View, len(members)), Addr: make(map[eviction.Member]string, len(members))}
	for i, m := range members {
		v.Members[i] = m.Peer
		v.Addr[m.Member] = m.Addr
	}
	return v, true
}

func (r *roster) members() []Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list()
}

// list returns who is alive, the node itself included, by seniority.
func (r *roster) list() []Member {
	all := []Member{{Peer: r.self.Peer, Gossip: r.at, Addr: r.self.dialAddr(r.at), Version: r.self.version, Since: r.begun}}
	for _, k := range r.known {
		if !k.lost && k.odd == nil {
			all = append(all, Member{Peer: k.Peer, Gossip: k.at, Addr: k.dialAddr(k.at), Version: k.version, Since: k.since})
		}
	}
	slices.SortFunc(all, func(a, b Member) int { return eviction.Seniority(a.Peer, b.Peer) })
	return all
}

// missing is who should be called so that the cluster comes together.
type missing struct {
	lost  []netip.AddrPort // where lost members were, and a rival is
	alive []netip.AddrPort // where members are; no need to call there
	soon  bool             // something is amiss: call again soon
	fresh bool             // so much is new that gossip may have missed someone
}

func (r *roster) missing(now time.Time) missing {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := missing{alive: []netip.AddrPort{r.at}, fresh: now.Sub(r.moved) < settleFor}
	m.soon = m.fresh
	if r.rival != nil && now.Sub(r.rival.heard) < settleFor {
		m.lost = append(m.lost, r.rival.at)
	}
	for name, k := range r.known {
		switch {
		case !k.lost:
			m.alive = append(m.alive, k.at)
		case now.Sub(k.since) > lostFor:
			delete(r.known, name)
		default:
			m.lost = append(m.lost, k.at)
			m.soon = m.soon || now.Sub(k.since) < lostSoon
		}
	}
	m.soon = m.soon || len(m.alive) == 1
	return m
}
