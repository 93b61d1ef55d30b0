package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/fairness"
)

// waited is somebody who joined at the second joined, and heard at the second
// told that the turn had come in wave.
func waited(joined, told int64, wave uint64) call {
	return call{joined: joined * 1e6, came: joined * 1e6, told: told * 1e6, entitled: told * 1e6, wave: wave, queued: true, hasWave: wave > 0}
}

func walkedIn(joined int64) call {
	return call{joined: joined * 1e6, came: joined * 1e6, told: joined * 1e6}
}

func TestOrderIsByWaveAndThenByJoining(t *testing.T) {
	for _, c := range []struct {
		name              string
		calls             []call
		discordant        int64
		overtaken, called int
	}{
		{"in order", []call{waited(1, 9, 5), waited(2, 9, 6), waited(3, 9, 6)}, 0, 0, 3},
		{"heard late, called in time", []call{waited(1, 30, 5), waited(2, 9, 6)}, 0, 0, 2},
		{"one was called too early", []call{waited(1, 9, 6), waited(2, 9, 6), waited(3, 8, 5)}, 2, 1, 3},
		{"one was called too late", []call{waited(1, 9, 7), waited(2, 9, 5), waited(3, 9, 6)}, 2, 2, 3},
		{"joined in the same microsecond", []call{waited(1, 9, 7), waited(1, 9, 5)}, 0, 0, 2},
		{"walked in before anyone waited", []call{walkedIn(0), waited(1, 9, 5)}, 0, 0, 1},
	} {
		r, unordered := measure(c.calls, 0, 0)
		if r.N != c.called || unordered != 0 || *r.DiscordantPairs != c.discordant || *r.MaxOvertakenBy != c.overtaken || *r.OpenInversions != 0 {
			t.Errorf("%s: %d called, %d without a wave, %d discordant pairs, %d overtook, %d open inversions", c.name, r.N, unordered, *r.DiscordantPairs, *r.MaxOvertakenBy, *r.OpenInversions)
		}
	}
}

func TestWithoutWavesTheOrderIsNotMadeUp(t *testing.T) {
	r, unordered := measure([]call{waited(1, 9, 0), waited(2, 5, 0), walkedIn(1)}, 3, 2)
	over := 1
	want := Report{N: 2, OpenAdmissions: 1, MaxWait: 8, Wait: fairness.Percentiles{P50: 3, P90: 8, P99: 8}, OverLimitMax: &over}
	if diff := cmp.Diff(want, r); diff != "" || unordered != 2 {
		t.Errorf("%d without a wave; report (-want +got):\n%s", unordered, diff)
	}
	if r, unordered = measure([]call{waited(1, 9, 0), waited(2, 5, 3)}, 0, 0); r.KendallTau == nil || unordered != 1 || r.N != 2 || r.OverLimitMax != nil {
		t.Errorf("with one wave told: %+v, %d without", r, unordered)
	}
	if r, unordered = measure(nil, 0, 0); r.KendallTau == nil || *r.KendallTau != 0 || unordered != 0 {
		t.Errorf("of nobody: %+v, %d without a wave", r, unordered)
	}
}

// Who is called in a wave has a turn before anybody hears of a later call.
func TestATurnHasComeBeforeALaterCallIsHeardOf(t *testing.T) {
	calls := []call{walkedIn(2), waited(1, 30, 5), waited(3, 7, 6), waited(4, 9, 6), waited(5, 8, 7)}
	if diff := cmp.Diff([]int64{7e6, 7e6, 7e6, 7e6, 8e6}, entitlements(calls)); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	// The first of those who queued had no turn for sure when somebody walked in.
	if r, _ := measure(calls, 0, 0); *r.OpenInversions != 1 {
		t.Errorf("%d open inversions, want 1", *r.OpenInversions)
	}
}

func TestPassesHeldAtATime(t *testing.T) {
	for want, stays := range map[int][]stay{
		0: {{5, 5}},
		1: {{0, 5}, {5, 9}, {9, 10}},
		3: {{0, 5}, {1, 6}, {4, 5}, {5, 9}},
	} {
		if got := heldMost(stays); got != want {
			t.Errorf("%v: %d at a time, want %d", stays, got, want)
		}
	}
}
