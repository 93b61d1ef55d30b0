package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/term"
)

// historyLines is how many lines a person reads, unless a step is given.
const historyLines = 30

func (p *program) historyCommand() *cobra.Command {
	client := adminClient{url: adminDefault}
	var room, from, to, step, node string
	var asJSON, asCSV bool
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show how a room was, over all nodes of a cluster",
		Long: `Show how a room was in a span of time: people on the site and in line, who came,
got in, left and gave up, and how long they waited. Any node tells it of the whole
cluster, in steps of 1 s for 15 minutes, 10 s for a day, and whole minutes for 32
days where nodes have node.data.`,
		Example: `  anteroom history --room shop --from -2h
  anteroom history --room shop --from 2026-11-21T18:00:00Z --to 2026-11-21T20:00:00Z --csv > event.csv`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if room == "" {
				return wrongUsage(errors.New("no room is named; give its name, as in: anteroom history --room shop"))
			}
			if asJSON && asCSV {
				return wrongUsage(errors.New("--json and --csv; give one of them"))
			}
			query := url.Values{"from": {from}, "to": {to}, "step": {step}, "node": {node}}
			if asCSV {
				return unlessStopped(cmd.Context(), p.historyCSV(cmd.Context(), &client, room, query))
			}
			f, err := client.figures(cmd.Context(), room, query)
			if err == nil && !asJSON && step == "" && len(f.Time) > historyLines {
				query.Set("step", fmt.Sprint(readableStep(f.To.Sub(f.From))))
				f, err = client.figures(cmd.Context(), room, query)
			}
			if err != nil {
				return unlessStopped(cmd.Context(), aboutRoom(room, err))
			}
			if asJSON {
				p.printJSON(f)
				return nil
			}
			return p.printHistory(&f)
		},
	}
	cmd.Flags().StringVar(&room, "room", "", "`NAME` of the room")
	cmd.Flags().StringVar(&from, "from", "-1h", "`TIME` such as 2026-11-21T18:00:00Z, or back from now, such as -2h")
	cmd.Flags().StringVar(&to, "to", "now", "`TIME`, likewise")
	cmd.Flags().StringVar(&step, "step", "", "`TIME` of a line, such as 10s, 1m or 1h [what makes some 30 lines]")
	cmd.Flags().StringVar(&node, "node", "", "`NAME` of the one node to tell of")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, with all figures")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print all figures as comma-separated values")
	client.add(cmd)
	return cmd
}

// readableStep is how many seconds a line should tell of.
func readableStep(span time.Duration) int {
	steps := []int{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400}
	for _, s := range steps {
		if span/(time.Duration(s)*time.Second) <= historyLines {
			return s
		}
	}
	return steps[len(steps)-1]
}

func historyPath(room string, query url.Values) string {
	return roomPath(room, "history") + "?" + query.Encode()
}

// figures asks for a history.
func (a *adminClient) figures(ctx context.Context, room string, query url.Values) (f admin.Figures, err error) {
	err = a.edit(ctx, asking{method: http.MethodGet, path: historyPath(room, query)}, &f)
	if err == nil && f.Step == 0 {
		err = a.stranger("it is of a version that keeps no history")
	}
	return f, err
}

// historyCSV prints all figures, and on the other output what is missing.
func (p *program) historyCSV(ctx context.Context, a *adminClient, room string, query url.Values) error {
	f, err := a.figures(ctx, room, query)
	if err != nil {
		return aboutRoom(room, err)
	}
	if missing := missingText(&f); missing != "" {
		fmt.Fprintln(p.stderr, "anteroom history: "+missing)
	}
	_, err = p.stdout.Write(f.CSV())
	return err
}

// missingText says which nodes' figures are not there.
func missingText(f *admin.Figures) string {
	var all []string
	for _, m := range f.Missing {
		text := m.Node + " (nothing of it is here)"
		if m.Until != nil {
			text = fmt.Sprintf("%s (what it saw after %s is not here)", m.Node, m.Until.Local().Format(time.TimeOnly))
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return ""
	}
	return "missing: " + strings.Join(all, ", ")
}

// printHistory prints a table, and what there is to say of the whole span.
func (p *program) printHistory(f *admin.Figures) error {
	fmt.Fprintf(p.stdout, "room %s, %s to %s, steps of %v, as %s saw it\n", f.Room,
		f.From.Local().Format("2006-01-02 15:04:05"), f.To.Local().Format("2006-01-02 15:04:05 MST"), time.Duration(f.Step)*time.Second, cmp.Or(strings.Join(f.Nodes, ", "), "nobody"))
	if missing := missingText(f); missing != "" {
		fmt.Fprintln(p.stdout, missing)
	}
	layout := "15:04:05"
	if f.Step >= 3600 || f.To.Sub(f.From) > 24*time.Hour {
		layout = "01-02 15:04"
	}
	var rows [][]string
	for i := range f.Time {
		refused := f.RefusedFull[i] + f.RefusedClosed[i] + f.RefusedNode[i] + f.RefusedAddress[i]
		rows = append(rows, []string{
			time.Unix(f.Time[i], 0).Format(layout), figure(f.OnSite[i]), figure(f.OnSiteMax[i]), figure(f.Limit[i]), figure(f.Queued[i]),
			figure(f.Joins[i]), figure(f.Admissions[i]), waited(f.Wait.P50[i]), waited(f.Wait.P95[i]),
			figure(f.EndsLeft[i] + f.EndsExpired[i]), figure(f.NoShows[i]), figure(f.DropOuts[i]), figure(refused), cmp.Or(f.State[i], "-"),
		})
	}
	header := []string{"from", "on site", "most", "limit", "in line", "came", "got in", "wait p50", "p95", "left", "no-shows", "gave up", "refused", "state"}
	if err := term.WriteTable(p.stdout, header, rows); err != nil {
		return err
	}
	t := &f.Total
	fmt.Fprintf(p.stdout, "\n%s came, %s got in, %s of them without waiting; at most %s were on the site at once, and %s in line.\n",
		figure(t.Joins), figure(t.Admissions), figure(t.WalkedIn), figure(t.OnSiteMax), figure(t.QueuedMax))
	if t.Wait.P50 != nil {
		fmt.Fprintf(p.stdout, "Half of those who waited did for up to %s, and 95 %% up to %s.\n", waited(*t.Wait.P50), waited(*t.Wait.P95))
	}
	if t.Visit.P50 != nil {
		fmt.Fprintf(p.stdout, "Half of the visits took up to %s, and 95 %% up to %s.\n", waited(*t.Visit.P50), waited(*t.Visit.P95))
	}
	if t.Estimates > 0 {
		under := [3]float64{t.UnderP25 / t.Estimates, t.UnderP50 / t.Estimates, t.UnderP75 / t.Estimates}
		fmt.Fprintf(p.stdout, "Of %s estimated waits %s were under the p25, p50 and p75 that was told.\n", figure(t.Estimates), underText(under))
	}
	return nil
}

// figure is a number as a person reads it; "-": there is none.
func figure(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v < 10:
		return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
	}
	return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
}

// waited is a duration of so many seconds.
func waited(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case math.IsNaN(seconds):
		return "-"
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	default:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
}
