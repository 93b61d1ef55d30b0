package fairness_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/qpid"
)

// slowMeasure is Measure by looking at every pair.
func slowMeasure(as []fairness.Admission, overLimitMax int) fairness.Report {
	r := fairness.Report{OverLimitMax: overLimitMax}
	var waits, delays []int64
	var x, y []int64
	for _, a := range as {
		x, y = append(x, int64(a.Joined.Stamp/1000)), append(y, a.EntitledAt/1000)
		overtaken := 0
		for _, b := range as {
			later := a.Joined.Less(b.Joined)
			switch {
			case a.Open || !later:
			case b.Open && b.CalledAt < a.EntitledAt:
				r.OpenInversions++
			case !b.Open && b.Entitled.Compare(a.Entitled) < 0:
				overtaken++
			}
		}
		if a.Open {
			r.OpenAdmissions++
			continue
		}
		r.N++
		r.DiscordantPairs += int64(overtaken)
		r.MaxOvertakenBy = max(r.MaxOvertakenBy, overtaken)
		waits = append(waits, max(0, a.CalledAt-a.JoinedAt))
		delays = append(delays, max(0, a.CalledAt-a.EntitledAt))
	}
	if r.N > 1 {
		r.KendallTau = float64(r.DiscordantPairs) / float64(r.N*(r.N-1)/2)
	}
	if n := len(as); n > 1 {
		_, mistakes := slowPairs(x, y)
		r.KendallTauThesis = float64(mistakes) / float64(n*(n-1)/2)
	}
	r.Wait = fairness.Percentiles{P50: slowPercentile(waits, 50), P90: slowPercentile(waits, 90), P99: slowPercentile(waits, 99)}
	r.MaxWait = slowPercentile(waits, 100)
	r.CallDelay = fairness.Delay{P50: slowPercentile(delays, 50), P99: slowPercentile(delays, 99), Max: slowPercentile(delays, 100)}
	return r
}

// slowPercentile tries every value: the smallest that enough do not exceed.
func slowPercentile(values []int64, percent int) float64 {
	var best int64 = -1
	for _, v := range values {
		within := 0
		for _, o := range values {
			if o <= v {
				within++
			}
		}
		if within*100 >= percent*len(values) && (best < 0 || v < best) {
			best = v
		}
	}
	return float64(max(best, 0)) / 1e6
}

func weight(stamp, id uint64) qpid.Weight {
	w := qpid.Weight{Stamp: stamp}
	binary.BigEndian.PutUint64(w.ID[8:], id)
	return w
}

func TestMeasureEqualsTheSlowReport(t *testing.T) {
	admission := rapid.Custom(func(t *rapid.T) fairness.Admission {
		// Narrow ranges make ties in every field, equal weights included.
		small := rapid.Uint64Range(0, rapid.SampledFrom([]uint64{2, 10, 100}).Draw(t, "range"))
		micros := func(name string) int64 { return int64(small.Draw(t, name)) * 500 }
		a := fairness.Admission{
			Joined:     weight(small.Draw(t, "stamp"), small.Draw(t, "id")),
			JoinedAt:   micros("joined"),
			EntitledAt: micros("entitled"),
			CalledAt:   micros("called"),
			Open:       rapid.Bool().Draw(t, "open"),
		}
		a.Entitled = fairness.Order{Epoch: small.Draw(t, "epoch"), Key: weight(small.Draw(t, "key"), small.Draw(t, "key id"))}
		return a
	})
	rapid.Check(t, func(t *rapid.T) {
		as := rapid.SliceOfN(admission, 0, 60).Draw(t, "admissions")
		before := slices.Clone(as)
		got, want := fairness.Measure(as, 3), slowMeasure(as, 3)
		if d := diff.Diff(want, got); d != "" {
			t.Fatalf("Measure (-want +got):\n%s", d)
		}
		if !slices.Equal(as, before) {
			t.Fatal("Measure changed its argument")
		}
	})
}

func TestMeasureOfACrowdEqualsTheSlowReport(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, disorder := range []int64{1, 1000, 1_000_000} { // µs
		as := queue(1000)
		for i := range as {
			a := &as[i]
			a.EntitledAt += rng.Int64N(disorder)
			a.CalledAt = a.EntitledAt + rng.Int64N(disorder)
			a.Entitled.Epoch = uint64(a.EntitledAt / 200_000)
			if a.Open = rng.IntN(3) == 0; a.Open {
				a.EntitledAt = a.CalledAt
			}
		}
		rng.Shuffle(len(as), func(i, j int) { as[i], as[j] = as[j], as[i] })
		if d := diff.Diff(slowMeasure(as, 0), fairness.Measure(as, 0)); d != "" {
			t.Errorf("Measure with a disorder of %d µs (-want +got):\n%s", disorder, d)
		}
	}
}

