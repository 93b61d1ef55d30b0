package waitingroom

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/anteroom/anteroom/internal/ticket"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

const (
	askMin   = time.Second      // between two check-ins of a stream, unless there is news
	askAgain = 2 * time.Second  // after the queue had no answer; the place is kept
	repeat   = 30 * time.Second // a place is sent this often even so: its ticket must stay fresh
)

// Stream checks in and sends the place when it has changed, until the visitor
// is admitted, lost or gone, or two newer streams of the ticket are open.
func (s *Server) Stream(r *anteroomv1.StreamRequest, out grpc.ServerStreamingServer[anteroomv1.StreamResponse]) error {
	defer s.streams.Add(-1)
	if s.streams.Add(1) > int64(s.c.StreamsMax) {
		return s.statusOf(ticket.ErrBusy)
	}
	t, err := s.openTicket(r.GetRoom(), r.GetTicket())
	if err != nil {
		return s.statusOf(err)
	}
	closed, err := s.c.Addresses.Stream(r.GetRoom(), addressOf(out.Context()))
	if err != nil {
		return s.statusOf(err)
	}
	defer closed()
	f := follower{s: s, room: r.GetRoom(), ticket: t, out: out}
	f.news, f.done = s.c.Queue.Called(f.room, t.ID)
	defer func() { f.done() }()
	return s.statusOf(f.follow(out.Context()))
}

// follower keeps one stream.
type follower struct {
	s      *Server
	room   string
	ticket ticket.Ticket
	news   <-chan struct{} // of ticket
	done   func()
	out    grpc.ServerStreamingServer[anteroomv1.StreamResponse]
	last   *anteroomv1.Place
	sent   time.Time
}

func (f *follower) follow(ctx context.Context) error {
	ask := time.NewTimer(0)
	defer ask.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.s.closing:
			return ticket.ErrUnavailable // the caller comes back, to another node perhaps
		case _, open := <-f.news:
			if !open {
				return ticket.ErrSuperseded
			}
		case <-ask.C:
		}
		a, err := f.s.do(ctx, ticket.Request{Op: ticket.CheckIn, Room: f.room, Ticket: f.ticket})
		if f.last != nil && (errors.Is(err, ticket.ErrBusy) || errors.Is(err, ticket.ErrUnavailable)) {
			ask.Reset(askAgain)
			continue
		}
		if err != nil {
			return err
		}
		if err := f.tell(a); err != nil || a.State == ticket.Admitted {
			return err
		}
		if a.Ticket.ID != f.ticket.ID { // the one before stands for it
			f.done()
			f.news, f.done = f.s.c.Queue.Called(f.room, a.Ticket.ID)
		}
		f.ticket = a.Ticket
		ask.Reset(max(a.Refresh, askMin))
	}
}

// tell sends the place if it differs from the last one.
func (f *follower) tell(a ticket.Answer) error {
	p, err := f.s.placeOf(f.room, a)
	if err != nil {
		return err
	}
	if time.Since(f.sent) < repeat && same(p, f.last) {
		return nil
	}
	f.last, f.sent = p, time.Now()
	return f.out.Send(&anteroomv1.StreamResponse{Place: p})
}

// same reports whether a visitor would see no difference. Sealed strings are
// new each time.
func same(a, b *anteroomv1.Place) bool {
	if b == nil {
		return false
	}
	a, b = proto.CloneOf(a), proto.CloneOf(b)
	for _, p := range []*anteroomv1.Place{a, b} {
		p.LastUpdated, p.Ticket = nil, ""
	}
	return proto.Equal(a, b)
}
