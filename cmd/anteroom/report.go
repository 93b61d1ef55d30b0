package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/history"
	"github.com/anteroom/anteroom/internal/term"
)

// reportPeople bounds the people of one report.
const reportPeople = 10_000_000

func (p *program) reportCommand() *cobra.Command {
	asJSON, overLimit := false, 0
	cmd := &cobra.Command{
		Use:   "report FILE...",
		Short: "Measure the fairness of a waiting room from its nodes' admission logs",
		Long: `Measure fairness from admission logs, those of all nodes together: whether people
were called in the order in which they joined, and how long they waited. A node
writes a log with serve --admissions.`,
		Example: "  anteroom report node-*.jsonl",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrongUsage(errors.New("no log given; try: anteroom report node-*.jsonl"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if overLimit < 0 {
				return wrongUsage(fmt.Errorf("--over-limit %d; give the most people beyond the limit, or 0", overLimit))
			}
			book := history.NewBook(reportPeople)
			for _, name := range args {
				if err := readAdmissions(name, book); err != nil {
					return err
				}
			}
			rooms := book.Rooms()
			if len(rooms) != 1 {
				rooms = append(rooms, "") // over all
			}
			reports := make([]roomReport, 0, len(rooms))
			for _, name := range rooms {
				reports = append(reports, roomReport{Room: name, Report: book.Report(name, overLimit)})
			}
			if asJSON {
				for _, r := range reports {
					p.printJSON(r)
				}
				return nil
			}
			for i, r := range reports {
				if i > 0 {
					fmt.Fprintln(p.stdout)
				}
				if err := p.printReport(r.Room, r.Report); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per room")
	cmd.Flags().IntVar(&overLimit, "over-limit", 0, "most people beyond the limit that the site itself has counted")
	return cmd
}

type roomReport struct {
	Room   string          `json:"room"` // "": over all rooms
	Report fairness.Report `json:"report"`
}

func readAdmissions(name string, book *history.Book) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	if err := history.Read(f, book.Add); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// printReport prints a report for people. An empty room means all.
func (p *program) printReport(room string, r fairness.Report) error {
	if room == "" {
		room = "all rooms"
	}
	tau := func(tau float64) string { return tauOf(tau, r.N) }
	seconds := func(s float64) string { return fmt.Sprintf("%.3f s", s) }
	return term.WriteTable(p.stdout, []string{room, ""}, [][]string{
		{"called from the queue", fmt.Sprint(r.N)},
		{"walked straight in", fmt.Sprint(r.OpenAdmissions)},
		{"kendall_tau (strict)", tau(r.KendallTau)},
		{"kendall_tau_thesis", tau(r.KendallTauThesis)},
		{"discordant_pairs", fmt.Sprint(r.DiscordantPairs)},
		{"max_overtaken_by", fmt.Sprint(r.MaxOvertakenBy)},
		{"open_inversions", fmt.Sprint(r.OpenInversions)},
		{"wait p50", seconds(r.Wait.P50)},
		{"wait p90", seconds(r.Wait.P90)},
		{"wait p99", seconds(r.Wait.P99)},
		{"max_wait", seconds(r.MaxWait)},
		{"call_delay p99", seconds(r.CallDelay.P99)},
		{"over_limit_max", fmt.Sprint(r.OverLimitMax)},
	})
}

// tauOf prints the share of pairs in the wrong order among so many people. There
// is none among fewer than two.
func tauOf(tau float64, people int) string {
	if people < 2 {
		return "-"
	}
	return fmt.Sprintf("%.3g", tau)
}
