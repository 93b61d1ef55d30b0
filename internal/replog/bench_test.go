package replog

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"

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
				r.Propose(bytes.Repeat([]byte{'x'}, 1024), true, func(_ []byte, err error) { answers <- err })
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

// BenchmarkSums makes and checks all sums of an entry of 1 KiB, from where it is put to
// where it is applied.
func BenchmarkSums(b *testing.B) {
	command := bytes.Repeat([]byte{'x'}, 1024)
	at := &kept{}
	s := &summed{entries: at}
	for i := uint64(1); b.Loop(); i++ {
		l := proposed(command)
		l.Index = i
		if err := s.StoreLog(&l); err != nil {
			b.Fatal(err)
		}
		var read raft.Log
		if err := s.GetLog(i, &read); err != nil {
			b.Fatal(err)
		}
		if err := applicable(&read); err != nil {
			b.Fatal(err)
		}
	}
}

// kept is the last entry, in memory.
type kept struct {
	entries
	last raft.Log
}

func (k *kept) StoreLogs(l []*raft.Log) error {
	k.last = *l[len(l)-1]
	return nil
}

func (k *kept) GetLog(_ uint64, l *raft.Log) error {
	*l = k.last
	return nil
}
