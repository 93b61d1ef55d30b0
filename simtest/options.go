package simtest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// Options describe one run. The zero value of a field means its default.
type Options struct {
	Seed    uint64
	Nodes   int             // are there from the start [3]
	Expect  int             // so many of them found the cluster together: all, or more than half of those that there ever are [all]
	Users   int             // [100]
	Span    time.Duration   // visitors arrive and faults happen within it [20s]
	Limit   time.Duration   // of simulated time after the span; the run has failed if it takes longer [10m]
	Cluster eviction.Config // of every node
	// Others are what files may have instead: with any, each life of a node starts with
	// Cluster or one of them. Only what nodes may differ in differs.
	Others []eviction.Config
	Rooms  []eviction.Room // [one, "shop", of 20]
	Load   Load
	Net    Net
	Clocks Clocks
	Faults Faults
	After  After
	// Wire takes a message through the codec and back, as the links do. Nil: it
	// crosses as it is.
	Wire func(eviction.Message) (eviction.Message, error)
	// Trace receives the run, a line per event, without the line's end. Nil:
	// only the hash of the trace is kept.
	Trace func(line string)
}

// After says what happens after the span.
type After uint8

const (
	// Demand: visitors stop misbehaving and leave soon, rooms that let few in are
	// changed to let everybody in, and in the end all slots must be free.
	Demand After = iota
	// Measure: visitors and rooms stay as they are, and the run is over when
	// everybody is done.
	Measure
)

// Range bounds a duration that is drawn, both ends included.
type Range struct{ Min, Max time.Duration }

// Load is how visitors behave. Shares are in percent of the visitors unless they
// say otherwise.
type Load struct {
	Flash    int           // visitors come in this many crowds of a second each; 0: evenly over the span
	Browse   Range         // from admission to the end of the visit [1s to 3s]
	HTTP     Range         // one way between a visitor and a node; zero: at once
	Timeout  time.Duration // a browser gives up on an answer after it [3s]
	Patience time.Duration // someone who still waits after it leaves; 0: never
	Sticky   bool          // a visitor goes back to the node it used before
	Vanish   int           // never end their visit
	Silent   int           // leave the queue without a word
	Cancel   int           // give up their place
	Late     int           // come back later than told, or not in time for their call
	Early    int           // ask before they are told to
	Twice    int           // open a second tab with the same ticket
	NoShow   int           // go on asking when they are called, and do not come
	Quiet    int           // say so, and do not check in until the line has come up to them
	Replay   int           // try their ticket and pass again after use, at other nodes
	Lost     int           // answers that never arrive, per 1,000
	Takes    int           // deleteMins per minute and QPID room, from random nodes
}

// Net is the network between nodes. Shares are of messages, per 10,000.
type Net struct {
	Latency Range // one way [0.5ms to 2ms]
	Loss    int
	Twice   int
	Reorder int  // overtaken by others of the same link
	Held    bool // a cut link delivers afterwards what was sent meanwhile
	Copies  int  // lost besides, of what nodes say of the places that others keep
}

// Clocks says how wrong they are.
type Clocks struct {
	Offset time.Duration // of a wall clock, either way
	Drift  int           // of a boot clock, parts per million, either way
}

// Faults are the hardships of the span.
type Faults struct {
	Mix                     []Fault       // kinds, drawn with equal odds; repeat one to see more of it
	Every                   time.Duration // mean time between two; 0: none
	Last                    Range         // how long one lasts [0.5s to 5s]
	Kills, Adds, Partitions int           // this many of each besides, spread over the span
	Standstills, Resessions int           // and of these
	Policies                int           // changes of what sides do in a room
	Saves                   int           // bad disks and crashes inside a save, taken together
	Grays                   int           // nodes that turn gray
	Twins                   int           // nodes that are cut off while another is started under their name
	Gone                    int           // of the crashed nodes this many never return, if a majority lives
	Detect                  Range         // gossip notices after [500ms to 3s]
	Disk                    bool          // nodes have one,
	Visits                  bool          // and keep their visits on it
	Damage                  int           // in percent: what is kept of visits is found damaged after a crash
	Hangs                   int           // in 1/1000: a sync of visits hangs for some time, without an error
	DiskWait                time.Duration // node.Config.DiskWait
	PowerCuts               int           // all nodes crash at once, this often
	KeepKeys                bool          // signing keys survive a restart
}

