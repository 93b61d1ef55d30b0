package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

const crowdedFile = `
node: {gateway: "127.0.0.1:0", admin: "127.0.0.1:0", peer: "127.0.0.1:0", grpc: none, gossip: "127.0.0.1:0", expect: 1}
rooms:
  - {name: shop, routes: [{host: "*", path: /}], total_active_users: 1, queueing_method: fifo, queue_all: true, queue_max: 2000000, refresh_interval: 24h, ticket_ttl: 24h, claim_window: 1h}
`

const (
	checkInPath = "/_anteroom/v1/rooms/shop/checkin"
	askersMax   = 1 << 16 // of those who wait, whose tickets are used
	lanes       = 64
)

// crowded is a server with people waiting.
type crowded struct {
	*Server
	tickets  []string // of some, from all over the line
	requests [][]byte // their check-ins
}

// crowd starts a server as `anteroom serve` does, and puts people in line. They
// do not come over HTTP, which would take longer than the benchmark.
func crowd(b *testing.B, waiting int) *crowded {
	b.Helper()
	c := &crowded{Server: started(b, crowdedFile)}
	c.fill(b, waiting)
	return c
}

// started is a server as `anteroom serve` runs it.
func started(b *testing.B, file string) *Server {
	b.Helper()
	f := config.Parse("bench", []byte(file), config.Options{Host: "node-1"})
	if err := f.Err(); err != nil {
		b.Fatal(err)
	}
	s := New(f.Config, Options{Logger: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			b.Error(err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-over:
		over <- nil
		b.Fatal(err)
	}
	return s
}

// fill puts people in line, and waits until a wave has counted them.
func (c *crowded) fill(b *testing.B, waiting int) {
	b.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := c.loop.Local(context.Background(), ticket.Request{Op: ticket.Join, Room: "shop"}); err == nil && !c.keys.ring.Empty() {
			break
		} else if time.Now().After(deadline) {
			b.Fatalf("the node does not serve: %v", err)
		}
	}
	const joiners = 64
	every := max(1, waiting/askersMax)
	tickets := make([]ticket.Ticket, waiting/every)
	var all sync.WaitGroup
	for j := range joiners {
		all.Go(func() {
			for i := j; i < waiting; i += joiners {
				id := qpid.ItemID{byte(i * 151), byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24), 1}
				a, err := c.loop.Local(context.Background(), ticket.Request{Op: ticket.Join, Room: "shop", ID: id})
				if err != nil {
					b.Errorf("join: %v", err)
					return
				}
				if i%every == 0 && i/every < len(tickets) {
					tickets[i/every] = a.Ticket
				}
			}
		})
	}
	all.Wait()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if r, ok := c.Snapshot().Room("shop"); ok && r.Total >= waiting*99/100 { // it is estimated
			break
		} else if time.Now().After(deadline) {
			b.Fatalf("%d of %d are waiting", r.Total, waiting)
		}
	}
	for i := range tickets { // as if by chance, but every time the same
		j := (i * 7919) % (i + 1)
		tickets[i], tickets[j] = tickets[j], tickets[i]
	}
	for _, t := range tickets {
		s, err := c.keys.ring.Ticket(t)
		if err != nil {
			b.Fatal(err)
		}
		body := `{"ticket":"` + s + `"}`
		c.tickets = append(c.tickets, s)
		c.requests = append(c.requests, fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: shop.example\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			checkInPath, len(body), body))
	}
}

func (c *crowded) handler() http.Handler { return c.roomed(c.keyed(c.gateway)) }

func (c *crowded) request(i int) *http.Request {
	body := `{"ticket":"` + c.tickets[i%len(c.tickets)] + `"}`
	r := httptest.NewRequest(http.MethodPost, "http://shop.example"+checkInPath, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// bareServer is the same http.Server with a handler that reads the same bodies
// and gives always the same answer, one of the other's.
func (c *crowded) bareServer(b *testing.B) (addr string) {
	b.Helper()
	w := httptest.NewRecorder()
	c.handler().ServeHTTP(w, c.request(0))
	answer := w.Body.Bytes()
	if w.Code != http.StatusOK || !bytes.Contains(answer, []byte(`"waiting"`)) {
		b.Fatalf("check-in: %d %s", w.Code, answer)
	}
	header := w.Header()
	return c.bare(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h := w.Header()
		for k, v := range header {
			h[k] = v
		}
		_, _ = w.Write(answer)
	})
}

// bare has the http.Server that the gateway has as well serve h.
func (s *Server) bare(b *testing.B, h http.HandlerFunc) (addr string) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	bare := s.httpServer(h)
	go func() { _ = bare.Serve(l) }()
	b.Cleanup(func() { _ = bare.Close() })
	return l.Addr().String()
}

