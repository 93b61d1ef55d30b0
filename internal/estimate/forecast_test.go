package estimate

import (
	"testing"
	"time"
)

// Who is called after years, by what is known, is told so, and nothing breaks: a number of
// steps that no int holds was an index (seed 12 of the swarm).
func TestYearsAreNoIndex(t *testing.T) {
	f := &Forecast{step: 1, calls: []float64{1, 2}, bySlots: []float64{1, 2}, spread: []float64{1, 2}, seen: 3, more: 1e-30}
	q, ok := f.Wait(1000)
	if !ok || q[0] != 1e6*time.Second {
		t.Errorf("%v, %v, want 1e6 s", q, ok)
	}
}
