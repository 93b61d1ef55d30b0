package main

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/history"
	"github.com/anteroom/anteroom/internal/term"
)

// reportPeople bounds the people of one report.
const reportPeople = 10_000_000

// reporting is what anteroom report was asked for.
type reporting struct {
	*program
	client         adminClient
	room, from, to string
	html, json     bool
	logsOnly       bool
	overLimit      int
	files          []string
}

func (p *program) reportCommand() *cobra.Command {
	r := reporting{program: p, client: adminClient{url: adminDefault}}
	cmd := &cobra.Command{
		Use:   "report [FILE...]",
		Short: "Report on an event, or measure fairness from the nodes' admission logs",
		Long: `With --room, report on a span of a room, over all nodes of a cluster: who came,
waited, got in and gave up, whether the limit was kept, how true the estimated
waits were, what operators did, when nodes ran, and what might be set otherwise.

Of files, which are admission logs, those of all nodes together: whether people
were called in the order in which they joined, and how long they waited. A node
writes a log with serve --admissions. With --room and files the report has both,
and with --logs-only no node is asked.`,
		Example: `  anteroom report --room shop --from -2h
  anteroom report --room shop --from 2026-11-21T18:00:00Z --to 2026-11-21T20:00:00Z --html node-*.jsonl > event.html
  anteroom report node-*.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.files = args
			switch {
			case r.overLimit < 0:
				return wrongUsage(fmt.Errorf("--over-limit %d; give the most people beyond the limit, or 0", r.overLimit))
			case r.room == "" && len(args) == 0:
				return wrongUsage(errors.New("no room and no log given; try: anteroom report --room shop, or anteroom report node-*.jsonl"))
			case r.room == "" && (r.html || r.logsOnly || r.from != "" || r.to != ""):
				return wrongUsage(errors.New("--html, --logs-only, --from and --to are of one room; name it with --room"))
			case r.html && r.json:
				return wrongUsage(errors.New("--json and --html; give one of them"))
			case r.logsOnly && len(args) == 0:
				return wrongUsage(errors.New("--logs-only, and no log given; try: anteroom report --room shop --logs-only node-*.jsonl"))
			case r.room == "":
				return r.fairness()
			}
			return r.event(cmd)
		},
	}
	cmd.Flags().StringVar(&r.room, "room", "", "`NAME` of the room to report on")
	cmd.Flags().StringVar(&r.from, "from", "", "`TIME` such as 2026-11-21T18:00:00Z, or back from now, such as -2h [-1h]")
	cmd.Flags().StringVar(&r.to, "to", "", "`TIME`, likewise [now]")
	cmd.Flags().BoolVar(&r.html, "html", false, "print a page of HTML, for a browser or a printer")
	cmd.Flags().BoolVar(&r.json, "json", false, "print one JSON object; per room, of files alone")
	cmd.Flags().BoolVar(&r.logsOnly, "logs-only", false, "go by the files alone, and ask no node")
	cmd.Flags().IntVar(&r.overLimit, "over-limit", 0, "of files: most people beyond the limit that the site itself has counted")
	r.client.add(cmd)
	return cmd
}

// fairness reports on files alone.
func (r *reporting) fairness() error {
	book := history.NewBook(reportPeople)
	for _, name := range r.files {
		if err := readAdmissions(name, book.Add); err != nil {
			return err
		}
	}
	rooms := book.Rooms()
	if len(rooms) != 1 {
		rooms = append(rooms, "") // over all
	}
	reports := make([]roomReport, 0, len(rooms))
	for _, name := range rooms {
		reports = append(reports, roomReport{Room: name, Report: book.Report(name, r.overLimit)})
	}
	if r.json {
		for _, of := range reports {
			r.printJSON(of)
		}
		return nil
	}
	for i, of := range reports {
		if i > 0 {
			fmt.Fprintln(r.stdout)
		}
		if err := r.printReport(of.Room, of.Report); err != nil {
			return err
		}
	}
	return nil
}

// event reports on a span of a room.
func (r *reporting) event(cmd *cobra.Command) error {
	var report admin.Report
	if !r.logsOnly {
		path := roomPath(r.room, "report") + "?" + url.Values{"from": {cmp.Or(r.from, "-1h")}, "to": {r.to}}.Encode()
		err := r.client.edit(cmd.Context(), asking{method: http.MethodGet, path: path}, &report)
		if err == nil && report.Source == "" {
			err = r.client.stranger("it is of a version that makes no reports")
		}
		if err != nil {
			return unlessStopped(cmd.Context(), aboutRoom(r.room, err))
		}
	} else {
		var err error
		if report.From, report.To, err = r.span(time.Now()); err != nil {
			return wrongUsage(err)
		}
	}
	if len(r.files) > 0 {
		if err := r.readLogs(&report); err != nil {
			return err
		}
	}
	switch {
	case r.json:
		r.printJSON(report)
		return nil
	case r.html:
		_, err := r.stdout.Write(report.Page().HTML)
		return err
	}
	return r.printEvent(&report)
}

// span is what --from and --to say where no node is asked; all that the logs have
// where they say nothing.
func (r *reporting) span(now time.Time) (from, to time.Time, err error) {
	if from, err = admin.Moment(r.from, now); err != nil {
		return from, to, fmt.Errorf("--from: %w", err)
	}
	if to, err = admin.Moment(r.to, now); err != nil {
		return from, to, fmt.Errorf("--to: %w", err)
	}
	return from, to, nil
}

// readLogs adds the order in which people were called, and all else that logs tell
// where no node was asked.
func (r *reporting) readLogs(report *admin.Report) error {
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if !report.From.IsZero() {
		from = report.From.UnixMicro()
	}
	if !report.To.IsZero() {
		to = report.To.UnixMicro()
	}
	book, crowd := history.NewBook(reportPeople), history.NewCrowd(r.room, from, to, reportPeople)
	for _, name := range r.files {
		err := readAdmissions(name, func(e history.Entry) {
			crowd.Add(e)
			if e.Room == r.room && (e.Event == history.Entitled || e.At >= from && e.At <= to) {
				book.Add(e)
			}
		})
		if err != nil {
			return err
		}
	}
	order := book.Report(r.room, r.overLimit)
	report.Order = &order
	n := crowd.Count()
	if r.logsOnly {
		fromLogs(report, r.room, n)
	}
	if k := &report.Limit; k.Highest != nil && n.MostAtOnce <= *k.Highest { // or ends are missing, as of a lost node
		k.MostAtOnce = max(k.MostAtOnce, n.MostAtOnce) // the waves may have missed a peak
	}
	return nil
}

// fromLogs is a report in which nothing is but what logs tell.
func fromLogs(r *admin.Report, room string, n history.Counted) {
	shares := func(all []float64) admin.Shares {
		return admin.Shares{Count: int64(len(all)), P50: history.Share(all, 0.5), P75: history.Share(all, 0.75), P95: history.Share(all, 0.95)}
	}
	if r.From.IsZero() {
		r.From = time.UnixMicro(n.First).UTC()
	}
	if r.To.IsZero() {
		r.To = time.UnixMicro(n.Last).UTC()
	}
	r.Room, r.Source = room, "admission logs"
	r.People = admin.People{Came: n.Came, GotIn: n.GotIn, WalkedIn: n.WalkedIn, GaveUp: n.GaveUp}
	r.Wait, r.Visit, r.Limit = shares(n.Waits), shares(n.Visits), admin.Kept{MostAtOnce: n.MostAtOnce}
	r.Changes, r.Nodes, r.Missing, r.Advice = []admin.AuditEntry{}, []admin.NodeRan{}, []admin.MissingNode{}, []admin.Advice{}
	r.Course.Time = []int64{}
}

func (p *program) printEvent(r *admin.Report) error {
	fmt.Fprintf(p.stdout, "room %s, %s, from %s\n", r.Room, r.Span(), r.Source)
	if text := r.MissingText(); text != "" {
		fmt.Fprintln(p.stdout, text)
	}
	for _, part := range r.Parts() {
		rows := make([][]string, 0, len(part.Lines))
		for _, l := range part.Lines {
			rows = append(rows, []string{l.Name, l.Value})
		}
		fmt.Fprintln(p.stdout)
		if err := term.WriteTable(p.stdout, []string{part.Title, ""}, rows); err != nil {
			return err
		}
	}
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(p.stdout, "\n%s\n  %s\n", title, strings.Join(lines, "\n  "))
		}
	}
	var changes, nodes, advice []string
	for i := range r.Changes {
		c := &r.Changes[i]
		changes = append(changes, c.At.UTC().Format(time.TimeOnly)+"  "+c.Who+"  "+c.Sentence())
	}
	for _, n := range r.Ran() {
		nodes = append(nodes, n.Name+" "+n.Value)
	}
	for _, a := range r.Advice {
		advice = append(advice, a.Text)
	}
	list("What operators did", changes)
	list("Nodes", nodes)
	list("Advice", advice)
	return nil
}

type roomReport struct {
	Room   string          `json:"room"` // "": over all rooms
	Report fairness.Report `json:"report"`
}

// readAdmissions reads a log, packed by gzip or not.
func readAdmissions(name string, visit func(history.Entry)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	var from io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if from, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := history.Read(from, visit); err != nil {
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
