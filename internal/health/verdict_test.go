package health_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/anteroom/anteroom/internal/health"
)

func votes(statuses ...health.Status) (all []health.Vote) {
	for _, s := range statuses {
		all = append(all, health.Vote{Report: health.Report{Status: s}})
	}
	return all
}

func silent(v []health.Vote) []health.Vote {
	for i := range v {
		v[i].Silent = true
	}
	return v
}

func TestMostOfThoseThatLookDecide(t *testing.T) {
	const unknown, healthy, unhealthy = health.Unknown, health.Healthy, health.Unhealthy
	for _, c := range []struct {
		name  string
		was   health.Status
		votes []health.Vote
		want  health.Status
	}{
		{"nobody looks", healthy, nil, healthy},
		{"one of three does not decide", healthy, votes(unhealthy, healthy, healthy), healthy},
		{"two of three do", healthy, votes(unhealthy, unhealthy, healthy), unhealthy},
		{"the first to answer does not decide for those that have not yet", healthy, votes(unhealthy, unknown, unknown), healthy},
		{"two that agree need not wait for the third", unknown, votes(healthy, healthy, unknown), healthy},
		{"of two that do not agree neither counts", unhealthy, votes(healthy, unhealthy), unhealthy},
		{"who is silent does not count", healthy, append(votes(unhealthy), silent(votes(healthy, healthy))...), unhealthy},
		{"when all are silent nothing changes", unhealthy, silent(votes(healthy, healthy, healthy)), unhealthy},
	} {
		if got := health.Decide(c.was, c.votes); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestANodeThatComesOrGoesMovesOnlyItsOwnChecks(t *testing.T) {
	nodes := []string{"a", "b", "c", "d", "e", "f"}
	share := map[string]int{}
	for i := range 600 {
		id := fmt.Sprint("check ", i)
		chosen := health.Checkers(id, nodes)
		if len(chosen) != health.CheckersMax {
			t.Fatalf("%d look, want %d", len(chosen), health.CheckersMax)
		}
		for _, n := range chosen {
			share[n]++
		}
		backwards := slices.Clone(nodes)
		slices.Reverse(backwards)
		if again := health.Checkers(id, backwards); !slices.Equal(again, chosen) {
			t.Fatalf("%v, and in another order of the members %v", chosen, again)
		}
		without := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == "c" })
		left := slices.DeleteFunc(slices.Clone(chosen), func(n string) bool { return n == "c" })
		if next := health.Checkers(id, without); !slices.Equal(next[:len(left)], left) {
			t.Fatalf("%v looked, and without c %v do", chosen, next)
		}
	}
	for n, of := range share {
		if of < 200 || of > 400 { // 300 on average
			t.Errorf("%s looks at %d of 600", n, of)
		}
	}
	if alone := health.Checkers("x", []string{"a"}); !slices.Equal(alone, []string{"a"}) {
		t.Errorf("a cluster of one: %v", alone)
	}
}

func TestAStatusTakesSoManyResultsInARow(t *testing.T) {
	var trend health.Trend
	for i, step := range []struct {
		ok   bool
		want health.Status
	}{
		{true, health.Unknown},
		{true, health.Healthy},
		{false, health.Healthy},
		{false, health.Healthy},
		{true, health.Healthy},
		{false, health.Healthy},
		{false, health.Healthy},
		{false, health.Unhealthy},
		{true, health.Unhealthy},
		{false, health.Unhealthy},
		{true, health.Unhealthy},
		{true, health.Healthy},
	} {
		if trend.Add(step.ok, 2, 3); trend.Status != step.want {
			t.Errorf("after result %d: %q, want %q", i+1, trend.Status, step.want)
		}
	}
}
