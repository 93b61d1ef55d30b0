package simtest_test

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/simtest"
)

var (
	seeds = flag.Int("seeds", 500, "how many seeds TestSwarm runs")
	first = flag.Uint64("first", 1, "the first of them")
	fails = flag.Int64("fails", 10, "stop after so many seeds have failed")
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

// runSeed turns a panic into the seed's error.
func runSeed(seed uint64) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	o.seed = seed
	o.result, o.err = simtest.Run(simtest.Swarm(seed))
	return o
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

func (s *sums) report(t *testing.T, n int) {
	t.Helper()
	for _, o := range s.errs {
		t.Errorf("seed %d: %v\nreplay: go test ./simtest -run TestSwarm -seed=%d -v", o.seed, o.err, o.seed)
	}
	t.Logf("%d runs, %d events, %d visitors of whom %d were let in", n, s.events, s.came, s.served)
	for _, c := range s.reached {
		if c.N == 0 && n >= swarmMin {
			t.Errorf("no run of %d reached: %s", n, c.Name)
		}
		t.Logf("%6d runs reached: %s", c.N, c.Name)
	}
}

// replay runs one seed again, with its trace under -v.
func replay(t *testing.T, seed uint64) {
	t.Helper()
	o := simtest.Swarm(seed)
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

// TestSeedsThatLostAPlace keeps seeds in which two nodes took a place over, from
// the same lost one, and a node told somebody that it was given up whose own copy
// was, while the other copy was kept; and one in which a home that had been told of
// the newest home alone made a ticket that does not name those between.
func TestSeedsThatLostAPlace(t *testing.T) {
	for _, seed := range []uint64{22, 141, 313, 641, 740, 1382} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if o := runSeed(seed); o.err != nil {
				t.Error(o.err)
			}
		})
	}
}

// Nodes that were killed and back from their disks many times, with all of them
// there at last and no quorum: dead lives had been listed in later waves than
// those who have their disks stood for.
func TestSeedsThatLostTheirQuorum(t *testing.T) {
	for _, seed := range []uint64{3, 23, 157, 239, 572, 853} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if _, err := simtest.Run(killed(seed)); err != nil {
				t.Error(err)
			}
		})
	}
}

// killed is a world of the swarm in which all that happens is that nodes are killed
// and come back from their disks, every second or two.
func killed(seed uint64) simtest.Options {
	o := simtest.Swarm(seed)
	o.Users, o.Nodes, o.Rooms = 20, 3+int(seed%3), o.Rooms[:1]
	o.Faults.Every, o.Faults.Disk, o.Faults.Gone = time.Second+time.Duration(seed%4)*500*time.Millisecond, true, 0
	o.Faults.Mix = [][]simtest.Fault{
		{simtest.Crash, simtest.CrashMost},
		{simtest.Rolling, simtest.Crash},
		{simtest.Crash, simtest.CrashTwo, simtest.CrashLead},
		{simtest.CrashMost, simtest.CrashAfterFirst, simtest.Add},
	}[seed%4]
	if o.Faults.Last.Max == 0 {
		o.Faults.Last = simtest.Range{Min: 500 * time.Millisecond, Max: 3 * time.Second}
	}
	return o
}

// TestSeedsThatFoundedTwice keeps seeds in which a room was founded at both sides of
// a split: it had been on no line yet when another room's survivor_after began one.
func TestSeedsThatFoundedTwice(t *testing.T) {
	for _, seed := range []uint64{1731} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if o := runSeed(seed); o.err != nil {
				t.Error(o.err)
			}
		})
	}
}

// A node with a slow clock stood still while passes of its own ran out by the
// others' clocks and the limit fell. It goes on and extends them: they were good all
// the time, and nobody came in.
func TestSeedsWithANodeThatStoodStill(t *testing.T) {
	for _, seed := range []uint64{90000504} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if o := runSeed(seed); o.err != nil {
				t.Error(o.err)
			}
		})
	}
}

// A node woke up, was the only one in a wave of its own, and forgot a longer session in
// it, so that an account lapsed just then. Its room went on with slots that were gone:
// a ledger releases no more than it uses.
func TestSeedsWithAnAccountThatLapsesInAWave(t *testing.T) {
	for _, seed := range []uint64{90008583} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if o := runSeed(seed); o.err != nil {
				t.Error(o.err)
			}
		})
	}
}

// A node goes on alone, by survivor_after, with a clock that is two hours ahead, and
// whoever joins there has a place of that time. When the others take such a place over it
// is in line from then on: no wave would have reached it for two hours.
func TestSeedsWithPlacesOfATimeToCome(t *testing.T) {
	for _, seed := range []uint64{90018657} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if o := runSeed(seed); o.err != nil {
				t.Error(o.err)
			}
		})
	}
}

// A node turns gray where the period is longer than the deadline: four waves fail before its
// second slow round trip is known, and the one without it takes its time, too.
func TestSeedsWithASlowNodeAndALongPeriod(t *testing.T) {
	for _, seed := range []uint64{90007240} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if o := runSeed(seed); o.err != nil {
				t.Error(o.err)
			}
		})
	}
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
