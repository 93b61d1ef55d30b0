package trials

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/simtest"
)

// Batch is a number of simulations.
type Batch struct {
	Runs    int
	Workers int // runs at a time
	Options func(run int) simtest.Options
	Now     func() time.Time
	// Continue is asked before run starts; false ends the batch. Nil: all run.
	Continue func(run int) bool
}

// Outcome is what became of one run.
type Outcome struct {
	Run        int
	Seed       uint64
	Admissions []fairness.Admission // those of the room, while the outcome is being handed over
	Report     fairness.Report
	LastCall   time.Duration // simulated time at which the last person was called or walked in
	Simulated  time.Duration // until the world had settled after that
	Hash       uint64        // of the trace
	Wall       time.Duration // by a real clock
	Events     uint64
	Messages   int64   // between nodes
	PerWave    float64 // messages per wave; 0 where nodes come and go, so that waves cannot be told
	Came       int     // people
	Served     int     // people who were let in
	Stuck      bool    // too many nodes were lost for anyone to be let in afterwards
	Err        error   // *simtest.Violation, *Panic, or what is wrong with the options
}

// Panic is a run that ended in one: an assertion of the core that did not hold.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Of is the batch with o for its options, and o.Seed and the numbers after it
// for its seeds.
func (b Batch) Of(o simtest.Options) Batch {
	b.Options = func(run int) simtest.Options {
		o := o
		o.Seed += uint64(run)
		return o
	}
	return b
}

// pendingPerWorker bounds the runs that are finished and wait for a slower one
// before them, and so memory.
const pendingPerWorker = 4

// Run runs the batch and hands over each outcome in the order of runs, one at
// a time. It returns how many: fewer than b.Runs when Continue said so or ctx
// ended. A run cannot be stopped half-way; one that is under way when ctx ends
// is left to itself.
func (b Batch) Run(ctx context.Context, each func(*Outcome)) int {
	type job struct {
		run int
		out chan *Outcome
	}
	jobs := make(chan job)
	pending := make(chan chan *Outcome, pendingPerWorker*b.Workers)
	for range b.Workers {
		go func() {
			for j := range jobs {
				j.out <- b.simulate(j.run)
			}
		}()
	}
	go func() {
		defer close(jobs)
		defer close(pending)
		for run := range b.Runs {
			if b.Continue != nil && !b.Continue(run) {
				return
			}
			out := make(chan *Outcome, 1)
			select {
			case jobs <- job{run, out}:
				pending <- out
			case <-ctx.Done():
				return
			}
		}
	}()
	done := 0
	for out := range pending {
		select {
		case o := <-out:
			each(o)
			done++
		case <-ctx.Done():
			for range pending { // lets the feeder go
			}
			return done
		}
	}
	return done
}

// simulate runs one simulation.
func (b Batch) simulate(run int) (o *Outcome) {
	options := b.Options(run)
	o = &Outcome{Run: run, Seed: options.Seed}
	start := b.Now()
	defer func() {
		if p := recover(); p != nil {
			o.Err = &Panic{p, debug.Stack()}
		}
		o.Wall = b.Now().Sub(start)
	}()
	r, err := simtest.Run(options)
	o.Err = err
	o.fill(&options, &r)
	return o
}

func (o *Outcome) fill(options *simtest.Options, r *simtest.Result) {
	o.Simulated, o.Events, o.Hash = r.Simulated, r.Events, r.Hash
	o.Came, o.Served, o.Stuck = r.Came, r.Served, r.Stuck
	var gathers int64
	for _, c := range r.Messages {
		o.Messages += c.N
		if c.Name == "gather" {
			gathers = c.N
		}
	}
	// A wave gathers over every edge of the tree once.
	if f := &options.Faults; gathers > 0 && f.Kills+f.Adds+f.Partitions == 0 {
		o.PerWave = float64(o.Messages) / float64(gathers) * float64(options.Nodes-1)
	}
	if len(r.Rooms) == 0 {
		return
	}
	room := &r.Rooms[0]
	o.Admissions = room.Admissions
	o.Report = fairness.Measure(room.Admissions, room.OverLimitMax)
	for i := range room.Admissions {
		o.LastCall = max(o.LastCall, time.Duration(room.Admissions[i].CalledAt)*time.Microsecond)
	}
}

// Reason is the first line of why the run failed.
func (o *Outcome) Reason() string {
	if o.Err == nil {
		return ""
	}
	line, _, _ := strings.Cut(o.Err.Error(), "\n")
	return strings.TrimRight(line, ": ")
}
