package admin

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page and its style
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

//go:embed report.html
var reportPage string

//go:embed report.css
var reportStyle string

// Page is a report as a page of HTML, which needs nothing beside it: no script, and a
// Content-Security-Policy that lets in its own style and nothing else.
type Page struct {
	HTML   []byte
	Policy string
}

// Line is a figure with its name.
type Line struct{ Name, Value string }

// Part is figures that belong together.
type Part struct {
	Title string
	Lines []Line
}

// Page writes the report as one.
func (r *Report) Page() Page {
	sum := sha256.Sum256([]byte(reportStyle))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	t := template.Must(template.New("report").Parse(reportPage))
	var b bytes.Buffer
	err := t.Execute(&b, struct {
		*Report
		Policy, Span, Missing string
		Style                 template.CSS
		Chart                 *chart
		Parts                 []Part
		Changes               []changeLine
		Nodes                 []Line
	}{r, policy, r.Span(), r.MissingText(), template.CSS(reportStyle), r.chart(), r.Parts(), r.changes(), r.Ran()})
	if err != nil {
		panic("admin: the report's page: " + err.Error()) // a buffer takes everything
	}
	return Page{b.Bytes(), policy}
}

const (
	reportTime  = "2006-01-02 15:04:05 MST"
	changesMost = 12 // of them on the page
)

// Span is the time that the report is of.
func (r *Report) Span() string {
	to := r.To.UTC()
	layout := reportTime
	if r.From.UTC().Format(time.DateOnly) == to.Format(time.DateOnly) {
		layout = "15:04:05 MST"
	}
	return r.From.UTC().Format("2006-01-02 15:04:05") + " to " + to.Format(layout)
}

// MissingText says which nodes' figures are not there; empty: none are missing.
func (r *Report) MissingText() string {
	var all []string
	for _, m := range r.Missing {
		text := "nothing that " + m.Node + " saw is in it"
		if m.Until != nil {
			text = fmt.Sprintf("what %s saw after %s is not in it", m.Node, m.Until.UTC().Format(time.TimeOnly))
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return ""
	}
	return "Not complete: " + strings.Join(all, "; ") + "."
}

const unknown = "not known"

func known(n *int) string {
	if n == nil {
		return unknown
	}
	return fmt.Sprint(*n)
}

// Parts are all figures, for people.
func (r *Report) Parts() []Part {
	p := &r.People
	return []Part{
		{"People", []Line{
			{"came", fmt.Sprint(p.Came)},
			{"got in", fmt.Sprint(p.GotIn)},
			{"of them without waiting", fmt.Sprint(p.WalkedIn)},
			{"gave up, or fell silent", fmt.Sprint(p.GaveUp)},
			{"called, and did not come", known(p.NoShows)},
			{"refused", known(p.Refused)},
			{"most in line at once", known(p.LineMost)},
		}},
		{"Waits and visits", append(durations("waited", &r.Wait), durations("on the site", &r.Visit)...)},
		{"Limit", []Line{{"total_active_users", r.Limit.span()}, {"most on the site at once", fmt.Sprint(r.Limit.MostAtOnce)}, {"beyond the limit", known(r.Limit.Over)}}},
		{"Order", r.order()},
		{"Estimated waits", r.Estimate.lines()},
	}
}

func durations(what string, s *Shares) []Line {
	at := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return "up to " + spell(seconds(*v))
	}
	return []Line{{"half " + what, at(s.P50)}, {"75 % " + what, at(s.P75)}, {"95 % " + what, at(s.P95)}}
}

func (k *Kept) span() string {
	switch {
	case k.Highest == nil:
		return unknown
	case *k.Lowest == *k.Highest:
		return fmt.Sprint(*k.Highest)
	}
	return fmt.Sprintf("%d to %d", *k.Lowest, *k.Highest)
}

func (r *Report) order() []Line {
	o := r.Order
	if o == nil {
		return []Line{{"Kendall tau", unknown}, {"most overtaken by", unknown}}
	}
	tau := "-" // among fewer than two there is no order
	if o.N > 1 {
		tau = fmt.Sprintf("%.3g", o.KendallTau)
	}
	return []Line{{"called from the line", fmt.Sprint(o.N)}, {"Kendall tau (0 is perfect)", tau}, {"most overtaken by", fmt.Sprint(o.MaxOvertakenBy)}}
}

