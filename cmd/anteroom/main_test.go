package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// execute runs the program at a clock that stands still.
func execute(t *testing.T, ctx context.Context, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	p := &program{stdout: &out, stderr: &errs, now: func() time.Time { return time.Unix(0, 0) }}
	code = exitCode(p.run(ctx, args))
	return out.String(), errs.String(), code
}

// rewrite makes the golden files what the program prints now. Read the diff:
// commit it only if you can say why it changed.
var rewrite = flag.Bool("rewrite", false, "rewrite testdata/*.golden")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestWrongUsageTellsEverythingAtOnce(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"simm", []string{`anteroom: unknown command "simm"; did you mean "sim"?`}},
		{"dance", []string{`anteroom: unknown command "dance"; anteroom --help lists the commands`}},
		{"version now", []string{`anteroom version: unknown command "now"; anteroom version --help lists the commands`}},
		{"sim --bogus", []string{"anteroom sim: unknown flag: --bogus; anteroom sim --help lists the flags"}},
		{"sim --nodes 0 --users many --method lifo --latency 20ms-10ms", []string{
			`anteroom sim: --nodes "0": give a whole number from 1 to 256`,
			`anteroom sim: --users "many": give a whole number from 1 to 10000000`,
			`anteroom sim: --method "lifo": give fifo or random`,
			`anteroom sim: --latency "20ms-10ms": give a time above 0 such as 500µs, or two such as 500µs-2ms, up to 10s`,
		}},
		{"sim --seed -1 --period 2s", []string{
			`anteroom sim: --seed "-1": give a whole number of at least 0`,
			`anteroom sim: --period "2s": give a time from 10ms to 1s, such as 200ms`,
		}},
		{"sim --runs 2 --trace --json", []string{
			"anteroom sim: --trace: it shows one run, and this would be 2; give fewer",
			"anteroom sim: --trace: its lines are for people; leave out --json",
		}},
		{"sim --nodes 250 --add 10 --method random --algorithm qpid", []string{
			"anteroom sim: --nodes 250 and --add 10: give at most 256 in all",
			"anteroom sim: --method random: a draw needs --algorithm cut",
		}},
		{"sim --kill 3", []string{"anteroom sim: --kill 3: of 3 nodes and 0 added give at most 2; somebody has to stay"}},
		{"sim thesis --algorithm cut,raft --cell 500/20/2 --budget soon", []string{
			`anteroom sim thesis: --algorithm "cut,raft": give cut, cut-queue-all or qpid`,
			`anteroom sim thesis: --cell "500/20/2": give users/target/kills: 100, 500 or 2500, then 20, 100 or INF, then 0, 1 or 5`,
			`anteroom sim thesis: --budget "soon": give a time from 0s to 1000h, such as 0s`,
		}},
		{"sim thesis --trace --runs 1", []string{"anteroom sim thesis: --trace: it shows one run, and this would be 81; give fewer"}},
	} {
		stdout, stderr, code := execute(t, t.Context(), strings.Fields(c.args)...)
		if code != 2 || stdout != "" {
			t.Errorf("%s: exit code %d, want 2; output %q, want none", c.args, code, stdout)
		}
		if diff := cmp.Diff(strings.Join(c.want, "\n")+"\n", stderr); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, diff)
		}
	}
}

func TestHelpListsTheCommands(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"help"}} {
		stdout, stderr, code := execute(t, t.Context(), args...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "\n  sim  ") || !strings.Contains(stdout, "\n  version  ") {
			t.Errorf("anteroom %v: exit code %d, errors %q, output:\n%s", args, code, stderr, stdout)
		}
	}
}

func TestVersionIsAFlagToo(t *testing.T) {
	command, _, _ := execute(t, t.Context(), "version")
	flag, stderr, code := execute(t, t.Context(), "--version")
	if code != 0 || stderr != "" || flag != command || !strings.HasPrefix(flag, "anteroom ") {
		t.Errorf("exit code %d, %q, errors %q; want %q", code, flag, stderr, command)
	}
}

func TestVersionNamesTheCommit(t *testing.T) {
	info := &debug.BuildInfo{
		Main:     debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
	}
	if got := aboutOf(info).String(); !strings.HasPrefix(got, "anteroom v1.2.3, commit 0123456789ab with changes, go") {
		t.Errorf("version = %q", got)
	}
	if got := aboutOf(&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}).String(); !strings.HasPrefix(got, "anteroom development, go") {
		t.Errorf("version without a commit = %q", got)
	}
}

func TestVersionForPrograms(t *testing.T) {
	text, _, _ := execute(t, t.Context(), "version")
	out, stderr, code := execute(t, t.Context(), "version", "--json")
	var a about
	if err := json.Unmarshal([]byte(out), &a); err != nil || code != 0 || stderr != "" || a.String()+"\n" != text {
		t.Errorf("exit code %d, %v, errors %q, output %q; want what says %q", code, err, stderr, out, text)
	}
}
