package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/rpc"
	"github.com/anteroom/anteroom/proto/waitingroom"
)

// listenGRPC opens the port for programs; nil: there is none.
func (s *Server) listenGRPC(ctx context.Context) (net.Listener, error) {
	at := s.c.Node.GRPC
	if at == config.None {
		return nil, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	switch {
	case err == nil:
		return l, nil
	case s.o.DefaultGRPC && errors.Is(err, syscall.EADDRINUSE):
		s.log.Warn("node.grpc: the default port is taken, so programs cannot call this node; give it a port of its own, or none", "address", at)
		return nil, nil
	}
	return nil, fmt.Errorf("node.grpc: %w; is another node, or another program, on that port? Without a port for programs: none", err)
}

// programs is the server of the port for programs, and its health.
func (s *Server) programs(visitors http.Handler) (*grpc.Server, *health.Server, error) {
	o := append(s.limits.grpc.GRPC(), s.keyedCalls()...)
	if pair := s.c.Security.TLS.GRPC; pair.Cert != "" {
		c, err := auth.ServerTLS(string(pair.Cert), string(pair.Key))
		if err != nil {
			return nil, nil, err
		}
		o = append(o, grpc.Creds(c))
	}
	s.public = waitingroom.New(waitingroom.Config{Queue: s.queue(), Sealer: s.keys.ring, Addresses: s.addresses, Challenges: s.challenge, Logger: s.log})
	g, h := rpc.NewServer(rpc.Config{
		WaitingRoom: s.public, Authorization: s.envoys(visitors), PriorityQueue: s.queues.public, Options: o,
		Guard: rpc.NewGuard(s.c.Tokens(), s.log),
	})
	return g, h, nil
}

// register offers what the peers call beside the links.
func (s *Server) register(g grpc.ServiceRegistrar) {
	s.queues.register(g)
	s.notices.Register(g)
}

// peers is the server of the port for the other nodes.
func (s *Server) peers() *grpc.Server {
	return rpc.NewPeers(rpc.PeersConfig{Policy: s.auth, Links: s.links, Register: s.register, Options: s.limits.peer.GRPC()})
}

// serve serves a port until the server is stopped.
func serve(g *grpc.Server, l net.Listener, key string) error {
	if err := g.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}
