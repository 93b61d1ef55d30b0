package gateway

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnswersOfTheLastMinutesAreRemembered(t *testing.T) {
	var a answers
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	if got := a.of(at); got != (Answers{}) {
		t.Errorf("before any: %+v", got)
	}
	for i := range 100 {
		status := 200
		switch {
		case i < 3:
			status = 503
		case i == 3:
			status = 0
		}
		a.add(at.Add(time.Duration(i)*time.Second), status, time.Duration(i+1)*10*time.Millisecond) // over two minutes
	}
	within := func(got, want time.Duration) bool { return got >= want && got <= want+want/100+answersUnit }
	got := a.of(at.Add(2 * time.Minute))
	if !within(got.P50, 500*time.Millisecond) || !within(got.P95, 950*time.Millisecond) || !within(got.P99, 990*time.Millisecond) {
		t.Errorf("%v, %v and %v; want 500, 950 and 990 ms", got.P50, got.P95, got.P99)
	}
	got.P50, got.P95, got.P99 = 0, 0, 0
	if want := (Answers{Count: 100, Failed: 4, NoAnswer: 1, Server: 3}); got != want {
		t.Error(cmp.Diff(want, got))
	}
	if got := a.of(at.Add(5 * time.Minute)); got.Count != 40 || got.Failed != 0 {
		t.Errorf("when the first minute is over for five: %+v", got)
	}
	if got := a.of(at.Add(6 * time.Minute)); got != (Answers{}) {
		t.Errorf("when all is over for five: %+v", got)
	}
	a.add(at.Add(5*time.Minute), 200, time.Hour) // takes the place of the first minute
	if got := a.of(at.Add(5 * time.Minute)); got.Count != 41 || got.Failed != 0 || got.P99 < answersMax {
		t.Errorf("with one of a new minute: %+v", got)
	}
}
