package notice_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/anteroom/anteroom/eviction"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/notice"
	"github.com/anteroom/anteroom/proto/rpc"
	"github.com/anteroom/anteroom/proto/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var alice, bob = eviction.Member{Name: "alice", Boot: 1}, eviction.Member{Name: "bob", Boot: 1}

// end is a node's links, in memory.
type end struct {
	*notice.Links
	at *bufconn.Listener

	mu     sync.Mutex
	heard  []string // of alice
	broken bool     // nobody reaches it
}

func (e *end) words() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.heard...)
}

func (e *end) cut(broken bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.broken = broken
}

func start(t *testing.T, self eviction.Member, to func() *end) *end {
	t.Helper()
	policy, err := auth.GossipKey(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	e := &end{at: bufconn.Listen(1 << 16)}
	e.Links = notice.New(notice.Config{
		Self: self, Policy: policy,
		Heard: func(from eviction.Member, n *peerv1.Notice) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.heard = append(e.heard, string(from.Name)+": "+n.GetHealth().GetReason())
		},
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			o := to()
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.broken {
				return nil, fmt.Errorf("nobody there")
			}
			return o.at.DialContext(ctx)
		},
	})
	server := rpc.NewPeers(rpc.PeersConfig{Policy: policy, Register: func(g grpc.ServiceRegistrar) { e.Register(g) }})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(e.at) })
	running.Go(func() { _ = e.Run(ctx) })
	t.Cleanup(func() { stop(); server.Stop(); running.Wait() })
	return e
}

func word(reason string) *peerv1.Notice {
	return &peerv1.Notice{Kind: &peerv1.Notice_Health{Health: &peerv1.HealthReport{Reason: reason}}}
}

// TestTheLastWordArrives: of what was said while nobody could hear it, the last of
// each key.
func TestTheLastWordArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b *end
		a = start(t, alice, func() *end { return b })
		b = start(t, bob, func() *end { return a })
		a.Tell("x", word("to nobody"))
		b.cut(true)
		a.SetMembers(map[eviction.Member]string{alice: "a", bob: "b"})
		time.Sleep(time.Second)
		for i := range 100 {
			a.Tell("x", word(fmt.Sprint("x ", i)))
		}
		time.Sleep(time.Minute)
		if got := b.words(); len(got) > 0 {
			t.Fatalf("heard %q", got)
		}
		b.cut(false)
		time.Sleep(5 * time.Second)
		if got := b.words(); len(got) != 1 || got[0] != "alice: x 99" {
			t.Errorf("heard %q, want the last word alone", got)
		}
		a.Tell("x", word("again"))
		a.Tell("y", word("also"))
		time.Sleep(time.Second)
		if got := b.words(); len(got) != 3 {
			t.Errorf("heard %q", got)
		}
	})
}

func TestAStrangerTellsNobodyAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *end
		a = start(t, alice, func() *end { return a })
		conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return a.at.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = peerv1.NewNoticesClient(conn).Tell(ctx, &peerv1.TellRequest{From: wire.FromMember(bob), To: wire.FromMember(alice), Notices: []*peerv1.Notice{word("lies")}})
		if status.Code(err) == codes.OK || len(a.words()) > 0 {
			t.Errorf("%v, heard %q", err, a.words())
		}
	})
}
