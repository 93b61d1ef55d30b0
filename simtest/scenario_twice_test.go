package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// Each message comes twice. That costs no wave: who is in a wave and hears of it once more has nothing to say to that.
func TestScenarioMessagesThatComeTwiceCostNoWave(t *testing.T) {
	waves := func(twice int) (n int) {
		o := short(4)
		o.Net.Twice = twice
		s := founded(t, o)
		s.arriveOver(none, 100, 20*time.Second)
		var last qpid.Epoch
		s.tap = func(f *flight) verdict {
			if c, ok := f.m.Body.(*eviction.Commit); ok && f.to == 1 && c.Epoch != last {
				n, last = n+1, c.Epoch
			}
			return pass
		}
		s.run(20 * time.Second)
		s.tap = nil
		s.finish()
		return n
	}
	if once, twice := waves(0), waves(10_000); twice < once-once/20 {
		t.Errorf("%d waves in 20s, and %d where all comes twice", once, twice)
	}
}
