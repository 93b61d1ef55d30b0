package link

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/wire"
)

var (
	errStopping = status.Error(codes.Unavailable, "this node is stopping")
	errReplaced = status.Error(codes.Aborted, "a later stream of the same member has replaced this one")
	errRenewed  = status.Error(codes.Aborted, "the settings have changed; begin again")
	errQuiet    = status.Error(codes.DeadlineExceeded, "nothing came for too long")
)

// service is the peers' service, apart from Links so that its methods are not
// those of Links.
type service struct {
	peerv1.UnimplementedPeerServer
	links *Links
}

// incoming is a stream of another node's messages.
type incoming struct {
	links  *Links
	stream peerv1.Peer_LinkServer
	from   eviction.Member
	counts *counts
	quiet  *time.Timer
	next   uint64 // number of the message that is due
	parts  []byte // of it, as far as they have come

	once  sync.Once
	ended chan struct{}
	over  error         // why, once ended is closed
	done  chan struct{} // closed when nothing is delivered any more
	// earlier are streams of the same member that this one has replaced.
	earlier []*incoming
}

// earlierMax bounds the streams of one member that have been replaced and are
// not done: the node is stuck, or the member is out of its mind.
const earlierMax = 8

// Link receives the messages of one node until the stream ends.
func (s service) Link(stream peerv1.Peer_LinkServer) error {
	l := s.links
	if err := l.check(stream.Context()); err != nil {
		return err
	}
	in := &incoming{links: l, stream: stream, next: 1, ended: make(chan struct{}), done: make(chan struct{})}
	in.quiet = time.AfterFunc(abandonAfter, func() { in.end(errQuiet) })
	defer in.quiet.Stop()
	go func() { // it ends once this method has returned, at the latest
		defer close(in.done)
		in.end(in.receive())
		l.forget(in)
	}()
	<-in.ended
	return in.over
}

// end ends the stream; the first reason counts. A message that is just being
// delivered is the last.
func (in *incoming) end(why error) {
	in.once.Do(func() {
		in.over = why
		close(in.ended)
	})
}

// forget takes a stream that is done off the books.
func (l *Links) forget(in *incoming) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in.earlier = nil
	if l.in[in.from] != in {
		return
	}
	delete(l.in, in.from)
	if (*l.out.Load())[in.from] == nil {
		delete(l.counts, in.from)
	}
}

// seldom reports whether the n-th time is worth a line in the log: fewer and
// fewer are.
func seldom(n uint64) bool { return n&(n-1) == 0 }

// check refuses who is no peer.
func (l *Links) check(ctx context.Context) error {
	err := l.c.Policy.Check(ctx)
	if err == nil {
		return nil
	}
	if n := l.refused.Add(1); seldom(n) {
		l.log.Warn("refused", slog.Uint64("so_far", n), slog.Any("err", err))
	}
	return status.Error(codes.Unauthenticated, err.Error())
}

// receive takes in the stream. It returns why it has ended, never nil.
func (in *incoming) receive() error {
	if err := in.greet(); err != nil {
		return err
	}
	for {
		r, err := in.stream.Recv()
		if err != nil {
			return err
		}
		in.quiet.Reset(abandonAfter)
		switch k := r.GetKind().(type) {
		case *peerv1.LinkRequest_Frame:
			err = in.frame(k.Frame)
		case *peerv1.LinkRequest_Part:
			err = in.part(k.Part)
		case *peerv1.LinkRequest_Hints:
			in.hints(k.Hints)
		case *peerv1.LinkRequest_Ping:
			pong := &peerv1.Pong{Sent: k.Ping.GetSent(), Wall: in.links.c.Wall().UnixMicro()}
			err = in.stream.Send(&peerv1.LinkResponse{Kind: &peerv1.LinkResponse_Pong{Pong: pong}})
		case *peerv1.LinkRequest_Keys:
			merged := in.links.keys(in.from, k.Keys)
			err = in.stream.Send(&peerv1.LinkResponse{Kind: &peerv1.LinkResponse_Keys{Keys: merged}})
		default:
			err = status.Error(codes.Unimplemented, "this version does not know what the stream says")
		}
		if err != nil {
			return err
		}
	}
}

// greet learns whose stream it is and makes it the one of that member.
func (in *incoming) greet() error {
	r, err := in.stream.Recv()
	if err != nil {
		return err
	}
	hello, l := r.GetHello(), in.links
	from, err := wire.ToMember(hello.GetFrom())
	if err != nil || from == l.c.Self {
		return status.Error(codes.InvalidArgument, "the stream does not begin with whose it is")
	}
	if err := l.isSelf(hello.GetTo()); err != nil {
		return err
	}
	round, err := l.agree(from, hello.GetSettings())
	if err != nil {
		return err
	}
	earlier, err := l.admit(in, from, round)
	if err != nil {
		return err
	}
	for _, e := range earlier {
		e.end(errReplaced)
	}
	for _, e := range earlier {
		<-e.done
	}
	l.mu.Lock()
	in.earlier = nil
	l.mu.Unlock()
	if o := (*l.out.Load())[from]; o != nil {
		o.reachable()
	}
	welcome := l.keys(from, hello.GetKeys())
	return in.stream.Send(&peerv1.LinkResponse{Kind: &peerv1.LinkResponse_Welcome{Welcome: welcome}})
}

