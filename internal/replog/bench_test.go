package replog

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anteroom/anteroom/qpid"
)

// BenchmarkPropose has callers that each wait for the answer before they go on,
// with commands of 1 KiB. It reports how many there are for one sync of a disk.
func BenchmarkPropose(b *testing.B) {
	for _, members := range []int{1, 3} {
		for _, callers := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("members=%d/callers=%d", members, callers), func(b *testing.B) {
				var f *faulty
				var r *running
				if members == 1 {
					c := durable(b.TempDir())
					f = newFaulty(&c)
					r = start(b, c)
				} else {
					m := newMesh(b)
					m.stores = nil
					faults := map[qpid.NodeID]*faulty{}
					for _, name := range []qpid.NodeID{"n1", "n2", "n3"} {
						c := slowly(member(name))
						faults[name] = newFaulty(&c)
						m.start(c)
					}
					m.see()
					m.voters("n1", "n2", "n3")
					r, f = m.leader().running, faults[m.leader().name]
				}
				r.put(b, "first")
				propose(b, r, f, callers)
			})
		}
	}
}

func propose(b *testing.B, r *running, f *faulty, callers int) {
	f.syncs.Store(0)
	var next atomic.Int64
	var calling sync.WaitGroup
	b.ResetTimer()
	for range callers {
		calling.Go(func() {
			answers := make(chan error, 1)
			for next.Add(1) <= int64(b.N) {
				r.Propose(bytes.Repeat([]byte{'x'}, 1024), func(_ []byte, err error) { answers <- err })
				if err := <-answers; err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	calling.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	b.ReportMetric(float64(f.syncs.Load())/float64(b.N), "syncs/append")
}
