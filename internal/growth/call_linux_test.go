package growth

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/history"
)

// doors is a room where everybody waits until the limit is raised from 0.
func doors(limit int) string {
	return fmt.Sprintf("  - {name: shop, routes: [{host: \"*\", path: /}], total_active_users: %d, queue_all: true, claim_window: 10m, ticket_ttl: 1h, refresh_interval: 15m}\n", limit)
}

// BenchmarkCallAll opens a room for 100,000 people who wait, as an operator
// would: the new limit in the file, and SIGHUP to one node. The times are those of
// the admission logs: from the first who is called to the last, from the first
// turn that is certain to the last call, and from the signal to the last call.
// With all of them at fewer nodes the logs would have gaps, and the benchmark
// fail: a node keeps 65,536 lines that it has not written yet.
func BenchmarkCallAll(b *testing.B) {
	const people = 100_000
	for _, nodes := range []int{4, 16} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				callAll(b, nodes, people)
				b.StartTimer()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func callAll(b *testing.B, nodes, people int) {
	f := launch(b, nodes, doors(0), true)
	urls := make([]string, nodes)
	for i, p := range f.nodes[:nodes] {
		urls[i] = p.room("join")
	}
	if _, err := fill(urls, people); err != nil {
		b.Fatal(err)
	}
	time.Sleep(time.Second)
	f.write(doors(people))
	signal := time.Now().UnixMicro()
	f.nodes[0].signal(syscall.SIGHUP)
	var called []history.Entry
	f.until("call of everybody", func() bool {
		time.Sleep(time.Second) // else to look at the logs would be most of the work
		called = f.admissions(history.Called)
		return len(called) >= people
	})
	if len(called) > people {
		b.Fatalf("%d calls of %d people", len(called), people)
	}
	entitled := f.admissions(history.Entitled)
	at := func(a, b history.Entry) int { return cmp.Compare(a.At, b.At) }
	first, last := slices.MinFunc(called, at), slices.MaxFunc(called, at)
	turn := slices.MinFunc(entitled, at)
	waves := map[uint64]bool{}
	for _, e := range entitled {
		waves[e.Epoch] = true
	}
	b.ReportMetric(float64(last.At-first.At)/1e3, "ms-first-to-last")
	b.ReportMetric(float64(last.At-turn.At)/1e3, "ms-from-first-turn")
	b.ReportMetric(float64(last.At-signal)/1e3, "ms-from-signal")
	b.ReportMetric(float64(len(waves)), "waves")
	for _, p := range f.nodes {
		p.end(syscall.SIGKILL)
	}
}
