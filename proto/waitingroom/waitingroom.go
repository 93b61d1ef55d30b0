// Package waitingroom offers a queue to programs as the gRPC service
// anteroom.v1.WaitingRoom. It is to them what package gateway is to browsers:
// it opens and seals what visitors carry, and puts what the queue says into
// words. Nothing is decided here.
//
// What one address may have of a room is bounded as at the gateway, and counted
// with it. A caller may be a program that speaks for its visitors: one on this
// machine or in our own network is exempt, for others the room's bounds are
// raised. Requests under way and open streams are bounded for all together.
package waitingroom

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/anteroom/anteroom/internal/challenge"
	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/ticket"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/qpid"
)

// Queue is what visitors wait in.
type Queue interface {
	// Do carries out q here or at the node that must. Its errors are those of
	// package ticket, or the context's.
	Do(ctx context.Context, q ticket.Request) (ticket.Answer, error)
	// Room says how a room is doing. It is asked on every request.
	Room(name string) (RoomState, bool)
	// Called returns a channel that gets a value when something happens here to
	// a ticket, and a function that ends the watch. The channel is closed when so
	// many have begun to watch the ticket since that this one is too many.
	Called(room string, id qpid.ItemID) (<-chan struct{}, func())
	// Clock is the time that tickets and passes carry, in Unix microseconds.
	Clock() int64
}

// RoomState is how a room is doing, as of the last wave.
type RoomState = ticket.RoomState

// Sealer makes and opens what visitors carry. An error of opening means that
// the string is not one of ours, for that room.
type Sealer interface {
	Ticket(t ticket.Ticket) (string, error)
	OpenTicket(room, s string) (ticket.Ticket, error)
	Pass(p ticket.Pass) (string, error)
	OpenPass(room, s string) (ticket.Pass, error)
	JWT(p ticket.Pass, issuer string) (string, error)
}

// Config is what the service needs. The zero value of a number means its default.
type Config struct {
	Queue  Queue
	Sealer Sealer
	Issuer string       // iss of the passes for origins [anteroom]
	Logger *slog.Logger // nil: none
	Rand   io.Reader    // of ticket ids [crypto/rand]

	Addresses *peraddress.Table // bounds of what one address may have; nil: none

	Challenges *challenge.Table // what a join takes in some rooms; nil: nothing

	RequestsMax int           // under way at a time [4096]
	StreamsMax  int           // open at a time [10,000]
	Answer      time.Duration // a request to the queue takes no longer [5s]
}

// Server is the service.
type Server struct {
	anteroomv1.UnimplementedWaitingRoomServer
	c        Config
	log      *slog.Logger
	requests atomic.Int64
	streams  atomic.Int64
	closing  chan struct{}
	closed   atomic.Bool
}

// New returns the service. Register it with rpc.NewServer.
func New(c Config) *Server {
	c.Issuer = cmp.Or(c.Issuer, "anteroom")
	c.RequestsMax = cmp.Or(c.RequestsMax, 4096)
	c.StreamsMax = cmp.Or(c.StreamsMax, 10_000)
	c.Answer = cmp.Or(c.Answer, 5*time.Second)
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{c: c, log: c.Logger, closing: make(chan struct{})}
}

// Close ends all streams, which do not end by themselves. Call it before the
// server's GracefulStop.
func (s *Server) Close() {
	if s.closed.CompareAndSwap(false, true) {
		close(s.closing)
	}
}

// Join gets in line.
func (s *Server) Join(ctx context.Context, r *anteroomv1.JoinRequest) (*anteroomv1.JoinResponse, error) {
	q := ticket.Request{Op: ticket.Join, Room: r.GetRoom()}
	if _, err := io.ReadFull(s.c.Rand, q.ID[:]); err != nil {
		return nil, s.statusOf(err)
	}
	settle, err := s.c.Challenges.Spend(r.GetRoom(), tokenOf(ctx))
	if err != nil {
		return nil, s.statusOf(err)
	}
	p, err := s.place(ctx, q)
	settle(err)
	if err != nil {
		return nil, s.statusOf(err)
	}
	return &anteroomv1.JoinResponse{Place: p}, nil
}

// tokenOf is the challenge token that came along.
func tokenOf(ctx context.Context) string {
	if s := metadata.ValueFromIncomingContext(ctx, "anteroom-challenge"); len(s) == 1 {
		return s[0]
	}
	return ""
}

// CheckIn says where a ticket stands.
func (s *Server) CheckIn(ctx context.Context, r *anteroomv1.CheckInRequest) (*anteroomv1.CheckInResponse, error) {
	p, err := s.withTicket(ctx, ticket.CheckIn, r.GetRoom(), r.GetTicket())
	if err != nil {
		return nil, s.statusOf(err)
	}
	return &anteroomv1.CheckInResponse{Place: p}, nil
}

