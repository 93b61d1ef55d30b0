package link

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/wire"
)

// Forward asks another node to carry out q, and returns what that answered. The
// errors are those of package ticket, or ctx's: ticket.ErrUnavailable when the
// node does not answer or is no longer who it was, ticket.ErrBusy when too many
// requests are under way to it. It may have carried out q even so.
func (l *Links) Forward(ctx context.Context, to eviction.Member, q ticket.Request) (ticket.Answer, error) {
	o := (*l.out.Load())[to]
	if o == nil {
		return ticket.Answer{}, fmt.Errorf("%w: %v is no member", ticket.ErrUnavailable, to)
	}
	conn := o.connection()
	if conn == nil {
		return ticket.Answer{}, fmt.Errorf("%w: no link to %v", ticket.ErrUnavailable, to)
	}
	defer o.forwards.Add(-1)
	if o.forwards.Add(1) > int64(l.c.ForwardsMax) {
		return ticket.Answer{}, ticket.ErrBusy
	}
	asked := ctx
	_, timed := ctx.Deadline()
	if !timed {
		var cancel context.CancelFunc
		asked, cancel = context.WithTimeout(ctx, answerWithin)
		defer cancel()
	}
	r, err := peerv1.NewPeerClient(conn).Forward(asked, &peerv1.ForwardRequest{To: wire.FromMember(to), Request: wire.FromRequest(q)})
	switch {
	case ctx.Err() != nil:
		return ticket.Answer{}, ctx.Err()
	case timed && status.Code(err) == codes.DeadlineExceeded:
		return ticket.Answer{}, context.DeadlineExceeded // the other node's clock was quicker to notice
	case err != nil:
		return ticket.Answer{}, fmt.Errorf("%w: %v: %w", ticket.ErrUnavailable, to, plain(err))
	}
	switch k := r.GetResult().(type) {
	case *peerv1.ForwardResponse_Refusal:
		return ticket.Answer{}, wire.ToError(k.Refusal)
	case *peerv1.ForwardResponse_Answer:
		a, err := wire.ToAnswer(k.Answer)
		if err != nil {
			return ticket.Answer{}, fmt.Errorf("%w: %v: %w", ticket.ErrUnavailable, to, err)
		}
		return a, nil
	default:
		return ticket.Answer{}, fmt.Errorf("%w: %v gave no answer", ticket.ErrUnavailable, to)
	}
}

// Forward carries out a request that another node was asked for.
func (s service) Forward(ctx context.Context, r *peerv1.ForwardRequest) (*peerv1.ForwardResponse, error) {
	l := s.links
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	if err := l.isSelf(r.GetTo()); err != nil {
		return nil, err
	}
	q, err := wire.ToRequest(r.GetRequest())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	do := l.c.Peer.Local
	if q.Relay != (eviction.Member{}) {
		do = l.c.Peer.Relay
	}
	a, err := do(ctx, q)
	switch {
	case err == nil:
		return &peerv1.ForwardResponse{Result: &peerv1.ForwardResponse_Answer{Answer: wire.FromAnswer(a)}}, nil
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	refusal := wire.FromError(err)
	if refusal == peerv1.Refusal_REFUSAL_UNSPECIFIED {
		l.log.Error("forwarded request", slog.String("op", q.Op.String()), slog.String("room", q.Room), slog.Any("err", err))
	}
	return &peerv1.ForwardResponse{Result: &peerv1.ForwardResponse_Refusal{Refusal: refusal}}, nil
}
