package membership_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/membership"
	"github.com/anteroom/anteroom/qpid"
)

// Real sockets, on loopback. Views come over channels, so nothing sleeps.
func TestLive(t *testing.T) {
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("set ANTEROOM_E2E to run tests with real sockets")
	}
	key := []byte("0123456789abcdef0123456789abcdef")
	for _, host := range []string{"127.0.0.1", "::1", "localhost", ""} {
		t.Run("host "+host, func(t *testing.T) {
			if !canListen(host) {
				t.Skip("no such address here")
			}
			bind := net.JoinHostPort(host, "0")
			a := live(t, "a", bind, key)
			b := live(t, "b", bind, key, a.Addr())
			_, port, _ := net.SplitHostPort(a.Addr())
			c := live(t, "c", bind, key, net.JoinHostPort("localhost", port), a.Addr()) // a name, too
			for _, p := range []*running{a, b, c} {
				p.until(t, a, b, c)
			}
			addr, err := net.ResolveTCPAddr("tcp", b.last.Addr[b.self.Member])
			if err != nil || addr.IP.IsUnspecified() || addr.Port != 7001 {
				t.Errorf("b's peer service at %v, %v", addr, err)
			}

			b.stop(t)
			a.until(t, a, c)
			again := live(t, "b", b.Addr(), key, a.Addr()) // a new life at the old address
			for _, p := range []*running{a, c, again} {
				p.until(t, a, c, again)
			}
			c.stop(t)
			again.stop(t)
			a.until(t, a)
			a.stop(t)
		})
	}
}

// running is a node on real sockets.
type running struct {
	*membership.Membership
	self   eviction.Peer
	views  chan membership.View
	last   membership.View
	cancel context.CancelFunc
	done   chan error
}

func live(t *testing.T, name, bind string, key []byte, join ...string) *running {
	t.Helper()
	now := time.Now()
	r := &running{views: make(chan membership.View, 100), done: make(chan error, 1)}
	r.self = eviction.Peer{Member: eviction.Member{Name: qpid.NodeID(name), Boot: uint64(now.UnixNano())}, Start: now.UnixMicro()}
	m, err := membership.New(membership.Config{
		Self: r.self, Bind: bind, PeerAddr: "0.0.0.0:7001", Join: join, Ask: nobody, Keys: [][]byte{key},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		OnView: func(v membership.View) { r.views <- v },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Membership = m
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() { r.done <- m.Run(ctx) }()
	select {
	case <-m.Ready():
	case err := <-r.done:
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// until waits for the view of exactly these.
func (r *running) until(t *testing.T, nodes ...*running) {
	t.Helper()
	var want []eviction.Peer
	for _, p := range nodes {
		want = append(want, p.self)
	}
	deadline := time.After(20 * time.Second)
	for !slices.Equal(r.last.Members, eviction.NewView(want)) {
		select {
		case r.last = <-r.views:
		case <-deadline:
			t.Fatalf("%v sees %v, want %v", r.self, r.last.Members, want)
		}
	}
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		t.Errorf("%v: %v", r.self, err)
	}
}

func canListen(host string) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(0)))
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}