func crowdSizes(b *testing.B, name string, run func(b *testing.B, c *crowded)) {
	for _, n := range []int{1000, 1_000_000} {
		size := "waiting=1k"
		if n > 1000 {
			size = "waiting=1M"
		}
		b.Run(size, func(b *testing.B) {
			var c *crowded
			b.Run(name, func(inner *testing.B) { // may be called several times
				if c == nil {
					c = crowd(b, n)
				}
				inner.ResetTimer()
				run(inner, c)
			})
		})
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// BenchmarkCheckIn has people check in over kept-alive connections of loopback,
// and next to it a bare net/http server answer the same. The two take turns of
// half a second, since the machine is not always as fast. The client is a
// process of its own, on the same processors.
//
//	go test ./internal/server -run '^$' -bench CheckIn/ -benchtime=10x
//
// The figures are medians of the turns: req/s, the ratio of it to bare's in the
// turn before, and the server's processor time for a request, in µs. p99-ms is
// at half the req/s.
func BenchmarkCheckIn(b *testing.B) {
	crowdSizes(b, "http", func(b *testing.B, c *crowded) {
		file := writeRequests(b, c.requests)
		bareAt := c.bareServer(b)
		turn := strain{Requests: file, Conns: lanes, During: 500 * time.Millisecond}
		turns := map[string][]float64{}
		note := func(what string, v float64) { turns[what] = append(turns[what], v) }
		runtime.GC()
		for b.Loop() {
			turn.Addr, turn.Rate = bareAt, 0
			bare := turn.run(b)
			turn.Addr = c.Addresses().Gateway
			ours := turn.run(b)
			note("bare-req/s", bare.rate())
			note("bare-cpu-µs", bare.perAnswer())
			note("req/s", ours.rate())
			note("cpu-µs", ours.perAnswer())
			note("ratio", ours.rate()/bare.rate())
			turn.Rate = ours.rate() / 2
			half := turn.run(b)
			note("half-p50-ms", half.Median.Seconds()*1e3)
			note("half-p99-ms", half.P99.Seconds()*1e3)
			turn.Addr = bareAt
			note("bare-half-p99-ms", turn.run(b).P99.Seconds()*1e3)
		}
		b.ReportMetric(0, "ns/op")
		for what, v := range turns {
			b.ReportMetric(median(v), what)
		}
	})
}

// BenchmarkCheckInHandler is the same without sockets, for profiles: what the
// gateway and all behind it take.
//
//	go test ./internal/server -run '^$' -bench CheckInHandler -cpuprofile=/tmp/cpu
func BenchmarkCheckInHandler(b *testing.B) {
	crowdSizes(b, "handler", func(b *testing.B, c *crowded) {
		h := c.handler()
		b.ReportAllocs()
		b.SetParallelism(lanes / 2)
		b.RunParallel(func(p *testing.PB) {
			w := &unseen{header: http.Header{}}
			body := &strings.Reader{}
			r := c.request(0)
			r.Body = io.NopCloser(body)
			for i := int(time.Now().UnixNano() & (askersMax - 1)); p.Next(); i++ {
				body.Reset(`{"ticket":"` + c.tickets[i%len(c.tickets)] + `"}`)
				clear(w.header)
				h.ServeHTTP(w, r)
				if w.status != http.StatusOK {
					b.Errorf("status %d", w.status)
					return
				}
			}
		})
	})
}

// unseen is a ResponseWriter that keeps nothing.
type unseen struct {
	header http.Header
	status int
}

func (u *unseen) Header() http.Header              { return u.header }
func (u *unseen) Write(b []byte) (int, error)      { return len(b), nil }
func (u *unseen) WriteHeader(status int)           { u.status = status }
func (u *unseen) SetReadDeadline(time.Time) error  { return nil }
func (u *unseen) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkMemory is what somebody who waits takes, all in: heap of the whole
// server, less that of one with nobody in it.
func BenchmarkMemory(b *testing.B) {
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	const waiting = 1_000_000
	for b.Loop() {
		c := crowd(b, 1)
		c.requests, c.tickets = nil, nil
		empty := heap()
		began := time.Now()
		c.fill(b, waiting)
		b.ReportMetric(waiting/time.Since(began).Seconds(), "joins/s")
		c.requests, c.tickets = nil, nil
		b.ReportMetric((heap()-empty)/waiting, "B/visitor")
		runtime.KeepAlive(c)
	}
	b.ReportMetric(0, "ns/op")
}