// isSelf refuses what is meant for another node, or another life of this one.
func (l *Links) isSelf(p *peerv1.Member) error {
	to, err := wire.ToMember(p)
	if err != nil || to != l.c.Self {
		return status.Errorf(codes.FailedPrecondition, "this is %v, not %v", l.c.Self, to)
	}
	return nil
}

// agree refuses a node with other settings. It returns in which round it was
// found to have the same: to compare them may be what changes ours.
func (l *Links) agree(from eviction.Member, settings []byte) (round uint64, err error) {
	for {
		round := l.rounds()
		if err := l.c.Peer.Agree(from, settings); err != nil {
			return 0, status.Error(codes.FailedPrecondition, err.Error())
		}
		if round == l.rounds() {
			return round, nil
		}
	}
}

func (l *Links) rounds() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.round
}

// admit makes in the stream of from. It returns those that must be done before
// anything of this one is delivered.
func (l *Links) admit(in *incoming, from eviction.Member, round uint64) (earlier []*incoming, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.in[from]
	switch {
	case l.stopped:
		return nil, errStopping
	case l.round != round:
		return nil, errRenewed
	case old == nil && len(l.in) >= l.c.StreamsMax:
		return nil, status.Errorf(codes.ResourceExhausted, "this node has %d incoming streams, the most it may have", len(l.in))
	case old != nil && len(old.earlier) >= earlierMax:
		return nil, status.Errorf(codes.ResourceExhausted, "%d earlier streams of %v have not ended yet", earlierMax, from)
	case old != nil:
		in.earlier = append(slices.Clone(old.earlier), old)
	}
	in.from, in.counts = from, l.count(from)
	l.in[from] = in
	return in.earlier, nil
}

// due reports whether n is the number of the message that is due.
func (in *incoming) due(n uint64) error {
	if n != in.next {
		return status.Errorf(codes.DataLoss, "message %d came where %d was due", n, in.next)
	}
	return nil
}

func (in *incoming) frame(f *peerv1.Frame) error {
	if err := in.due(f.GetSeq()); err != nil {
		return err
	}
	if len(in.parts) > 0 {
		return status.Error(codes.DataLoss, "a frame came where the rest of a message was due")
	}
	in.counts.receivedBytes.Add(uint64(proto.Size(f)))
	for _, p := range f.GetBodies() {
		body, err := wire.ToBody(p)
		if err := in.deliver(body, err); err != nil {
			return err
		}
	}
	return nil
}

func (in *incoming) part(p *peerv1.Part) error {
	if err := in.due(p.GetSeq()); err != nil {
		return err
	}
	if len(in.parts)+len(p.GetData()) > in.links.c.MessageMax {
		return status.Errorf(codes.ResourceExhausted, "a message of more than %d bytes", in.links.c.MessageMax)
	}
	in.parts = append(in.parts, p.GetData()...)
	if !p.GetLast() {
		return nil
	}
	in.counts.receivedBytes.Add(uint64(len(in.parts)))
	body, err := wire.Unmarshal(in.parts)
	in.parts = nil
	return in.deliver(body, err)
}

// hints hands over what has happened to tickets. One that makes no sense is left out.
func (in *incoming) hints(h *peerv1.Hints) {
	for _, p := range h.GetHints() {
		if room, id, err := wire.ToHint(p); err == nil {
			in.links.c.Peer.Hint(room, id)
		}
	}
}

// deliver hands a message over, unless it did not decode or the stream has
// ended. One that makes no sense is left out and does not end the stream: the
// others are as good as before.
func (in *incoming) deliver(body eviction.Body, malformed error) error {
	in.next++
	if malformed != nil {
		if n := in.counts.malformed.Add(1); seldom(n) {
			in.links.log.Warn("message left out", attr(in.from), slog.Uint64("so_far", n), slog.Any("err", malformed))
		}
		return nil
	}
	select {
	case <-in.ended:
		return in.over
	default:
	}
	in.counts.received.Add(1)
	in.links.c.Peer.Deliver(eviction.Message{From: in.from, To: in.links.c.Self, Body: body})
	return nil
}

var errKeys = errors.New("a key ring larger than this version takes")

// keys merges what from has offered into our own ring and returns that, nil if
// there is none.
func (l *Links) keys(from eviction.Member, offered *peerv1.Keys) *peerv1.Keys {
	ring := offered.GetRing()
	var ours []byte
	err := errKeys
	if len(ring) <= keysMax {
		ours, err = l.c.Peer.Keys(ring)
	}
	if err == nil && len(ours) > keysMax {
		ours, err = nil, errKeys
	}
	if err != nil {
		l.log.Warn("keys not exchanged", attr(from), slog.Any("err", err))
	}
	return &peerv1.Keys{Ring: ours}
}
