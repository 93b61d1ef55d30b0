package admin

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Historian tells how rooms were. It may be called from many goroutines at once.
// What it refuses is a *Refusal.
type Historian interface {
	Figures(ctx context.Context, room string, q Span) (Figures, error)
	// Slots asks all nodes what they have of a room just now; empty: of all of them.
	Slots(ctx context.Context, room string) []NodeSlots
	// Waits asks all nodes how long people had waited who got in of late.
	Waits(ctx context.Context) WaitsList
}

// Span is which part of a history is asked for.
type Span struct {
	From, To time.Time     // zero: the last hour
	Step     time.Duration // 0: what suits
	Node     string        // empty: all
}

// Figures are how a room was over time. All lists are as long as Time; null is
// where no node ran, or where nobody knows.
type Figures struct {
	Room    string        `json:"room"`
	From    time.Time     `json:"from"`
	To      time.Time     `json:"to"`
	Step    int64         `json:"step"`    // seconds
	Nodes   []string      `json:"nodes"`   // whose figures these are
	Missing []MissingNode `json:"missing"` // whose are not, or not all
	Ran     []NodeRan     `json:"ran"`     // when each node ran, by name

	Time           []int64   `json:"time"` // when each step begins, Unix seconds
	OnSite         Column    `json:"on_site"`
	OnSiteMax      Column    `json:"on_site_max"`
	Queued         Column    `json:"queued"`
	QueuedMax      Column    `json:"queued_max"`
	Called         Column    `json:"called"`
	Limit          Column    `json:"total_active_users"`
	Rate           Column    `json:"new_users_per_minute"`
	State          []string  `json:"state"`
	Joins          Column    `json:"joins"`
	Calls          Column    `json:"calls"`
	Admissions     Column    `json:"admissions"`
	WalkedIn       Column    `json:"walked_in"`
	EndsLeft       Column    `json:"ends_left"`
	EndsExpired    Column    `json:"ends_expired"`
	NoShows        Column    `json:"no_shows"`
	DropOuts       Column    `json:"drop_outs"`
	RefusedFull    Column    `json:"refused_full"`
	RefusedClosed  Column    `json:"refused_closed"`
	RefusedNode    Column    `json:"refused_node"`
	RefusedAddress Column    `json:"refused_address"`
	Estimates      Column    `json:"estimates"`
	UnderP25       Column    `json:"estimates_under_p25"`
	UnderP50       Column    `json:"estimates_under_p50"`
	UnderP75       Column    `json:"estimates_under_p75"`
	Wait           Durations `json:"wait"`
	Visit          Durations `json:"visit"`

	Total Totals `json:"total"`
}

// Durations are how long something took in each step, in seconds.
type Durations struct {
	Count Column `json:"count"`
	P50   Column `json:"p50"`
	P75   Column `json:"p75"`
	P95   Column `json:"p95"`
}

// Totals are the figures of the whole span.
type Totals struct {
	OnSiteMax      float64 `json:"on_site_max"`
	QueuedMax      float64 `json:"queued_max"`
	Joins          float64 `json:"joins"`
	Calls          float64 `json:"calls"`
	Admissions     float64 `json:"admissions"`
	WalkedIn       float64 `json:"walked_in"`
	EndsLeft       float64 `json:"ends_left"`
	EndsExpired    float64 `json:"ends_expired"`
	NoShows        float64 `json:"no_shows"`
	DropOuts       float64 `json:"drop_outs"`
	RefusedFull    float64 `json:"refused_full"`
	RefusedClosed  float64 `json:"refused_closed"`
	RefusedNode    float64 `json:"refused_node"`
	RefusedAddress float64 `json:"refused_address"`
	Estimates      float64 `json:"estimates"`
	UnderP25       float64 `json:"estimates_under_p25"`
	UnderP50       float64 `json:"estimates_under_p50"`
	UnderP75       float64 `json:"estimates_under_p75"`
	Wait           Shares  `json:"wait"`
	Visit          Shares  `json:"visit"`
}

// Shares are how long something took, in seconds; null: it did not occur.
type Shares struct {
	Count int64    `json:"count"`
	P50   *float64 `json:"p50"`
	P75   *float64 `json:"p75"`
	P95   *float64 `json:"p95"`
}

// MissingNode is one whose figures are not there, or only until some time.
type MissingNode struct {
	Node  string     `json:"node"`
	Until *time.Time `json:"until"` // another node has its minutes until then; null: none of them are in the answer
}

// Column is one figure over time; NaN is null in JSON.
type Column []float64

// MarshalJSON writes a list of numbers.
func (c Column) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 2+6*len(c)), '[')
	for i, v := range c {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendFigure(b, v, "null")
	}
	return append(b, ']'), nil
}

func appendFigure(b []byte, v float64, none string) []byte {
	if math.IsNaN(v) {
		return append(b, none...)
	}
	return strconv.AppendFloat(b, math.Round(v*1000)/1000, 'f', -1, 64)
}

