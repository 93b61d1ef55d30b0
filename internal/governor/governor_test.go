package governor_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/internal/governor"
)

func TestWhatAWindowSays(t *testing.T) {
	c := governor.Config{Errors: 0.01}
	type f = governor.Figures
	for _, w := range []struct {
		name string
		f    f
		want governor.Judgement
	}{
		{"nothing", f{}, governor.Judgement{Verdict: governor.Unknown}},
		{"too few answers, all bad", f{Asked: 49, Answered: 49, Failed: 49, Slow: 49}, governor.Judgement{Verdict: governor.Unknown}},
		{"all well", f{Asked: 1000, Answered: 1000}, governor.Judgement{Verdict: governor.Healthy}},
		{"two failures among few", f{Asked: 50, Answered: 50, Failed: 2}, governor.Judgement{Verdict: governor.Near, Cause: governor.Failing, Figure: 0.04}},
		{"three", f{Asked: 50, Answered: 50, Failed: 3}, governor.Judgement{Verdict: governor.Overloaded, Cause: governor.Failing, Figure: 0.06}},
		{"as many failures as may be", f{Asked: 1000, Answered: 1000, Failed: 10}, governor.Judgement{Verdict: governor.Near, Cause: governor.Failing, Figure: 0.01}},
		{"one more", f{Asked: 1000, Answered: 1000, Failed: 11}, governor.Judgement{Verdict: governor.Overloaded, Cause: governor.Failing, Figure: 0.011}},
		{"as many slow ones as may be", f{Asked: 100, Answered: 100, Slow: 5}, governor.Judgement{Verdict: governor.Near, Cause: governor.Slow, Figure: 0.05}},
		{"one more slow one", f{Asked: 100, Answered: 100, Slow: 6}, governor.Judgement{Verdict: governor.Overloaded, Cause: governor.Slow, Figure: 0.06}},
		{"half of the answers do not come", f{Asked: 100, Answered: 49}, governor.Judgement{Verdict: governor.Overloaded, Cause: governor.Unanswered, Figure: 0.51}},
		{"none come", f{Asked: 50}, governor.Judgement{Verdict: governor.Overloaded, Cause: governor.Unanswered, Figure: 1}},
		{"it says that it is full", f{Asked: 100, Answered: 100, Loads: 10, Load: 11e6}, governor.Judgement{Verdict: governor.Overloaded, Cause: governor.Load, Figure: 1.1}},
		{"nearly", f{Asked: 100, Answered: 100, Loads: 10, Load: 9.8e6}, governor.Judgement{Verdict: governor.Near, Cause: governor.Load, Figure: 0.98}},
	} {
		if got := c.Judge(w.f); got != w.want {
			t.Errorf("%s: %+v, want %+v", w.name, got, w.want)
		}
	}
}

func TestWhatFollows(t *testing.T) {
	for _, s := range []struct {
		name string
		c    governor.Config
		r    governor.Room
		v    governor.Verdict
		want int
	}{
		{"well, and no bound", governor.Config{}, governor.Room{Limit: 1000, Inside: 1000}, governor.Healthy, 0},
		{"too much", governor.Config{}, governor.Room{Limit: 1000, Inside: 1000}, governor.Overloaded, 900},
		{"still, and nobody has left", governor.Config{}, governor.Room{Limit: 1000, Bound: 900, Inside: 1000}, governor.Overloaded, 900},
		{"still, and they have", governor.Config{}, governor.Room{Limit: 1000, Bound: 900, Inside: 900}, governor.Overloaded, 810},
		{"too much for the few who are there", governor.Config{}, governor.Room{Limit: 1000, Inside: 300}, governor.Overloaded, 270},
		{"near", governor.Config{}, governor.Room{Limit: 1000, Bound: 500, Inside: 500}, governor.Near, 500},
		{"nobody knows", governor.Config{}, governor.Room{Limit: 1000, Bound: 500, Inside: 500}, governor.Unknown, 500},
		{"well again, and it is used", governor.Config{}, governor.Room{Limit: 1000, Bound: 500, Inside: 450}, governor.Healthy, 510},
		{"well again, and it is not", governor.Config{}, governor.Room{Limit: 1000, Bound: 500, Inside: 449}, governor.Healthy, 500},
		{"at the limit again", governor.Config{}, governor.Room{Limit: 1000, Bound: 995, Inside: 995}, governor.Healthy, 0},
		{"the limit was lowered meanwhile", governor.Config{}, governor.Room{Limit: 400, Bound: 500, Inside: 450}, governor.Near, 0},
		{"at the floor", governor.Config{}, governor.Room{Limit: 1000, Bound: 104, Inside: 104}, governor.Overloaded, 100},
		{"at that of the operator", governor.Config{Floor: 300}, governor.Room{Limit: 1000, Bound: 310, Inside: 310}, governor.Overloaded, 300},
		{"the floor is above the limit", governor.Config{Floor: 300}, governor.Room{Limit: 200, Inside: 200}, governor.Overloaded, 0},
		{"a small room grows too", governor.Config{}, governor.Room{Limit: 5, Bound: 1, Inside: 1}, governor.Healthy, 2},
		{"nobody may come in", governor.Config{}, governor.Room{}, governor.Overloaded, 0},
	} {
		if got := s.c.Next(s.r, s.v); got != s.want {
			t.Errorf("%s: %d, want %d", s.name, got, s.want)
		}
	}
}

