package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/anteroom/anteroom/internal/load"
	"github.com/anteroom/anteroom/internal/term"
)

// latency is a time as people compare it: three digits or so.
func latency(seconds float64) string {
	switch {
	case seconds == 0:
		return "-"
	case seconds < 1e-3:
		return fmt.Sprintf("%.0f µs", 1e6*seconds)
	case seconds < 1:
		return fmt.Sprintf("%.*f ms", digitsAfter(1e3*seconds), 1e3*seconds)
	}
	return fmt.Sprintf("%.*f s", digitsAfter(seconds), seconds)
}

// digitsAfter is how many digits after the point make three in all.
func digitsAfter(x float64) int { return max(0, min(2, 2-int(math.Floor(math.Log10(x))))) }

// perSecond is a rate.
func perSecond(rate float64) string {
	if rate < 100 {
		return strconv.FormatFloat(rate, 'f', 1, 64)
	}
	return term.Count(int64(math.Round(rate)))
}

func quantileRow(name string, cells []string, q load.Quantiles) []string {
	row := append([]string{name}, cells...)
	for _, s := range []float64{q.P50, q.P90, q.P99, q.P999, q.Max} {
		row = append(row, latency(s))
	}
	return row
}

// loadTables is a result as people read it, on a terminal or a page.
func loadTables(r *load.Result) []load.Table {
	v := &r.Visitors
	people := [][]string{
		{"visitors_per_second", perSecond(r.VisitorsPerSecond)},
		{"done", fmt.Sprintf("%s in %s", term.Count(v.Done), latency(r.Seconds))},
	}
	for _, n := range []struct {
		name string
		n    int64
	}{
		{"gave up waiting", v.Abandoned},
		{"came back", v.Returned},
		{"went over to another gateway", v.Moved},
		{"still waiting", v.Waiting},
		{"still on the site", v.OnSite},
		{"lost", v.Lost},
		{"requests sent again", r.Retries},
		{"connections lost", r.Reconnects},
	} {
		if n.n > 0 {
			people = append(people, []string{n.name, term.Count(n.n)})
		}
	}
	var asked int64
	requests := load.Table{Header: []string{"request", "count", "a second", "p50", "p90", "p99", "p99.9", "max"}}
	for _, name := range load.Kinds() {
		if k, ok := r.Requests[name]; ok {
			asked += k.Count
			requests.Rows = append(requests.Rows, quantileRow(name, []string{term.Count(k.Count), perSecond(k.PerSecond)}, k.Latency))
		}
	}
	requests.Rows = append(requests.Rows, quantileRow("sent late by", []string{"", ""}, r.Late))
	if asked > 0 && r.CPUSeconds > 0 {
		people = append(people, []string{"generator's processor", fmt.Sprintf("%s, %s a request", latency(r.CPUSeconds), latency(r.CPUSeconds/float64(asked)))})
	}
	tables := []load.Table{{Rows: people}, requests, fairnessTable(r)}
	for _, t := range []struct {
		name string
		of   map[string]int64
	}{{"errors", r.Errors}, {"lost", r.Lost}} {
		var rows [][]string
		for _, f := range load.Named(t.of) {
			rows = append(rows, []string{f.Name, f.Value})
		}
		if rows != nil {
			tables = append(tables, load.Table{Header: []string{t.name, ""}, Rows: rows})
		}
	}
	return tables
}

