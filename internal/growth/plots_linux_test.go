package growth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/anteroom/anteroom/internal/plot"
)

// measured is what Wave has found, for the plots.
var measured = map[work]map[string]float64{}

func report(b *testing.B, w work, figures map[string]float64) {
	b.Helper()
	for name, v := range figures {
		b.ReportMetric(v, name)
	}
	measured[w] = figures
}

// draw writes growth.svg: what a wave costs against each number that may grow.
func draw(dir string) (err error) {
	var panels []plot.Panel
	for _, axis := range []struct {
		name string
		at   []int
		set  func(w *work, n int)
	}{
		{"nodes", []int{1, 2, 4, 8, 16}, func(w *work, n int) { w.nodes = n }},
		{"rooms", []int{1, 10, 100}, func(w *work, n int) { w.rooms = n }},
		{"people who wait", []int{1000, 10_000, 100_000, 1_000_000}, func(w *work, n int) { w.waiting = n }},
	} {
		names := make([]string, len(axis.at))
		for i, n := range axis.at {
			names[i] = short(n)
		}
		for _, y := range []struct {
			name, unit, figure string
			per                float64
		}{{"processor time of a wave", "ms, all nodes", "cpu-ms/wave", 1}, {"size of a wave", "kB, all messages", "B/wave", 1000}} {
			lines := []plot.Line{{Name: "nobody called"}, {Name: "about 120 called by each"}}
			for i, n := range axis.at {
				w := usual
				axis.set(&w, n)
				for j, calls := range []int{0, callsPerWave} {
					w.calls = calls
					if v, ok := measured[w]; ok {
						lines[j].X, lines[j].Y = append(lines[j].X, float64(i)), append(lines[j].Y, v[y.figure]/y.per)
					}
				}
			}
			panels = append(panels, plot.Panel{Title: y.name, XLabel: axis.name, YLabel: y.unit, Names: names, Lines: lines})
		}
	}
	f, err := os.Create(filepath.Join(dir, "growth.svg"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return plot.Panels(f, "What a wave costs as nodes, rooms and the people who wait grow", panels)
}

func short(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprint(n/1_000_000) + "M"
	case n >= 1000:
		return fmt.Sprint(n/1000) + "k"
	}
	return fmt.Sprint(n)
}
