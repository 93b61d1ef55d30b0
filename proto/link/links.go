// Package link joins the nodes of a cluster: it carries their messages in
// streams, forwards visitors' requests to the node that must answer, and hands
// signing keys round.
//
// # Streams
//
// Between two nodes there is a gRPC stream in each direction. Who sends the
// messages opens it, keeps it open while the other is among the members, and
// opens it again after a break, waiting 50 ms at first and a second at most.
// Messages are numbered. All that wait are sent as one frame; one that is too
// large for a frame goes in parts.
//
// What Send takes is delivered at most once, and in order. It is dropped, and
// counted, while the stream is down or when too many wait; with a stream that
// breaks, all that waited for it is gone. Nothing is ever sent again: a late
// message is worth less than the next one. The receiver ends a stream whose
// numbers have a gap or a repetition, or whose Hello is not for this very life of
// this node. A later stream of a member replaces the earlier one.
//
// Hints go along with them, after all messages that wait: of tickets that are watched
// at the other node. They are dropped where those are, and have no numbers.
//
// Pings go along with the messages, once a second. Who hears nothing for some
// seconds takes the stream for dead, so a node that stopped without a word is
// noticed, and so is one that takes in nothing.
//
// # Trust
//
// Package auth says who is a peer. All of a caller's claims beyond that are
// believed: a node is as honest as its keys.
package link

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/qpid"
)

const (
	pingEvery    = time.Second
	silentAfter  = 3 * time.Second // no answer for this long: the sender gives the stream up
	abandonAfter = 5 * time.Second // nothing at all for this long: so does the receiver
	retryMin     = 50 * time.Millisecond
	retryMax     = time.Second
	answerWithin = 5 * time.Second // of a forwarded request without a deadline of its own

	frameMax = 64 << 10 // bytes of the messages in a frame
	keysMax  = 64 << 10 // bytes of a key ring

	hintsMax   = 1 << 16 // that wait for one member
	hintsAtMax = 400     // that go at once, before messages have their turn again
)

// RequestMax is how large a gRPC message to a node, or from one, can get.
const RequestMax = 256 << 10

// Peer is the node behind the links. Its methods are called from many
// goroutines at once.
type Peer interface {
	// Deliver takes a message in and does not block.
	Deliver(m eviction.Message)
	// Local carries out a request here and nowhere else.
	Local(ctx context.Context, q ticket.Request) (ticket.Answer, error)
	// Relay carries out a request for q.Relay, here or wherever that has to be.
	Relay(ctx context.Context, q ticket.Request) (ticket.Answer, error)
	// Hint takes in that something has happened to a ticket that is watched here. It
	// does not block.
	Hint(room string, id qpid.ItemID)
	// Keys merges another node's key ring into this one's, if one is offered,
	// and returns the result.
	Keys(offered []byte) (ours []byte, err error)
	// Settings returns what all nodes must agree on, as this one has it now.
	Settings() []byte
	// Agree compares another node's settings with this one's. The error says how
	// they differ, and goes to the other node. Settings that have changed take
	// force on the links with Renew.
	Agree(from eviction.Member, settings []byte) error
	// Identify reports which life of the node this is, and whether it has its name
	// to itself, to one who gossips at an address.
	Identify(from eviction.Peer, gossip string) (self eviction.Peer, settled bool)
}

// Config is what links need to know. The zero value of a number means its
// default.
type Config struct {
	Self   eviction.Member
	Peer   Peer
	Policy auth.Policy
	Logger *slog.Logger                                                // nil: none
	Dial   func(ctx context.Context, address string) (net.Conn, error) // nil: TCP
	Wall   func() time.Time                                            // this node's wall clock; nil: the machine's

	QueueMax    int // messages waiting for one member [4096]
	StreamsMax  int // streams from other nodes [1024]
	ForwardsMax int // requests under way to one member [4096]
	MessageMax  int // bytes of one message [16 MiB]
}

// Links are one node's links to all others.
type Links struct {
	c       Config
	log     *slog.Logger
	started time.Time // pings count from it
	changed chan struct{}
	refused atomic.Uint64 // callers who were no peers
	// out is replaced whenever members come or go, so that Send needs no lock.
	out atomic.Pointer[map[eviction.Member]*outgoing]

	mu      sync.Mutex
	round   uint64                     // raised by Renew: what was agreed on in an earlier one may not hold
	wanted  map[eviction.Member]string // addresses
	in      map[eviction.Member]*incoming
	counts  map[eviction.Member]*counts
	stopped bool
}