// queue is n people who join 1 ms apart and are entitled in that order in
// waves of ten, 200 ms apart, and called 1 ms later.
func queue(n int) []fairness.Admission {
	as := make([]fairness.Admission, n)
	for i := range as {
		at := int64(i) * 1000
		w := weight(uint64(at), uint64(i))
		wave := int64(i/10 + 1)
		as[i] = fairness.Admission{
			Joined: w, JoinedAt: at,
			Entitled:   fairness.Order{Epoch: uint64(wave), Key: w},
			EntitledAt: wave * 200_000, CalledAt: wave*200_000 + 1000,
		}
	}
	return as
}

func TestAFairQueueHasTauZeroThoughTheThesisCountHasNot(t *testing.T) {
	got := fairness.Measure(queue(100), 0)
	if got.N != 100 || got.DiscordantPairs != 0 || got.KendallTau != 0 || got.MaxOvertakenBy != 0 {
		t.Errorf("Measure of a fair queue = %+v, want nobody overtaken among 100", got)
	}
	// Ten waves of ten people let in during one millisecond: 45 ties each.
	if want := 450.0 / 4950; got.KendallTauThesis != want {
		t.Errorf("KendallTauThesis = %v, want %v", got.KendallTauThesis, want)
	}
	if want := (fairness.Delay{P50: 0.001, P99: 0.001, Max: 0.001}); got.CallDelay != want {
		t.Errorf("CallDelay = %v, want %v", got.CallDelay, want)
	}
}

func TestTheLastAdmittedFirstOvertakesEverybody(t *testing.T) {
	as := queue(100)
	as[99].Entitled.Epoch = 0
	got := fairness.Measure(as, 0)
	if got.DiscordantPairs != 99 || got.MaxOvertakenBy != 1 {
		t.Errorf("one person overtook 99: discordant %d, worst %d; want 99, 1", got.DiscordantPairs, got.MaxOvertakenBy)
	}
	as = queue(100)
	as[0].Entitled.Epoch = 1000
	got = fairness.Measure(as, 0)
	if got.DiscordantPairs != 99 || got.MaxOvertakenBy != 99 {
		t.Errorf("one person was overtaken by 99: discordant %d, worst %d; want 99, 99", got.DiscordantPairs, got.MaxOvertakenBy)
	}
}

func TestWalkingStraightInIsCountedApart(t *testing.T) {
	as := queue(20)
	// Joins after the 11th to 20th person (10 to 19 ms) while they wait for 400 ms.
	as = append(as, fairness.Admission{
		Joined: weight(19_500, 99), JoinedAt: 19_500, EntitledAt: 300_000, CalledAt: 300_000, Open: true,
	})
	got := fairness.Measure(as, 0)
	if got.OpenInversions != 10 || got.OpenAdmissions != 1 {
		t.Errorf("OpenInversions, OpenAdmissions = %d, %d, want 10, 1", got.OpenInversions, got.OpenAdmissions)
	}
	if got.N != 20 || got.DiscordantPairs != 0 || got.MaxOvertakenBy != 0 {
		t.Errorf("Measure = %+v, want the queue itself in order", got)
	}
}

func TestReportHasTheContractsKeys(t *testing.T) {
	b, err := json.Marshal(fairness.Measure(queue(4), 2))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"n":4,"open_admissions":0,"discordant_pairs":0,"kendall_tau":0,"kendall_tau_thesis":1,` +
		`"max_overtaken_by":0,"max_wait":0.201,"wait":{"p50":0.199,"p90":0.201,"p99":0.201},` +
		`"call_delay":{"p50":0.001,"p99":0.001,"max":0.001},"open_inversions":0,"over_limit_max":2}`
	if d := diff.Diff(want, string(b)); d != "" {
		t.Errorf("JSON (-want +got):\n%s", d)
	}
}

func BenchmarkMeasure(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		inOrder := queue(n)
		shuffled := slices.Clone(inOrder)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range shuffled {
			shuffled[i].Entitled.Epoch = rng.Uint64()
			shuffled[i].Open = rng.IntN(4) == 0
		}
		rng.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for _, c := range []struct {
			name       string
			admissions []fairness.Admission
		}{{"in-order", inOrder}, {"shuffled", shuffled}} {
			b.Run(fmt.Sprintf("%s/admissions=%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					fairness.Measure(c.admissions, 0)
				}
			})
		}
	}
}
