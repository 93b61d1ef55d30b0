package growth

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkIdle is the processor time of nodes with rooms in which nothing
// happens, in percent of one processor: that of the busiest node, and the mean.
func BenchmarkIdle(b *testing.B) {
	const during = 20 * time.Second
	for _, c := range []struct{ nodes, rooms int }{{3, 10}, {3, 100}, {16, 10}} {
		b.Run(fmt.Sprintf("nodes=%d/rooms=%d", c.nodes, c.rooms), func(b *testing.B) {
			f := launch(b, c.nodes, quietRooms(c.rooms), false)
			time.Sleep(5 * time.Second) // what follows the founding is no idling
			for b.Loop() {
				began := make([]time.Duration, c.nodes)
				for i, p := range f.nodes[:c.nodes] {
					began[i] = p.cpu()
				}
				time.Sleep(during)
				most, sum := time.Duration(0), time.Duration(0)
				for i, p := range f.nodes[:c.nodes] {
					used := p.cpu() - began[i]
					most, sum = max(most, used), sum+used
				}
				b.ReportMetric(100*most.Seconds()/during.Seconds(), "%-busiest")
				b.ReportMetric(100*sum.Seconds()/during.Seconds()/float64(c.nodes), "%-mean")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func quietRooms(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  - {name: room-%d, routes: [{host: room-%d.example, path: /}], total_active_users: 200}\n", i, i)
	}
	return b.String()
}