// fairnessTable has the words of a report. What outsiders cannot measure says so.
func fairnessTable(r *load.Result) load.Table {
	f := &r.Report
	const unknown = "not measurable from outside"
	seconds := func(s float64) string { return fmt.Sprintf("%.3f s", s) }
	rows := [][]string{{"called from the queue", fmt.Sprint(f.N)}, {"walked straight in", fmt.Sprint(f.OpenAdmissions)}}
	if f.KendallTau == nil {
		rows = append(rows, []string{"kendall_tau", "not measurable: no answer says called_in_wave"})
	} else {
		rows = append(
			rows,
			[]string{"kendall_tau (strict)", tauOf(*f.KendallTau, f.N)},
			[]string{"kendall_tau_thesis", tauOf(*f.KendallTauThesis, f.N)},
			[]string{"discordant_pairs", fmt.Sprint(*f.DiscordantPairs)},
			[]string{"max_overtaken_by", fmt.Sprint(*f.MaxOvertakenBy)},
			[]string{"open_inversions, at most", fmt.Sprint(*f.OpenInversions)},
		)
		if r.Unordered > 0 {
			rows = append(rows, []string{"without a wave, so not among those", fmt.Sprint(r.Unordered)})
		}
	}
	rows = append(
		rows,
		[]string{"wait p50", seconds(f.Wait.P50)}, []string{"wait p90", seconds(f.Wait.P90)},
		[]string{"wait p99", seconds(f.Wait.P99)}, []string{"max_wait", seconds(f.MaxWait)},
		[]string{"call_delay", unknown}, []string{"most passes held at a time", fmt.Sprint(r.HeldMost)},
	)
	if f.OverLimitMax != nil {
		rows = append(rows, []string{"over_limit_max", fmt.Sprint(*f.OverLimitMax)})
	} else {
		rows = append(rows, []string{"over_limit_max", "not measured without --limit"})
	}
	if e := &r.Estimates; e.Checked > 0 {
		rows = append(rows, []string{"waits under their estimated p25, p50, p75", fmt.Sprintf("%s of %s", underText(e.Shares()), term.Count(e.Checked))})
	}
	return load.Table{Header: []string{r.Room, ""}, Rows: rows}
}

// underText is the shares of waits that were under each quartile that was told.
func underText(shares [3]float64) string {
	return fmt.Sprintf("%.0f, %.0f and %.0f %%", 100*shares[0], 100*shares[1], 100*shares[2])
}

func (l *loading) print(r *load.Result, tables []load.Table) {
	fmt.Fprintln(l.stdout, describeLoad(r))
	for _, t := range tables {
		fmt.Fprintln(l.stdout)
		_ = term.WriteTable(l.stdout, t.Header, t.Rows) // a terminal that is gone cannot be told
	}
}

// describeLoad is what was sent, in a line.
func describeLoad(r *load.Result) string {
	at := r.URLs[0]
	if n := len(r.URLs); n > 1 {
		at += fmt.Sprintf(" and %d more", n-1)
	}
	how := term.Count(int64(r.Concurrency)) + " at a time"
	if r.Model == "open" {
		how = perSecond(r.Rate) + " a second"
	}
	return fmt.Sprintf("%s to %s at %s, %s, over %s", counted(int(r.Visitors.Came), "visitor"), r.Room, at, how, counted(r.Connections, "connection"))
}

// comparison is `load --compare`.
func (l *loading) comparison(files []string) error {
	if len(files) != 2 {
		return wrongUsage(errors.New("--compare: give two reports, such as: anteroom load --compare before/report.json after/report.json"))
	}
	a, err := load.ReadResult(files[0])
	if err != nil {
		return err
	}
	b, err := load.ReadResult(files[1])
	if err != nil {
		return err
	}
	ratios := load.Compare(a, b)
	if l.json {
		l.printJSON(struct {
			A       string       `json:"a"`
			B       string       `json:"b"`
			Figures []load.Ratio `json:"figures"`
		}{files[0], files[1], ratios})
		return nil
	}
	rows := make([][]string, 0, len(ratios))
	for _, r := range ratios {
		ratio := "-"
		if r.Ratio != nil {
			ratio = fmt.Sprintf("%.2f", *r.Ratio)
		}
		rows = append(rows, []string{r.Name, comparedText(r.A, r.Time), comparedText(r.B, r.Time), ratio})
	}
	return term.WriteTable(l.stdout, []string{"", "A", "B", "B/A"}, rows)
}

func comparedText(x *float64, time bool) string {
	switch {
	case x == nil:
		return "-"
	case time:
		return latency(*x)
	case *x > 0 && *x < 0.05: // a distance
		return fmt.Sprintf("%.2e", *x)
	case *x == math.Trunc(*x):
		return term.Count(int64(*x))
	}
	return perSecond(*x)
}
