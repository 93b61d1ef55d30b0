package growth

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/history"
)

// BenchmarkStreams has people wait at one node with an event stream open each, over a
// connection of their own: the memory that one takes, beyond that of the place, in
// KiB, and how long after the call the median, the 99th percentile and the last of those
// who are called have heard of it, a thousand a second, for five seconds at most.
// The processor time is the node's for each of them, from the new limit until the
// last one knows.
//
// A node without origins gives visitors three quarters of the files that it may
// open or more (see docs/operating.md), and the client needs as many, so 15,000 want
// a limit of 20,000, and 100,000 one of 115,000. With a lower one it skips, and says so.
func BenchmarkStreams(b *testing.B) {
	for _, people := range []int{2000, 15_000, 100_000} {
		b.Run(fmt.Sprintf("streams=%d", people), func(b *testing.B) {
			for b.Loop() {
				if kib := streams(b, crowd{People: people, Called: min(people, 5000)}, 1000); kib > 15 {
					b.Errorf("a stream takes %.1f KiB, want at most 15", kib)
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkStreamsByTLS is the same by TLS, where more is not ours: its state of each
// connection and, over HTTP/2, a handler and the connection's own goroutines and buffers.
func BenchmarkStreamsByTLS(b *testing.B) {
	for _, over := range []string{"https", "http2"} {
		b.Run("over="+over, func(b *testing.B) {
			for b.Loop() {
				streams(b, crowd{People: 2000, Called: 2000, Over: over}, 1000)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkStreamsAtOnce is the same where all are called in one wave.
func BenchmarkStreamsAtOnce(b *testing.B) {
	for _, people := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("streams=%d", people), func(b *testing.B) {
			for b.Loop() {
				streams(b, crowd{People: people, Called: people}, 0)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// streams has people listen and some of them called, so many a second; 0: at once. It
// returns the memory that a stream takes, heap and stacks, in KiB.
func streams(b *testing.B, c crowd, rate int) (kib float64) {
	b.StopTimer()
	defer b.StartTimer()
	people, called := c.People, c.Called
	f := (&fleet{b: b, dir: b.TempDir(), founded: 1, logged: true, secure: c.Over != ""}).launch(1, listening(0, rate))
	node := f.nodes[0]
	c.Addr = node.at(0)
	if most := int(node.metric("anteroom_gateway_connections_limit")) - 100; people > most {
		node.end(syscall.SIGKILL)
		why := fmt.Sprintf("NOT RUN: %d streams; this machine's limit of open files lets a node have %d (ulimit -n)", people, most)
		fmt.Fprintln(os.Stderr, why) // which the testing package would say with -v only
		b.Skip(why)
	}
	k := engage(b, c)
	k.step() // they have joined
	time.Sleep(time.Second)
	before := node.memory()
	k.step() // they are connected
	k.step() // and listen
	time.Sleep(2 * time.Second)
	if open := int(node.metric("anteroom_streams")); open < people {
		b.Fatalf("%d of %d streams are open", open, people)
	}
	after := node.memory()
	per := func(after, before float64) float64 { return (after - before) / float64(people) / 1024 }
	b.ReportMetric(per(after.rss, before.rss), "KiB-rss")
	b.ReportMetric(per(after.heap, before.heap), "KiB-heap")
	b.ReportMetric(per(after.stacks, before.stacks), "KiB-stack")
	began := node.cpu()
	f.write(listening(called, rate))
	node.signal(syscall.SIGHUP)
	var all []heard
	if err := json.Unmarshal(k.step(), &all); err != nil {
		b.Fatal(err)
	}
	used := node.cpu() - began
	took := late(f, all)
	b.ReportMetric(took[len(took)/2], "ms-median")
	b.ReportMetric(took[len(took)*99/100], "ms-p99")
	b.ReportMetric(took[len(took)-1], "ms-last")
	b.ReportMetric(float64(used.Microseconds())/float64(called), "cpu-µs/call")
	node.end(syscall.SIGKILL)
	return per(after.heap+after.stacks, before.heap+before.stacks)
}

// late is how long after the call each has heard of it, in ms, in order.
func late(f *fleet, all []heard) (ms []float64) {
	f.b.Helper()
	at := map[int64]int64{} // by when they joined; of those who share a moment the first
	f.until("calls of everybody in the log", func() bool {
		calls := f.admissions(history.Called)
		for _, e := range calls {
			if first, ok := at[int64(e.Joined)]; !ok || e.At < first {
				at[int64(e.Joined)] = e.At
			}
		}
		return len(calls) >= len(all)
	})
	for _, h := range all {
		call, ok := at[h.Joined]
		if !ok {
			f.b.Fatalf("who joined at %d has heard of a call that was not logged", h.Joined)
		}
		ms = append(ms, float64(h.At-call)/1e3)
	}
	slices.Sort(ms)
	return ms
}

// listening is a room where everybody waits until the limit is raised from 0, and so
// many are called a second then; 0: any number.
func listening(limit, rate int) string {
	return fmt.Sprintf("  - {name: shop, routes: [{host: \"*\", path: /}], total_active_users: %d, new_users_per_minute: %d, queue_all: true}\n", limit, 60*rate)
}
