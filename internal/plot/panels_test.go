package plot_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/anteroom/anteroom/internal/plot"
)

func TestPanelsHaveATitleEach(t *testing.T) {
	panels := []plot.Panel{
		{"one", "nodes", "ms", []string{"1", "16"}, []plot.Line{{"idle", []float64{0, 1}, []float64{0.5, 9}}}},
		{"two", "rooms", "KiB", []string{"100"}, []plot.Line{{"busy", []float64{0}, []float64{1900}}}},
		{Title: "three"},
	}
	document := drawTwice(t, func(w io.Writer) error { return plot.Panels(w, title, panels) })
	wantTexts(t, document, title, "one", "two", "three", "nodes", "16", "KiB", "2,000", "idle", "busy", "no data")
	panels[1].Lines[0].X[0] = 1
	if plot.Panels(io.Discard, title, panels) == nil {
		t.Error("a point beyond the last name was drawn")
	}
}

// The night's colours are found by the day's as the document spells them.
func TestPanelsTurnDark(t *testing.T) {
	document := drawTwice(t, func(w io.Writer) error {
		return plot.Panels(w, title, []plot.Panel{{"one", "x", "y", []string{"a"}, []plot.Line{{"l", []float64{0}, []float64{1}}}}})
	})
	style, drawing, ok := bytes.Cut(document, []byte("</style>"))
	if !ok {
		t.Fatal("there is no style")
	}
	for _, day := range []string{"fill:#FFFFFF", "fill:#222222", "fill:#666666", "stroke:#666666", "stroke:#E4E4E4"} {
		if !bytes.Contains(style, []byte(day)) || !bytes.Contains(drawing, []byte(day)) {
			t.Errorf("%q: in the style %v, in the drawing %v", day, bytes.Contains(style, []byte(day)), bytes.Contains(drawing, []byte(day)))
		}
	}
}