func (e *EstimatesTrue) lines() []Line {
	if e == nil {
		return []Line{{"compared with the truth", unknown}}
	}
	share := func(n int) string { return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(max(1, e.Checked))) }
	return []Line{
		{"compared with the truth", fmt.Sprint(e.Checked)},
		{"no longer than p25 said (25 %)", share(e.UnderP25)},
		{"than p50 said (50 %)", share(e.UnderP50)},
		{"than p75 said (75 %)", share(e.UnderP75)},
	}
}

type changeLine struct{ At, Who, What string }

// changes are what operators did, as many as fit on the page.
func (r *Report) changes() (all []changeLine) {
	for i, c := range r.Changes {
		if i == changesMost {
			return append(all, changeLine{What: fmt.Sprintf("and %d more, in the audit", len(r.Changes)-i)})
		}
		all = append(all, changeLine{c.At.UTC().Format(time.TimeOnly), c.Who, c.Sentence()})
	}
	return all
}

// Sentence is what was done.
func (e *AuditEntry) Sentence() string {
	var all []string
	for _, c := range e.Changes {
		all = append(all, fmt.Sprintf("%s %s → %s", c.Key, c.From, c.To))
	}
	if len(all) == 0 {
		return e.Action
	}
	return e.Action + ": " + strings.Join(all, ", ")
}

// Ran says of each node when it ran, if not all the time.
func (r *Report) Ran() (all []Line) {
	at := func(s int64) string { return time.Unix(s, 0).UTC().Format("15:04") }
	for _, n := range r.Nodes {
		var parts []string
		for _, s := range n.Spans {
			parts = append(parts, at(s[0])+" to "+at(min(s[1], r.To.Unix())))
		}
		switch text := strings.Join(parts, ", "); {
		case len(n.Spans) == 1 && n.Spans[0][0] <= r.From.Unix() && n.Spans[0][1] >= r.To.Unix():
			all = append(all, Line{n.Node, "ran all the time"})
		case text == "":
			all = append(all, Line{n.Node, "nothing of it is known"})
		default:
			all = append(all, Line{n.Node, "ran from " + text})
		}
	}
	return all
}

// chart is a report's course as lines of an SVG.
type chart struct {
	Width, Height, Right int
	Grid                 []gridLine
	Hours                []timeMark
	Lines                []chartLine
}

type gridLine struct {
	Y    float64
	Text string
}

type timeMark struct {
	X    float64
	Text string
}

type chartLine struct {
	Class string
	Parts []string // of points: a gap is where nothing is known
}

// chart is nil where there is nothing to see.
func (r *Report) chart() *chart {
	c := &chart{Width: 860, Height: 200, Right: 810}
	top := 0.0
	for _, col := range []Column{r.Course.OnSite, r.Course.Limit, r.Course.Queued} {
		for _, v := range col {
			if v > top {
				top = v
			}
		}
	}
	if top == 0 || len(r.Course.Time) < 2 {
		return nil
	}
	unit := math.Pow(10, math.Floor(math.Log10(top)))
	for _, part := range []float64{0.2, 0.5, 1, 2} {
		if step := part * unit; top/step <= 5 {
			unit = step
			break
		}
	}
	top = unit * math.Ceil(top/unit)
	const above, below = 8, 22
	y := func(v float64) float64 { return math.Round(10*(above+(1-v/top)*float64(c.Height-above-below))) / 10 }
	last := len(r.Course.Time) - 1
	x := func(i int) float64 { return math.Round(10*float64(c.Right)*float64(i)/float64(last)) / 10 }
	for v := 0.0; v <= top; v += unit {
		c.Grid = append(c.Grid, gridLine{y(v), fmt.Sprintf("%.4g", v)})
	}
	layout := "15:04"
	if r.To.Sub(r.From) > 48*time.Hour {
		layout = "01-02"
	}
	for mark := 1; mark < 6; mark++ {
		i := last * mark / 6
		c.Hours = append(c.Hours, timeMark{x(i), time.Unix(r.Course.Time[i], 0).UTC().Format(layout)})
	}
	for _, l := range []struct {
		class string
		of    Column
	}{{"queued", r.Course.Queued}, {"limit", r.Course.Limit}, {"on-site", r.Course.OnSite}} {
		c.Lines = append(c.Lines, chartLine{l.class, points(l.of, x, y)})
	}
	return c
}

func points(of Column, x func(int) float64, y func(float64) float64) (parts []string) {
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			parts = append(parts, b.String())
			b.Reset()
		}
	}
	for i, v := range of {
		if math.IsNaN(v) {
			end()
			continue
		}
		fmt.Fprintf(&b, "%g,%g ", x(i), y(v))
	}
	end()
	return parts
}
