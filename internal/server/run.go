package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/anteroom/anteroom/gateway/admin"
)

// handOver is how long a node that leaves goes on answering at least: visits, places
// and free slots go to the others meanwhile. repeats is for how long it does after it
// has said goodbye: what was lost on the way is repeated then.
const handOver, repeats = 1500 * time.Millisecond, 500 * time.Millisecond

// listeners are a server's, all of them open or none; but gateway is nil Inside,
// peer where the node is a cluster of one, and grpc where it has no port for programs.
type listeners struct{ gateway, admin, peer, grpc net.Listener }

func (l *listeners) close() {
	for _, o := range []net.Listener{l.gateway, l.admin, l.peer, l.grpc} {
		if o != nil {
			_ = o.Close() // nothing was accepted yet, or its server has closed it
		}
	}
}

// Run runs the node until ctx ends or something that it cannot do without
// breaks. At its end it gives all that it has to the others and takes its leave.
func (s *Server) Run(ctx context.Context) error {
	var ls listeners
	defer ls.close()
	for _, l := range []struct {
		at  *net.Listener
		key string
		on  string
	}{
		{&ls.gateway, "node.gateway", s.c.Node.Gateway},
		{&ls.admin, "node.admin", s.c.Node.Admin},
		{&ls.peer, "node.peer", s.c.Node.Peer},
	} {
		var err error
		if l.at == &ls.peer && s.alone() {
			continue
		}
		if l.at == &ls.gateway && s.o.Inside {
			continue
		}
		if *l.at, err = (&net.ListenConfig{}).Listen(ctx, "tcp", l.on); err != nil {
			return fmt.Errorf("%s: %w; %s", l.key, err, advice(err))
		}
	}
	s.at = Addresses{Admin: ls.admin.Addr().String()}
	if ls.gateway != nil {
		s.at.Gateway = ls.gateway.Addr().String()
	}
	if ls.peer != nil {
		s.at.Peer = ls.peer.Addr().String()
	}
	var err error
	if ls.grpc, err = s.listenGRPC(ctx); err != nil {
		return err
	}
	if ls.grpc != nil {
		s.at.GRPC = ls.grpc.Addr().String()
	}
	if err := s.build(); err != nil {
		return err
	}
	return s.run(ctx, ls)
}

// advice says what to do about an address where this node may not listen.
func advice(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "ports below 1024 are not everybody's: give another one, or the right to it (setcap cap_net_bind_service=+ep on the program, AmbientCapabilities=CAP_NET_BIND_SERVICE in its unit)"
	}
	return "is another node, or another program, on that port?"
}

// run starts everything and stops it in order.
func (s *Server) run(ctx context.Context, ls listeners) error {
	port := admin.New(admin.Config{Source: source{s}, Operator: operator{s}, Historian: historian{s.past}, Hosts: s.c.AdminNames(), Profiles: s.o.Profiles, Token: s.c.Security.AdminToken.Reveal(), Bearer: s.bearers(), Metrics: s.metrics, Logger: s.log})
	front := s.front(s.gateway)
	public, private := s.httpServer(front), s.adminServer(port)
	private.RegisterOnShutdown(port.Close)
	operators := s.limits.admin.HTTP(private, ls.admin)
	peers := s.peers()
	programs, health, err := s.programs(front)
	if err != nil {
		return err
	}
	// What must outlive ctx, so that the node can hand over, runs in inner.
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	all, inner := errgroup.WithContext(inner)
	all.Go(func() error { return s.loop.Run(inner) })
	all.Go(func() error { return s.links.Run(inner) })
	s.queues.run(inner, all)
	all.Go(func() error { return s.notices.Run(inner) })
	all.Go(func() error { s.origins.run(inner); return nil })
	all.Go(func() error { s.outflow.run(inner); return nil })
	all.Go(func() error { s.sender.Run(inner); return nil })
	all.Go(func() error { s.told.run(inner); return nil })
	all.Go(func() error { return s.members.Run(inner) })
	all.Go(func() error { s.keys.keep(inner, s.loop); return nil })
	all.Go(func() error { s.watch(inner, health); return nil })
	s.past.run(inner, all)
	if ls.peer != nil {
		all.Go(func() error { return serve(peers, s.limits.peer.Listen(ls.peer), "node.peer") })
	}
	if ls.grpc != nil {
		all.Go(func() error { return serve(programs, s.limits.grpc.Listen(ls.grpc), "node.grpc") })
	}
	all.Go(func() error { return served(serveHTTP(private, operators, s.c.Security.TLS.Admin)) })
	if ls.gateway != nil {
		visitors := s.limits.gateway.HTTP(public, ls.gateway)
		all.Go(func() error { return served(serveHTTP(public, visitors, s.c.Security.TLS.Gateway)) })
	}
	all.Go(func() error {
		s.live(ctx, inner, public)
		stop()
		s.shutdown(public, private, peers, programs)
		return nil
	})
	if err := all.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// live says when the node is up, and returns when it is over: told to leave by
// ctx, or because something broke, which ends inner, perhaps before it was up.
func (s *Server) live(ctx, inner context.Context, public *http.Server) {
	select {
	case <-s.members.Ready():
		s.at.Gossip = s.members.Addr()
		s.log.Info("listening", openTo(s.c, s.at, s.o.Profiles)...)
		close(s.ready)
	case <-ctx.Done():
	case <-inner.Done():
	}
	select {
	case <-ctx.Done():
		s.leave(inner, public)
		s.past.leave(inner)
	case <-inner.Done():
	}
}

// leave tells the others, so that nobody waits for this node, and lets visitors
// go on for as long as it takes to give them and their slots away.
func (s *Server) leave(ctx context.Context, public *http.Server) {
	s.leaving.Store(true)
	s.log.Info("leaving: visits, places and slots go to the other nodes")
	public.SetKeepAlivesEnabled(false) // the next request of a visitor comes by a new connection, elsewhere
	if err := s.loop.Goodbye(); err != nil {
		return
	}
	look := time.NewTicker(repeats / 10)
	defer look.Stop()
	for stop := time.Now().Add(handOver); time.Now().Before(stop); {
		if !s.Snapshot().Status.Left { // it will be, after some seconds at the most
			stop = later(stop, time.Now().Add(repeats))
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// tracesWithin is how long a node that stops tries to send its last traces.
const tracesWithin = time.Second

// shutdown ends what still runs, within a bound.
func (s *Server) shutdown(public, private *http.Server, calls ...*grpc.Server) {
	s.gateway.Close()
	s.public.Close()
	s.queues.close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, h := range []*http.Server{public, private} {
		if h.Shutdown(ctx) != nil {
			_ = h.Close()
		}
	}
	s.gateway.Closed(ctx)
	for _, g := range calls {
		g.Stop()
	}
	s.past.close()
	last, cancel := context.WithTimeout(ctx, tracesWithin)
	defer cancel()
	s.traces.Close(last)
	s.log.Info("left")
}

// served drops the error that says that all is well.
func served(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