// Leave turns a called ticket into a pass.
func (s *Server) Leave(ctx context.Context, r *anteroomv1.LeaveRequest) (*anteroomv1.LeaveResponse, error) {
	p, err := s.withTicket(ctx, ticket.Leave, r.GetRoom(), r.GetTicket())
	if err == nil && p.GetState() == anteroomv1.State_STATE_CALLED {
		err = ticket.ErrUnavailable // no lease just now; the call stands
	}
	if err != nil {
		return nil, s.statusOf(err)
	}
	return &anteroomv1.LeaveResponse{Place: p}, nil
}

// Abandon gives the place up.
func (s *Server) Abandon(ctx context.Context, r *anteroomv1.AbandonRequest) (*anteroomv1.AbandonResponse, error) {
	t, err := s.openTicket(r.GetRoom(), r.GetTicket())
	if err == nil {
		_, err = s.do(ctx, ticket.Request{Op: ticket.Abandon, Room: r.GetRoom(), Ticket: t})
	}
	if err != nil && !errors.Is(err, ticket.ErrExpired) {
		return nil, s.statusOf(err)
	}
	return &anteroomv1.AbandonResponse{}, nil
}

// RefreshPass extends a pass.
func (s *Server) RefreshPass(ctx context.Context, r *anteroomv1.RefreshPassRequest) (*anteroomv1.RefreshPassResponse, error) {
	a, err := s.withPass(ctx, ticket.Refresh, r.GetRoom(), r.GetPass())
	if err != nil {
		return nil, s.statusOf(err)
	}
	pass, jwt, err := s.sealPass(a.Pass)
	if err != nil {
		return nil, s.statusOf(err)
	}
	return &anteroomv1.RefreshPassResponse{Pass: pass, PassJwt: jwt, PassExpiresAt: moment(a.Pass.Expires)}, nil
}

// EndSession gives the slot back.
func (s *Server) EndSession(ctx context.Context, r *anteroomv1.EndSessionRequest) (*anteroomv1.EndSessionResponse, error) {
	if _, err := s.withPass(ctx, ticket.End, r.GetRoom(), r.GetPass()); err != nil {
		return nil, s.statusOf(err)
	}
	return &anteroomv1.EndSessionResponse{}, nil
}

// withTicket has the queue do op with a sealed ticket.
func (s *Server) withTicket(ctx context.Context, op ticket.Op, room, sealed string) (*anteroomv1.Place, error) {
	t, err := s.openTicket(room, sealed)
	if err != nil {
		return nil, err
	}
	return s.place(ctx, ticket.Request{Op: op, Room: room, Ticket: t})
}

// place has the queue carry out q, and says where the visitor stands then.
func (s *Server) place(ctx context.Context, q ticket.Request) (*anteroomv1.Place, error) {
	a, err := s.do(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.placeOf(q.Room, a)
}

func (s *Server) openTicket(room, sealed string) (ticket.Ticket, error) {
	if _, ok := s.c.Queue.Room(room); !ok {
		return ticket.Ticket{}, ticket.ErrRoomUnknown
	}
	t, err := s.c.Sealer.OpenTicket(room, sealed)
	if err != nil {
		return ticket.Ticket{}, errTicketInvalid
	}
	return t, nil
}

// withPass has the queue do op with a sealed pass.
func (s *Server) withPass(ctx context.Context, op ticket.Op, room, sealed string) (ticket.Answer, error) {
	if _, ok := s.c.Queue.Room(room); !ok {
		return ticket.Answer{}, ticket.ErrRoomUnknown
	}
	p, err := s.c.Sealer.OpenPass(room, sealed)
	if err != nil {
		return ticket.Answer{}, errPassInvalid
	}
	return s.do(ctx, ticket.Request{Op: op, Room: room, Pass: p})
}

// do has the queue carry out q, within the bounds.
func (s *Server) do(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	defer s.requests.Add(-1)
	if s.requests.Add(1) > int64(s.c.RequestsMax) {
		return ticket.Answer{}, ticket.ErrBusy
	}
	asked, cancel := context.WithTimeout(ctx, s.c.Answer)
	defer cancel()
	by := peraddress.Visitor{}
	if is, ok := s.c.Queue.Room(q.Room); ok && q.Op < ticket.Refresh {
		by = peraddress.Visitor{Addr: addressOf(ctx), Room: &is}
	}
	a, err := s.c.Addresses.Do(asked, by, q, s.c.Queue.Do)
	if err != nil && asked.Err() != nil && ctx.Err() == nil {
		return a, ticket.ErrUnavailable
	}
	return a, err
}

// addressOf is where a call comes from: the program's own address. Whoever has
// one for many visitors runs it beside the node, or gives the room other bounds.
func addressOf(ctx context.Context) netip.Addr {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return netip.Addr{}
	}
	a, _ := netip.ParseAddrPort(p.Addr.String()) // one that is none is that of no network
	return a.Addr().Unmap()
}
