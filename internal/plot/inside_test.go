package plot

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

func TestRoundTicks(t *testing.T) {
	for _, c := range []struct {
		highest, stepMin float64
		want             []string
	}{
		{0, 0, []string{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}},
		{1, 1, []string{"0", "1"}},
		{60, 0, []string{"0", "10", "20", "30", "40", "50", "60"}},
		{0.3, 0, []string{"0", "0.05", "0.10", "0.15", "0.20", "0.25", "0.30"}},
		{4321, 0, []string{"0", "1,000", "2,000", "3,000", "4,000", "5,000"}},
		{2.5e6, 0, []string{"0", "500,000", "1,000,000", "1,500,000", "2,000,000", "2,500,000"}},
	} {
		var got []string
		for _, tick := range roundTicks(c.highest, c.stepMin) {
			got = append(got, tick.Label)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("roundTicks(%v, %v) (-want +got):\n%s", c.highest, c.stepMin, diff)
		}
	}
}

func TestRoundTicksReachWhatIsHighest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		highest := math.Pow(10, rapid.Float64Range(-9, 9).Draw(t, "exponent"))
		ticks := roundTicks(highest, 0)
		last := ticks[len(ticks)-1].Value
		if ticks[0].Value != 0 || last < highest*(1-1e-6) || len(ticks) < 4 || len(ticks) > 8 {
			t.Fatalf("roundTicks(%v) = %v, want four to eight from 0 to beyond it", highest, ticks)
		}
		for i := 1; i < len(ticks); i++ {
			if ticks[i].Label == ticks[i-1].Label {
				t.Fatalf("roundTicks(%v) = %v, want labels that differ", highest, ticks)
			}
		}
	})
}

func TestThinKeepsThoseWhoStandApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	points := make([]vg.Point, 50_000)
	for i := range points {
		points[i] = vg.Point{X: vg.Length(rng.Float64() * 300), Y: vg.Length(rng.Float64() * 100)}
	}
	apart := vg.Point{X: 150, Y: 300}
	points = append(points, apart)
	kept := thin(points, 1000)
	if len(kept) > 1000 || len(kept) < 500 {
		t.Errorf("thin kept %d of %d, want close to the limit of 1000", len(kept), len(points))
	}
	if !slices.Contains(kept, apart) {
		t.Errorf("thin dropped %v, which stands apart", apart)
	}
	if got := thin(points[:1000], 1000); len(got) != 1000 {
		t.Errorf("thin kept %d of 1000, want all", len(got))
	}
}

func TestHeatCountsEverybodyOnce(t *testing.T) {
	h := heat{latest: 60, longest: 30}
	h.count([]float64{0, 1.9, 2, 60, 60}, []float64{0, 0.9, 1, 30, 29})
	type cell struct{ X, Y, People int }
	var got []cell
	for x := range heatBins {
		for y := range heatBins {
			if n := h.people[x][y]; n > 0 {
				got = append(got, cell{x, y, n})
			}
		}
	}
	// The far edges belong to the last cell, as in numpy.histogram2d.
	want := []cell{{0, 0, 2}, {1, 1, 1}, {29, 29, 2}}
	if diff := cmp.Diff(want, got); diff != "" || h.most != 2 {
		t.Errorf("most = %d, want 2; cells (-want +got):\n%s", h.most, diff)
	}
}

func TestMorePeopleAreBrighter(t *testing.T) {
	const most = 1000
	before := -1.0
	for n := range most + 1 {
		r, g, b, _ := heatColour(float64(n), most).RGBA()
		luminance := (0.2126*float64(r) + 0.7152*float64(g) + 0.0722*float64(b)) / 0xffff
		if luminance < before-0.004 { // rounding to 8 bits may lose one of 255
			t.Fatalf("%d people have luminance %.3f, one fewer %.3f", n, luminance, before)
		}
		before = max(before, luminance)
	}
	if heatColour(0, most) == heatColour(1, most) {
		t.Error("one person looks like nobody")
	}
}
