package rpc

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/anteroom/anteroom/internal/tokens"
)

// Bounds of calls under way, so that neither a program that runs wild nor a
// stolen token keeps the others out: together they are more than one may have.
const (
	callsAll     = 10_000
	callsToken   = 5_000 // of one token
	callsAddress = 2_500 // of one IPv4 address or IPv6 /64 that is not this machine's
	comeAgain    = time.Second
)

// Guard stands before the programs' server. Where tokens are configured every
// call needs one that may do that; where none are, only this machine may call.
//
// Who has no token, or one without the right, is refused when the header of the
// call is there: nothing more of it is read. Whether the token names the room or
// queue shows in the request.
type Guard struct {
	tokens     *tokens.Set
	log        *slog.Logger
	operations map[string]operation
	refused    atomic.Uint64

	mu        sync.Mutex
	all       int
	byToken   map[*tokens.Token]int // of the set
	byAddress map[netip.Prefix]int  // no more than there are calls
}

// NewGuard returns a guard that takes those tokens.
func NewGuard(t *tokens.Set, log *slog.Logger) *Guard {
	return &Guard{tokens: t, log: log, operations: operations(), byToken: make(map[*tokens.Token]int), byAddress: make(map[netip.Prefix]int)}
}

// Options makes a server ask the guard.
func (g *Guard) Options() []grpc.ServerOption {
	if g.tokens.Empty() {
		return []grpc.ServerOption{grpc.InTapHandle(onThisMachine)}
	}
	return []grpc.ServerOption{
		grpc.InTapHandle(g.enter),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, q any, i *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			if err := g.allows(ctx, i.FullMethod, q); err != nil {
				return nil, err
			}
			return h(ctx, q)
		}),
		grpc.ChainStreamInterceptor(func(v any, s grpc.ServerStream, i *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			return h(v, &guarded{ServerStream: s, guard: g, method: i.FullMethod})
		}),
	}
}

// onThisMachine refuses who calls from elsewhere where nobody could show a token.
// A configuration that lets it come to that has been refused before.
func onThisMachine(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if a, known := addressOf(ctx); known && !a.IsLoopback() {
		return nil, refusal(codes.Unauthenticated, "token_required", "this node has no security.tokens, so it answers programs on its own machine only")
	}
	return ctx, nil
}

// bearer is the key of a call's context under which its token is.
type bearer struct{}

// watch is the key of a call's context under which the guard is that let it in.
type watch struct{}

// enter lets a call in by its header.
func (g *Guard) enter(ctx context.Context, info *tap.Info) (context.Context, error) {
	o, known := g.operations[info.FullMethodName]
	if o.open {
		return ctx, nil
	}
	values := info.Header.Get("authorization")
	secret, _ := tokens.Bearer(values)
	t := g.tokens.Find(secret)
	switch {
	case len(values) == 0:
		return nil, g.refuse(ctx, info.FullMethodName, nil, refusal(codes.Unauthenticated, "token_required",
			"this node wants a token: send one of its security.tokens as authorization: Bearer; anteroom keys token makes one"))
	case t == nil:
		return nil, g.refuse(ctx, info.FullMethodName, nil, refusal(codes.Unauthenticated, "token_invalid",
			"this token is none of the node's security.tokens; they are the same on all nodes, and take effect when a node starts"))
	case !known:
		return nil, refusal(codes.Unimplemented, "", "there is no such method here")
	case o.needs != 0 && !t.May.Any(o.needs):
		return nil, g.refuse(ctx, info.FullMethodName, t, mayNot(t, o))
	}
	leave, ok := g.admit(ctx, t)
	if !ok {
		return nil, tooMany()
	}
	ctx = context.WithValue(context.WithValue(ctx, bearer{}, t), watch{}, g)
	context.AfterFunc(ctx, leave) // a call's context ends with it, whatever ends it
	return ctx, nil
}

// admit counts a call until leave is called; false: there are too many.
func (g *Guard) admit(ctx context.Context, t *tokens.Token) (leave func(), ok bool) {
	from, counted := group(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all >= callsAll || g.byToken[t] >= callsToken || counted && g.byAddress[from] >= callsAddress {
		return nil, false
	}
	g.all++
	g.byToken[t]++
	if counted {
		g.byAddress[from]++
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all--
		g.byToken[t]--
		if !counted {
			return
		}
		g.byAddress[from]--
		if g.byAddress[from] <= 0 {
			delete(g.byAddress, from)
		}
	}, true
}

// group is whose calls count together; false: they are this machine's.
func group(ctx context.Context) (netip.Prefix, bool) {
	a, known := addressOf(ctx)
	if !known || a.IsLoopback() {
		return netip.Prefix{}, false
	}
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, err := a.Prefix(bits)
	return p, err == nil
}

// addressOf is where a call comes from; false: by no TCP, so from this machine.
func addressOf(ctx context.Context) (netip.Addr, bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return netip.Addr{}, false
	}
	tcp, ok := p.Addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	return tcp.AddrPort().Addr().Unmap().WithZone(""), true
}

