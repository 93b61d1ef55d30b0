package growth

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BenchmarkViewChange is what it costs when a node is killed, takes its leave or
// joins, while 10,000 people wait: the longest time without a wave at any of the
// other nodes, and how much more processor time those take in the ten seconds
// from then on than in the ten before, in percent of one processor each. In these
// they are asked a hundred times a second how things stand, before and after alike.
func BenchmarkViewChange(b *testing.B) {
	for _, nodes := range []int{3, 16} {
		for _, change := range []string{"joined", "left", "killed"} {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, change), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					viewChange(b, nodes, change)
					b.StartTimer()
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func viewChange(b *testing.B, nodes int, change string) {
	f := launch(b, nodes, listening(0, 0), false)
	urls := make([]string, nodes)
	for i, p := range f.nodes[:nodes] {
		urls[i] = p.room("join")
	}
	if _, err := fill(urls, 10_000); err != nil {
		b.Fatal(err)
	}
	const during = 10 * time.Second
	rest := f.nodes[:nodes]
	var do func()
	switch gone := f.nodes[nodes-1]; change {
	case "joined":
		do = f.nodes[nodes].start
	case "left":
		rest, do = f.nodes[:nodes-1], func() { gone.signal(syscall.SIGTERM) }
	default:
		rest, do = f.nodes[:nodes-1], func() { gone.signal(syscall.SIGKILL) }
	}
	calmGap, calm := watch(rest, during)
	do()
	gap, busy := watch(rest, during)
	b.ReportMetric(calmGap.Seconds()*1e3, "ms-gap-before")
	b.ReportMetric(gap.Seconds()*1e3, "ms-gap")
	b.ReportMetric(calm, "%-before")
	b.ReportMetric(busy, "%-after")
	for _, p := range f.nodes {
		p.end(syscall.SIGKILL)
	}
}

// watch is the longest that any of the nodes was in the same wave, and what they
// took of a processor, in percent, on average.
func watch(nodes []*process, during time.Duration) (gap time.Duration, percent float64) {
	var used time.Duration
	for _, p := range nodes {
		used -= p.cpu()
	}
	var all sync.WaitGroup
	gaps := make([]time.Duration, len(nodes))
	for i, p := range nodes {
		all.Go(func() {
			began := time.Now()
			wave, since := uint64(0), began
			for time.Since(began) < during {
				now := p.cluster().Epoch
				if at := time.Now(); now != wave && now != 0 {
					wave, since = now, at
				} else {
					gaps[i] = max(gaps[i], at.Sub(since))
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	all.Wait()
	for i, p := range nodes {
		used += p.cpu()
		gap = max(gap, gaps[i])
	}
	return gap, 100 * used.Seconds() / during.Seconds() / float64(len(nodes))
}
