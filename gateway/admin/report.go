package admin

import (
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/anteroom/anteroom/internal/fairness"
)

// Report is an event, or any other span of a room, on one page. What nobody knows is
// null.
type Report struct {
	Room     string           `json:"room"`
	From     time.Time        `json:"from"`
	To       time.Time        `json:"to"`
	Source   string           `json:"source"` // history, or admission logs
	People   People           `json:"people"`
	Wait     Shares           `json:"wait"`  // seconds, of those who waited and got in
	Visit    Shares           `json:"visit"` // seconds
	Limit    Kept             `json:"limit"`
	Order    *fairness.Report `json:"order"`     // from admission logs
	Estimate *EstimatesTrue   `json:"estimates"` // null: nobody was told any, or nobody knows
	Changes  []AuditEntry     `json:"changes"`   // the oldest first, as the node remembers that was asked
	Nodes    []NodeRan        `json:"nodes"`
	Missing  []MissingNode    `json:"missing"`
	Advice   []Advice         `json:"advice"`
	Course   Course           `json:"course"`
}

// People is what became of everybody.
type People struct {
	Came     int  `json:"came"`
	GotIn    int  `json:"got_in"`
	WalkedIn int  `json:"walked_in"` // of them, without waiting
	GaveUp   int  `json:"gave_up"`
	NoShows  *int `json:"no_shows"` // calls that nobody came for
	Refused  *int `json:"refused"`  // joins and requests, not people
	LineMost *int `json:"most_in_line"`
}

// Kept is how the limit was kept.
type Kept struct {
	MostAtOnce int  `json:"most_at_once"`
	Lowest     *int `json:"total_active_users_min"`
	Highest    *int `json:"total_active_users_max"`
	Over       *int `json:"over_limit_max"` // most people beyond it; those who were there when it was lowered are none
}

// EstimatesTrue is how often the truth fell under each quartile that was told.
type EstimatesTrue struct {
	Checked  int `json:"checked"`
	UnderP25 int `json:"under_p25"`
	UnderP50 int `json:"under_p50"`
	UnderP75 int `json:"under_p75"`
}

// NodeRan is when a node ran.
type NodeRan struct {
	Node  string     `json:"node"`
	Spans [][2]int64 `json:"spans"` // Unix seconds, in whole steps of the answer; the oldest first
}

// Course is what a chart shows. null is where no node ran.
type Course struct {
	Step   int64   `json:"step"` // seconds
	Time   []int64 `json:"time"`
	OnSite Column  `json:"on_site_max"`
	Limit  Column  `json:"total_active_users"`
	Queued Column  `json:"queued_max"`
}

// ReportSteps is how many steps of a report's span there are at most.
const ReportSteps = 1000

// reportStep is of whole minutes, which are kept of lost nodes too.
func reportStep(span time.Duration) time.Duration {
	steps := []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour}
	for _, s := range steps {
		if span <= ReportSteps*s {
			return s
		}
	}
	return 24 * time.Hour
}

// ReportOf puts a report together. changes are the newest first.
func ReportOf(f *Figures, s Setup, changes []AuditEntry) Report {
	t := &f.Total
	n := func(v float64) *int { i := int(v); return &i }
	r := Report{
		Room: f.Room, From: f.From, To: f.To, Source: "history",
		People: People{
			Came: int(t.Joins), GotIn: int(t.Admissions), WalkedIn: int(t.WalkedIn), GaveUp: int(t.DropOuts), NoShows: n(t.NoShows),
			Refused: n(t.RefusedFull + t.RefusedClosed + t.RefusedNode + t.RefusedAddress), LineMost: n(t.QueuedMax),
		},
		Wait: t.Wait, Visit: t.Visit, Limit: limitKept(f), Changes: []AuditEntry{}, Nodes: f.Ran, Missing: f.Missing, Advice: Advise(s, f),
		Course: Course{Step: f.Step, Time: f.Time, OnSite: f.OnSiteMax, Limit: f.Limit, Queued: f.QueuedMax},
	}
	if t.Estimates > 0 {
		r.Estimate = &EstimatesTrue{int(t.Estimates), int(t.UnderP25), int(t.UnderP50), int(t.UnderP75)}
	}
	for _, c := range slices.Backward(changes) {
		if c.Room == f.Room && !c.At.Before(f.From) && c.At.Before(f.To) {
			r.Changes = append(r.Changes, c)
		}
	}
	return r
}

// limitKept holds the most at once of each step against the limit. Where that was
// lowered below who was there, nobody is over it who was there before: from then on
// there may only be fewer and fewer.
func limitKept(f *Figures) Kept {
	k := Kept{MostAtOnce: int(f.Total.OnSiteMax)}
	before, allowed, over := math.NaN(), 0.0, 0.0
	for i, limit := range f.Limit {
		if math.IsNaN(limit) {
			continue
		}
		k.Lowest, k.Highest = least(k.Lowest, int(limit)), most(k.Highest, int(limit))
		if f.State[i] == "passthrough" {
			allowed = f.OnSiteMax[i] // whoever came went in
			continue
		}
		if math.IsNaN(before) {
			before, allowed = limit, max(limit, f.OnSiteMax[i]*startsOver(f, i))
		}
		bound := max(limit, before, allowed) // the limit changed some time within the step
		over = max(over, f.OnSiteMax[i]-bound)
		allowed = max(limit, min(allowed, f.OnSiteMax[i]))
		before = limit
	}
	if k.Highest != nil {
		o := int(over)
		k.Over = &o
	}
	return k
}

// startsOver is 1 where people were over the limit when the span began, which says
// nothing of how they came there: in its first step fewer got in than left.
func startsOver(f *Figures, i int) float64 {
	if f.Admissions[i] == 0 {
		return 1
	}
	return 0
}

func least(a *int, b int) *int {
	if a == nil || b < *a {
		return &b
	}
	return a
}

func most(a *int, b int) *int {
	if a == nil || b > *a {
		return &b
	}
	return a
}

// report answers with a span of a room on one page.
func (a *admin) report(w http.ResponseWriter, r *http.Request) {
	if a.c.Historian == nil {
		a.fail(w, r, http.StatusServiceUnavailable, "unavailable", "This node keeps no history.")
		return
	}
	query := r.URL.Query()
	now := time.Now()
	span, err := spanOf(func(key string) string {
		if key == "from" || key == "to" {
			return query.Get(key)
		}
		return ""
	}, now)
	format := query.Get("format")
	switch {
	case err != nil:
		a.fail(w, r, http.StatusBadRequest, "request_invalid", err.Error()+".")
		return
	case format != "" && format != "json" && format != "html":
		a.fail(w, r, http.StatusBadRequest, "request_invalid", "format: it is not json or html.")
		return
	}
	if span.To.IsZero() || span.To.After(now) {
		span.To = now
	}
	if span.From.IsZero() {
		span.From = span.To.Add(-time.Hour)
	}
	span.Step = reportStep(span.To.Sub(span.From))
	room := r.PathValue("room")
	f, err := a.c.Historian.Figures(r.Context(), room, span)
	if a.refused(w, r, err) {
		return
	}
	report := ReportOf(&f, a.setup(room), a.c.Operator.Audit())
	if format != "html" {
		a.json(w, r, report)
		return
	}
	page := report.Page()
	w.Header().Set("Content-Security-Policy", page.Policy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	write(w, r, http.StatusOK, "text/html; charset=utf-8", page.HTML)
}
