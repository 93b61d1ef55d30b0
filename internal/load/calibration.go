package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// quartiles are an estimated wait in ms: p25, p50, p75. All 0: there is none.
type quartiles [3]uint32

// parse reads estimated_wait_seconds, which may be null.
func (q *quartiles) parse(value []byte) error {
	if *q = (quartiles{}); string(value) == "null" {
		return nil
	}
	s := scanner{text: value}
	for more := s.take('{'); more; more = s.take(',') {
		key, ok := s.quoted()
		if !ok || !s.take(':') {
			break
		}
		number, _ := s.value()
		seconds, err := strconv.ParseFloat(string(number), 64)
		i := slices.Index([]string{"p25", "p50", "p75"}, string(key))
		if err != nil || i < 0 {
			break
		}
		q[i] = uint32(min(max(1, seconds*1000), math.MaxUint32)) // known, be it nothing
	}
	if s.take('}') && s.end() == nil && q[0] > 0 && q[1] > 0 && q[2] > 0 {
		return nil
	}
	return fmt.Errorf("%w: estimated_wait_seconds is no estimate", errAnswer)
}

// telling is one of the estimates that a visitor was told, drawn from all of them.
type telling struct {
	toldAt    int64 // µs since the start
	waitedAt  int64 // likewise: when it heard last that it waits
	quartiles quartiles
	heard     uint16 // estimates so far
}

// hear takes in an estimate. seed is one of the visitor's own.
func (t *telling) hear(q quartiles, now int64, seed uint64) {
	if t.waitedAt = now; q == (quartiles{}) || t.heard == math.MaxUint16 {
		return
	}
	t.heard++
	var source rand.PCG
	source.Seed(seed, uint64(t.heard))
	if source.Uint64()%uint64(t.heard) == 0 {
		t.toldAt, t.quartiles = now, q
	}
}

// Calibration is how often the truth was under each quartile that visitors were told:
// of each one estimate counts. The call came after the visitor heard last that it
// waits and before it heard of the call: the truth is taken to be in the middle. Good
// ones are a quarter, half and three quarters.
type Calibration struct {
	Checked  int64 `json:"checked"` // visitors who had been told anything, and were called
	UnderP25 int64 `json:"under_p25"`
	UnderP50 int64 `json:"under_p50"`
	UnderP75 int64 `json:"under_p75"`
}

// add compares what a visitor was told with the call that it hears of now.
func (c *Calibration) add(t *telling, now int64) {
	if t.heard == 0 {
		return
	}
	c.Checked++
	called := t.waitedAt + (now-t.waitedAt)/2
	for i, n := range []*int64{&c.UnderP25, &c.UnderP50, &c.UnderP75} {
		if called-t.toldAt <= 1000*int64(t.quartiles[i]) {
			*n++
		}
	}
}

func (c *Calibration) merge(o *Calibration) {
	c.Checked, c.UnderP25 = c.Checked+o.Checked, c.UnderP25+o.UnderP25
	c.UnderP50, c.UnderP75 = c.UnderP50+o.UnderP50, c.UnderP75+o.UnderP75
}

// Shares are those of the checked that were under each quartile.
func (c *Calibration) Shares() [3]float64 {
	n := float64(max(1, c.Checked))
	return [3]float64{float64(c.UnderP25) / n, float64(c.UnderP50) / n, float64(c.UnderP75) / n}
}
