package queuelink

import (
	"log/slog"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/wire"
)

var (
	errStopping = status.Error(codes.Unavailable, "this node is stopping")
	errReplaced = status.Error(codes.Aborted, "a later stream of the same member has replaced this one")
)

// service is the peers' service, apart from Links so that its methods are not
// those of Links.
type service struct {
	peerv1.UnimplementedQueuesServer
	links *Links
}

// carrier is a stream of another node's messages.
type carrier = grpc.ClientStreamingServer[peerv1.CarryRequest, peerv1.CarryResponse]

// incoming is one of them that has said whose it is.
type incoming struct {
	from  eviction.Member
	once  sync.Once
	ended chan struct{}
	over  error         // why, once ended is closed
	done  chan struct{} // closed when nothing is delivered any more
}

// end ends the stream; the first reason counts.
func (in *incoming) end(why error) {
	in.once.Do(func() {
		in.over = why
		close(in.ended)
	})
}

// Carry receives the messages of one node until the stream ends.
func (s service) Carry(stream carrier) error {
	l := s.links
	if err := l.c.Policy.Check(stream.Context()); err != nil {
		l.refused.Add(1)
		return status.Error(codes.Unauthenticated, err.Error())
	}
	from, err := l.greet(stream)
	if err != nil {
		return err
	}
	in := &incoming{from: from, ended: make(chan struct{}), done: make(chan struct{})}
	if err := l.admit(in); err != nil {
		l.refused.Add(1)
		return err
	}
	go func() { // it ends once this method has returned, at the latest
		in.end(l.receive(in, stream))
		l.forget(in)
		close(in.done)
		l.c.Broke(from)
	}()
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		in.end(err)
	}
	<-in.ended
	return in.over
}

// greet learns whose stream it is.
func (l *Links) greet(stream carrier) (eviction.Member, error) {
	r, err := stream.Recv()
	if err != nil {
		return eviction.Member{}, err
	}
	from, err := wire.ToMember(r.GetHello().GetFrom())
	if err != nil || from == l.c.Self {
		return from, status.Error(codes.InvalidArgument, "the stream does not begin with whose it is")
	}
	if to, err := wire.ToMember(r.GetHello().GetTo()); err != nil || to != l.c.Self {
		return from, status.Errorf(codes.FailedPrecondition, "this is %v", l.c.Self)
	}
	return from, nil
}

// admit makes in the stream of its member, when the one before is done.
func (l *Links) admit(in *incoming) error {
	for {
		l.mu.Lock()
		earlier := l.in[in.from]
		if earlier == nil {
			defer l.mu.Unlock()
			if len(l.in) >= l.c.StreamsMax {
				return status.Error(codes.ResourceExhausted, "too many streams")
			}
			l.in[in.from] = in
			return nil
		}
		l.mu.Unlock()
		earlier.end(errReplaced)
		<-earlier.done
	}
}

func (l *Links) forget(in *incoming) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.in, in.from)
}

// receive takes in the stream. It returns why it has ended, never nil.
func (l *Links) receive(in *incoming, stream carrier) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		frame := r.GetFrame()
		if frame == nil {
			return status.Error(codes.Unimplemented, "this version does not know what the stream says")
		}
		messages := make([]broker.Message, 0, len(frame.GetMessages()))
		for _, body := range frame.GetMessages() {
			m, err := broker.Decode(body)
			if err != nil {
				l.log.Warn("malformed message for the queues", attr(in.from), slog.Any("err", err))
				return status.Error(codes.InvalidArgument, err.Error())
			}
			m.From, m.To = in.from, l.c.Self
			messages = append(messages, m)
		}
		select {
		case <-in.ended:
			return in.over
		default:
			l.c.Deliver(messages...)
		}
	}
}