// New returns links to nobody. SetMembers names the others, Run connects them.
func New(c Config) *Links {
	c.QueueMax = cmp.Or(c.QueueMax, 4096)
	c.StreamsMax = cmp.Or(c.StreamsMax, 1024)
	c.ForwardsMax = cmp.Or(c.ForwardsMax, 4096)
	c.MessageMax = cmp.Or(c.MessageMax, 16<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	l := &Links{
		c: c, log: c.Logger, started: time.Now(), changed: make(chan struct{}, 1),
		in: map[eviction.Member]*incoming{}, counts: map[eviction.Member]*counts{},
	}
	l.out.Store(&map[eviction.Member]*outgoing{})
	return l
}

// Register offers the peers' service on s. The service looks by itself at who
// calls it.
func (l *Links) Register(s grpc.ServiceRegistrar) { peerv1.RegisterPeerServer(s, service{links: l}) }

// SetMembers says who there is, and at which address each can be reached. The
// node itself may be among them. Another address is another link.
func (l *Links) SetMembers(members map[eviction.Member]string) {
	l.mu.Lock()
	l.wanted = maps.Clone(members)
	l.mu.Unlock()
	wake(l.changed)
}

// wake puts a token into c, a channel for one, unless there is one already.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run keeps the links to the members, until ctx is done. Then it ends those of
// the others to this node too, and returns when all is over.
func (l *Links) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for ctx.Err() == nil {
		l.connect(ctx, &running)
		select {
		case <-ctx.Done():
		case <-l.changed:
		}
	}
	for _, o := range *l.out.Swap(&map[eviction.Member]*outgoing{}) {
		o.cancel()
	}
	l.mu.Lock()
	l.stopped = true
	for _, in := range l.in {
		in.end(errStopping)
	}
	l.mu.Unlock()
	running.Wait()
	return context.Cause(ctx)
}

// connect starts and ends links so that they are those to the members.
func (l *Links) connect(ctx context.Context, running *sync.WaitGroup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, now := *l.out.Load(), map[eviction.Member]*outgoing{}
	for m, address := range l.wanted {
		o := old[m]
		switch {
		case m == l.c.Self:
			continue
		case o == nil || o.address != address:
			var linked context.Context
			o = newOutgoing(l, m, address, l.count(m))
			linked, o.cancel = context.WithCancel(ctx)
			running.Go(func() { o.run(linked) })
		}
		now[m] = o
	}
	for m, o := range old {
		if now[m] != o {
			o.cancel()
		}
	}
	l.out.Store(&now)
	for m := range l.counts {
		if now[m] == nil && l.in[m] == nil {
			delete(l.counts, m)
		}
	}
}

// Send queues m for m.To and returns at once.
func (l *Links) Send(m eviction.Message) {
	if o := (*l.out.Load())[m.To]; o != nil && m.From == l.c.Self {
		o.send(m)
	}
}

// Hint tells another node that something has happened to a ticket that is watched
// there, and returns at once.
func (l *Links) Hint(to eviction.Member, room string, id qpid.ItemID) {
	if o := (*l.out.Load())[to]; o != nil {
		o.hint(hint{room, id})
	}
}

// OfferKeys sends this node's key ring to all others, after it has changed.
func (l *Links) OfferKeys() {
	for _, o := range *l.out.Load() {
		wake(o.offer)
	}
}

// Renew ends all streams, so that they begin again with a Hello of the settings
// of now.
func (l *Links) Renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.round++
	for _, in := range l.in {
		in.end(errRenewed)
	}
	for _, o := range *l.out.Load() {
		o.renew()
	}
}

// Traffic is how much went one way.
type Traffic struct{ Messages, Bytes uint64 }

// Stats are what one member and this node have to do with each other.
type Stats struct {
	Member    eviction.Member
	Address   string
	Up        bool // our messages go there
	Receiving bool // its messages come here
	Sent      Traffic
	Received  Traffic
	Queued    int    // messages that wait to be sent
	Dropped   uint64 // messages not sent: no link, too many waiting, too large
	Malformed uint64 // messages that came and made no sense
	Breaks    uint64 // of our link, and tries to connect that failed
	// RTT is the latest round trip, and Offset how far the other's wall clock is
	// ahead, give or take half of it; zero: not measured yet.
	RTT, Offset time.Duration
}

// counts live as long as the member, whatever happens to its streams.
type counts struct {
	sent, sentBytes, received, receivedBytes atomic.Uint64
	dropped, malformed, breaks               atomic.Uint64
	rtt, offset                              atomic.Int64
}

// count returns the counts of m. The caller holds l.mu.
func (l *Links) count(m eviction.Member) *counts {
	c := l.counts[m]
	if c == nil {
		c = &counts{}
		l.counts[m] = c
	}
	return c
}

// Stats returns those of all members and of all who send here, by name.
func (l *Links) Stats() []Stats {
	out := *l.out.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Stats, 0, len(l.counts))
	for m, c := range l.counts {
		s := Stats{
			Member: m, Receiving: l.in[m] != nil,
			Sent:     Traffic{c.sent.Load(), c.sentBytes.Load()},
			Received: Traffic{c.received.Load(), c.receivedBytes.Load()},
			Dropped:  c.dropped.Load(), Malformed: c.malformed.Load(), Breaks: c.breaks.Load(),
			RTT: time.Duration(c.rtt.Load()), Offset: time.Duration(c.offset.Load()),
		}
		if o := out[m]; o != nil {
			s.Address = o.address
			s.Queued, s.Up = o.waiting()
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Stats) int {
		return cmp.Or(cmp.Compare(a.Member.Name, b.Member.Name), cmp.Compare(a.Member.Boot, b.Member.Boot))
	})
	return all
}

// attr names a member in a log line.
func attr(m eviction.Member) slog.Attr {
	return slog.Group("peer", slog.String("name", string(m.Name)), slog.Uint64("boot", m.Boot))
}
