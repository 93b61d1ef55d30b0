package trials

import (
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom/internal/fairness"
)

// Unit says what a metric counts.
type Unit uint8

// Units of metrics.
const (
	Tau     Unit = iota // share of pairs
	Whole               // things
	Seconds             // of simulated time
	Ratio               // things per thing
)

// Metric is a number that each run gives.
type Metric struct {
	Name string // the report's key where it has one
	Unit Unit
	Note string // what it is, in a few words
	Of   func(*Outcome) float64
}

// Metrics is what a summary of runs shows, in its order.
func Metrics() []Metric {
	whole := func(name, note string, of func(*Outcome) int64) Metric {
		return Metric{name, Whole, note, func(o *Outcome) float64 { return float64(of(o)) }}
	}
	report := func(name string, unit Unit, note string, of func(*fairness.Report) float64) Metric {
		return Metric{name, unit, note, func(o *Outcome) float64 { return of(&o.Report) }}
	}
	return []Metric{
		report("kendall_tau", Tau, "share of pairs entitled in the wrong order; 0 is perfect", func(r *fairness.Report) float64 { return r.KendallTau }),
		report("kendall_tau_thesis", Tau, "as the thesis counts: a tie on one side is a mistake", func(r *fairness.Report) float64 { return r.KendallTauThesis }),
		whole("discordant_pairs", "pairs entitled in the wrong order", func(o *Outcome) int64 { return o.Report.DiscordantPairs }),
		whole("max_overtaken_by", "most people who joined after someone and were entitled before", func(o *Outcome) int64 { return int64(o.Report.MaxOvertakenBy) }),
		whole("open_inversions", "pairs in which somebody walked in past a person who waited", func(o *Outcome) int64 { return o.Report.OpenInversions }),
		whole("over_limit_max", "most people beyond the limit at any instant", func(o *Outcome) int64 { return int64(o.Report.OverLimitMax) }),
		report("wait p50", Seconds, "from joining to the call, of those who queued", func(r *fairness.Report) float64 { return r.Wait.P50 }),
		report("wait p90", Seconds, "", func(r *fairness.Report) float64 { return r.Wait.P90 }),
		report("wait p99", Seconds, "", func(r *fairness.Report) float64 { return r.Wait.P99 }),
		report("max_wait", Seconds, "", func(r *fairness.Report) float64 { return r.MaxWait }),
		report("call_delay p50", Seconds, "from entitlement to the call: a slot on its way", func(r *fairness.Report) float64 { return r.CallDelay.P50 }),
		report("call_delay p99", Seconds, "", func(r *fairness.Report) float64 { return r.CallDelay.P99 }),
		report("call_delay max", Seconds, "", func(r *fairness.Report) float64 { return r.CallDelay.Max }),
		whole("people", "who came", func(o *Outcome) int64 { return int64(o.Came) }),
		whole("let in", "", func(o *Outcome) int64 { return int64(o.Served) }),
		whole("called from the queue", "a person who lost the place and joined anew may be called twice", func(o *Outcome) int64 { return int64(o.Report.N) }),
		whole("straight in", "there was room and nobody waited", func(o *Outcome) int64 { return int64(o.Report.OpenAdmissions) }),
		{"last call", Seconds, "simulated time at which nobody waited any more", func(o *Outcome) float64 { return o.LastCall.Seconds() }},
		{"simulated time", Seconds, "until everything had settled", func(o *Outcome) float64 { return o.Simulated.Seconds() }},
		whole("messages", "between nodes", func(o *Outcome) int64 { return o.Messages }),
		{"messages per wave", Ratio, "not told when nodes come or go", func(o *Outcome) float64 { return o.PerWave }},
	}
}

// Sample is what runs of one kind gave. A run that failed gives no figures,
// except for people over the limit.
type Sample struct {
	Runs    int // that gave figures
	Failed  int
	Stuck   int // of Runs, those in which too many nodes were lost
	Over    int // most people beyond the limit at any instant of any run
	Wall    time.Duration
	metrics []Metric
	values  [][]float64 // by metric, then run
	seeds   []uint64    // by run
}

// NewSample is empty.
func NewSample(metrics []Metric) *Sample {
	return &Sample{metrics: metrics, values: make([][]float64, len(metrics))}
}

// Add counts one run.
func (s *Sample) Add(o *Outcome) {
	s.Wall += o.Wall
	s.Over = max(s.Over, o.Report.OverLimitMax)
	if o.Err != nil {
		s.Failed++
		return
	}
	s.Runs++
	if o.Stuck {
		s.Stuck++
	}
	for i, m := range s.metrics {
		s.values[i] = append(s.values[i], m.Of(o))
	}
	s.seeds = append(s.seeds, o.Seed)
}

// Spread is how a metric is distributed over runs.
type Spread struct {
	fairness.Mean
	Least, Most float64
	MostSeed    uint64 // first seed that gave Most
}

// Half is half the width of the confidence interval of the mean.
func (s Spread) Half() float64 { return (s.High - s.Low) / 2 }

// Spread of the metric at place i of the sample's metrics.
func (s *Sample) Spread(i int) Spread {
	values := s.values[i]
	if len(values) == 0 {
		return Spread{}
	}
	d := Spread{Mean: fairness.MeanOf(values), Least: math.Inf(1), Most: math.Inf(-1)}
	for run, v := range values {
		d.Least = min(d.Least, v)
		if v > d.Most {
			d.Most, d.MostSeed = v, s.seeds[run]
		}
	}
	return d
}

// Named is the spread of the metric of that name, which the sample must have.
func (s *Sample) Named(name string) Spread {
	return s.Spread(slices.IndexFunc(s.metrics, func(m Metric) bool { return m.Name == name }))
}
