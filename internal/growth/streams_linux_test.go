package growth

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/history"
)

// BenchmarkStreams has people wait at one node with an event stream open each:
// the memory that one takes, beyond that of the place, in KiB, and how long after
// the first call the median, the 99th percentile and the last of them have heard
// of theirs. All are called at once. The processor time is the node's for each of
// them, from the new limit until the last one knows.
//
// A node without origins gives visitors three quarters of the files that it may
// open (see docs/operating.md), so 10,000 want a limit of 13,500; with a lower
// one there are as many as it takes, and the log says so.
func BenchmarkStreams(b *testing.B) {
	for _, people := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("streams=%d", people), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				streams(b, people)
				b.StartTimer()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func streams(b *testing.B, people int) {
	f := launch(b, 1, listening(0), true)
	node := f.nodes[0]
	if most := int(node.metric("anteroom_gateway_connections_limit")) - 100; people > most {
		b.Logf("%d streams instead of %d: more files may not be open", most, people)
		people = most
	}
	k := engage(b, crowd{Addr: node.at(0), People: people})
	k.step() // they have joined
	time.Sleep(time.Second)
	before := node.memory()
	k.step() // they are connected
	k.step() // and listen
	time.Sleep(2 * time.Second)
	if open := int(node.metric("anteroom_gateway_connections")); open < people {
		b.Fatalf("%d of %d streams are open", open, people)
	}
	after := node.memory()
	per := func(after, before float64) float64 { return (after - before) / float64(people) / 1024 }
	b.ReportMetric(per(after.rss, before.rss), "KiB-rss")
	b.ReportMetric(per(after.heap, before.heap), "KiB-heap")
	b.ReportMetric(per(after.stacks, before.stacks), "KiB-stack")
	began := node.cpu()
	f.write(listening(people))
	node.signal(syscall.SIGHUP)
	var all heard
	if err := json.Unmarshal(k.step(), &all); err != nil {
		b.Fatal(err)
	}
	used := node.cpu() - began
	first := slices.MinFunc(f.admissions(history.Called), func(a, b history.Entry) int { return cmp.Compare(a.At, b.At) }).At
	b.ReportMetric(float64(all.First-first)/1e3, "ms-first")
	b.ReportMetric(float64(all.Median-first)/1e3, "ms-median")
	b.ReportMetric(float64(all.P99-first)/1e3, "ms-p99")
	b.ReportMetric(float64(all.Last-first)/1e3, "ms-last")
	b.ReportMetric(float64(used.Microseconds())/float64(people), "cpu-µs/call")
	node.end(syscall.SIGKILL)
}

// listening is a room where everybody waits until the limit is raised from 0.
func listening(limit int) string {
	return fmt.Sprintf("  - {name: shop, routes: [{host: \"*\", path: /}], total_active_users: %d, queue_all: true}\n", limit)
}
