package conns

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
)

// How long a connection to a gRPC server may do nothing for us. Members and
// programs connect again, in a round trip or two, when they next have something
// to say; a connection with a call under way is not idle.
const (
	handshakeWithin = 5 * time.Second  // TLS and the preface of HTTP/2
	idleMax         = 30 * time.Second // no call under way
	pingAfter       = 30 * time.Second // of silence
	pingWithin      = 10 * time.Second // else the other side is gone
	pingsMin        = 5 * time.Second  // between a client's own, or it is cut off
)

// GRPC are the options of a server whose connections come by way of Listen.
func (l *Limiter) GRPC() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ConnectionTimeout(handshakeWithin),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsMin, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingWithin, MaxConnectionIdle: idleMax}),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			c := l.caller(ctx)
			c.asks(1)
			defer c.asks(-1)
			return h(ctx, q)
		}),
		grpc.ChainStreamInterceptor(func(v any, s grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			c := l.caller(s.Context())
			c.asks(1)
			defer c.asks(-1)
			return h(v, s)
		}),
	}
}

// caller is the connection of a call of which the request has come, nil if it is
// not known. It is found by the other side's address: what the credentials make
// of a connection knows it no more.
func (l *Limiter) caller(ctx context.Context) *Conn {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	at, ok := addrPort(p.Addr)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from[at]
}
