package trials_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/thesis"
	"github.com/anteroom/anteroom/internal/trials"
	"github.com/anteroom/anteroom/qpid"
	"github.com/anteroom/anteroom/simtest"
)

func TestEveryCellHasItsName(t *testing.T) {
	for _, c := range thesis.Cells() {
		if got, ok := trials.CellNamed(trials.CellName(c)); !ok || got != c {
			t.Errorf("CellNamed(%q) = %+v, %t, want %+v", trials.CellName(c), got, ok, c)
		}
	}
	if _, ok := trials.CellNamed("500/20/2"); ok {
		t.Error("the thesis has no cell 500/20/2")
	}
}

func cell(t *testing.T, name string) thesis.Cell {
	t.Helper()
	c, ok := trials.CellNamed(name)
	if !ok {
		t.Fatalf("no cell %s", name)
	}
	return c
}

func TestThesisOptionsAreTheThesiss(t *testing.T) {
	c := cell(t, "500/20/5")
	for _, a := range trials.Algorithms() {
		o := trials.ThesisOptions(c, a, 9)
		room := o.Rooms[0]
		if o.Seed != 9 || o.Nodes != 8 || o.Users != 500 || room.Target != 20 || o.Faults.Kills != 5 || o.Faults.Adds != 5 {
			t.Errorf("%s: %+v", a, o)
		}
		if room.QueueAll != (a != trials.Cut) {
			t.Errorf("%s: everyone queues: %t", a, room.QueueAll)
		}
		if period := o.Cluster.Period; a == trials.QPID && period != time.Second || a != trials.QPID && period != 0 {
			t.Errorf("%s: a period of %v", a, period)
		}
		if err := errors.Join(room.Validate(), o.Cluster.Validate()); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}

// One run of the smallest cell under each algorithm, in the simulator.
func TestSmallestCellLetsEverybodyIn(t *testing.T) {
	c := cell(t, "100/20/0")
	ts := trials.Trials([]thesis.Cell{c}, trials.Algorithms())
	b := trials.Batch{Runs: len(ts), Workers: 1, Now: noTime, Options: func(run int) simtest.Options {
		return trials.ThesisOptions(c, ts[run].Algorithm, 1)
	}}
	b.Run(context.Background(), func(o *trials.Outcome) {
		if o.Err != nil || o.Served != 100 || o.LastCall < 99*time.Second || o.LastCall > 105*time.Second {
			t.Errorf("%s: let in %d of 100, the last after %v: %v", ts[o.Run].Algorithm, o.Served, o.LastCall, o.Err)
		}
	})
}

// admitted is n people who join a second apart and are let in in that order,
// except for the first two when swapped.
func admitted(n int, swapped bool) []fairness.Admission {
	as := make([]fairness.Admission, n)
	for i := range as {
		at := int64(i+1) * 1_000_000
		w := qpid.Weight{Stamp: uint64(at)}
		as[i] = fairness.Admission{
			Joined: w, JoinedAt: at, Entitled: fairness.Order{Epoch: uint64(i), Key: w}, EntitledAt: at + 500_000, CalledAt: at + 500_000,
		}
	}
	if swapped {
		a, b := &as[0], &as[1]
		a.Entitled, b.Entitled = b.Entitled, a.Entitled
		a.EntitledAt, b.EntitledAt = b.EntitledAt, a.EntitledAt
	}
	return as
}

func add(t *trials.Tally, seed uint64, as []fairness.Admission, over int) {
	t.Sample.Add(&trials.Outcome{Seed: seed, Admissions: as, Report: fairness.Measure(as, over), LastCall: 100 * time.Second})
}

func TestVerdictsAnswerFromTheTallies(t *testing.T) {
	cells := []thesis.Cell{cell(t, "100/20/0"), cell(t, "500/20/0"), cell(t, "500/20/1")}
	tallies := trials.Tallies(trials.Trials(cells, []trials.Algorithm{trials.Cut, trials.QPID}))
	for i, tally := range tallies {
		add(tally, 1, admitted(5, i == 3), 0)     // 500/20/0 qpid
		add(tally, 2, admitted(5, i == 5), i/5*3) // 500/20/1 qpid
	}
	want := []string{
		"Is tau 0 in every run of the 2 cells without kills? cut yes; qpid no, up to 5.0e-02 on average in 500/20/0.",
		"Tau of 500 users, target 20, 1 killed and added: thesis 4.4e-06 (recounted over 100 runs); cut 0 ± 0; qpid 5.0e-02 ± 6.4e-01.",
		"Did any run let in more people than the target? Yes: 500/20/1 qpid by 3.",
	}
	if diff := cmp.Diff(want, trials.Verdicts(tallies)); diff != "" {
		t.Errorf("Verdicts (-want +got):\n%s", diff)
	}
}

func TestCellsAreWrittenAndDrawn(t *testing.T) {
	dir := t.TempDir()
	f, err := trials.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	tallies := trials.Tallies(trials.Trials([]thesis.Cell{cell(t, "500/20/0"), cell(t, "500/20/1")}, []trials.Algorithm{trials.Cut}))
	for _, tally := range tallies {
		add(tally, 1, admitted(5, false), 0)
	}
	if err := errors.Join(trials.WriteCells(f, tallies), trials.DrawCells(f, tallies)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cells.csv", "tau-thesis-500-20.svg", "tau-strict-500-20.svg"}, f.Files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for name, want := range map[string][]string{
		"cells.csv":             {"users,target,kills,algorithm,runs", "\n500,20,1,cut,1,0,0.000159,4.4", ",100,100,100,"},
		"tau-thesis-500-20.svg": {">thesis<", ">cut<"},
		"tau-strict-500-20.svg": {">thesis, recounted<", ">cut<"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q", name, part)
			}
		}
	}
}

func TestFolderTellsWhatItCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trials.OpenFolder(file); err == nil {
		t.Error("OpenFolder of a file gave no error")
	}
}
