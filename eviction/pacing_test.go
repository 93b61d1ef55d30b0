package eviction

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestBucket(t *testing.T) {
	b := bucket{from: never}
	if got := b.fill(0, 60, 1, 1); got != 0 {
		t.Errorf("%d tokens at the start", got)
	}
	if got := b.fill(900_000, 60, 1, 1); got != 0 {
		t.Errorf("%d tokens after 0.9 s at one a second", got)
	}
	if got := b.fill(1_000_000, 60, 1, 1); got != 1 {
		t.Errorf("%d tokens after 1 s at one a second", got)
	}
	b.take(1)
	if got := b.fill(100*second, 60, 1, 1); got != 1 {
		t.Errorf("%d tokens after a long time, want no more than a second's worth", got)
	}
	b.take(1)
	if got := b.fill(101*second, 6000, 1, 4); got != 25 {
		t.Errorf("%d tokens for a quarter of the slots at 100 a second, want 25", got)
	}
	if got := b.fill(102*second, 6000, 1, 0); got != 0 {
		t.Errorf("%d tokens for a share of nothing", got)
	}
	b.restart(102*second, 500_000)
	if got := b.fill(103*second+400_000, 6000, 1, 1); got != 0 {
		t.Errorf("a new coordinator deals %d tokens before all dealt before have lapsed", got)
	}
	if got := b.fill(104*second, 6000, 1, 1); got != 50 {
		t.Errorf("a new coordinator has %d tokens half a second after that, want 50", got)
	}
}

// S13: within any minute no more is dealt than the rate, and a second's burst.
func TestBucketHoldsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.IntRange(1, 100_000).Draw(t, "per minute")
		b := bucket{from: never}
		b.fill(0, rate, 1, 1)
		type dealt struct {
			at int64
			n  int
		}
		var log []dealt
		now := int64(0)
		for range rapid.IntRange(1, 100).Draw(t, "waves") {
			now += rapid.Int64Range(10_000, 3_000_000).Draw(t, "later")
			n := b.fill(now, rate, 1, 1)
			if rapid.Bool().Draw(t, "some") {
				n = min(n, 1)
			}
			b.take(n)
			log = append(log, dealt{now, n})
			sum := 0
			for _, d := range log {
				if now-d.at < 60*second {
					sum += d.n
				}
			}
			if most := rate + max(1, rate/60); sum > most {
				t.Fatalf("%d dealt within a minute at a rate of %d", sum, rate)
			}
		}
	})
}

// A slow rate is not lost to rounding.
func TestBucketKeepsFractions(t *testing.T) {
	b := bucket{from: never}
	b.fill(0, 1, 1, 1)
	n := 0
	for now := int64(50_000); now <= 3600*second; now += 50_000 {
		k := b.fill(now, 1, 1, 1)
		b.take(k)
		n += k
	}
	if n < 59 || n > 60 {
		t.Errorf("%d dealt in an hour at one a minute", n)
	}
}

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
