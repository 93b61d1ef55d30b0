package gateway_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// BenchmarkToldByPush has people wait of whom nobody looks, and who are told by push:
// the memory that it takes to tell one, beyond that of the place, and the processor
// time of the check-ins for them, over half a minute, as often as their node asks.
// What the message itself costs is BenchmarkSend of internal/webpush.
func BenchmarkToldByPush(b *testing.B) {
	const people = 10_000
	for b.Loop() {
		w := newPushWorld(b, func(c *gateway.Config) { c.Bounds.Pushes = people })
		w.join() // is on the site
		places := make([]string, people)
		for i := range places {
			places[i] = w.join().Ticket
		}
		before := inUse()
		for _, p := range places {
			if r := w.subscribe(p); r.StatusCode != 200 {
				b.Fatal(r.StatusCode, r.body)
			}
		}
		w.subscribed(people)
		b.ReportMetric((inUse()-before)/people/1024, "KiB/place")
		asked, used := w.count(ticket.CheckIn), cpu(b)
		time.Sleep(30 * time.Second)
		asked, used = w.count(ticket.CheckIn)-asked, cpu(b)-used
		b.ReportMetric(float64(asked)/30, "checkins/s")
		b.ReportMetric(float64(used.Microseconds())/float64(asked), "cpu-µs/checkin")
		runtime.KeepAlive(places)
	}
	b.ReportMetric(0, "ns/op")
}

// inUse is how many bytes of heap and stacks are in use.
func inUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// cpu is the processor time that this process has had.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
