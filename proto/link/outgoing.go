package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/wire"
	"github.com/anteroom/anteroom/qpid"
)

var (
	errSilent  = errors.New("it does not answer")
	errWelcome = errors.New("it did not begin with a welcome")
	errChanged = errors.New("this node's settings have changed")
	errBack    = errors.New("it can be reached again")
)

// outgoing is the link to one member.
type outgoing struct {
	links   *Links
	to      eviction.Member
	address string
	counts  *counts
	cancel  context.CancelFunc
	offer   chan struct{} // a token: send our keys
	queued  chan struct{} // a token: there are messages or hints to be sent
	back    chan struct{} // a token: try again at once
	// forwards are the requests under way.
	forwards atomic.Int64

	mu    sync.Mutex
	conn  *grpc.ClientConn        // nil: the link is down
	end   context.CancelCauseFunc // of the session; nil: there is none
	dials bool                    // the session waits for a connection
	queue []eviction.Message
	hints []hint
}

// hint is a ticket to which something has happened.
type hint struct {
	room string
	id   qpid.ItemID
}

func newOutgoing(l *Links, to eviction.Member, address string, c *counts) *outgoing {
	return &outgoing{links: l, to: to, address: address, counts: c, offer: make(chan struct{}, 1), queued: make(chan struct{}, 1), back: make(chan struct{}, 1)}
}

// send queues m while the link is up and there is room.
func (o *outgoing) send(m eviction.Message) {
	o.mu.Lock()
	fits := o.conn != nil && len(o.queue) < o.links.c.QueueMax
	if fits {
		o.queue = append(o.queue, m)
	}
	o.mu.Unlock()
	if !fits {
		o.counts.dropped.Add(1)
		return
	}
	wake(o.queued)
}

// hint is send for hints.
func (o *outgoing) hint(h hint) {
	o.mu.Lock()
	fits := o.conn != nil && len(o.hints) < hintsMax
	if fits {
		o.hints = append(o.hints, h)
	}
	o.mu.Unlock()
	if fits {
		wake(o.queued)
	}
}

// takeHints takes those that have waited longest, as many as may go at once. If there
// are more they have another turn.
func (o *outgoing) takeHints() []hint {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.hints
	if len(taken) <= hintsAtMax {
		o.hints = nil
		return taken
	}
	o.hints = taken[hintsAtMax:]
	wake(o.queued)
	return taken[:hintsAtMax]
}

// take empties the queue into the room that spare has.
func (o *outgoing) take(spare []eviction.Message) []eviction.Message {
	clear(spare)
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.queue
	o.queue = spare[:0]
	return taken
}

func (o *outgoing) waiting() (queued int, up bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue), o.conn != nil
}

// connection returns nil while the link is down.
func (o *outgoing) connection() *grpc.ClientConn {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.conn
}

// set says whether the link is up. What waited for one that broke is dropped.
func (o *outgoing) set(conn *grpc.ClientConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conn = conn
	o.counts.dropped.Add(uint64(len(o.queue)))
	o.queue, o.hints = nil, nil
}

// begin notes how to end the session that begins; nil: it is over.
func (o *outgoing) begin(end context.CancelCauseFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end, o.dials = end, end != nil
}

// renew ends the session, whose Hello says what no longer holds.
func (o *outgoing) renew() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != nil {
		o.end(errChanged)
	}
}

// reachable tries again at once: the member has just opened its link to this node.
// A try from when it could not be reached may hang until it is given up, and as long
// as one direction is missing this node would leave the member out of its waves.
func (o *outgoing) reachable() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn != nil {
		return
	}
	if o.dials {
		o.end(errBack)
	}
	wake(o.back)
}

// connected is the end of dialling.
func (o *outgoing) connected() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dials = false
}

// run keeps the link up until ctx is done.
func (o *outgoing) run(ctx context.Context) {
	delay, reported := retryMin, ""
	for {
		was, err := o.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errBack) {
			delay = retryMin
			continue
		}
		o.counts.breaks.Add(1)
		if was {
			delay, reported = retryMin, ""
		}
		level := slog.LevelWarn
		switch {
		case err.Error() == reported:
			level = slog.LevelDebug // it is still the same story
		case errors.Is(err, errChanged):
			level = slog.LevelInfo
		}
		reported = err.Error()
		o.links.log.LogAttrs(ctx, level, "no link", attr(o.to), slog.String("address", o.address), slog.Bool("was_up", was), slog.Any("err", err))
		select {
		case <-ctx.Done():
			return
		case <-o.back:
		case <-time.After(delay/2 + rand.N(delay/2)):
		}
		delay = min(2*delay, retryMax)
	}
}

