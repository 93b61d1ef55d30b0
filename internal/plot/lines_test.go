package plot_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/plot"
)

func TestOverTimeHasALineForEachName(t *testing.T) {
	document := drawTwice(t, func(w io.Writer) error {
		return plot.OverTime(w, "requests <of> a run", "a second", []plot.Line{
			{"join", []float64{0, 1, 2}, []float64{3, 9, 4}}, {"end", []float64{1}, []float64{7}},
		})
	})
	got := texts(t, document)
	for _, want := range []string{"requests <of> a run", "time (s)", "a second", "join", "end", "10"} {
		if !slices.Contains(got, want) {
			t.Errorf("the picture says %q, want %q among it", got, want)
		}
	}
}

func TestByNameHasANameForEachPlace(t *testing.T) {
	document := drawTwice(t, func(w io.Writer) error {
		return plot.ByName(w, "latency", "of the answers", "latency", []string{"p50", "max"}, []plot.Line{
			{"join", []float64{0, 1}, []float64{0.002, 0.004}},
		})
	})
	got := texts(t, document)
	for _, want := range []string{"p50", "max", "latency (ms)", "4"} {
		if !slices.Contains(got, want) {
			t.Errorf("the picture says %q, want %q among it", got, want)
		}
	}
}

func TestLinesWithoutPointsSaySo(t *testing.T) {
	document := drawTwice(t, func(w io.Writer) error { return plot.OverTime(w, "a", "b", nil) })
	if !strings.Contains(string(document), "no data") {
		t.Error("an empty plot looks broken")
	}
}

func TestALongLineStaysSmallAndKeepsItsPeak(t *testing.T) {
	var l plot.Line
	for i := range 100_000 {
		l.X, l.Y = append(l.X, float64(i)), append(l.Y, 1)
	}
	l.Y[77_777] = 50
	document := drawTwice(t, func(w io.Writer) error { return plot.OverTime(w, "a", "b", []plot.Line{l}) })
	if len(document) > 100_000 {
		t.Errorf("the document has %d bytes", len(document))
	}
	l.Y[77_777] = 1
	flat := drawTwice(t, func(w io.Writer) error { return plot.OverTime(w, "a", "b", []plot.Line{l}) })
	if string(flat) == string(document) {
		t.Error("the peak is not to be seen")
	}
}

func TestLinesThatNoAxisCanShowAreRefused(t *testing.T) {
	for name, lines := range map[string][]plot.Line{
		"lengths":  {{"a", []float64{0}, nil}},
		"negative": {{"a", []float64{0}, []float64{-1}}},
		"order":    {{"a", []float64{1, 0}, []float64{1, 1}}},
	} {
		if err := plot.OverTime(io.Discard, "", "", lines); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := plot.ByName(io.Discard, "", "", "", []string{"p50"}, []plot.Line{{"a", []float64{1}, []float64{1}}}); err == nil {
		t.Error("a point without a name: no error")
	}
}
