package queuelink_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/queuelink"
	"github.com/anteroom/anteroom/proto/rpc"
	"github.com/anteroom/anteroom/proto/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	alice = eviction.Member{Name: "alice", Boot: 1}
	bob   = eviction.Member{Name: "bob", Boot: 1}
)

// end is a node's links, in memory.
type end struct {
	*queuelink.Links
	at       *bufconn.Listener
	messages chan broker.Message
	broke    chan eviction.Member

	mu    sync.Mutex
	conns []net.Conn // that it has opened
}

// policy is that of all nodes: a key.
var policy = func() auth.Policy {
	p, err := auth.GossipKey(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	return p
}()

func start(t *testing.T, self eviction.Member, to func() *end, change func(*queuelink.Config)) *end {
	t.Helper()
	e := &end{at: bufconn.Listen(1 << 16), messages: make(chan broker.Message, 10_000), broke: make(chan eviction.Member, 100)}
	c := queuelink.Config{
		Self: self, Policy: policy,
		Deliver: func(all ...broker.Message) {
			for _, m := range all {
				e.messages <- m
			}
		},
		Broke: func(m eviction.Member) { e.broke <- m },
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := to().at.DialContext(ctx)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.conns = append(e.conns, conn)
			return conn, err
		},
	}
	if change != nil {
		change(&c)
	}
	e.Links = queuelink.New(c)
	server := rpc.NewPeers(rpc.PeersConfig{Policy: policy, Register: e.Register})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(e.at) })
	running.Go(func() { _ = e.Run(ctx) })
	t.Cleanup(func() { stop(); server.Stop(); running.Wait() })
	return e
}

// pair links alice to bob. Time is virtual in all that calls it: what has waited for
// too long is lost, and a busy machine must not make anything wait.
func pair(t *testing.T, change func(*queuelink.Config)) (a, b *end) {
	t.Helper()
	a = start(t, alice, func() *end { return b }, change)
	b = start(t, bob, func() *end { return a }, nil)
	a.SetMembers(map[eviction.Member]string{alice: "a", bob: "b"})
	for len(b.messages) == 0 { // to somebody who is no member yet all is lost
		a.Send(request(0, 0))
		time.Sleep(time.Millisecond)
	}
	return a, b
}

func request(seq uint64, payload int) broker.Message {
	return broker.Message{
		From: alice, To: bob, Kind: broker.MsgRequest, Seq: seq,
		Command: pqueue.Command{Op: pqueue.OpInsert, Queue: "q", ID: "x", Payload: make([]byte, payload)},
	}
}

func wantNext(t *testing.T, e *end, seq uint64) {
	t.Helper()
	select {
	case m := <-e.messages:
		if m.Seq == 0 { // one of those that found out whether the link is up
			wantNext(t, e, seq)
			return
		}
		if m.Seq != seq || m.From != alice || m.To != bob {
			t.Fatalf("got %v of %v to %v, want %d", m.Seq, m.From, m.To, seq)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("message %d does not come", seq)
	}
}

func wantBroke(t *testing.T, e *end, with eviction.Member) {
	t.Helper()
	select {
	case m := <-e.broke:
		if m != with {
			t.Fatalf("broke with %v, want %v", m, with)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("nobody is told of the break with %v", with)
	}
}

func TestMessagesComeInOrderWhateverTheirSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, nil)
		for i := uint64(1); i <= 60; i++ {
			a.Send(request(i, []int{0, 100, 40_000, 196_608}[i%4]))
		}
		for i := uint64(1); i <= 60; i++ {
			wantNext(t, b, i)
		}
	})
}

func TestABreakIsToldAtBothEndsAndMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, nil)
		a.Send(request(1, 0))
		wantNext(t, b, 1)
		a.mu.Lock()
		_ = a.conns[len(a.conns)-1].Close()
		a.mu.Unlock()
		wantBroke(t, a, bob)
		wantBroke(t, b, alice)
		a.Send(request(2, 0))
		wantNext(t, b, 2)
	})
}

func TestTooMuchThatWaitsIsLostAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var b *end
		a := start(t, alice, func() *end { <-hold; return b }, func(c *queuelink.Config) { c.BytesMax = 1000 })
		b = start(t, bob, func() *end { return a }, nil)
		a.SetMembers(map[eviction.Member]string{bob: "b"})
		for { // until the link knows its member
			a.Send(request(1, 600))
			if dropped, _ := a.Counts(); dropped > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		close(hold)
		wantNext(t, b, 1)
		wantBroke(t, a, bob)
	})
}

func TestNobodyIsSentToWhoIsNoMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, nil)
		m := request(1, 0)
		m.To = eviction.Member{Name: "bob", Boot: 2}
		a.Send(m)
		a.Send(request(2, 300_000)) // larger than any message may be
		wantBroke(t, a, bob)
		a.Send(request(3, 0))
		wantNext(t, b, 3)
	})
}

// carry opens a stream by hand, as a member.
func carry(t *testing.T, e *end, hello *peerv1.CarryHello) grpc.ClientStreamingClient[peerv1.CarryRequest, peerv1.CarryResponse] {
	t.Helper()
	return carryWith(t, e, policy.Client(), hello)
}

func carryWith(t *testing.T, e *end, with credentials.TransportCredentials, hello *peerv1.CarryHello) grpc.ClientStreamingClient[peerv1.CarryRequest, peerv1.CarryResponse] {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(with),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return e.at.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s, err := peerv1.NewQueuesClient(conn).Carry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&peerv1.CarryRequest{Kind: &peerv1.CarryRequest_Hello{Hello: hello}}); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return s
}

func TestStreamsThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, alice, nil, nil)
		hello := &peerv1.CarryHello{From: wire.FromMember(bob), To: wire.FromMember(alice)}
		frame := func(body string) *peerv1.CarryRequest {
			return &peerv1.CarryRequest{Kind: &peerv1.CarryRequest_Frame{Frame: &peerv1.CarryFrame{Messages: [][]byte{[]byte(body)}}}}
		}
		for _, c := range []struct {
			what  string
			hello *peerv1.CarryHello
			then  *peerv1.CarryRequest
			want  codes.Code
			text  string
		}{
			{"nobody's", nil, nil, codes.InvalidArgument, "does not begin with whose it is"},
			{"for another life", &peerv1.CarryHello{From: wire.FromMember(bob), To: &peerv1.Member{Name: "alice", Boot: 7}}, nil, codes.FailedPrecondition, "this is alice.1"},
			{"of itself", &peerv1.CarryHello{From: wire.FromMember(alice), To: wire.FromMember(alice)}, nil, codes.InvalidArgument, "whose it is"},
			{"with two hellos", hello, &peerv1.CarryRequest{Kind: &peerv1.CarryRequest_Hello{Hello: hello}}, codes.Unimplemented, "does not know"},
			{"with nonsense in it", hello, frame("\x0bnonsense"), codes.InvalidArgument, ""},
		} {
			s := carry(t, a, c.hello)
			if c.then != nil {
				_ = s.Send(c.then) // RecvMsg says why it fails
			}
			var end peerv1.CarryResponse
			err := s.RecvMsg(&end)
			if status.Code(err) != c.want || !strings.Contains(err.Error(), c.text) {
				t.Errorf("a stream %s: %v, want %v with %q", c.what, err, c.want, c.text)
			}
		}
	})
}

func TestALaterStreamReplacesTheEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, alice, nil, nil)
		hello := &peerv1.CarryHello{From: wire.FromMember(bob), To: wire.FromMember(alice)}
		first := carry(t, a, hello)
		if _, err := first.Header(); err != nil {
			t.Fatal(err)
		}
		second := carry(t, a, hello)
		if _, err := second.Header(); err != nil {
			t.Fatal(err)
		}
		var end peerv1.CarryResponse
		if err := first.RecvMsg(&end); status.Code(err) != codes.Aborted {
			t.Errorf("the earlier stream ended with %v", err)
		}
		wantBroke(t, a, bob)
		m := broker.Message{Kind: broker.MsgWake, Queue: "q"}
		if err := second.Send(&peerv1.CarryRequest{Kind: &peerv1.CarryRequest_Frame{Frame: &peerv1.CarryFrame{Messages: [][]byte{m.Encode()}}}}); err != nil {
			t.Fatal(err)
		}
		if got := <-a.messages; got.Kind != broker.MsgWake || got.From != bob {
			t.Errorf("got %+v", got)
		}
	})
}

func TestStrangersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, alice, nil, nil)
		s := carryWith(t, a, insecure.NewCredentials(), &peerv1.CarryHello{From: wire.FromMember(bob), To: wire.FromMember(alice)})
		var end peerv1.CarryResponse
		if err := s.RecvMsg(&end); status.Code(err) != codes.Unimplemented {
			t.Errorf("a stranger's stream ended with %v", err)
		}
	})
}