// dial makes a connection object for one session. It connects when first used, and
// calls connected then.
func (l *Links) dial(address string, connected func()) (*grpc.ClientConn, error) {
	dialer := func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := l.c.Dial(ctx, address)
		connected()
		return conn, err
	}
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(l.c.Policy.Client()),
		grpc.WithContextDialer(dialer),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: silentAfter}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(RequestMax)),
		grpc.WithDisableServiceConfig(), grpc.WithNoProxy(), grpc.WithIdleTimeout(0),
	)
}

// session is the life of one stream. It reports whether the link was up.
func (o *outgoing) session(ctx context.Context) (was bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.begin(cancel)
	defer o.begin(nil)
	defer func() {
		if cause := context.Cause(ctx); cause != nil && err != nil {
			err = cause
		}
	}()
	conn, err := o.links.dial(o.address, o.connected)
	if err != nil {
		return false, err
	}
	defer conn.Close() //nolint:errcheck // only ever says that it is closed
	silence := time.AfterFunc(silentAfter, func() { cancel(errSilent) })
	defer silence.Stop()
	stream, err := peerv1.NewPeerClient(conn).Link(ctx)
	if err != nil {
		return false, plain(err)
	}
	if err := o.greet(stream); err != nil {
		return false, plain(err)
	}
	silence.Reset(silentAfter)
	o.set(conn)
	defer o.set(nil)
	o.links.log.LogAttrs(ctx, slog.LevelInfo, "link", attr(o.to), slog.String("address", o.address), slog.Any("by", o.links.c.Policy))

	heard := make(chan struct{})
	go func() {
		defer close(heard)
		cancel(o.hear(stream, silence))
	}()
	if err = o.write(ctx, stream); !errors.Is(err, io.EOF) {
		cancel(err)
	} // else the stream has ended, and hear gets to know why
	<-heard
	return true, err
}

// plain is what a peer, or the way to it, said in err.
func plain(err error) error {
	if s, ok := status.FromError(err); ok {
		return fmt.Errorf("%s (%v)", s.Message(), s.Code())
	}
	return err
}

// greet says whose stream this is, and trades keys.
func (o *outgoing) greet(stream peerv1.Peer_LinkClient) error {
	hello := &peerv1.Hello{
		From: wire.FromMember(o.links.c.Self), To: wire.FromMember(o.to), Keys: o.links.keys(o.to, nil), Settings: o.links.c.Peer.Settings(),
	}
	if err := stream.Send(&peerv1.LinkRequest{Kind: &peerv1.LinkRequest_Hello{Hello: hello}}); err != nil {
		_, err = stream.Recv() // which knows why
		return err
	}
	r, err := stream.Recv()
	if err != nil {
		return err
	}
	if r.GetWelcome() == nil {
		return errWelcome
	}
	o.links.keys(o.to, r.GetWelcome())
	return nil
}

// hear takes in what the receiver says, until the stream ends.
func (o *outgoing) hear(stream peerv1.Peer_LinkClient, silence *time.Timer) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return plain(err)
		}
		silence.Reset(silentAfter)
		switch k := r.GetKind().(type) {
		case *peerv1.LinkResponse_Pong:
			rtt := time.Since(o.links.started) - time.Duration(k.Pong.GetSent())
			here := o.links.c.Wall().Add(-rtt / 2)
			o.counts.rtt.Store(int64(rtt))
			o.counts.offset.Store(int64(time.UnixMicro(k.Pong.GetWall()).Sub(here.Round(0))))
		case *peerv1.LinkResponse_Keys:
			o.links.keys(o.to, k.Keys)
		default: // of a newer version
		}
	}
}

// write sends what there is to send, until the stream ends.
func (o *outgoing) write(ctx context.Context, stream peerv1.Peer_LinkClient) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	w := writer{o: o, stream: stream, next: 1}
	if err := w.ping(); err != nil {
		return err
	}
	var taken []eviction.Message
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ping.C:
			err = w.ping()
		case <-o.offer:
			err = w.send(&peerv1.LinkRequest{Kind: &peerv1.LinkRequest_Keys{Keys: o.links.keys(o.to, nil)}})
		case <-o.queued:
			taken = o.take(taken)
			if err = w.messages(taken); err == nil {
				err = w.hints(o.takeHints())
			}
		}
		if err != nil {
			return err
		}
	}
}
