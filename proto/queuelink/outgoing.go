package queuelink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/link"
	"github.com/anteroom/anteroom/proto/wire"
)

// outgoing is the link to one member.
type outgoing struct {
	links   *Links
	to      eviction.Member
	address string
	cancel  context.CancelFunc
	queued  chan struct{} // has a value when messages wait

	mu      sync.Mutex
	waiting []message
	bytes   int
	lost    bool // something was dropped since the last take
}

// message is one that waits, in its encoding.
type message struct {
	body []byte
	at   time.Time
}

func (o *outgoing) send(m broker.Message) {
	body := m.Encode()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(body) > messageMax || o.bytes+len(body) > o.links.c.BytesMax {
		o.lost = true
		o.links.dropped.Add(1)
	} else {
		o.waiting = append(o.waiting, message{body, time.Now()})
		o.bytes += len(body)
	}
	wake(o.queued)
}

// take returns what waits and is not too old, and whether anything was lost.
func (o *outgoing) take() (bodies [][]byte, lost bool) {
	o.mu.Lock()
	waiting := o.waiting
	lost, o.waiting, o.bytes, o.lost = o.lost, nil, 0, false
	o.mu.Unlock()
	oldest := time.Now().Add(-waitMax)
	for _, m := range waiting {
		if m.at.Before(oldest) {
			lost = true
			o.links.dropped.Add(1)
			continue
		}
		bodies = append(bodies, m.body)
	}
	return bodies, lost
}

// run keeps the link up until ctx is done.
func (o *outgoing) run(ctx context.Context) {
	delay, reported := retryMin, ""
	for {
		was, err := o.session(ctx)
		if ctx.Err() != nil {
			return
		}
		level := slog.LevelWarn
		if was {
			delay, reported = retryMin, ""
			o.links.c.Broke(o.to)
		}
		if err.Error() == reported {
			level = slog.LevelDebug // it is still the same story
		}
		reported = err.Error()
		o.links.log.LogAttrs(ctx, level, "no link for the queues", attr(o.to), slog.String("address", o.address), slog.Bool("was_up", was), slog.Any("err", err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay/2 + rand.N(delay/2)):
		}
		delay = min(2*delay, retryMax)
	}
}

// attr names a member in a log line.
func attr(m eviction.Member) slog.Attr {
	return slog.Group("peer", slog.String("name", string(m.Name)), slog.Uint64("boot", m.Boot))
}

func (o *outgoing) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+o.address,
		grpc.WithTransportCredentials(o.links.c.Policy.Client()),
		grpc.WithContextDialer(o.links.c.Dial),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 3 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(link.RequestMax)),
		grpc.WithDisableServiceConfig(), grpc.WithNoProxy(), grpc.WithIdleTimeout(0),
	)
}

// session is the life of one stream. It reports whether anything was sent.
func (o *outgoing) session(ctx context.Context) (was bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, err := o.dial()
	if err != nil {
		return false, err
	}
	defer conn.Close() //nolint:errcheck // only ever says that it is closed
	stream, err := peerv1.NewQueuesClient(conn).Carry(ctx)
	if err != nil {
		return false, plain(err)
	}
	hello := &peerv1.CarryHello{From: wire.FromMember(o.links.c.Self), To: wire.FromMember(o.to)}
	if err := stream.Send(&peerv1.CarryRequest{Kind: &peerv1.CarryRequest_Hello{Hello: hello}}); err != nil {
		return false, o.why(stream, err)
	}
	if _, err := stream.Header(); err != nil { // the receiver sends it when it has taken the stream
		return false, plain(err)
	}
	heard := make(chan error, 1)
	go func() {
		var end peerv1.CarryResponse
		err := stream.RecvMsg(&end)
		heard <- orElse(plain(err), io.EOF)
		cancel(err)
	}()
	err = o.write(ctx, stream)
	cancel(err)
	if ended := <-heard; errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		err = ended
	}
	return true, err
}

// orElse is err, or what stands for none.
func orElse(err, none error) error {
	if err == nil {
		return none
	}
	return err
}

// why is what the receiver said when it ended the stream.
func (o *outgoing) why(stream grpc.ClientStreamingClient[peerv1.CarryRequest, peerv1.CarryResponse], err error) error {
	if !errors.Is(err, io.EOF) {
		return plain(err)
	}
	_, err = stream.CloseAndRecv()
	return orElse(plain(err), io.EOF)
}

// plain is what a peer, or the way to it, said in err.
func plain(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return fmt.Errorf("%s (%v)", s.Message(), s.Code())
	}
	return err
}

// write sends what there is to send, until the stream ends.
func (o *outgoing) write(ctx context.Context, stream grpc.ClientStreamingClient[peerv1.CarryRequest, peerv1.CarryResponse]) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.queued:
		}
		bodies, lost := o.take()
		if lost {
			o.links.c.Broke(o.to)
		}
		for len(bodies) > 0 {
			n, size := 0, 0
			for n < len(bodies) && (n == 0 || size+len(bodies[n]) <= frameMax) {
				size += len(bodies[n])
				n++
			}
			frame := &peerv1.CarryFrame{Messages: bodies[:n]}
			if err := stream.Send(&peerv1.CarryRequest{Kind: &peerv1.CarryRequest_Frame{Frame: frame}}); err != nil {
				return err
			}
			bodies = bodies[n:]
		}
	}
}
