package simtest_test

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anteroom/anteroom/simtest"
)

var (
	seeds = flag.Int("seeds", 500, "how many seeds TestSwarm runs")
	first = flag.Uint64("first", 1, "the first of them")
	fails = flag.Int64("fails", 10, "stop after so many seeds have failed")
	cuts  = flag.Bool("cuts", false, "draw worlds in which all nodes die at once, with their visits on disks")
	seed  = flag.Uint64("seed", 0, "run only this one; with -v print its trace")
)

// swarmMin is how many seeds it takes to reach everything at least once.
const swarmMin = 500

// TestSwarm runs many worlds, each from its own seed. Whatever happens in
// them, the promises hold; and everything that can happen does, somewhere.
func TestSwarm(t *testing.T) {
	if *seed != 0 {
		replay(t, *seed)
		return
	}
	n := *seeds
	if testing.Short() {
		n = min(n, 10) // the race detector sees two worlds side by side; each is one goroutine
	}
	var s sums
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= uint64(n) || s.failed.Load() >= *fails {
					return
				}
				s.add(runSeed(*first + i))
			}
		})
	}
	wg.Wait()
	s.report(t, n)
}

// outcome is what became of one seed.
type outcome struct {
	seed   uint64
	result simtest.Result
	err    error
}

// runSeed runs a world of the swarm.
func runSeed(seed uint64) (o outcome) {
	o.seed = seed
	o.result, o.err = run(drawn(seed))
	return o
}

// drawn is the world of a seed.
func drawn(seed uint64) simtest.Options {
	if *cuts {
		return powerCuts(seed)
	}
	return simtest.Swarm(seed)
}

// run is simtest.Run, where a panic is an error like others.
func run(o simtest.Options) (r simtest.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return simtest.Run(o)
}

// sums adds up a swarm.
type sums struct {
	mu      sync.Mutex
	failed  atomic.Int64
	errs    []outcome
	reached []simtest.Count
	events  uint64
	came    int
	served  int
}

func (s *sums) add(o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.err != nil {
		s.failed.Add(1)
		s.errs = append(s.errs, o)
		return
	}
	if s.reached == nil {
		s.reached = make([]simtest.Count, len(o.result.Reached))
	}
	for i, c := range o.result.Reached {
		s.reached[i].Name = c.Name
		s.reached[i].N += min(c.N, 1) // in how many runs
	}
	s.events += o.result.Events
	s.came += o.result.Came
	s.served += o.result.Served
}

// cutGoals is what worlds drawn by -cuts have to show: they are not made for all that the swarm is.
var cutGoals = []string{
	"restart with disk", "all nodes down", "visits on a disk", "visits that a disk does not take", "visits whose sync hangs",
	"pass of a node that dies and has it on its disk", "visits of earlier lives gone on with",
}

func (s *sums) report(t *testing.T, n int) {
	t.Helper()
	for _, o := range s.errs {
		t.Errorf("seed %d: %v\nreplay: go test ./simtest -run TestSwarm -seed=%d -v", o.seed, o.err, o.seed)
	}
	t.Logf("%d runs, %d events, %d visitors of whom %d were let in", n, s.events, s.came, s.served)
	for _, c := range s.reached {
		if c.N == 0 && n >= swarmMin && (!*cuts || slices.Contains(cutGoals, c.Name)) {
			t.Errorf("no run of %d reached: %s", n, c.Name)
		}
		t.Logf("%6d runs reached: %s", c.N, c.Name)
	}
}

// replay runs one seed again, with its trace under -v.
func replay(t *testing.T, seed uint64) {
	t.Helper()
	o := drawn(seed)
	if testing.Verbose() {
		fmt.Printf("%+v\n", o)
		o.Trace = func(line string) { fmt.Println(line) }
	}
	r, err := simtest.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v simulated, %d events, trace %016x, %d of %d let in", r.Simulated, r.Events, r.Hash, r.Served, r.Came)
}

// TestSameSeedSameTrace runs seeds twice and compares everything that happened.
func TestSameSeedSameTrace(t *testing.T) {
	last := uint64(8)
	if testing.Short() {
		last = 2
	}
	for seed := uint64(1); seed <= last; seed++ {
		a, b := runSeed(seed), runSeed(seed)
		if a.result.Hash != b.result.Hash || a.result.Events != b.result.Events {
			t.Errorf("seed %d: traces %016x of %d events and %016x of %d", seed, a.result.Hash, a.result.Events, b.result.Hash, b.result.Events)
		}
	}
}

// TestTraceChangesNothing runs a seed with and without the text of its trace.
func TestTraceChangesNothing(t *testing.T) {
	o := simtest.Swarm(3)
	quiet, _ := simtest.Run(o)
	lines := 0
	o.Trace = func(string) { lines++ }
	loud, _ := simtest.Run(o)
	if quiet.Hash != loud.Hash || lines == 0 {
		t.Errorf("trace %016x in silence, %016x with %d lines", quiet.Hash, loud.Hash, lines)
	}
}
