package history_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/history"
)

// Two nodes' logs, in whatever order, tell what became of everybody between 10 s and
// 100 s.
func TestLogsTellWhatBecameOfPeople(t *testing.T) {
	const s = 1_000_000
	entry := func(at int64, event, ticket string, joined int64) history.Entry {
		return history.Entry{At: at * s, Room: "shop", Event: event, Ticket: ticket, Joined: uint64(joined * s)}
	}
	lines := []history.Entry{
		entry(1, history.Open, "early", 1), entry(50, history.Ended, "early", 1), // was there, and went
		entry(11, history.Open, "open", 11), entry(31, history.Ended, "open", 11),
		entry(12, history.Called, "waited", 12), entry(32, history.Admitted, "waited", 12), entry(62, history.Ended, "waited", 12),
		entry(31, history.Admitted, "next", 13), // as open goes: two at once, with early
		entry(40, history.Dropped, "gone", 14),
		entry(40, history.Anew, "slow", 15), entry(45, history.Admitted, "anew", 15),
		entry(101, history.Admitted, "late", 16),
		{At: 20 * s, Room: "tea", Event: history.Open, Ticket: "tea", Joined: 20 * s},
	}
	want := history.Counted{
		Came: 6, GotIn: 4, WalkedIn: 1, GaveUp: 1, MostAtOnce: 4, Waits: []float64{18, 20, 30}, Visits: []float64{20, 30, 49}, First: 1 * s, Last: 62 * s,
	}
	for range 2 {
		c := history.NewCrowd("shop", 10*s, 100*s, 100)
		for _, e := range lines {
			c.Add(e)
		}
		if diff := cmp.Diff(want, c.Count()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
			lines[i], lines[j] = lines[j], lines[i]
		}
	}
	for share, want := range map[float64]float64{0.25: 18, 0.5: 20, 0.95: 30} {
		if got := history.Share([]float64{18, 20, 30}, share); got == nil || *got != want {
			t.Errorf("share %v: %v, want %v", share, got, want)
		}
	}
}
