package growth

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// BenchmarkLarge is what a wave weighs as a cluster grows: 20,000 people wait in one
// room, and each wave calls nobody, or 200. Bytes and processor time are of all
// nodes together, with encoding and decoding, means over the waves of a second or
// more; B/largest is the largest message of any of them.
//
// It fails unless a wave is 3(n-1) messages.
func BenchmarkLarge(b *testing.B) {
	for _, nodes := range []int{16, 256, 1000} {
		for _, calls := range []int{0, callsPerWave} {
			b.Run(fmt.Sprintf("nodes=%d/calls=%d", nodes, calls), func(b *testing.B) { large(b, nodes, calls) })
		}
	}
}

func large(b *testing.B, nodes, calls int) {
	const waiting, period = 20_000, 200 * time.Millisecond
	c := founded(b, nodes, []eviction.Room{{
		Name: "shop", Target: calls, Session: time.Minute, QueueAll: true, ClaimWindow: 100 * time.Millisecond,
		Refresh: 12 * time.Hour, TicketTTL: 24 * time.Hour, QueueMax: 2_000_000,
	}})
	came := 0
	round := func() { // as many wait after it as before
		c.join(c.calls-came, "shop")
		came = c.calls
		c.run(period)
	}
	c.join(waiting, "shop")
	for range 15 { // the first ones, with all slots at the coordinator, are not like the others
		round()
	}
	runtime.GC()
	c.sent = traffic{}
	called, first, used := c.calls, c.nodes[0].Status().Installed.Num, time.Duration(0)
	for b.Loop() {
		for range 5 { // a second, in which positions are told once
			c.join(c.calls-came, "shop")
			came = c.calls
			began := processorTime()
			c.run(period)
			used += processorTime() - began
		}
	}
	waves := float64(c.nodes[0].Status().Installed.Num - first)
	if want := 3 * (nodes - 1) * int(waves); c.sent.waves != want || waves == 0 {
		b.Fatalf("%d messages in %v waves of %d nodes, want %d", c.sent.waves, waves, nodes, want)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(used.Seconds()*1e3/waves, "cpu-ms/wave")
	b.ReportMetric(float64(c.sent.waveBytes)/waves, "B/wave")
	b.ReportMetric(float64(c.sent.largest), "B/largest")
	b.ReportMetric(float64(c.calls-called)/waves, "calls/wave")
}
