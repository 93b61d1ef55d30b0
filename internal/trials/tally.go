package trials

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom/internal/thesis"
)

// Names of the metrics that set a cell beside the thesis's.
const (
	strict      = "kendall_tau"
	asTheThesis = "kendall_tau_thesis"
)

// cellMetrics is what is kept of each run of a cell.
func cellMetrics() []Metric {
	keep := []string{
		strict, asTheThesis, "max_overtaken_by", "open_inversions",
		"over_limit_max", "wait p50", "wait p99", "call_delay p99", "last call", "messages",
	}
	return slices.DeleteFunc(Metrics(), func(m Metric) bool { return !slices.Contains(keep, m.Name) })
}

// Tally is the runs of one trial.
type Tally struct {
	Trial
	Sample *Sample
}

// Tallies has an empty tally for each trial.
func Tallies(trials []Trial) []*Tally {
	tallies := make([]*Tally, len(trials))
	for i, t := range trials {
		tallies[i] = &Tally{t, NewSample(cellMetrics())}
	}
	return tallies
}

// Strict is the strict Kendall tau.
func (t *Tally) Strict() Spread { return t.Sample.Named(strict) }

// AsTheThesis is the Kendall tau by the thesis's own count.
func (t *Tally) AsTheThesis() Spread { return t.Sample.Named(asTheThesis) }

// LastCall is the simulated time in seconds at which nobody waited any more.
func (t *Tally) LastCall() Spread { return t.Sample.Named("last call") }

// published is the thesis's own figure of one of the two distances.
func (t *Tally) published(metric string) (tau float64, ok bool) {
	if metric == asTheThesis {
		return t.Cell.KendallTau, true
	}
	return Recounted(t.Cell)
}

// Recounted is the thesis's strict distance in a cell, where it is known.
func Recounted(c thesis.Cell) (tau float64, ok bool) {
	if c.Users != thesis.RecountUsers || c.Target != thesis.RecountTarget {
		return 0, false
	}
	for _, r := range thesis.Recounts() {
		if r.Kills == c.Kills {
			return r.StrictKendallTau(), true
		}
	}
	return 0, false
}

// WriteCells writes a row for each cell and algorithm, with the mean and the
// ends of its 95 % confidence interval for each metric.
func WriteCells(f *Folder, tallies []*Tally) error {
	header := []string{"users", "target", "kills", "algorithm", "runs", "failed", "thesis_kendall_tau", "thesis_kendall_tau_strict", "thesis_ms"}
	for _, m := range cellMetrics() {
		name := column(m.Name)
		header = append(header, name, name+"_low", name+"_high")
	}
	table, err := f.Table("cells.csv", header...)
	if err != nil {
		return err
	}
	for _, t := range tallies {
		recount := ""
		if tau, ok := Recounted(t.Cell); ok {
			recount = decimal(tau)
		}
		row := []string{
			strconv.Itoa(t.Cell.Users), t.Cell.TargetName(), strconv.Itoa(t.Cell.Kills), string(t.Algorithm),
			strconv.Itoa(t.Sample.Runs), strconv.Itoa(t.Sample.Failed),
			decimal(t.Cell.KendallTau), recount, strconv.Itoa(t.Cell.SimulatedMillis),
		}
		for i := range t.Sample.metrics {
			s := t.Sample.Spread(i)
			row = append(row, decimal(s.Mean.Mean), decimal(s.Low), decimal(s.High))
		}
		table.Row(row...)
	}
	return table.Close()
}

// Verdicts is what the tallies say about the three questions that the
// comparison is made for.
func Verdicts(tallies []*Tally) []string {
	lines := []string{withoutKills(tallies)}
	for _, r := range thesis.Recounts() {
		if line := againstRecount(tallies, r); line != "" && r.Kills > 0 {
			lines = append(lines, line)
		}
	}
	return append(lines, overTarget(tallies))
}

func withoutKills(tallies []*Tally) string {
	var parts []string
	cells := 0
	for _, a := range Algorithms() {
		n, worst := 0, (*Tally)(nil)
		for _, t := range tallies {
			if t.Algorithm != a || t.Cell.Kills > 0 || t.Sample.Runs == 0 {
				continue
			}
			n++
			if t.Strict().Most > 0 && (worst == nil || t.Strict().Mean.Mean > worst.Strict().Mean.Mean) {
				worst = t
			}
		}
		cells = max(cells, n)
		switch {
		case n == 0:
		case worst == nil:
			parts = append(parts, string(a)+" yes")
		default:
			parts = append(parts, fmt.Sprintf("%s no, up to %s on average in %s", a, tauText(worst.Strict().Mean.Mean), CellName(worst.Cell)))
		}
	}
	if cells == 0 {
		return "Is tau 0 without kills? No such cell was run."
	}
	where := "the cell"
	if cells > 1 {
		where = fmt.Sprintf("the %d cells", cells)
	}
	return fmt.Sprintf("Is tau 0 in every run of %s without kills? %s.", where, strings.Join(parts, "; "))
}

func againstRecount(tallies []*Tally, r thesis.Recount) string {
	var parts []string
	for _, t := range tallies {
		c := t.Cell
		if c.Users == thesis.RecountUsers && c.Target == thesis.RecountTarget && c.Kills == r.Kills && t.Sample.Runs > 0 {
			s := t.Strict()
			part := fmt.Sprintf("%s %s", t.Algorithm, tauText(s.Mean.Mean))
			if s.N > 1 {
				part += " ± " + tauText(s.Half())
			}
			parts = append(parts, part)
		}
	}
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("Tau of %d users, target %d, %d killed and added: thesis %s (recounted over %d runs); %s.",
		thesis.RecountUsers, thesis.RecountTarget, r.Kills, tauText(r.StrictKendallTau()), thesis.RecountRuns, strings.Join(parts, "; "))
}

func tauText(tau float64) string {
	if tau == 0 {
		return "0"
	}
	return fmt.Sprintf("%.1e", tau)
}

func overTarget(tallies []*Tally) string {
	var parts []string
	runs := 0
	for _, t := range tallies {
		runs += t.Sample.Runs + t.Sample.Failed
		if t.Sample.Over > 0 {
			parts = append(parts, fmt.Sprintf("%s %s by %d", CellName(t.Cell), t.Algorithm, t.Sample.Over))
		}
	}
	if parts == nil {
		return fmt.Sprintf("Did any run let in more people than the target? No, none of %d.", runs)
	}
	return "Did any run let in more people than the target? Yes: " + strings.Join(parts, "; ") + "."
}
