package loop

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever happens between two readings, boot time is told to the microsecond
// or so, does not go back, and has no sleep left out.
func TestBootTimeIsTrueThoughSeldomRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const start = int64(7e12)
		mono, slept, stepped, reads := int64(0), int64(0), int64(0), 0
		slow := func() int64 { return rapid.Int64Range(1, 3000).Draw(t, "ns that a reading takes") }
		c := clocks{
			boot:   func() int64 { mono += slow(); reads++; return start + mono + slept },
			others: func() (int64, int64) { mono += slow(); return mono, 1e18 + mono + slept + stepped },
		}
		last := int64(0)
		for range 200 {
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				slept += rapid.Int64Range(2*stepMin, 1e15).Draw(t, "sleep")
			case 1:
				stepped += rapid.Int64Range(-1e12, 1e12).Draw(t, "step")
			default:
				mono += rapid.Int64Range(0, 30e6).Draw(t, "time")
			}
			got := c.now().Boot
			if want := (start + mono + slept) / 1000; got > want+1 || got < want-10 {
				t.Fatalf("boot time %d, want %d", got, want)
			}
			if got < last {
				t.Fatalf("boot time went back from %d to %d", last, got)
			}
			last = got
		}
		if reads > 150 {
			t.Errorf("the boot clock was read %d times of 200", reads)
		}
	})
}

func BenchmarkSystemClock(b *testing.B) {
	now := SystemClock()
	for b.Loop() {
		now()
	}
}
