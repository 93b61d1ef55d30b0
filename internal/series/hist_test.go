package series

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

// durations are waits of milliseconds to days, from a seed.
func durations(seed uint64, n int) []int64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(math.Exp(rng.Float64() * math.Log(1e9)))
	}
	return all
}

// The buckets, and with them each percentile, are those of the HdrHistogram
// library.
func TestHistIsAnHDRHistogram(t *testing.T) {
	var h Hist
	want := hdr.New(1, msMax, 2)
	for _, ms := range append(durations(1, 20_000), 0, 1, 255, 256, msMax) {
		h.Record(ms)
		if err := want.RecordValue(ms); err != nil {
			t.Fatal(err)
		}
	}
	if h.Count() != uint64(want.TotalCount()) {
		t.Errorf("%d durations, want %d", h.Count(), want.TotalCount())
	}
	for _, p := range []float64{0.1, 25, 50, 75, 95, 99, 100} {
		got, v := h.Seconds(p/100)*1000, want.ValueAtPercentile(p)
		if indexOf(int64(got)) != indexOf(v) || math.Abs(got-float64(v)) > 0.004*float64(v)+1 {
			t.Errorf("p%v = %v ms, want %d", p, got, v)
		}
	}
	last := uint16(indexMax)
	if got := indexOf(math.MaxInt64); got != last {
		t.Errorf("the longest is in bucket %d, want %d", got, last)
	}
}

// Merging in any order, and through the encoding, gives what one histogram of all
// would be.
func TestHistsMergeExactly(t *testing.T) {
	all := durations(2, 5000)
	var whole Hist
	parts := make([]Hist, 7)
	for i, ms := range all {
		whole.Record(ms)
		parts[i%7].Record(ms)
	}
	for _, order := range [][]int{{0, 1, 2, 3, 4, 5, 6}, {6, 0, 5, 1, 4, 2, 3}} {
		var got Hist
		for _, i := range order {
			h, err := ParseHist(parts[i].Bytes())
			if err != nil {
				t.Fatal("what was written cannot be read")
			}
			got.Merge(h)
		}
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Errorf("(-one +merged in order %v):\n%s", order, diff)
		}
	}
	slices.Sort(all)
	for _, p := range []float64{0.5, 0.95} {
		want := float64(all[int(math.Ceil(p*float64(len(all))))-1]) / 1000
		if got := whole.Seconds(p); math.Abs(got-want) > 0.005*want {
			t.Errorf("p%v = %v s, want %v", 100*p, got, want)
		}
	}
}

func FuzzRows(f *testing.F) {
	r := Row{At: 120, Up: 60, OnSite: 7, Settings: Settings{50, 10, Queueing}, Waits: Hist{{3, 1}, {900, 2}}}
	r.Counts[Joins], r.Counts[RefusedAddress] = 5, 1
	f.Add(r.append(nil, 0, 60))
	f.Add(r.Waits.Bytes())
	f.Add(frame(nil, minuteBody("a", Minute{120, []NamedRow{{"", r}, {"shop", r}}})))
	f.Add([]byte("ArH1\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		var rows []Row
		if Decode(b, 0, 60, func(r *Row) bool { rows = append(rows, *r); again = r.append(again, 0, 60); return true }) == nil {
			i := 0
			if err := Decode(again, 0, 60, func(r *Row) bool {
				if diff := cmp.Diff(rows[i], *r); diff != "" {
					t.Fatal(diff)
				}
				i++
				return true
			}); err != nil || i != len(rows) {
				t.Fatalf("%d rows of %d, %v", i, len(rows), err)
			}
		}
		if h, err := ParseHist(b); err == nil {
			if again, err := ParseHist(h.Bytes()); err != nil || !slices.Equal(h, again) {
				t.Fatalf("%v is read as %v, %v", h, again, err)
			}
		}
		frames(b, func(_ int64, body []byte) { _, _, _ = readMinute(body) })
	})
}
