package trials_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/trials"
	"github.com/anteroom/anteroom/simtest"
)

func noTime() time.Time { return time.Unix(0, 0) }

// tiny is a world that takes a few milliseconds.
func tiny(seed uint64) simtest.Options {
	return simtest.Options{Seed: seed, Nodes: 2, Users: 8, Span: 2 * time.Second}
}

func TestOutcomesDoNotDependOnWorkers(t *testing.T) {
	hashes := func(workers int) (all []uint64) {
		b := trials.Batch{Runs: 6, Workers: workers, Now: noTime}.Of(tiny(3))
		done := b.Run(context.Background(), func(o *trials.Outcome) {
			if o.Err != nil || o.Run != len(all) || o.Seed != 3+uint64(o.Run) {
				t.Errorf("run %d of seed %d came as number %d: %v", o.Run, o.Seed, len(all), o.Err)
			}
			all = append(all, o.Hash)
		})
		if done != 6 {
			t.Errorf("%d workers did %d runs of 6", workers, done)
		}
		return all
	}
	if diff := cmp.Diff(hashes(1), hashes(3)); diff != "" {
		t.Errorf("traces with one worker and three (-one +three):\n%s", diff)
	}
}

func TestBatchStopsWhenItMayNotContinue(t *testing.T) {
	b := trials.Batch{Runs: 100, Workers: 2, Now: noTime, Continue: func(run int) bool { return run < 3 }}.Of(tiny(1))
	if done := b.Run(context.Background(), func(*trials.Outcome) {}); done != 3 {
		t.Errorf("did %d runs, want 3", done)
	}
}

func TestBatchStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b := trials.Batch{Runs: 1000, Workers: 2, Now: noTime}.Of(tiny(1))
	done := b.Run(ctx, func(*trials.Outcome) { cancel() })
	if done < 1 || done > 20 {
		t.Errorf("did %d runs after the first ended the context, want a few", done)
	}
}

func TestFailedRunsAreOutcomes(t *testing.T) {
	wrong := tiny(1)
	wrong.Nodes = -1
	panics := tiny(1)
	panics.Trace = func(string) { panic("the floor is lava") }
	for _, c := range []struct {
		name    string
		options simtest.Options
		reason  string
	}{
		{"wrong options", wrong, "nodes: -1"},
		{"panic", panics, "panic: the floor is lava"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got *trials.Outcome
			trials.Batch{Runs: 1, Workers: 1, Now: noTime}.Of(c.options).Run(context.Background(), func(o *trials.Outcome) { got = o })
			if !strings.HasPrefix(got.Reason(), c.reason) {
				t.Errorf("Reason() = %q, want %q…", got.Reason(), c.reason)
			}
			var p *trials.Panic
			if errors.As(got.Err, &p) && len(p.Stack) == 0 {
				t.Error("the panic has no stack")
			}
			s := trials.NewSample(trials.Metrics())
			s.Add(got)
			if s.Runs != 0 || s.Failed != 1 {
				t.Errorf("counted as %d runs and %d failed, want 0 and 1", s.Runs, s.Failed)
			}
		})
	}
}

func TestFailuresTellHowToReplay(t *testing.T) {
	var f trials.Failures
	f.Add(&trials.Outcome{Seed: 1}, "anteroom sim --seed 1")
	if err := f.Err(); err != nil {
		t.Errorf("one good run: Err() = %v", err)
	}
	bad := &trials.Outcome{Seed: 2, Err: errors.New("S1 broken at 3s: too many:\nn00 is down")}
	f.Add(bad, "anteroom sim --seed 2")
	want := "seed 2: S1 broken at 3s: too many; replay it with: anteroom sim --seed 2\n1 of 2 runs failed"
	if diff := cmp.Diff(want, f.Err().Error()); diff != "" {
		t.Errorf("Err() (-want +got):\n%s", diff)
	}
	for range 50 {
		f.Add(bad, "anteroom sim --seed 2")
	}
	if lines := strings.Count(f.Err().Error(), "\n") + 1; lines != 11 {
		t.Errorf("51 failures take %d lines, want ten and their number", lines)
	}
}

// clock is a clock that the test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestBudgetEndsBeforeTheRoundThatWouldExceedIt(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	b := trials.Budget{Time: 10 * time.Second, Round: 2, Now: c.now}
	run := 0
	for b.Continue(run) {
		c.at = c.at.Add(2 * time.Second) // 4 s a round
		run++
	}
	if run != 4 {
		t.Errorf("a budget of 10 s was enough for %d runs, want 4: two rounds of 4 s", run)
	}
	late := trials.Budget{Time: time.Second, Round: 2, Now: c.now}
	late.Continue(0)
	c.at = c.at.Add(time.Hour)
	if !late.Continue(1) || late.Continue(2) {
		t.Error("a round that has begun must end, and no other begin")
	}
}
