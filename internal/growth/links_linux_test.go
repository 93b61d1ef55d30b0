package growth

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/server"
)

// BenchmarkLinks is what goes over the links of nodes, as TCP carries it, in both
// directions and with all that gRPC adds, for each wave: bytes, and writes, each
// of which has one frame or more. Gossip is not in it. There are ten rooms; with
// calls, about 1,000 people a second join one of them, and as many are called.
func BenchmarkLinks(b *testing.B) {
	for _, nodes := range []int{3, 8, 16} {
		for _, calls := range []int{0, callsPerWave} {
			b.Run(fmt.Sprintf("nodes=%d/calls=%d", nodes, calls), func(b *testing.B) { links(b, nodes, calls) })
		}
	}
}

// meter counts what goes over connections.
type meter struct{ bytes, writes atomic.Int64 }

type metered struct {
	net.Conn
	m *meter
}

func (c metered) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.m.bytes.Add(int64(n))
	c.m.writes.Add(1)
	return n, err
}

func (c metered) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.m.bytes.Add(int64(n))
	return n, err
}

func (m *meter) dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return metered{c, m}, nil
}

func links(b *testing.B, nodes, calls int) {
	var m meter
	all := serveHere(b, nodes, quietRooms(9)+
		fmt.Sprintf("  - {name: shop, routes: [{host: \"*\", path: /}], total_active_users: %d, queue_all: true, claim_window: 1s}\n", 5*calls), &m)
	wave := func() uint64 { return all[0].Snapshot().Status.Installed.Num }
	ctx, cancel := context.WithCancel(context.Background())
	var crowd sync.WaitGroup
	for i := range calls {
		url := "http://" + all[i%nodes].Addresses().Gateway + "/_anteroom/v1/rooms/shop/join"
		crowd.Go(func() { arrive(ctx, url) })
	}
	time.Sleep(5 * time.Second)
	first, bytes, writes, began := wave(), m.bytes.Load(), m.writes.Load(), time.Now()
	for b.Loop() {
		time.Sleep(5 * time.Second)
	}
	waves := float64(wave() - first)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(m.bytes.Load()-bytes)/waves, "B/wave")
	b.ReportMetric(float64(m.writes.Load()-writes)/waves, "writes/wave")
	b.ReportMetric(waves/time.Since(began).Seconds(), "waves/s")
	cancel()
	crowd.Wait()
}

// arrive has somebody join five times a second.
func arrive(ctx context.Context, url string) {
	c := http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
	defer c.CloseIdleConnections()
	every := time.NewTicker(200 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			_, _ = join(&c, url) // who is admitted or turned away counts as well
		}
	}
}

// serveHere runs nodes in this process.
func serveHere(b *testing.B, nodes int, rooms string, m *meter) (all []*server.Server) {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	b.Cleanup(func() { stop(); running.Wait() })
	var seeds []string
	for i := range nodes {
		set := []config.Setting{{Key: "node.expect", Value: fmt.Sprint(nodes)}, {Key: "security.gossip_key", Value: gossipKey}}
		if i > 0 {
			set = append(set, config.Setting{Key: "node.join", Value: strings.Join(seeds, ",")})
		}
		f := config.Parse("growth", []byte("node: {gateway: \"127.0.0.1:0\", admin: \"127.0.0.1:0\", peer: \"127.0.0.1:0\", grpc: none, gossip: \"127.0.0.1:0\"}\nrooms:\n"+rooms),
			config.Options{Host: fmt.Sprintf("node-%d", i+1), Set: set})
		if err := f.Err(); err != nil {
			b.Fatal(err)
		}
		s := server.New(f.Config, server.Options{Logger: slog.New(slog.DiscardHandler), Dial: m.dial})
		over := make(chan error, 1)
		running.Go(func() { over <- s.Run(ctx) })
		select {
		case <-s.Ready():
		case err := <-over:
			b.Fatal(err)
		}
		all, seeds = append(all, s), append(seeds, s.Addresses().Gossip)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if len(all[0].Snapshot().Status.List) == nodes {
			return all
		} else if time.Now().After(deadline) {
			b.Fatal("the nodes do not find each other")
		}
	}
}