// allows reports whether the token of a call names what the request is about.
func (g *Guard) allows(ctx context.Context, method string, q any) error {
	t, _ := ctx.Value(bearer{}).(*tokens.Token)
	o := g.operations[method]
	if o.open || o.about == ofNode || o.about == ofRoute {
		return nil
	}
	if t == nil { // enter lets no such call through
		return refusal(codes.Unauthenticated, "token_required", "this node wants a token")
	}
	what, name, may := "room", "", t.Rooms
	switch r := q.(type) {
	case interface{ GetRoom() string }:
		name = r.GetRoom()
	case interface{ GetQueue() string }:
		what, name, may = "queue", r.GetQueue(), t.Queues
	}
	if (o.about == ofQueue) != (what == "queue") || !may.Match(name) {
		return g.refuse(ctx, method, t, notNamed(t, what, name))
	}
	return nil
}

func notNamed(t *tokens.Token, what, name string) error {
	if name == "" {
		return refusal(codes.PermissionDenied, "not_allowed", "the token "+t.Name+" may not use all "+what+"s: name one")
	}
	return refusal(codes.PermissionDenied, "not_allowed", "the token "+t.Name+" may not use this "+what+": its "+what+"s in security.tokens do not name it")
}

// AllowsRoom reports whether the token of a call, if the server asks for any,
// names a room.
func AllowsRoom(ctx context.Context, room string) error {
	if t, ok := ctx.Value(bearer{}).(*tokens.Token); ok && !t.Rooms.Match(room) {
		return notNamed(t, "room", room)
	}
	return nil
}

// AllowsCall admits a call that is one of many on a stream, as if it had come by
// itself: by the rights of the stream's token, what it names, and how many calls are
// under way. It is one of those until leave is called.
func AllowsCall(ctx context.Context, method string, q any) (leave func(), err error) {
	g, ok := ctx.Value(watch{}).(*Guard)
	if !ok { // the server asks for no tokens
		return func() {}, nil
	}
	t, _ := ctx.Value(bearer{}).(*tokens.Token)
	o := g.operations[method]
	if o.needs != 0 && !t.May.Any(o.needs) {
		return nil, g.refuse(ctx, method, t, mayNot(t, o))
	}
	if err := g.allows(ctx, method, q); err != nil {
		return nil, err
	}
	if leave, ok = g.admit(ctx, t); !ok {
		return nil, tooMany()
	}
	return leave, nil
}

func mayNot(t *tokens.Token, o operation) error {
	return refusal(codes.PermissionDenied, "not_allowed", "the token "+t.Name+" may not do this: it takes "+o.needs.String()+" in its may")
}

func tooMany() error {
	return refusal(codes.ResourceExhausted, "too_many_requests", "too many calls of this token, or from this address, are under way")
}

// refuse tells the log, more and more seldom. A token itself never gets there.
func (g *Guard) refuse(ctx context.Context, method string, t *tokens.Token, err error) error {
	n := g.refused.Add(1)
	if n&(n-1) != 0 {
		return err
	}
	name := "none that is known"
	if t != nil {
		name = t.Name
	}
	a, _ := addressOf(ctx)
	g.log.Warn("a program was refused", slog.Uint64("so_far", n), slog.String("method", method), slog.String("token", name),
		slog.String("address", a.String()), slog.String("why", status.Convert(err).Message()))
	return err
}

// refusal is an error with a reason that programs can tell by.
func refusal(c codes.Code, reason, text string) error {
	s := status.New(c, text)
	if reason == "" {
		return s.Err()
	}
	with, err := s.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "anteroom"})
	if err == nil && c == codes.ResourceExhausted {
		with, err = with.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(comeAgain)})
	}
	if err != nil {
		panic("rpc: an error does not encode: " + err.Error()) // two strings and a number
	}
	return with.Err()
}

// guarded is a stream whose request is looked at when it is read.
type guarded struct {
	grpc.ServerStream
	guard  *Guard
	method string
}

func (s *guarded) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.guard.allows(s.Context(), s.method, m)
}
