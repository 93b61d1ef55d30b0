package thesis_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/thesis"
)

func TestCellsAreEveryCombinationInOrder(t *testing.T) {
	type parameters struct{ users, target, kills int }
	var got, want []parameters
	for _, users := range []int{100, 500, 2500} {
		for _, target := range []int{20, 100, thesis.Unlimited} {
			for _, kills := range []int{0, 1, 5} {
				want = append(want, parameters{users, target, kills})
			}
		}
	}
	for _, c := range thesis.Cells() {
		got = append(got, parameters{c.Users, c.Target, c.Kills})
		if !(c.KendallTau > 0 && c.KendallTau < 0.001) {
			t.Errorf("%+v: Kendall tau is outside the published range", c)
		}
		if c.SimulatedMillis < 100_000 || c.SimulatedMillis > 150_000 {
			t.Errorf("%+v: simulated time is outside the published range", c)
		}
	}
	if len(got) != 27 || !slices.Equal(got, want) {
		t.Errorf("Cells() has %d rows in the order %v, want %v", len(got), got, want)
	}
}

func TestCellsHoldThePublishedFigures(t *testing.T) {
	cells := thesis.Cells()
	for _, want := range []thesis.Cell{
		{Target: 20, Users: 500, Kills: 0, KendallTau: 1.57e-4, SimulatedMillis: 100601},
		{Target: 20, Users: 2500, Kills: 5, KendallTau: 3.90e-5, SimulatedMillis: 145619},
		{Target: thesis.Unlimited, Users: 2500, Kills: 5, KendallTau: 5.80e-5, SimulatedMillis: 101596},
	} {
		if !slices.Contains(cells, want) {
			t.Errorf("Cells() has no %+v", want)
		}
	}
	if got := cells[0].TargetName() + " " + cells[8].TargetName(); got != "20 INF" {
		t.Errorf("names of the first and last target = %q, want %q", got, "20 INF")
	}
}

func TestThroughputAgreesWithItself(t *testing.T) {
	var nodes []int
	for _, l := range thesis.Throughput() {
		nodes = append(nodes, l.Nodes)
		mean := (l.Seconds[0] + l.Seconds[1] + l.Seconds[2]) / 3
		if math.Abs(mean-l.MeanSeconds) > 0.01 {
			t.Errorf("%d nodes: mean of the runs = %.2f s, published %.2f s", l.Nodes, mean, l.MeanSeconds)
		}
		if rate := thesis.LiveUsers / l.MeanSeconds; math.Abs(rate-l.UsersPerSecond) > 0.05 {
			t.Errorf("%d nodes: rate = %.2f/s, published %.1f/s", l.Nodes, rate, l.UsersPerSecond)
		}
	}
	if want := []int{3, 8, 16}; !slices.Equal(nodes, want) {
		t.Errorf("Throughput() is of %v nodes, want %v", nodes, want)
	}
}

// The published cell and the one run again differ by less than a tenth, and
// hardly any of either is disorder.
func TestRecountsTellTiesFromDisorder(t *testing.T) {
	type taus struct{ Thesis, Strict string }
	var got []taus
	for _, r := range thesis.Recounts() {
		got = append(got, taus{fmt.Sprintf("%.3g", r.KendallTau()), fmt.Sprintf("%.2g", r.StrictKendallTau())})
		for _, c := range thesis.Cells() {
			same := c.Target == thesis.RecountTarget && c.Users == thesis.RecountUsers && c.Kills == r.Kills
			if same && math.Abs(r.KendallTau()/c.KendallTau-1) > 0.1 {
				t.Errorf("%d kills: recounted %.3g, published %.3g", r.Kills, r.KendallTau(), c.KendallTau)
			}
		}
	}
	want := []taus{{"0.000152", "0"}, {"0.000158", "4.4e-06"}, {"0.000166", "1.7e-05"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("distances of the recount (-want +got):\n%s", diff)
	}
}