// UnmarshalJSON reads one.
func (c *Column) UnmarshalJSON(b []byte) error {
	*c = (*c)[:0]
	for word := range strings.SplitSeq(strings.Trim(string(b), "[] \n"), ",") {
		word = strings.TrimSpace(word)
		v, err := math.NaN(), error(nil)
		if word == "" && len(*c) == 0 {
			return nil
		}
		if word != "null" {
			if v, err = strconv.ParseFloat(word, 64); err != nil {
				return fmt.Errorf("a figure: %w", err)
			}
		}
		*c = append(*c, v)
	}
	return nil
}

// history answers with the node's last hour, or with what is asked for of the
// whole cluster.
func (a *admin) history(w http.ResponseWriter, r *http.Request) {
	room, query := r.PathValue("room"), r.URL.Query()
	asCSV := query.Get("format") == "csv" || !query.Has("format") && strings.HasPrefix(r.Header.Get("Accept"), "text/csv")
	if len(query) == 0 && !asCSV {
		samples, ok := a.c.Operator.History(room)
		if !ok {
			a.unknown(w, r)
			return
		}
		a.json(w, r, HistoryList{room, samples})
		return
	}
	if a.c.Historian == nil {
		a.fail(w, r, http.StatusNotFound, "not_found", "This node keeps no history.")
		return
	}
	span, err := spanOf(query.Get, time.Now())
	if err == nil && query.Has("format") && query.Get("format") != "csv" && query.Get("format") != "json" {
		err = fmt.Errorf("format: it is %q; want json or csv", query.Get("format"))
	}
	if err != nil {
		a.fail(w, r, http.StatusBadRequest, "request_invalid", err.Error()+".")
		return
	}
	f, err := a.c.Historian.Figures(r.Context(), room, span)
	switch {
	case a.refused(w, r, err):
	case asCSV:
		write(w, r, http.StatusOK, "text/csv; charset=utf-8; header=present", bytes.TrimSuffix(f.CSV(), []byte("\n")))
	default:
		a.json(w, r, f)
	}
}

// spanOf reads from, to, step and node.
func spanOf(get func(string) string, now time.Time) (s Span, err error) {
	s.Node = get("node")
	var errs []error
	if s.To, err = Moment(get("to"), now); err != nil {
		errs = append(errs, fmt.Errorf("to: %w", err))
	}
	if s.From, err = Moment(get("from"), now); err != nil {
		errs = append(errs, fmt.Errorf("from: %w", err))
	}
	if text := get("step"); text != "" {
		n, bad := strconv.ParseInt(text, 10, 32)
		if s.Step = time.Duration(n) * time.Second; bad != nil {
			s.Step, bad = time.ParseDuration(text)
		}
		if bad != nil || s.Step < time.Second || s.Step%time.Second != 0 {
			errs = append(errs, fmt.Errorf("step: it is %q; want whole seconds, such as 10, 1m or 1h", text))
		}
	}
	return s, errors.Join(errs...)
}

// Moment is a time as people and programs write it; zero: none is given.
func Moment(text string, now time.Time) (time.Time, error) {
	if text == "" || text == "now" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && (text[0] == '-' || text[0] == '+') {
		return now.Add(d), nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(n) < 1e11 {
		return time.UnixMilli(int64(n * 1000)), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("it is %q; want a time such as 2026-11-21T18:00:00Z, Unix seconds, or -2h", text)
}

// CSV is a line for each step, after one with the names.
func (f *Figures) CSV() []byte {
	names, columns := []string{"time"}, []func(i int) string{func(i int) string { return time.Unix(f.Time[i], 0).UTC().Format(time.RFC3339) }}
	add := func(name string, of any) {
		switch c := of.(type) {
		case Column:
			if len(c) < len(f.Time) {
				return // a node of an earlier version does not know it
			}
			names, columns = append(names, name), append(columns, func(i int) string { return string(appendFigure(nil, c[i], "")) })
		case []string:
			names, columns = append(names, name), append(columns, func(i int) string { return c[i] })
		}
	}
	each(reflect.ValueOf(*f), "", add)
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	_ = out.Write(names) // a buffer takes everything
	line := make([]string, len(columns))
	for i := range f.Time {
		for j, c := range columns {
			line[j] = c(i)
		}
		_ = out.Write(line)
	}
	out.Flush()
	return b.Bytes()
}

// each hands out the columns in a struct by their names in JSON.
func each(v reflect.Value, prefix string, add func(name string, of any)) {
	for i := range v.NumField() {
		name := prefix + v.Type().Field(i).Tag.Get("json")
		switch of := v.Field(i).Interface().(type) {
		case Durations:
			each(v.Field(i), name+"_", add)
		case Column:
			add(name, of)
		case []string:
			if name == "state" {
				add(name, of)
			}
		}
	}
}
