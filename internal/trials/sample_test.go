package trials_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/trials"
)

func outcome(seed uint64, r fairness.Report) *trials.Outcome {
	return &trials.Outcome{Seed: seed, Report: r}
}

func TestSpreadTellsTheSeedOfTheWorst(t *testing.T) {
	s := trials.NewSample(trials.Metrics())
	for seed, by := range []int{3, 9, 0, 9} {
		s.Add(outcome(uint64(seed), fairness.Report{MaxOvertakenBy: by}))
	}
	failed := outcome(7, fairness.Report{MaxOvertakenBy: 100, OverLimitMax: 2})
	failed.Err = errors.New("S1 broken")
	s.Add(failed)
	got := s.Named("max_overtaken_by")
	if got.N != 4 || got.Mean.Mean != 5.25 || got.Least != 0 || got.Most != 9 || got.MostSeed != 1 {
		t.Errorf("spread of 3, 9, 0, 9 = %+v", got)
	}
	if s.Over != 2 || s.Failed != 1 {
		t.Errorf("over the limit by %d in %d failed runs, want 2 and 1", s.Over, s.Failed)
	}
}

func TestRunRowsHaveAColumnForEachMetric(t *testing.T) {
	header := trials.RunHeader()
	row := trials.RunRow(outcome(4, fairness.Report{KendallTau: 0.25}))
	if len(header) != len(row) {
		t.Fatalf("%d columns and %d cells", len(header), len(row))
	}
	if diff := cmp.Diff([]string{"seed", "error", "kendall_tau"}, header[:3]); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"4", "", "0.25"}, row[:3]); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func TestKillStepsGoFromNoneToAll(t *testing.T) {
	for _, c := range []struct {
		kills int
		want  []int
	}{
		{0, []int{0}}, {1, []int{0, 1}}, {5, []int{0, 1, 2, 3, 4, 5}}, {10, []int{0, 2, 4, 6, 8, 10}}, {12, []int{0, 2, 4, 7, 9, 12}},
	} {
		if diff := cmp.Diff(c.want, trials.KillSteps(c.kills)); diff != "" {
			t.Errorf("KillSteps(%d) (-want +got):\n%s", c.kills, diff)
		}
	}
}

func TestWaitsCountFromTheFirstArrival(t *testing.T) {
	got := trials.Waits("fifo", []fairness.Admission{
		{JoinedAt: 3_000_000, CalledAt: 4_500_000}, {JoinedAt: 2_000_000, CalledAt: 2_000_000, Open: true},
	})
	if diff := cmp.Diff([]float64{1, 0}, got.Arrival); diff != "" {
		t.Errorf("arrivals (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{1.5, 0}, got.Wait); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}
