package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small is a world that takes a few milliseconds.
func small(more ...string) []string {
	return append([]string{"sim", "--nodes", "2", "--users", "20", "--target", "3", "--span", "5s", "--visit", "500ms-1s"}, more...)
}

func TestSimPrintsTheRunOfASeed(t *testing.T) {
	stdout, stderr, code := execute(t, t.Context(), small()...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	golden(t, "sim", stdout)
}

func TestSimSumsRunsUp(t *testing.T) {
	stdout, stderr, code := execute(t, t.Context(), small("--runs", "4", "--seed", "7")...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	golden(t, "sim-runs", stdout)
	alone, _, _ := execute(t, t.Context(), small("--runs", "4", "--seed", "7", "--workers", "1")...)
	if stdout != alone {
		t.Errorf("one worker (-) and several (+) differ:\n%s", cmp.Diff(alone, stdout))
	}
}

func TestSimJSONHasTheReportsKeys(t *testing.T) {
	stdout, _, code := execute(t, t.Context(), small("--runs", "2", "--json")...)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != 0 || len(lines) != 2 {
		t.Fatalf("exit code %d, %d lines, want 0 and one per run:\n%s", code, len(lines), stdout)
	}
	var run struct {
		Seed   uint64
		Report map[string]any
	}
	if err := json.Unmarshal([]byte(lines[1]), &run); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"call_delay", "discordant_pairs", "kendall_tau", "kendall_tau_thesis", "max_overtaken_by", "max_wait", "n",
		"open_admissions", "open_inversions", "over_limit_max", "wait",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(run.Report))); diff != "" || run.Seed != 2 {
		t.Errorf("second run has seed %d; keys of its report (-want +got):\n%s", run.Seed, diff)
	}
}

func TestSimTracePrintsEvents(t *testing.T) {
	stdout, _, code := execute(t, t.Context(), small("--trace")...)
	if code != 0 || !strings.Contains(stdout, " starts as ") || !strings.Contains(stdout, "\nkendall_tau ") {
		t.Errorf("exit code %d, output without events or without figures:\n%.2000s", code, stdout)
	}
	if again, _, _ := execute(t, t.Context(), small("--trace")...); again != stdout {
		t.Error("the same seed printed something else the second time")
	}
}

func TestSimWritesTablesAndPlots(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "out")
	stdout, stderr, code := execute(t, t.Context(), small("--runs", "3", "--nodes", "3", "--kill", "1", "--out", dir)...)
	if code != 0 || !strings.Contains(stdout, "wrote "+dir+": runs.csv, ") {
		t.Fatalf("exit code %d: %s%s", code, stderr, stdout)
	}
	rows := map[string]int{}
	for _, name := range []string{"runs.csv", "admissions.csv"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		rows[name] = len(records) - 1
	}
	if rows["runs.csv"] != 3 || rows["admissions.csv"] < 60 {
		t.Errorf("rows = %v, want 3 runs and at least their 60 admissions", rows)
	}
	for _, name := range []string{"tau-against-kills", "wait-against-arrival", "heatmap-fifo", "heatmap-random"} {
		text, err := os.ReadFile(filepath.Join(dir, name+".svg"))
		if err != nil || !strings.Contains(string(text), "</svg>") || strings.Contains(string(text), "no data") {
			t.Errorf("%s: %v, or nothing in it", name, err)
		}
	}
}

func TestSimTellsWhereItCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := execute(t, t.Context(), small("--out", file)...)
	if code != 1 || !strings.HasPrefix(stderr, "anteroom sim: --out: ") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, errors %q, want 1 and one line", code, stderr)
	}
}

func TestInterruptedSimPrintsWhatIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stdout, stderr, code := execute(t, ctx, small("--runs", "1000")...)
	if code != 1 || stdout == "" || !strings.Contains(stderr, "anteroom sim: stopped after ") {
		t.Errorf("exit code %d, output %q, errors %q", code, stdout, stderr)
	}
}

func TestThesisPrintsCellsBesideTheThesis(t *testing.T) {
	args := []string{"sim", "thesis", "--runs", "1", "--cell", "100/20/0"}
	stdout, stderr, code := execute(t, t.Context(), args...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	golden(t, "thesis", stdout)
	alone, _, _ := execute(t, t.Context(), append(args, "--workers", "1")...)
	if stdout != alone {
		t.Errorf("one worker (-) and several (+) differ:\n%s", cmp.Diff(alone, stdout))
	}
}

func TestThesisJSONHasOneObjectPerCellAndAlgorithm(t *testing.T) {
	dir := t.TempDir()
	stdout, _, code := execute(t, t.Context(), "sim", "thesis", "--runs", "1", "--cell", "100/20/0,100/INF/0", "--algorithm", "cut,qpid", "--json", "--out", dir)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != 0 || len(lines) != 4 {
		t.Fatalf("exit code %d, %d lines, want 0 and 4:\n%s", code, len(lines), stdout)
	}
	var last cellJSON
	if err := json.Unmarshal([]byte(lines[3]), &last); err != nil {
		t.Fatal(err)
	}
	if last.Users != 100 || last.Target != "INF" || last.Algorithm != "qpid" || last.Runs != 1 || last.Thesis.KendallTauThesis != 7.51e-4 {
		t.Errorf("last object = %+v", last)
	}
	if _, err := os.Stat(filepath.Join(dir, "cells.csv")); err != nil {
		t.Error(err)
	}
}
