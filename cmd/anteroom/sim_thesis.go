package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/thesis"
	"github.com/anteroom/anteroom/internal/trials"
	"github.com/anteroom/anteroom/simtest"
)

// comparison is `anteroom sim thesis`.
type comparison struct {
	*program
	batchFlags
	budget     time.Duration
	algorithms []trials.Algorithm
	cells      []thesis.Cell
	copies     int
}

func (p *program) thesisCommand() *cobra.Command {
	c := &comparison{program: p, algorithms: trials.Algorithms(), cells: thesis.Cells()}
	c.batchFlags.runs = thesis.RunsPerCell
	cmd := &cobra.Command{
		Use:   "thesis",
		Short: "Run the simulations of the thesis and compare",
		Long: `Run the 27 simulations of the thesis (its Table A.1) under our algorithms, and
set them beside its figures. A cell is named users/target/kills: people who come
within 100 s, people wanted on the site, nodes killed and as many added. What
the thesis did otherwise is in docs/simulation.md.`,
		Example: `  anteroom sim thesis --runs 20
  anteroom sim thesis --budget 20m --out thesis
  anteroom sim thesis --cell 500/20/1,500/20/5 --algorithm cut,qpid --runs 100`,
		Args: noCommand,
	}
	f := &flagSet{FlagSet: cmd.Flags()}
	c.define(f, "how many runs of each cell and algorithm")
	c.copies = 1
	f.whole(&c.copies, "copies", 0, 1, "other nodes that keep each place in line")
	f.duration(&c.budget, "budget", 0, 1000*time.Hour, "stop in time, with as many runs of each as can be done; 0: no limit")
	words := make([]string, len(c.algorithms))
	for i, a := range c.algorithms {
		words[i] = string(a)
	}
	list(f, &c.algorithms, "algorithm", strings.Join(words, ","), "which of "+either(words)+" to run, commas between them", func(word string) (trials.Algorithm, error) {
		for _, a := range trials.Algorithms() {
			if string(a) == word {
				return a, nil
			}
		}
		return "", fmt.Errorf("give %s", either(words))
	})
	list(f, &c.cells, "cell", "all", "which cells to run, commas between them", func(word string) (thesis.Cell, error) {
		cell, ok := trials.CellNamed(word)
		if !ok {
			return cell, errors.New("give users/target/kills: 100, 500 or 2500, then 20, 100 or INF, then 0, 1 or 5")
		}
		return cell, nil
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c.check(f, c.runs*len(c.cells)*len(c.algorithms))
		if err := f.err(); err != nil {
			return err
		}
		return c.run(cmd.Context())
	}
	return cmd
}

// run runs all trials round by round: one run of each, then the next.
func (c *comparison) run(ctx context.Context) error {
	folder, err := openFolder(c.out)
	if err != nil {
		return err
	}
	tallies := trials.Tallies(trials.Trials(c.cells, c.algorithms))
	n := len(tallies)
	budget := trials.Budget{Time: c.budget, Round: n, Now: c.now}
	b := trials.Batch{Runs: n * c.runs, Workers: c.workers, Now: c.now, Continue: budget.Continue, Options: func(run int) simtest.Options {
		t := tallies[run%n].Trial
		o := trials.ThesisOptions(t.Cell, t.Algorithm, c.seed+uint64(run/n))
		o.Cluster.Copies = c.copies
		if c.trace {
			o.Trace = c.tracer(ctx)
		}
		return o
	}}
	if !c.json {
		c.describe()
	}
	var failures trials.Failures
	bar := c.progress(&c.batchFlags, b.Runs)
	done := b.Run(ctx, func(o *trials.Outcome) {
		t := tallies[o.Run%n]
		t.Sample.Add(o)
		failures.Add(o, fmt.Sprintf("anteroom sim thesis --cell %s --algorithm %s --copies %d --runs 1 --seed %d --trace", trials.CellName(t.Cell), t.Algorithm, c.copies, o.Seed))
		bar.Add(1)
	})
	bar.Finish()
	if folder != nil {
		err = errors.Join(trials.WriteCells(folder, tallies), trials.DrawCells(folder, tallies))
	}
	if c.json {
		c.printLines(tallies)
	} else {
		c.print(tallies, done)
		if folder != nil {
			fmt.Fprintf(c.stdout, "\nwrote %s: %s\n", c.out, strings.Join(folder.Files(), ", "))
		}
	}
	return errors.Join(c.failure(&failures), unfinished(ctx, done, b.Runs), wrap("--out", err))
}

// describe says what is about to run.
func (c *comparison) describe() {
	fmt.Fprintf(c.stdout, "%s of the thesis: 8 nodes 10ms-20ms apart, visitors within 100 s, check-in every 0.6 s, nobody stays.\n", counted(len(c.cells), "cell"))
	for _, a := range c.algorithms {
		period, urgent := a.Intervals()
		if period == 0 {
			d := eviction.Config{}.WithDefaults()
			period, urgent = d.Period, d.Urgent
		}
		fmt.Fprintf(c.stdout, "  %-13s %s; %s\n", a, a.Describe(), everyText(period, urgent))
	}
	fmt.Fprintln(c.stdout)
}

func everyText(period, urgent time.Duration) string {
	if period == urgent {
		return "decides every " + short(period) + ", as the thesis"
	}
	return "decides every " + short(period) + ", " + short(urgent) + " after somebody starts to wait"
}