// TestABoundIsBelowTheLimit, whatever is judged and configured, and at least the floor.
func TestABoundIsBelowTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1_000_000_000)
		c := governor.Config{Floor: n.Draw(t, "floor")}
		r := governor.Room{Limit: n.Draw(t, "limit"), Bound: n.Draw(t, "bound"), Inside: n.Draw(t, "inside")}
		v := rapid.SampledFrom([]governor.Verdict{governor.Unknown, governor.Healthy, governor.Near, governor.Overloaded}).Draw(t, "verdict")
		if got := c.Next(r, v); got != 0 && (got >= r.Limit || got < max(1, c.Floor)) {
			t.Fatalf("%+v of %+v, %s: a bound of %d", c, r, v, got)
		}
	})
}

// TestAWindowIsOfAllNodes, of what each has counted since the window before, in
// whichever order it comes; a node that was restarted counts from zero.
func TestAWindowIsOfAllNodes(t *testing.T) {
	var w governor.Watch
	c, t0 := governor.Config{Errors: 0.01}, time.Unix(1_000_000, 0)
	at := func(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }
	judged := func(s float64) governor.Judgement {
		t.Helper()
		j, over := w.Close(c, at(s))
		if !over {
			t.Fatalf("at %v s the window is not over", s)
		}
		return j
	}
	w.Hear("a", governor.Figures{Asked: 9000, Answered: 9000, Failed: 9000}, at(0)) // of before
	w.Hear("b", governor.Figures{Asked: 5000, Answered: 5000}, at(0))
	if _, over := w.Close(c, at(0)); over {
		t.Fatal("the first window is over as it begins")
	}
	w.Hear("b", governor.Figures{Asked: 5040, Answered: 5040}, at(1))
	if _, over := w.Close(c, at(3)); over {
		t.Fatal("a window with 40 answers is over after 3 s")
	}
	w.Hear("a", governor.Figures{Asked: 9060, Answered: 9060, Failed: 9004}, at(4))
	if got, want := judged(4), (governor.Judgement{Verdict: governor.Overloaded, Cause: governor.Failing, Figure: 0.04}); got != want {
		t.Errorf("of 100 answers of two nodes, 4 failures of one: %+v, want %+v", got, want)
	}
	w.Hear("b", governor.Figures{Asked: 5140, Answered: 5140, Failed: 100}, at(4.5)) // asked for before anything was done
	w.Hear("a", governor.Figures{Asked: 50, Answered: 50}, at(6))
	if _, over := w.Close(c, at(6.9)); over {
		t.Error("a window of 1.9 s is over")
	}
	if got := judged(7); got.Verdict != governor.Healthy {
		t.Errorf("after a restart of the node, and failures while what was done took hold: %+v", got)
	}
	if got := judged(37); got.Verdict != governor.Unknown {
		t.Errorf("after half a minute without answers: %+v", got)
	}
}
