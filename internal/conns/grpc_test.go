package conns

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// count says how many connections there are, and how many made way so far.
func (l *Limiter) count() (open, evicted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all.conns), l.evicted[byPort]
}

// A gRPC port of two connections, one of which carries a call: newcomers take
// each other's place and never the caller's, and whoever says nothing is cut off
// by itself within seconds.
func TestCallsOverGRPCKeepTheirConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Name: "peer", Max: 2, Logger: slog.New(slog.DiscardHandler)})
		in := &site{in: make(chan net.Conn)}
		server := grpc.NewServer(l.GRPC()...)
		healthv1.RegisterHealthServer(server, health.NewServer())
		done := make(chan struct{})
		go func() { _ = server.Serve(l.Listen(in)); close(done) }()
		port := uint16(0)
		dial := func() net.Conn {
			ours, theirs := net.Pipe()
			port++
			in.in <- far{theirs, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("198.51.100.1"), port))}
			return ours
		}
		member, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return dial(), nil }))
		if err != nil {
			t.Fatal(err)
		}
		watch, err := healthv1.NewHealthClient(member).Watch(t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			stranger := dial()
			synctest.Wait()
			go func() {
				b := make([]byte, 1<<10)
				for {
					if _, err := stranger.Read(b); err != nil {
						return
					}
				}
			}()
		}
		if open, evicted := l.count(); open != 2 || evicted != 9 || port != 11 {
			t.Errorf("%d connections, %d evicted, of %d that came", open, evicted, port)
		}
		time.Sleep(handshakeWithin + time.Second)
		synctest.Wait()
		if open, _ := l.count(); open != 1 {
			t.Errorf("%d connections after silence for %v, want the caller's alone", open, handshakeWithin)
		}
		idle, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return dial(), nil }))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := healthv1.NewHealthClient(idle).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(idleMax + 10*time.Second)
		synctest.Wait()
		if open, _ := l.count(); open != 1 {
			t.Errorf("%d connections, one of them idle for more than %v", open, idleMax)
		}
		_, _ = idle.Close(), member.Close()
		server.Stop()
		<-done
		synctest.Wait()
		if open, _ := l.count(); open != 0 {
			t.Errorf("%d connections after the end", open)
		}
	})
}
