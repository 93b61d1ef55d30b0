package series

import (
	"testing"
)

// The history tells of visits that were bounded as those of now are, whether their hour
// was over or not, from disk as from memory; of those of other terms nothing, and nothing
// of a crowd of which only the short visits can be over.
func TestPastVisitsAreThoseOfTheSameTerms(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.terms = 1
	w.run(hour / 2)
	first := count(w.busy)
	if got, _ := w.kept.Past("shop", 1, 0, w.now); got.Count() == 0 {
		t.Error("half an hour of visits of five minutes at most tells nothing")
	}
	w.terms = 2
	w.run(10 * minute)
	got, enough := w.kept.Past("shop", 2, 0, w.now)
	if got != nil {
		t.Error("ten minutes tell of visits that last up to five")
	}
	for _, then := range []struct {
		at   int64
		tell bool
	}{{enough - 1, false}, {enough, true}} {
		if got, _ := w.kept.Past("shop", 2, 0, then.at); (got != nil) != then.tell {
			t.Errorf("%d s before they are enough, %d visits are told", enough-then.at, got.Count())
		}
	}
	if _, enough := w.kept.Past("shop", 3, 0, w.now); enough != 0 {
		t.Errorf("no visit will be enough in %d s", enough-w.now)
	}
	w.run(2*hour + 20*minute)
	second := count(w.busy) - first
	for range 2 {
		for terms, want := range map[uint32]uint64{1: first, 2: second, 3: 0} {
			visits, _ := w.kept.Past("shop", terms, 0, w.now)
			if got := visits.Count(); got > want || want-got > 200 { // those of the minute in which they changed, and of the one that runs
				t.Errorf("%d visits of terms %d, want nearly %d", got, terms, want)
			}
		}
		if got, _ := w.kept.Past("shop", 2, w.now-hour, w.now); got.Count() == 0 || got.Count() >= second {
			t.Errorf("%d visits in the last hour of %d", got.Count(), second)
		}
		if err := w.kept.Close(); err != nil {
			t.Fatal(err)
		}
		w.open(dir)
	}
}

func count(rows []Row) (n uint64) {
	for i := range rows {
		n += rows[i].Visits.Count()
	}
	return n
}
