package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/anteroom/anteroom/internal/term"
	"github.com/anteroom/anteroom/internal/trials"
)

// batchFlags are the flags that `sim` and `sim thesis` share.
type batchFlags struct {
	seed    uint64
	runs    int
	workers int
	out     string
	json    bool
	trace   bool
}

// runsMax bounds the figures kept in memory.
const runsMax = 1_000_000

func (b *batchFlags) define(f *flagSet, runsUsage string) {
	b.seed = 1
	b.workers = runtime.GOMAXPROCS(0)
	f.seed(&b.seed, "seed of the first run; each further run takes the next")
	f.whole(&b.runs, "runs", 1, runsMax, runsUsage)
	f.whole(&b.workers, "workers", 1, 1024, "runs at a time; changes no figure")
	f.StringVar(&b.out, "out", "", "write tables (CSV) and plots (SVG) into this `directory`")
	f.BoolVar(&b.json, "json", false, "print JSON, one object per line")
	f.BoolVar(&b.trace, "trace", false, "print what happens in the run, event by event")
}

// check says what is wrong with the flags when there are runs in all.
func (b *batchFlags) check(f *flagSet, runs int) {
	if b.trace && runs > 1 {
		f.wrong("--trace: it shows one run, and this would be %d; give fewer", runs)
	}
	if b.trace && b.json {
		f.wrong("--trace: its lines are for people; leave out --json")
	}
}

// openFolder opens the directory of --out; nil when there is none.
func openFolder(dir string) (*trials.Folder, error) {
	if dir == "" {
		return nil, nil
	}
	f, err := trials.OpenFolder(dir)
	return f, wrap("--out", err)
}

// wrap says what failed, if anything did.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// tracer prints the lines of a trace until ctx ends.
func (p *program) tracer(ctx context.Context) func(string) {
	return func(line string) {
		if ctx.Err() == nil {
			fmt.Fprintln(p.stdout, line)
		}
	}
}

// progress is the bar of so many runs. It keeps out of the way of lines that
// appear on the same terminal.
func (p *program) progress(b *batchFlags, runs int) *term.Progress {
	lines := (b.json || b.trace) && term.IsTerminal(p.stdout)
	return term.NewProgress(term.ProgressConfig{
		Out: p.stderr, Live: term.IsTerminal(p.stderr) && !lines, Label: "runs", Total: int64(runs), Now: p.now,
	})
}

// failure is the error of a command some of whose runs failed. When there was
// only the one, whoever replays it wants to know where it panicked.
func (p *program) failure(f *trials.Failures) error {
	if f.Stack != nil && f.Runs == 1 {
		fmt.Fprintf(p.stderr, "%s\n", f.Stack)
	}
	return f.Err()
}

// unfinished says that somebody stopped the command.
func unfinished(ctx context.Context, done, runs int) error {
	if ctx.Err() == nil || done == runs {
		return nil
	}
	return fmt.Errorf("stopped after %s of %s runs; the figures are of those", term.Count(int64(done)), term.Count(int64(runs)))
}

func (p *program) printJSON(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a result that JSON cannot hold: %v", err))
	}
	fmt.Fprintf(p.stdout, "%s\n", line)
}
