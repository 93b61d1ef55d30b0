package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/plot"
)

// texts is what a reader of the document sees: its text elements, and its title.
func texts(t *testing.T, document []byte) []string {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(document))
	var found []string
	inside := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("the document is no XML: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inside = token.Name.Local == "text" || token.Name.Local == "title"
		case xml.EndElement:
			inside = false
		case xml.CharData:
			if inside {
				found = append(found, string(token))
			}
		}
	}
}

// drawTwice draws a picture, checks that the same input gives the same bytes,
// and returns them.
func drawTwice(t *testing.T, draw func(io.Writer) error) []byte {
	t.Helper()
	var first, second bytes.Buffer
	if err := draw(&first); err != nil {
		t.Fatal(err)
	}
	if err := draw(&second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same input gave two documents")
	}
	return first.Bytes()
}

func wantTexts(t *testing.T, document []byte, want ...string) {
	t.Helper()
	got := texts(t, document)
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("the picture does not say %q; it says %q", w, got)
		}
	}
}

const title = `<"Fair" & square>`

// crowd is n people of whom the first waits longest.
func crowd(name string, n int) plot.WaitSeries {
	rng := rand.New(rand.NewPCG(1, 1))
	s := plot.WaitSeries{Name: name}
	for i := range n {
		s.Arrival = append(s.Arrival, 1800*rng.Float64())
		s.Wait = append(s.Wait, 100*rng.Float64())
		if i == 0 {
			s.Wait[0] = 599
		}
	}
	return s
}

func TestTauAgainstKillsShowsEverySeries(t *testing.T) {
	series := []plot.TauSeries{
		{Name: "ours & yours", Points: []plot.TauPoint{{Kills: 5, Tau: 1e-5, Low: -1e-6, High: 2e-5}, {Kills: 0}}},
		{Name: "thesis", Points: []plot.TauPoint{{Kills: 1, Tau: 1.5e-4, Low: 1.5e-4, High: 1.5e-4}}},
	}
	document := drawTwice(t, func(w io.Writer) error { return plot.TauAgainstKills(w, title, series) })
	wantTexts(t, document, title, "ours & yours", "thesis", "Kendall tau distance (pairs per million)", "0", "1", "5", "150")
	if series[0].Points[0].Kills != 5 {
		t.Error("TauAgainstKills changed its argument")
	}
}

func TestTauAgainstKillsPicksAUnit(t *testing.T) {
	for _, c := range []struct {
		name   string
		series []plot.TauSeries
		want   []string
	}{
		{"nothing", nil, []string{"no data", "Kendall tau distance (pairs per million)"}},
		{"perfect", []plot.TauSeries{{Points: []plot.TauPoint{{}, {Kills: 1}}}}, []string{"Kendall tau distance (pairs per million)"}},
		{"lottery", []plot.TauSeries{{Points: []plot.TauPoint{{Tau: 0.5, Low: 0.49, High: 0.51}}}}, []string{"Kendall tau distance (share of pairs)", "0.5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			document := drawTwice(t, func(w io.Writer) error { return plot.TauAgainstKills(w, title, c.series) })
			wantTexts(t, document, c.want...)
		})
	}
}

func TestTauAgainstKillsLabelsRoundNumbersOfManyKills(t *testing.T) {
	s := plot.TauSeries{Name: "many"}
	for kills := range 41 {
		s.Points = append(s.Points, plot.TauPoint{Kills: kills, Tau: 1e-6, Low: 1e-6, High: 1e-6})
	}
	document := drawTwice(t, func(w io.Writer) error { return plot.TauAgainstKills(w, title, []plot.TauSeries{s}) })
	wantTexts(t, document, "0", "10", "40")
	if slices.Contains(texts(t, document), "13") {
		t.Error("the axis labels every number of 41")
	}
}

func TestWaitAgainstArrivalShowsEverySeries(t *testing.T) {
	document := drawTwice(t, func(w io.Writer) error {
		return plot.WaitAgainstArrival(w, title, []plot.WaitSeries{crowd("<fifo>", 100), crowd("random", 100)})
	})
	wantTexts(t, document, title, "<fifo>", "random", "arrived (min after the first)", "waited (s)", "30", "600")
	document = drawTwice(t, func(w io.Writer) error { return plot.WaitAgainstArrival(w, title, nil) })
	wantTexts(t, document, "no data")
}

func TestWaitAgainstArrivalStaysSmall(t *testing.T) {
	s := crowd("stadium", 200_000)
	document := drawTwice(t, func(w io.Writer) error { return plot.WaitAgainstArrival(w, title, []plot.WaitSeries{s}) })
	if size := len(document); size > 1_000_000 {
		t.Errorf("200,000 people make %d bytes, want less than a megabyte", size)
	}
}

func TestHeatmapSaysWhatItsColoursMean(t *testing.T) {
	s := crowd("", 1000)
	document := drawTwice(t, func(w io.Writer) error { return plot.Heatmap(w, title, s.Arrival, s.Wait) })
	wantTexts(t, document, title, "arrived (min after the first)", "waited (s)")
	if got := strings.Join(texts(t, document), "\n"); !strings.Contains(got, "people in a cell (most: ") {
		t.Errorf("the picture has no colour bar; it says %q", got)
	}
	document = drawTwice(t, func(w io.Writer) error { return plot.Heatmap(w, title, nil, nil) })
	wantTexts(t, document, "no data")
	drawTwice(t, func(w io.Writer) error { return plot.Heatmap(w, title, []float64{0}, []float64{0}) })
}

func TestPicturesRefuseWhatNoAxisCanShow(t *testing.T) {
	tau := func(p plot.TauPoint) error {
		return plot.TauAgainstKills(io.Discard, title, []plot.TauSeries{{Name: "a", Points: []plot.TauPoint{p}}})
	}
	wait := func(arrival, wait []float64) error {
		return plot.WaitAgainstArrival(io.Discard, title, []plot.WaitSeries{{Name: "a", Arrival: arrival, Wait: wait}})
	}
	for name, err := range map[string]error{
		"not a number":           tau(plot.TauPoint{Tau: math.NaN()}),
		"negative distance":      tau(plot.TauPoint{Tau: -1, Low: -1, High: -1}),
		"negative kills":         tau(plot.TauPoint{Kills: -1}),
		"outside its interval":   tau(plot.TauPoint{Tau: 1, Low: 0, High: 0.5}),
		"arrival without a wait": wait([]float64{1}, nil),
		"endless wait":           wait([]float64{1}, []float64{math.Inf(1)}),
		"arrival before zero":    wait([]float64{-1}, []float64{1}),
		"heat of unequal length": plot.Heatmap(io.Discard, title, []float64{1}, nil),
	} {
		if err == nil {
			t.Errorf("%s: drawn, want an error", name)
		}
	}
}

type brokenPipe struct{}

var errBroken = errors.New("broken")

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

func TestPicturesReportAWriterThatFails(t *testing.T) {
	err := plot.TauAgainstKills(brokenPipe{}, title, nil)
	if diff := cmp.Diff(errBroken.Error(), err.Error()); diff != "" || !errors.Is(err, errBroken) {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
