package queues_test

import (
	"flag"
	"reflect"
	"testing"

	"github.com/anteroom/anteroom/simtest/queues"
)

var (
	seed    = flag.Uint64("seed", 0, "run this seed only")
	first   = flag.Uint64("first", 1, "begin with this seed")
	seeds   = flag.Int("seeds", 16, "run so many")
	verbose = flag.Bool("show", false, "log all that happens")
)

func TestSwarm(t *testing.T) {
	if *seed != 0 {
		run(t, *seed)
		return
	}
	var all queues.Reached
	if testing.Short() {
		*seeds = min(*seeds, 4)
	}
	for i := range *seeds {
		add(&all, run(t, *first+uint64(i)))
	}
	t.Logf("%d seeds: %+v", *seeds, all)
	if *first == 1 && *seeds >= 16 {
		v := reflect.ValueOf(all)
		for i := range v.NumField() {
			if v.Field(i).Int() == 0 {
				t.Errorf("the swarm never came to %s", v.Type().Field(i).Name)
			}
		}
	}
}

func add(to *queues.Reached, r queues.Reached) {
	to.Inserted += r.Inserted
	to.Leased += r.Leased
	to.Acked += r.Acked
	to.Lapsed += r.Lapsed
	to.Returned += r.Returned
	to.Empty += r.Empty
	to.Unavailable += r.Unavailable
	to.Rounds += r.Rounds
	to.FindRoots += r.FindRoots
	to.Breaks += r.Breaks
	to.Crashes += r.Crashes
	to.Pauses += r.Pauses
	to.Partitions += r.Partitions
	to.Leaders += r.Leaders
	to.Repeated += r.Repeated
	to.Full += r.Full
	to.Refused += r.Refused
	to.Purged += r.Purged
	to.Updated += r.Updated
	to.GivenUp += r.GivenUp
	to.Waited += r.Waited
	to.Died += r.Died
	to.Crowded += r.Crowded
	to.Set += r.Set
	to.SetLater += r.SetLater
	to.InFlight += r.InFlight
	to.Keyed += r.Keyed
	to.Turns += r.Turns
	to.Told += r.Told
	to.Without += r.Without
	to.Older += r.Older
	to.Stopped += r.Stopped
}

func run(t *testing.T, seed uint64) queues.Reached {
	t.Helper()
	o := queues.Draw(seed)
	if *verbose {
		o.Log = func(line string) { t.Log(line) }
	}
	w := queues.New(o)
	if err := w.Run(); err != nil {
		t.Fatalf("seed %d: %v\n%+v\nrepeat it with: go test ./simtest/queues -run TestSwarm -seed=%d -v", seed, err, queues.Draw(seed), seed)
	}
	return w.Reached
}

func TestSameSeedSameTrace(t *testing.T) {
	for s := range uint64(3) {
		a, b := queues.New(queues.Draw(s)), queues.New(queues.Draw(s))
		if a.Run() != nil || b.Run() != nil {
			t.Fatal("see TestSwarm")
		}
		if a.Trace() != b.Trace() {
			t.Errorf("seed %d: two runs differ", s)
		}
	}
}
