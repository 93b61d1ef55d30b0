package simtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// BenchmarkStalls says for how long waves stand when something goes wrong: the
// longest time in which a node that it did not happen to took part in no wave, the
// worst and the mean of all iterations, in seconds. Settings are those of a file
// that names none, and gossip takes as long to notice a death as memberlist does.
// An iteration is one simulated run, seeded with its number, so that figures are
// the same on every machine; only ns/op is not.
func BenchmarkStalls(b *testing.B) {
	for _, nodes := range []int{8, 64, 256} {
		last := nodes - 1
		for _, m := range []struct {
			name string
			to   []int // whom it happens to, by seniority: 0 leads, 1 asks others where there are more than nine
			do   func(*script)
		}{
			{"coordinator-lost", []int{0}, func(s *script) { s.down(0) }},
			{"two-lost", []int{0, 1}, func(s *script) { s.down(0); s.down(1) }},
			{"one-way-up", []int{1}, func(s *script) { s.oneWay(1, 0) }},
			{"one-way-down", []int{1}, func(s *script) { s.oneWay(0, 1) }},
			{"slow-inner", []int{1}, func(s *script) { s.turnGray(&s.hosts[1]) }},
			{"slow-leaf", []int{last}, func(s *script) { s.turnGray(&s.hosts[last]) }},
			{"slow-coordinator", []int{0}, func(s *script) { s.turnGray(&s.hosts[0]) }},
		} {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, m.name), func(b *testing.B) {
				var worst, sum, runs int64
				for b.Loop() {
					runs++
					stood := stall(b, nodes, uint64(runs), m.to, m.do)
					worst, sum = max(worst, stood), sum+stood
				}
				b.ReportMetric(float64(worst)/1e6, "worst-s")
				b.ReportMetric(float64(sum)/1e6/float64(runs), "mean-s")
			})
		}
	}
}

// stall has something happen to some nodes, and returns the longest time between
// two waves at any other, in true microseconds.
func stall(b *testing.B, nodes int, seed uint64, to []int, do func(*script)) (longest int64) {
	o := asShipped(nodes)
	o.Seed = seed
	o.Faults.Detect = Range{1200 * time.Millisecond, 1800 * time.Millisecond}
	s := assemble(b, o)
	for i := range s.hosts { // as fast as a cluster is started
		s.agenda.push(int64(i)*5_000, evStart, int32(i), 0)
	}
	s.until(20*time.Second, "one wave of all", func() bool { return s.together(nodes) })
	s.run(time.Second + time.Duration(seed*37%200)*time.Millisecond) // at another point of a period each time
	do(s)
	wave, since := make([]qpid.Epoch, nodes), make([]int64, nodes)
	for end := s.now + 20_000_000; s.now < end; s.run(10 * time.Millisecond) {
		for i := range s.hosts[:nodes] {
			if at := s.hosts[i].seen.status.Installed; at != wave[i] {
				wave[i], since[i] = at, s.now
			}
			if !slices.Contains(to, i) {
				longest = max(longest, s.now-since[i])
			}
		}
	}
	return longest
}

// oneWay has nothing arrive on the way from one host to another.
func (s *script) oneWay(from, to int32) {
	t := &trouble{kind: Halves}
	s.cutLink(t, from, to)
	s.splits = append(s.splits, t)
	s.topology()
}
