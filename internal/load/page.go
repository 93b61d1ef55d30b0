package load

import (
	"bytes"
	_ "embed" // of the report's template
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/plot"
)

//go:embed report.html
var reportPage string

// WriteJSON writes r as report.json has it.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Figure is a name and what it is, as people read it.
type Figure struct{ Name, Value string }

// WriteHTML writes a page with figures and plots, which needs nothing else.
// Tables is what stands above the plots.
func (r *Result) WriteHTML(w io.Writer, tables []Table) error {
	t, err := template.New("report").Parse(reportPage)
	if err != nil {
		return err
	}
	pictures := make([]template.HTML, 0, 3)
	for _, draw := range []func(io.Writer) error{r.plotLatency, r.plotCourse, r.plotWaits} {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			return err
		}
		_, svg, ok := strings.Cut(b.String(), "<svg")
		if !ok {
			return fmt.Errorf("load: a plot that is no SVG")
		}
		pictures = append(pictures, template.HTML("<svg"+svg)) // our own, and escaped there
	}
	return t.Execute(w, struct {
		*Result
		Tables   []Table
		Pictures []template.HTML
	}{r, tables, pictures})
}

// Table is one of a report: the first cell of each row says what the row is of.
type Table struct {
	Header []string // nil: none
	Rows   [][]string
}

func (r *Result) plotLatency(w io.Writer) error {
	var lines []plot.Line
	for _, name := range Kinds() {
		if k, ok := r.Requests[name]; ok {
			q := k.Latency
			lines = append(lines, plot.Line{Name: name, X: []float64{0, 1, 2, 3, 4}, Y: []float64{q.P50, q.P90, q.P99, q.P999, q.Max}})
		}
	}
	names := []string{"p50", "p90", "p99", "p99.9", "max"}
	return plot.ByName(w, "Latency by kind of request", "percentile", "until the answer", names, lines)
}

// plotCourse shows whole seconds only: the last one began and was cut short.
func (r *Result) plotCourse(w io.Writer) error {
	course := r.Course
	if len(course) > 2 {
		course = course[:len(course)-1]
	}
	lines := []plot.Line{{Name: "visitors done"}}
	for _, name := range Kinds() {
		if _, ok := r.Requests[name]; ok {
			lines = append(lines, plot.Line{Name: name})
		}
	}
	for _, s := range course {
		for i := range lines {
			n := s.Done
			if i > 0 {
				n = s.Requests[lines[i].Name]
			}
			lines[i].X, lines[i].Y = append(lines[i].X, float64(s.Second)), append(lines[i].Y, float64(n))
		}
	}
	return plot.OverTime(w, "Throughput over time", "a second", lines)
}

func (r *Result) plotWaits(w io.Writer) error {
	return plot.WaitAgainstArrival(w, "Waiting time against arrival", []plot.WaitSeries{{Name: "from joining to hearing of the call", Arrival: r.arrivals, Wait: r.waits}})
}

// Named are the counts of m, the most first.
func Named(m map[string]int64) []Figure {
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			return int(min(1, max(-1, m[b]-m[a])))
		}
		return strings.Compare(a, b)
	})
	all := make([]Figure, 0, len(names))
	for _, name := range names {
		all = append(all, Figure{name, fmt.Sprint(m[name])})
	}
	return all
}