// withDefaults fills the zero fields.
func (o Options) withDefaults() Options {
	o.Nodes = cmp.Or(o.Nodes, 3)
	o.Expect = cmp.Or(o.Expect, o.Nodes)
	o.Users = cmp.Or(o.Users, 100)
	o.Span = cmp.Or(o.Span, 20*time.Second)
	o.Limit = cmp.Or(o.Limit, 10*time.Minute)
	o.Cluster = o.Cluster.WithDefaults()
	o.Others = slices.Clone(o.Others)
	for i := range o.Others {
		o.Others[i] = o.Others[i].WithDefaults()
	}
	if len(o.Rooms) == 0 {
		o.Rooms = []eviction.Room{{Name: "shop", Target: 20, Session: 5 * time.Second}}
	}
	o.Rooms = slices.Clone(o.Rooms)
	for i := range o.Rooms {
		o.Rooms[i] = o.Rooms[i].WithDefaults()
	}
	o.Load.Browse = o.Load.Browse.or(time.Second, 3*time.Second)
	o.Load.Timeout = cmp.Or(o.Load.Timeout, 3*time.Second)
	o.Net.Latency = o.Net.Latency.or(500*time.Microsecond, 2*time.Millisecond)
	o.Faults.Last = o.Faults.Last.or(500*time.Millisecond, 5*time.Second)
	o.Faults.Detect = o.Faults.Detect.or(500*time.Millisecond, 3*time.Second)
	return o
}

// validate returns every error at once.
func (o Options) validate() error {
	errs := []error{o.Cluster.Validate()}
	for _, c := range o.Others {
		errs = append(errs, c.Validate())
	}
	if o.Nodes < 1 || o.Nodes+o.Faults.Adds+o.Faults.Twins > hostsMax {
		errs = append(errs, fmt.Errorf("nodes: %d and %d more; give 1 to %d in all", o.Nodes, o.Faults.Adds+o.Faults.Twins, hostsMax))
	}
	if o.Expect > o.Nodes || o.Expect < min(o.Nodes, o.expectMin()) {
		errs = append(errs, fmt.Errorf("expect: %d of %d nodes; give %d to %d", o.Expect, o.Nodes, min(o.Nodes, o.expectMin()), o.Nodes))
	}
	if o.Users < 0 || o.Users > usersMax {
		errs = append(errs, fmt.Errorf("users: %d; give 0 to %d", o.Users, usersMax))
	}
	if o.Span <= 0 || o.Limit <= 0 {
		errs = append(errs, fmt.Errorf("span %v and limit %v: both must be positive", o.Span, o.Limit))
	}
	if len(o.Rooms) > roomsMax {
		errs = append(errs, fmt.Errorf("rooms: %d; give at most %d", len(o.Rooms), roomsMax))
	}
	for _, r := range o.Rooms {
		errs = append(errs, r.Validate())
	}
	return errors.Join(errs...)
}

// hostsEver is how many nodes there can ever be.
func (o *Options) hostsEver() int {
	return min(hostsMax, o.Nodes+o.Faults.Adds+o.Faults.Twins+o.addsMax())
}

// slowest is the longest of each setting that any file has.
func (o *Options) slowest() eviction.Config {
	c := o.Cluster
	for _, f := range o.Others {
		c.Lease, c.Deadline, c.ExcludeAfter = max(c.Lease, f.Lease), max(c.Deadline, f.Deadline), max(c.ExcludeAfter, f.ExcludeAfter)
		c.Margin, c.MaxSkew, c.Period = max(c.Margin, f.Margin), max(c.MaxSkew, f.MaxSkew), max(c.Period, f.Period)
	}
	return c
}

// expectMin is more than half of them: else two foundings need not share a node.
func (o *Options) expectMin() int { return o.hostsEver()/2 + 1 }

// Bounds of a world. A node's place in the world is in the low 16 bits of its
// boot id, a visitor's in the low 32 bits of its ticket.
const (
	hostsMax = 256
	usersMax = 10_000_000
	roomsMax = 8
)

func (r Range) or(low, high time.Duration) Range {
	if r == (Range{}) {
		return Range{low, high}
	}
	return r
}

// draw returns microseconds.
func (r Range) draw(rng *rand.Rand) int64 {
	low, high := r.Min.Microseconds(), r.Max.Microseconds()
	if high <= low {
		return low
	}
	return low + rng.Int64N(high-low+1)
}

// chance reports true n times in of.
func chance(rng *rand.Rand, n, of int) bool { return n > 0 && rng.IntN(of) < n }
