package main

import (
	"fmt"
	"strconv"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/term"
	"github.com/anteroom/anteroom/internal/thesis"
	"github.com/anteroom/anteroom/internal/trials"
)

// print shows the cells to people: the thesis's row, then one per algorithm.
func (c *comparison) print(tallies []*trials.Tally, done int) {
	header := []string{"users", "target", "kills", "who", "runs", "tau", "±", "as the thesis", "±", "over", "last call", "±"}
	var rows [][]string
	for i, t := range tallies {
		if i == 0 || t.Cell != tallies[i-1].Cell {
			rows = append(rows, thesisRow(t.Cell))
		}
		rows = append(rows, tallyRow(t))
	}
	term.WriteTable(c.stdout, header, rows) //nolint:errcheck // a terminal that is gone cannot be told
	fmt.Fprintf(c.stdout, `
tau            Kendall tau of those who queued, ties left out: 0 is perfect order
as the thesis  Kendall tau of everybody, two people let in during the same millisecond a mistake
over           most people beyond the target at any instant
last call      when nobody waited any more; the thesis: when the last was on the site
±              half of a 95 %% confidence interval

`)
	for _, line := range trials.Verdicts(tallies) {
		fmt.Fprintln(c.stdout, line)
	}
	if rounds := done / len(tallies); rounds < c.runs && done%len(tallies) == 0 {
		fmt.Fprintf(c.stdout, "The budget of %s was enough for %s of %s runs of each.\n", short(c.budget), term.Count(int64(rounds)), term.Count(int64(c.runs)))
	}
}

func thesisRow(c thesis.Cell) []string {
	strict := ""
	if tau, ok := trials.Recounted(c); ok {
		strict = number(trials.Tau, tau)
	}
	return []string{
		strconv.Itoa(c.Users), c.TargetName(), strconv.Itoa(c.Kills), "thesis", term.Count(thesis.RunsPerCell),
		strict, "", number(trials.Tau, c.KendallTau), "", "", number(trials.Seconds, float64(c.SimulatedMillis)/1000), "",
	}
}

func tallyRow(t *trials.Tally) []string {
	row := []string{"", "", "", string(t.Algorithm), term.Count(int64(t.Sample.Runs))}
	if t.Sample.Runs == 0 {
		return row
	}
	strict, counted, last := t.Strict(), t.AsTheThesis(), t.LastCall()
	return append(row,
		number(trials.Tau, strict.Mean.Mean), half(trials.Tau, strict),
		number(trials.Tau, counted.Mean.Mean), half(trials.Tau, counted),
		strconv.Itoa(t.Sample.Over),
		number(trials.Seconds, last.Mean.Mean), half(trials.Seconds, last))
}

// cellJSON is one cell under one algorithm as --json prints it.
type cellJSON struct {
	Users            int           `json:"users"`
	Target           string        `json:"target"`
	Kills            int           `json:"kills"`
	Algorithm        string        `json:"algorithm"`
	Runs             int           `json:"runs"`
	Failed           int           `json:"failed"`
	KendallTau       fairness.Mean `json:"kendall_tau"`
	KendallTauThesis fairness.Mean `json:"kendall_tau_thesis"` // by the time on the ticket
	OverLimitMax     int           `json:"over_limit_max"`
	LastCallSeconds  fairness.Mean `json:"last_call_seconds"`
	Thesis           thesisJSON    `json:"thesis"`
}

// thesisJSON is what the thesis published of the cell.
type thesisJSON struct {
	KendallTau       *float64 `json:"kendall_tau,omitempty"` // recounted
	KendallTauThesis float64  `json:"kendall_tau_thesis"`
	Seconds          float64  `json:"simulated_seconds"`
}

func (c *comparison) printLines(tallies []*trials.Tally) {
	for _, t := range tallies {
		published := thesisJSON{KendallTauThesis: t.Cell.KendallTau, Seconds: float64(t.Cell.SimulatedMillis) / 1000}
		if tau, ok := trials.Recounted(t.Cell); ok {
			published.KendallTau = &tau
		}
		c.printJSON(cellJSON{
			Users: t.Cell.Users, Target: t.Cell.TargetName(), Kills: t.Cell.Kills, Algorithm: string(t.Algorithm),
			Runs: t.Sample.Runs, Failed: t.Sample.Failed,
			KendallTau: t.Strict().Mean, KendallTauThesis: t.AsTheThesis().Mean,
			OverLimitMax: t.Sample.Over, LastCallSeconds: t.LastCall().Mean, Thesis: published,
		})
	}
}
