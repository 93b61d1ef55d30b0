package fairness_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/anteroom/anteroom/internal/fairness"
)

func TestMeanOfFewRuns(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   fairness.Mean
	}{
		{"none", nil, fairness.Mean{}},
		{"one run has no interval", []float64{4}, fairness.Mean{Mean: 4, Low: 4, High: 4, N: 1}},
		{"all alike", []float64{2, 2, 2}, fairness.Mean{Mean: 2, Low: 2, High: 2, N: 3}},
		// s = √2.5, t(4) = 2.7764: 2.7764 · 0.70711 = 1.96324.
		{"one to five", []float64{1, 2, 3, 4, 5}, fairness.Mean{Mean: 3, Low: 1.03676, High: 4.96324, N: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := fairness.MeanOf(c.values)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-4)); diff != "" {
				t.Errorf("MeanOf(%v) (-want +got):\n%s", c.values, diff)
			}
		})
	}
}

// The half-width of n values alternating between -1 and 1 is t·√(1/(n-1)), from
// which the quantile can be read off and compared with published tables.
func TestMeanOfUsesStudentsQuantile(t *testing.T) {
	for degrees, want := range map[int]float64{
		1: 12.7062, 9: 2.2622, 29: 2.0452, 31: 2.0395, 59: 2.0010, 99: 1.9842, 999: 1.9623, 99_999: 1.9600,
	} {
		values := make([]float64, degrees+1)
		for i := range values {
			values[i] = float64(1 - 2*(i%2))
		}
		m := fairness.MeanOf(values)
		got := (m.High - m.Mean) * math.Sqrt(float64(degrees))
		if math.Abs(got-want) > 1.5e-4 {
			t.Errorf("quantile for %d degrees of freedom = %.5f, want %.5f", degrees, got, want)
		}
	}
}
