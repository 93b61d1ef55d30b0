package load

import "testing"

func TestEstimatesAreReadFromAnswers(t *testing.T) {
	for _, x := range []struct {
		text string
		want quartiles
		bad  bool
	}{
		{`{"state":"waiting","estimated_wait_seconds":{"p25":1.5,"p50":20,"p75":300}}`, quartiles{1500, 20_000, 300_000}, false},
		{`{"state":"waiting","estimated_wait_seconds":{"p25":0,"p50":0,"p75":2}}`, quartiles{1, 1, 2000}, false},
		{`{"state":"waiting","estimated_wait_seconds":null}`, quartiles{}, false},
		{`{"state":"waiting"}`, quartiles{}, false},
		{`{"state":"waiting","estimated_wait_seconds":{"p25":-1,"p50":1e99,"p75":2}}`, quartiles{1, 1<<32 - 1, 2000}, false},
		{`{"state":"waiting","estimated_wait_seconds":"soon"}`, quartiles{}, true},
	} {
		var a answer
		if err := a.parse([]byte(x.text)); a.wait != x.want || (err != nil) != x.bad {
			t.Errorf("%s: %v, %v; want %v", x.text, a.wait, err, x.want)
		}
	}
}

// Everybody counts once, by any of the estimates that they were told.
func TestTheTruthIsHeldAgainstWhatVisitorsWereTold(t *testing.T) {
	var sum, c Calibration
	first := 0
	for seed := range uint64(4000) {
		var v telling
		v.hear(quartiles{}, 0, seed) // nothing was said
		v.hear(quartiles{1000, 2000, 3000}, 0, seed)
		v.hear(quartiles{4000, 5000, 6000}, 1, seed)
		if v.toldAt == 0 {
			first++
		}
		v.hear(quartiles{}, 2_000_000, seed) // it still waits
		c.add(&v, 3_000_000)                 // so it was called at 2.5 s
	}
	c.add(&telling{}, 1) // was told nothing
	sum.merge(&c)
	if want := (Calibration{4000, int64(4000 - first), int64(4000 - first), 4000}); sum != want {
		t.Errorf("got %+v, want %+v", sum, want)
	}
	if first < 1800 || first > 2200 {
		t.Errorf("the first estimate counts %d times of 4000, want half", first)
	}
}
