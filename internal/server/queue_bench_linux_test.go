package server

import (
	"bytes"
	"sync"
	"testing"

	"github.com/anteroom/anteroom/client"
)

// BenchmarkQueue puts items of 1 KB into a queue of one node and takes them
// again, by 32 callers of package client over loopback: a put, a take and an
// acknowledgement are three gRPC calls.
//
//	go test ./internal/server -run '^$' -bench Queue/ -benchtime=20000x
//
// cpu-µs is processor time, of both ends, for one op.
func BenchmarkQueue(b *testing.B) {
	const callers = 32
	s := started(b, `node: {gateway: "127.0.0.1:0", admin: "127.0.0.1:0", grpc: "127.0.0.1:0", expect: 1}`)
	c, err := client.Dial([]string{s.Addresses().GRPC})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	q, payload := c.Queue("bench"), bytes.Repeat([]byte("x"), 1024)
	put := func() error {
		_, err := q.Put(b.Context(), client.New{Payload: payload})
		return err
	}
	take := func() error {
		t, err := q.Take(b.Context(), client.Want{})
		for _, l := range t.Leases {
			err = l.Ack(b.Context())
		}
		return err
	}
	share := func(b *testing.B, do func() error) {
		b.Helper()
		before := cpuTime()
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for range (b.N + callers - 1 - i) / callers {
					if err := do(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs")
	}
	b.Run("put", func(b *testing.B) { share(b, put) })
	b.Run("take", func(b *testing.B) { share(b, take) })
}
