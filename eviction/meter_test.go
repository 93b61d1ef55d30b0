package eviction

import (
	"math"
	"testing"
)

func TestMeter(t *testing.T) {
	var m meter
	if got := m.rate(5 * second); got != 0 {
		t.Errorf("rate %v of nothing", got)
	}
	now := 10 * second
	for range 6000 { // ten a second
		now += 100_000
		m.add(now)
		if got := m.rate(now); now > 30*second && math.Abs(got-10) > 0.6 {
			t.Fatalf("rate %v at %d s, want 10", got, now/second)
		}
	}
	if got := m.rate(now + 60*second); math.Abs(got-5) > 0.3 {
		t.Errorf("rate %v a half-life after the last event, want half", got)
	}
	if got := m.rate(now - second); math.IsNaN(got) || got < 0 {
		t.Errorf("rate %v at an earlier time", got)
	}
}
