package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// BenchmarkWave is one wave of a whole cluster in one process: gather, replies,
// decision, commits, and the calls that follow. With calls=200 a wave calls that
// many people, as many join, and those called before did not come and make room.
func BenchmarkWave(b *testing.B) {
	for _, nodes := range []int{1, 3, 16, 64} {
		for _, waiting := range []int{1000, 1_000_000} {
			for _, calls := range []int{0, 200} {
				b.Run(fmt.Sprintf("nodes=%d/waiting=%d/calls=%d", nodes, waiting, calls), func(b *testing.B) {
					benchmarkWave(b, nodes, waiting, calls)
				})
			}
		}
	}
}

func benchmarkWave(b *testing.B, nodes, waiting, calls int) {
	c := founded(b, nodes, eviction.Room{
		Name: "shop", Target: calls, Session: time.Minute, QueueAll: true, ClaimWindow: 100 * time.Millisecond,
		Refresh: 12 * time.Hour, TicketTTL: 24 * time.Hour, QueueMax: 2_000_000,
	})
	joined := 0
	join := func(n int) {
		for range n {
			id := qpid.ItemID{byte(joined * 151), byte(joined), byte(joined >> 8), byte(joined >> 16), byte(joined >> 24)}
			m := c.node[joined%nodes]
			if _, err := m.Join(c.at(m), "shop", id, false); err != nil {
				b.Fatal(err)
			}
			joined++
			c.now++
		}
		c.deliver()
	}
	for range 100 {
		join(waiting / 100)
	}
	c.step = 200_000
	c.run(2 * time.Second)
	c.log = nil
	clear(c.sent)
	before := c.node[0].Status().Installed.Num
	b.ReportAllocs()
	for b.Loop() {
		join(calls)
		c.run(200 * time.Millisecond)
		c.log = c.log[:0]
	}
	waves := int(c.node[0].Status().Installed.Num - before)
	messages := c.sent["gather"] + c.sent["reply"] + c.sent["commit"]
	if waves == 0 || messages != 3*(nodes-1)*waves {
		b.Fatalf("%d messages in %d waves of %d nodes, want %d each", messages, waves, nodes, 3*(nodes-1))
	}
	b.ReportMetric(float64(messages)/float64(waves), "messages/wave")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(waves), "ns/wave")
}
