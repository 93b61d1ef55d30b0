package link_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/link"
	"github.com/anteroom/anteroom/proto/rpc"
	"github.com/anteroom/anteroom/qpid"
)

// counter is a node that counts its messages.
type counter struct {
	got  int
	want chan int // gets got when that reaches goal
	goal int
}

func (c *counter) Deliver(eviction.Message) {
	c.got++
	if c.got == c.goal {
		c.want <- c.got
	}
}

func (c *counter) Local(context.Context, ticket.Request) (ticket.Answer, error) {
	return ticket.Answer{State: ticket.Waiting, Position: 7}, nil
}

func (c *counter) Relay(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	return c.Local(ctx, q)
}

func (*counter) Hint(string, qpid.ItemID) {}

func (c *counter) Keys([]byte) ([]byte, error) { return nil, nil }

func (*counter) Settings() []byte { return nil }

func (*counter) Agree(eviction.Member, []byte) error { return nil }

func (*counter) Identify(eviction.Peer, string) (eviction.Peer, bool) { return eviction.Peer{}, false }

// joined returns links over TCP on loopback to a node that counts.
func joined(b *testing.B, policy auth.Policy) (*link.Links, *counter) {
	b.Helper()
	from, to, c := member("a", 1), member("b", 1), &counter{want: make(chan int, 1)}
	receiver := link.New(link.Config{Self: to, Peer: c, Policy: policy})
	server := rpc.NewPeers(rpc.PeersConfig{Policy: policy, Links: receiver})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(server.Stop)
	sender := link.New(link.Config{Self: from, Peer: &counter{}, Policy: policy, QueueMax: 1 << 20})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = sender.Run(ctx)
	}()
	b.Cleanup(func() { cancel(); <-done })
	sender.SetMembers(map[eviction.Member]string{to: listener.Addr().String()})
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if s := sender.Stats(); len(s) == 1 && s[0].Up {
			return sender, c
		}
		if time.Now().After(deadline) {
			b.Fatalf("no link: %+v", sender.Stats())
		}
	}
}

// BenchmarkSend measures messages through one link, as many at a time as one
// batch of a node's work has.
func BenchmarkSend(b *testing.B) {
	for _, batch := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			l, c := joined(b, gossipKey(b, 1))
			m := eviction.Message{From: member("a", 1), To: member("b", 1), Body: &eviction.Slots{
				Room: "shop", From: eviction.Account{Member: member("a", 1), Born: 7}, To: eviction.Account{Member: member("b", 1), Born: 8}, Total: 9,
			}}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				c.goal = c.got + batch
				for range batch {
					l.Send(m)
				}
				n += <-c.want - n
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// BenchmarkForward measures check-ins that another node answers.
func BenchmarkForward(b *testing.B) {
	b.Run("trust=key", func(b *testing.B) { // once there was another
		l, _ := joined(b, gossipKey(b, 1))
		q := ticket.Request{Op: ticket.CheckIn, Room: "shop", Ticket: ticket.Ticket{Room: "shop", Stamp: 7, Home: member("b", 1)}}
		b.ReportAllocs()
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := l.Forward(context.Background(), member("b", 1), q); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
