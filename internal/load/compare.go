package load

import (
	"encoding/json"
	"fmt"
	"os"
)

// Ratio is one figure of two runs, A and B.
type Ratio struct {
	Name  string   `json:"name"`
	A     *float64 `json:"a"` // null: not measured
	B     *float64 `json:"b"`
	Ratio *float64 `json:"ratio"` // B/A; null: there is none
	Time  bool     `json:"-"`     // it is of seconds
}

// ReadResult reads a report.json, or what --json printed.
func ReadResult(name string) (*Result, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s is no report of anteroom load: %w", name, err)
	}
	if r.Model == "" || r.Requests == nil {
		return nil, fmt.Errorf("%s is no report of anteroom load: it has no model and no requests", name)
	}
	return r, nil
}

// Compare sets the figures of b beside those of a.
func Compare(a, b *Result) (all []Ratio) {
	add := func(name string, time bool, x, y *float64) {
		r := Ratio{Name: name, A: x, B: y, Time: time}
		if x != nil && y != nil && *x != 0 && (*y != 0 || !time) { // a time of nothing is one that nobody took
			r.Ratio = new(*y / *x)
		}
		if x != nil || y != nil {
			all = append(all, r)
		}
	}
	add("visitors_per_second", false, &a.VisitorsPerSecond, &b.VisitorsPerSecond)
	add("seconds", true, &a.Seconds, &b.Seconds)
	add("visitors done", false, new(float64(a.Visitors.Done)), new(float64(b.Visitors.Done)))
	add("visitors lost", false, new(float64(a.Visitors.Lost)), new(float64(b.Visitors.Lost)))
	for _, name := range Kinds() {
		x, y := kindOf(a, name), kindOf(b, name)
		add(name+" per second", false, x.rate, y.rate)
		add(name+" p50", true, x.p50, y.p50)
		add(name+" p99", true, x.p99, y.p99)
		add(name+" max", true, x.max, y.max)
	}
	add("late p99", true, &a.Late.P99, &b.Late.P99)
	add("retries", false, new(float64(a.Retries)), new(float64(b.Retries)))
	add("generator's processor time", true, &a.CPUSeconds, &b.CPUSeconds)
	add("kendall_tau", false, a.Report.KendallTau, b.Report.KendallTau)
	add("wait p50", true, &a.Report.Wait.P50, &b.Report.Wait.P50)
	add("wait p99", true, &a.Report.Wait.P99, &b.Report.Wait.P99)
	add("max_wait", true, &a.Report.MaxWait, &b.Report.MaxWait)
	return all
}

// compared are the figures of one kind of request; nil where there was none.
type compared struct{ rate, p50, p99, max *float64 }

func kindOf(r *Result, name string) compared {
	k, ok := r.Requests[name]
	if !ok {
		return compared{}
	}
	return compared{&k.PerSecond, &k.Latency.P50, &k.Latency.P99, &k.Latency.Max}
}
