package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/trials"
)

func (s *simulation) run(ctx context.Context) error {
	r := &recorder{simulation: s, all: trials.NewSample(trials.Metrics())}
	if err := r.open(); err != nil {
		return err
	}
	b := trials.Batch{Runs: s.runs, Workers: s.workers, Now: s.now}
	first := s.options
	if s.trace {
		first.Trace = s.tracer(ctx)
	}
	bar := s.progress(&s.batchFlags, s.runs)
	done := b.Of(first).Run(ctx, func(o *trials.Outcome) {
		r.add(o)
		bar.Add(1)
	})
	bar.Finish()
	err := r.close()
	if err == nil && r.folder != nil && ctx.Err() == nil {
		err = trials.Draw(ctx, r.folder, b, s.options, r.first, r.all)
	}
	if !s.json {
		r.print()
	}
	return errors.Join(s.failure(&r.failures), unfinished(ctx, done, s.runs), wrap("--out", err))
}

// recorder keeps and shows the runs of `sim`.
type recorder struct {
	*simulation
	all        *trials.Sample
	only       trials.Outcome // the newest, without its admissions
	first      []fairness.Admission
	failures   trials.Failures
	folder     *trials.Folder
	runRows    *trials.Table
	admissions *trials.Table
}

// open begins the files of --out.
func (r *recorder) open() (err error) {
	if r.folder, err = openFolder(r.out); err != nil || r.folder == nil {
		return err
	}
	if r.runRows, err = r.folder.Table("runs.csv", trials.RunHeader()...); err != nil {
		return wrap("--out", err)
	}
	r.admissions, err = r.folder.Table("admissions.csv", trials.AdmissionHeader()...)
	return wrap("--out", err)
}

func (r *recorder) close() error {
	if r.folder == nil {
		return nil
	}
	return errors.Join(r.runRows.Close(), r.admissions.Close())
}

func (r *recorder) add(o *trials.Outcome) {
	r.all.Add(o)
	r.failures.Add(o, "anteroom sim --seed "+strconv.FormatUint(o.Seed, 10)+r.typed+" --trace")
	if r.json {
		r.printLine(o)
	}
	if r.folder != nil {
		r.runRows.Row(trials.RunRow(o)...)
		for i := range o.Admissions {
			r.admissions.Row(trials.AdmissionRow(o.Seed, &o.Admissions[i])...)
		}
		if o.Run == 0 {
			r.first = o.Admissions
		}
	}
	r.only = *o
	r.only.Admissions = nil
}

// runJSON is one run as --json prints it. Seconds are of simulated time.
type runJSON struct {
	Seed             uint64           `json:"seed"`
	Report           *fairness.Report `json:"report,omitempty"`
	People           int              `json:"people"`
	LetIn            int              `json:"let_in"`
	LastCallSeconds  float64          `json:"last_call_seconds"`
	SimulatedSeconds float64          `json:"simulated_seconds"`
	Messages         int64            `json:"messages"`
	Events           uint64           `json:"events"`
	TraceHash        string           `json:"trace_hash"`
	Error            string           `json:"error,omitempty"` // then there is no report
}

func (r *recorder) printLine(o *trials.Outcome) {
	line := runJSON{
		Seed: o.Seed, People: o.Came, LetIn: o.Served, LastCallSeconds: o.LastCall.Seconds(),
		SimulatedSeconds: o.Simulated.Seconds(), Messages: o.Messages, Events: o.Events,
		TraceHash: fmt.Sprintf("%016x", o.Hash), Error: o.Reason(),
	}
	if o.Err == nil {
		line.Report = &o.Report
	}
	r.printJSON(line)
}
