package qpid

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

var benchSizes = []int{1000, 1_000_000}

// fillOrdered returns a queue of n items in the order of their arrival, and
// their weights. Stamps are 10 apart.
func fillOrdered(n int) (*Queue, []Weight) {
	q := NewQueue()
	weights := make([]Weight, n)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range weights {
		weights[i] = item(uint64(i)*10, r.Uint64())
		q.Insert(weights[i])
	}
	return q, weights
}

func benchmarkQueue(b *testing.B, run func(b *testing.B, n int)) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			run(b, n)
		})
	}
}

// BenchmarkQueueInsertNearFIFO inserts arrivals up to 50 places out of order
// into a queue of constant length: each also removes the lightest.
func BenchmarkQueueInsertNearFIFO(b *testing.B) {
	benchmarkQueue(b, func(b *testing.B, n int) {
		q, _ := fillOrdered(n)
		r := rand.New(rand.NewPCG(1, 2))
		stamp := uint64(n) * 10
		for b.Loop() {
			stamp += 10
			q.Insert(item(stamp+r.Uint64N(500), r.Uint64()))
			w, _ := q.Min()
			q.Delete(w)
		}
	})
}

// BenchmarkQueueInsertRandom inserts anywhere and removes anywhere, at constant
// length.
func BenchmarkQueueInsertRandom(b *testing.B) {
	benchmarkQueue(b, func(b *testing.B, n int) {
		q, weights := fillOrdered(n)
		r := rand.New(rand.NewPCG(1, 3))
		for b.Loop() {
			i := r.IntN(n)
			q.Delete(weights[i])
			weights[i] = item(r.Uint64N(uint64(n)*10), r.Uint64())
			q.Insert(weights[i])
		}
	})
}

func BenchmarkQueueDeleteMin(b *testing.B) {
	benchmarkQueue(b, func(b *testing.B, n int) {
		q, _ := fillOrdered(n)
		for b.Loop() {
			if q.Len() == 0 {
				b.StopTimer()
				q, _ = fillOrdered(n)
				b.StartTimer()
			}
			w, _ := q.Min()
			q.Delete(w)
		}
	})
}

func BenchmarkQueueRank(b *testing.B) {
	benchmarkQueue(b, func(b *testing.B, n int) {
		q, weights := fillOrdered(n)
		r := rand.New(rand.NewPCG(1, 4))
		for b.Loop() {
			q.Rank(weights[r.IntN(n)])
		}
	})
}

func BenchmarkQueueSelect(b *testing.B) {
	benchmarkQueue(b, func(b *testing.B, n int) {
		q, _ := fillOrdered(n)
		r := rand.New(rand.NewPCG(1, 5))
		for b.Loop() {
			q.Select(r.IntN(n))
		}
	})
}

// BenchmarkQueueFill builds a queue from nothing and reports its memory.
func BenchmarkQueueFill(b *testing.B) {
	orders := map[string]func(r *rand.Rand, i, n int) uint64{
		"fifo":     func(r *rand.Rand, i, n int) uint64 { return uint64(i) * 10 },
		"nearFIFO": func(r *rand.Rand, i, n int) uint64 { return uint64(i)*10 + r.Uint64N(500) },
		"random":   func(r *rand.Rand, i, n int) uint64 { return r.Uint64N(uint64(n) * 10) },
	}
	for _, name := range []string{"fifo", "nearFIFO", "random"} {
		b.Run(name, func(b *testing.B) {
			benchmarkQueue(b, func(b *testing.B, n int) {
				for b.Loop() {
					before := heap()
					r := rand.New(rand.NewPCG(1, 6))
					q := NewQueue()
					for i := range n {
						q.Insert(item(orders[name](r, i, n), r.Uint64()))
					}
					b.ReportMetric(float64(heap()-before)/float64(q.Len()), "B/item")
					runtime.KeepAlive(q)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/item")
			})
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
