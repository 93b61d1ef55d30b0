// Package queuelink carries the messages of package broker between nodes, in
// streams of their own: what is in the queues must not hold up the waves, which
// go by package link.
//
// Between two nodes there is a stream in each direction. Who sends the messages
// opens it, and opens it again after a break. What Send takes arrives at most
// once and in order; when some of it may have been lost, whoever runs the broker
// hears of it, at both ends. What waits to be sent is bounded, and so is for how
// long.
//
// Package auth says who is a peer; a caller's claims beyond that are believed.
package queuelink

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/link"
)

// Config is what links need to know. The zero value of a number means its
// default.
type Config struct {
	Self   eviction.Member
	Policy auth.Policy
	// Deliver takes messages in, and Broke hears with whom some may have been
	// lost. Both are called from many goroutines at once.
	Deliver func(messages ...broker.Message)
	Broke   func(m eviction.Member)
	Logger  *slog.Logger                                                // nil: none
	Dial    func(ctx context.Context, address string) (net.Conn, error) // nil: TCP

	BytesMax   int // waiting for one member [64 MiB]
	StreamsMax int // from other nodes [1024]
}

const (
	frameMax   = 64 << 10                // bytes of the messages in a frame, but for one that is larger
	messageMax = link.RequestMax - 4<<10 // bytes of one message
	waitMax    = 2 * time.Second         // nothing is sent that has waited for longer
	retryMin   = 50 * time.Millisecond
	retryMax   = time.Second
)

// Links are one node's links to all others.
type Links struct {
	c       Config
	log     *slog.Logger
	changed chan struct{}
	refused atomic.Uint64
	dropped atomic.Uint64
	// out is replaced whenever members come or go, so that Send needs no lock.
	out atomic.Pointer[map[eviction.Member]*outgoing]

	mu     sync.Mutex
	wanted map[eviction.Member]string // addresses
	in     map[eviction.Member]*incoming
}

// New returns links to nobody. SetMembers names the others, Run connects them.
func New(c Config) *Links {
	c.BytesMax = cmp.Or(c.BytesMax, 64<<20)
	c.StreamsMax = cmp.Or(c.StreamsMax, 1024)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	l := &Links{c: c, log: c.Logger, changed: make(chan struct{}, 1), in: map[eviction.Member]*incoming{}}
	l.out.Store(&map[eviction.Member]*outgoing{})
	return l
}

// Register offers the service of the peers on s. It looks by itself at who calls it.
func (l *Links) Register(s grpc.ServiceRegistrar) { peerv1.RegisterQueuesServer(s, service{links: l}) }

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

// Run keeps the links to the members until ctx is done, and returns when all is
// over.
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
			o = &outgoing{links: l, to: m, address: address, queued: make(chan struct{}, 1)}
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
}

// Send queues m for m.To and returns at once. To somebody who is not a member
// it is lost.
func (l *Links) Send(m broker.Message) {
	if o := (*l.out.Load())[m.To]; o != nil && m.From == l.c.Self {
		o.send(m)
	}
}

// Counts returns how many messages were dropped before they were sent, and how
// many streams were refused.
func (l *Links) Counts() (dropped, refused uint64) { return l.dropped.Load(), l.refused.Load() }
