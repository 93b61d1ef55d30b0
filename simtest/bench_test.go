package simtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/simtest"
)

// BenchmarkFairness says how fair a room is, and how fast, while nodes crash and
// come back: by cut, and by QPID as in the thesis. An iteration is one simulated
// run, seeded with its number, so that figures are the same on every machine;
// only ns/op is not. Taus and visitors/sim-s are means over the runs, the others
// the worst of any. A broken promise fails it, a low figure does not.
func BenchmarkFairness(b *testing.B) {
	for _, a := range []struct {
		name      string
		algorithm eviction.Algorithm
	}{{"cut", eviction.ByCut}, {"qpid", eviction.ByQPID}} {
		for _, nodes := range []int{3, 8, 16} {
			for _, kills := range []int{0, 1, 5} {
				b.Run(fmt.Sprintf("%s/nodes=%d/kills=%d", a.name, nodes, kills), func(b *testing.B) {
					benchmarkFairness(b, overrun(a.algorithm, nodes, kills))
				})
			}
		}
	}
}

// overrun is a room that 3,000 visitors come to within 54 s, more than it has
// slots for: most of them wait. Nodes are 10 to 20 ms apart, as in the thesis.
func overrun(algorithm eviction.Algorithm, nodes, kills int) simtest.Options {
	return simtest.Options{
		Nodes: nodes, Users: 3000, Span: 60 * time.Second,
		Rooms: []eviction.Room{{Name: "shop", Target: 100, Session: 5 * time.Second, QueueAll: true, Algorithm: algorithm}},
		Load:  simtest.Load{Browse: simtest.Range{Min: 500 * time.Millisecond, Max: 1500 * time.Millisecond}, Sticky: true},
		Net:   simtest.Net{Latency: simtest.Range{Min: 10 * time.Millisecond, Max: 20 * time.Millisecond}},
		Faults: simtest.Faults{
			Kills: kills, Last: simtest.Range{Min: time.Second, Max: 3 * time.Second}, KeepKeys: true,
			Detect: simtest.Range{Min: 1200 * time.Millisecond, Max: 1800 * time.Millisecond},
		},
		After: simtest.Measure,
	}
}

func benchmarkFairness(b *testing.B, o simtest.Options) {
	var tau, thesis, rate float64
	overtaken, over := 0, 0
	for b.Loop() {
		o.Seed++
		r, err := simtest.Run(o)
		if err != nil {
			b.Fatalf("seed %d: %v", o.Seed, err)
		}
		if r.Served < o.Users {
			b.Logf("seed %d: %d of %d visitors were let in", o.Seed, r.Served, o.Users)
		}
		room := &r.Rooms[0]
		f := fairness.Measure(room.Admissions, room.OverLimitMax)
		tau += f.KendallTau
		thesis += f.KendallTauThesis
		rate += perSecond(room.Admissions)
		overtaken, over = max(overtaken, f.MaxOvertakenBy), max(over, f.OverLimitMax)
	}
	runs := float64(o.Seed)
	b.ReportMetric(tau/runs, "tau")
	b.ReportMetric(thesis/runs, "tau-thesis")
	b.ReportMetric(float64(overtaken), "overtaken-max")
	b.ReportMetric(rate/runs, "visitors/sim-s")
	b.ReportMetric(float64(over), "over-limit-max")
}

// perSecond is how many visitors were called a second, from the first one's coming
// to the last call.
func perSecond(admissions []fairness.Admission) float64 {
	if len(admissions) == 0 {
		return 0
	}
	first, last := admissions[0].JoinedAt, int64(0)
	for i := range admissions {
		first, last = min(first, admissions[i].JoinedAt), max(last, admissions[i].CalledAt)
	}
	return float64(len(admissions)) / (float64(last-first) / 1e6)
}
