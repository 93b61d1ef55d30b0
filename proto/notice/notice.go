// Package notice carries what nodes have to tell each other beside the waves: what
// they think of an origin, what has happened, who has been notified.
//
// A notice has a key, and a later one of the same key takes its place: only the
// last waits for a member that cannot be reached. It is sent again until it has
// arrived; to one that comes later it is not sent. Whoever must not miss a notice
// says it again.
//
// Package auth says who is a peer; a caller's claims beyond that are believed.
package notice

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/link"
	"github.com/anteroom/anteroom/proto/wire"
)

// Config is what the links need to know.
type Config struct {
	Self   eviction.Member
	Policy auth.Policy
	Heard  func(from eviction.Member, n *peerv1.Notice)                // called from many goroutines at once
	Logger *slog.Logger                                                // nil: none
	Dial   func(ctx context.Context, address string) (net.Conn, error) // nil: TCP
}

const (
	waitingMax = 20_000              // notices that wait for one member; beyond, those of new keys are dropped
	batchMax   = link.RequestMax / 2 // bytes of the notices of one call, but for a single larger one
	callWithin = 3 * time.Second
	retryMin   = 50 * time.Millisecond
	retryMax   = time.Second
)

// Links are one node's ways to all others.
type Links struct {
	c       Config
	log     *slog.Logger
	changed chan struct{}
	dropped atomic.Uint64

	mu     sync.Mutex
	wanted map[eviction.Member]string // addresses
	out    map[eviction.Member]*outgoing
}

// New returns links to nobody. SetMembers names the others, Run connects them.
func New(c Config) *Links {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	return &Links{c: c, log: c.Logger, changed: make(chan struct{}, 1), out: map[eviction.Member]*outgoing{}}
}

// Register offers the service of the peers on s. It looks by itself at who calls it.
func (l *Links) Register(s grpc.ServiceRegistrar) { peerv1.RegisterNoticesServer(s, service{links: l}) }

// SetMembers says who there is, and at which address each can be reached. The
// node itself may be among them.
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

// Tell has n told to all other members, in the place of an earlier one of that key.
func (l *Links) Tell(key string, n *peerv1.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.out {
		if !o.put(key, n) {
			l.dropped.Add(1)
		}
	}
}

// Dropped returns how many notices found no place among those that wait.
func (l *Links) Dropped() uint64 { return l.dropped.Load() }

// Run keeps ways to the members open until ctx is done, and returns when all is
// over.
func (l *Links) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		l.connect(ctx, &running)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.changed:
		}
	}
}

// connect opens and closes ways so that they are those to the members.
func (l *Links) connect(ctx context.Context, running *sync.WaitGroup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := map[eviction.Member]*outgoing{}
	for m, address := range l.wanted {
		o := l.out[m]
		switch {
		case m == l.c.Self:
			continue
		case o == nil || o.address != address:
			var own context.Context
			o = &outgoing{links: l, to: m, address: address, queued: make(chan struct{}, 1), waiting: map[string]*peerv1.Notice{}}
			own, o.cancel = context.WithCancel(ctx)
			running.Go(func() { o.run(own) })
		}
		next[m] = o
	}
	for m, o := range l.out {
		if next[m] != o {
			o.cancel()
		}
	}
	l.out = next
}

// outgoing is the way to one member.
type outgoing struct {
	links   *Links
	to      eviction.Member
	address string
	cancel  context.CancelFunc
	queued  chan struct{} // has a value when notices wait

	mu      sync.Mutex
	waiting map[string]*peerv1.Notice
}

func (o *outgoing) put(key string, n *peerv1.Notice) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, there := o.waiting[key]; !there && len(o.waiting) >= waitingMax {
		return false
	}
	o.waiting[key] = n
	wake(o.queued)
	return true
}

// some returns a batch of what waits, which goes on waiting.
func (o *outgoing) some() map[string]*peerv1.Notice {
	o.mu.Lock()
	defer o.mu.Unlock()
	batch, size := map[string]*peerv1.Notice{}, 0
	for key, n := range o.waiting {
		size += proto.Size(n)
		if size > batchMax && len(batch) > 0 {
			break
		}
		batch[key] = n
	}
	return batch
}

// arrived forgets a batch, but for what a later notice has taken the place of.
func (o *outgoing) arrived(batch map[string]*peerv1.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, n := range batch {
		if o.waiting[key] == n {
			delete(o.waiting, key)
		}
	}
}

// run sends what there is to send until ctx is done.
func (o *outgoing) run(ctx context.Context) {
	conn, err := o.dial()
	if err != nil {
		o.links.log.Error("no way to tell a member anything", "peer", o.to.String(), "err", err)
		return
	}
	defer conn.Close() //nolint:errcheck // only ever says that it is closed
	client := peerv1.NewNoticesClient(conn)
	for delay := retryMin; ; {
		batch := o.some()
		if len(batch) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-o.queued:
			}
			continue
		}
		if err := o.call(ctx, client, batch); err == nil {
			o.arrived(batch)
			delay = retryMin
			continue
		} else if status.Code(err) == codes.InvalidArgument || status.Code(err) == codes.Unimplemented {
			o.arrived(batch) // and was not understood: it would not be again
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay/2 + rand.N(delay/2)):
		}
		delay = min(2*delay, retryMax)
	}
}

func (o *outgoing) dial() (*grpc.ClientConn, error) {
	again := backoff.Config{BaseDelay: retryMin, Multiplier: 2, Jitter: 0.2, MaxDelay: retryMax}
	return grpc.NewClient("passthrough:///"+o.address,
		grpc.WithTransportCredentials(o.links.c.Policy.Client()),
		grpc.WithContextDialer(o.links.c.Dial),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: callWithin}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(link.RequestMax)),
		grpc.WithDisableServiceConfig(), grpc.WithNoProxy(), grpc.WithIdleTimeout(0),
	)
}

func (o *outgoing) call(ctx context.Context, client peerv1.NoticesClient, batch map[string]*peerv1.Notice) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	q := &peerv1.TellRequest{From: wire.FromMember(o.links.c.Self), To: wire.FromMember(o.to)}
	for _, n := range batch {
		q.Notices = append(q.Notices, n)
	}
	_, err := client.Tell(ctx, q)
	return err
}

// service is the peers' service, apart from Links so that its methods are not
// those of Links.
type service struct {
	peerv1.UnimplementedNoticesServer
	links *Links
}

// Tell takes in what another node has to say.
func (s service) Tell(ctx context.Context, q *peerv1.TellRequest) (*peerv1.TellResponse, error) {
	l := s.links
	if err := l.c.Policy.Check(ctx); err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	from, err := wire.ToMember(q.GetFrom())
	if err != nil || from == l.c.Self {
		return nil, status.Error(codes.InvalidArgument, "the notices do not say whose they are")
	}
	if to, err := wire.ToMember(q.GetTo()); err != nil || to != l.c.Self {
		return nil, status.Errorf(codes.FailedPrecondition, "this is %v", l.c.Self)
	}
	for _, n := range q.GetNotices() {
		l.c.Heard(from, n)
	}
	return &peerv1.TellResponse{}, nil
}
