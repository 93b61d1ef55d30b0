// Package queues is a simulated cluster with priority queues: the production
// broker of each node, under a seeded network, waves, logs, disks and clients.
// Faults fly for a while, then everything is healed, and what was promised must
// come true. One seed is one run, always the same.
//
// A World owns brokers and calls their Step, Tick and Ready itself. What stands
// around a broker in production is replaced: the links by a network that keeps
// their contract (in order, at most once, breaks are reported), the waves by
// lists and quorums that follow the faults with the delays of the real ones, the
// logs by ones that are always right about what they acknowledge. Options.Disk has
// those in real files, which are torn and damaged: package replog's tests do that.
package queues

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// Options say what a run is like. Draw draws them from a seed.
type Options struct {
	Seed   uint64
	Nodes  int
	Calm   bool  // no faults
	Fault  int64 // µs for which faults fly
	Every  int64 // µs between two faults, about
	Load   int64 // µs between two calls, about
	Delay  int64 // µs that a message takes at most
	Repeat int   // of 1000 messages, so many arrive twice
	Fills  bool  // disks do
	Bins   bool  // some queues are only put into, and purged
	Loses  bool  // disks, what they had: the node starts with what came before
	Again  bool  // some queues have items wait after a lease that came to nothing
	Sets   bool  // settings change
	Few    bool  // of some queues, few items may be leased at once
	Keys   bool  // of some queues, one item of a key
	Fair   bool  // of some queues, the keys take turns
	Mixed  bool  // some lives of nodes are of an older release
	// Disk makes the disk of a node's log; nil: logs are in memory and always right.
	Disk func(node string, k broker.Kind) Disk
	Log  func(line string) // hears of everything; nil: nobody
}

// Draw returns options of that seed, extremes included.
func Draw(seed uint64) Options {
	r := rand.New(rand.NewPCG(seed, 1))
	return Options{
		Seed: seed, Nodes: 1 + r.IntN(6), Calm: r.IntN(10) == 0, Fault: int64(5+r.IntN(15)) * second,
		Every: int64(300+r.IntN(3000)) * milli, Load: int64(10+r.IntN(60)) * milli,
		Delay: []int64{300, 5 * milli, 40 * milli, 120 * milli}[r.IntN(4)], Repeat: r.IntN(20), Fills: r.IntN(4) == 2, Bins: r.IntN(4) == 2, Loses: r.IntN(4) == 2,
		Again: r.IntN(3) == 1, Sets: r.IntN(2) == 1, Few: r.IntN(4) == 1,
		Keys:  rand.New(rand.NewPCG(seed, 11)).IntN(4) == 1,
		Fair:  rand.New(rand.NewPCG(seed, 13)).IntN(3) == 1,
		Mixed: rand.New(rand.NewPCG(seed, 17)).IntN(3) == 1,
	}
}

const (
	milli  = 1000
	second = 1000 * milli
	fresh  = 600 * milli

	clockBase = 1_700_000_000 * second
	skewMax   = 100 * milli
)

// World is one run.
type World struct {
	o        Options
	net      *rand.Rand // a stream of random numbers each, so that a change to one leaves the others alone
	faults   *rand.Rand
	disks    *rand.Rand
	load     *rand.Rand
	bins     *rand.Rand
	again    *rand.Rand
	sets     *rand.Rand
	damage   *rand.Rand
	few      *rand.Rand
	keyed    *rand.Rand
	fair     *rand.Rand
	brims    *rand.Rand // disks with files that are full
	mixed    mixed
	binned   []binned // lately, and not updated
	now      int64
	events   heap
	seq      uint64
	nodes    []*node
	links    map[[2]string]*way
	group    replicated
	loading  bool
	healed   bool
	troubled int64 // until when something broke, came back or changed hands, as far as it has begun
	resting  bool  // what is left is taken: a message that arrives twice takes two items, and one goes back late
	calls    uint64
	oracle   oracle
	Reached  Reached
	Disks    DiskReached
	trace    uint64 // hash of all that has happened
}

// Reached counts what a run came to: one that does nothing proves nothing.
type Reached struct {
	Inserted, Leased, Acked, Lapsed, Returned, Empty, Unavailable, Rounds, FindRoots, Breaks, Crashes, Pauses, Partitions, Leaders, Repeated, Full, Refused, Purged, Updated, GivenUp, Waited, Died, Crowded, Set, SetLater, InFlight, Keyed, Turns, Told, Without, Older, Stopped int
}

// node is one node, through all its lives.
type node struct {
	w       *World
	m       eviction.Member
	start   int64
	up      bool
	paused  bool
	woke    int64 // when it was paused last, until then
	side    int   // of a partition
	b       *broker.Broker
	offset  int64 // its boot clock is ahead by this, µs
	skew    int64 // and its wall clock by this
	list    []eviction.Member
	seen    map[eviction.Member]int64 // when a wave last had it
	late    []func()                  // that came while it was paused
	disk    [][]byte                  // the log of the durable queues
	doubt   []byte                    // what may be at its end besides
	doomed  int64                     // it crashes when it writes next, for so long; 0: it does not
	files   map[broker.Kind]*onDisk   // where the logs are, if there are disks
	room    broker.Room               // on the disk of both logs
	applied int                       // of the log of the replicated ones
	leads   bool
	older   bool                 // this life is of an older release
	stopped map[broker.Kind]bool // logs at what that cannot read
	clients map[uint64]*client
	set     map[string]pqueue.Settings // by queue, in this life
	changes uint64                     // of settings, that the oracle has seen
}

// New returns a world of those options, before anything has happened.
func New(o Options) *World {
	w := &World{
		o: o, net: rand.New(rand.NewPCG(o.Seed, 2)), faults: rand.New(rand.NewPCG(o.Seed, 3)), load: rand.New(rand.NewPCG(o.Seed, 4)),
		disks: rand.New(rand.NewPCG(o.Seed, 5)), bins: rand.New(rand.NewPCG(o.Seed, 6)), again: rand.New(rand.NewPCG(o.Seed, 7)),
		sets: rand.New(rand.NewPCG(o.Seed, 10)), damage: rand.New(rand.NewPCG(o.Seed, 8)),
		few:   rand.New(rand.NewPCG(o.Seed, 8)), // damage is of runs that have disks
		keyed: rand.New(rand.NewPCG(o.Seed, 12)),
		fair:  rand.New(rand.NewPCG(o.Seed, 14)),
		brims: rand.New(rand.NewPCG(o.Seed, 15)),
		links: map[[2]string]*way{}, trace: 14695981039346656037,
	}
	w.mixed.init(o.Seed, o.Bins)
	w.oracle.init(w)
	for i := range o.Nodes {
		n := &node{w: w, m: eviction.Member{Name: qpid.NodeID(fmt.Sprintf("n%d", i+1))}, offset: w.faults.Int64N(1000 * second), skew: w.faults.Int64N(skewMax)}
		if o.Disk != nil {
			n.files = map[broker.Kind]*onDisk{}
			for _, k := range onDisks() {
				n.files[k] = &onDisk{disk: o.Disk(string(n.m.Name), k), snapshots: map[int]string{}}
			}
		}
		w.nodes = append(w.nodes, n)
		w.after(w.faults.Int64N(500*milli), n.boot)
	}
	w.after(0, w.wave)
	w.after(0, w.tick)
	w.after(second, w.elect)
	return w
}

func (n *node) time() broker.Time {
	return broker.Time{Boot: n.w.now + n.offset, Clock: clockBase + n.w.now + n.skew}
}

// queues is the configuration of every node.
func (o Options) queues() []broker.Queue {
	l := pqueue.Limits{
		ItemsMax: 100_000, BytesMax: 1 << 40, AttemptsMax: 0, DeadMax: 100, RememberMax: 100_000, Remember: 3600 * second, LeaseMax: 3600 * second,
	}
	q := func(name string, k broker.Kind) broker.Queue {
		return broker.Queue{Name: name, Kind: k, Limits: l, Lease: leaseFor, PayloadMax: 100}
	}
	slow := q("slow", broker.Memory)
	slow.Interval, slow.PerInterval = slowEvery, slowMany
	safe := q("slow/safe", broker.Replicated)
	safe.Interval, safe.PerInterval = slowEvery, slowMany
	all := []broker.Queue{slow, safe, q("kept", broker.Durable), q("safe", broker.Replicated)}
	if o.Bins {
		all = append(all, q("bin/kept", broker.Durable), q("bin/safe", broker.Replicated))
	}
	if o.Again {
		all = append(all, againQueues(q)...)
	}
	if o.Few {
		all = append(all, fewQueues(q)...)
	}
	if o.Keys {
		all = append(all, o.keyedConfig(q)...)
	}
	if o.Fair {
		all = append(all, fairConfig(q)...)
	}
	return all
}

const (
	leaseFor  = 3 * second
	slowEvery = 500 * milli
	slowMany  = 2
)

// boot begins a life of n.
func (n *node) boot() {
	w := n.w
	n.m.Boot++
	n.start, n.up, n.paused, n.leads, n.applied = w.now, true, false, false, 0
	n.list, n.seen, n.late, n.clients = nil, map[eviction.Member]int64{}, nil, map[uint64]*client{}
	n.ofARelease()
	all := w.o.queues()
	onUse := all[2]
	onUse.Name, onUse.Kind = "", broker.Memory
	b, err := broker.New(broker.Config{
		Self: n.m, Queues: all, CreateOnUse: true, OnUse: onUse, QueuesMax: 30, Logs: []broker.Kind{broker.Durable, broker.Replicated}, Fresh: fresh, PurgeSteps: 3,
	}, n.time())
	if err != nil {
		panic(err)
	}
	n.b = b
	if w.o.Disk == nil {
		n.apply(broker.Durable, n.disk)
	} else {
		n.reopen()
	}
	n.catchUp(len(w.group.log))
	n.set = map[string]pqueue.Settings{}
	w.oracle.follow(n)
	w.trouble(0)
	w.note("boot %v", n.m)
	if n.room != broker.RoomForAll {
		n.tellRoom()
	}
	n.settle()
	n.do(w.faults.Int64N(300*milli), func() { n.b.Leads(n.time(), broker.Durable, !n.stopped[broker.Durable]) })
}

// do has something happen to this life of n, later: when it is not paused.
func (n *node) do(after int64, f func()) {
	life := n.m.Boot
	n.w.after(after, func() {
		switch {
		case !n.up || n.m.Boot != life:
		case n.paused:
			n.late = append(n.late, f)
		default:
			f()
			n.settle()
		}
	})
}

// settle does what the broker wants done.
func (n *node) settle() {
	if n.b.Changes() != n.changes {
		n.w.oracle.follow(n)
	}
	r := n.b.Ready()
	for _, m := range r.Messages {
		n.w.sent(n, m)
	}
	for _, p := range r.Proposals {
		n.propose(p)
	}
	for _, a := range r.Answers {
		c := n.clients[a.ID]
		if c == nil {
			n.w.oracle.fail("%v answered call %d twice, or one that was forsaken", n.m, a.ID)
			continue
		}
		delete(n.clients, a.ID)
		c.answered(a)
	}
	n.w.oracle.roots()
	n.w.oracle.inFlight()
	n.w.oracle.exclusive()
	n.w.oracle.turns(n)
}

func (w *World) tick() {
	for _, n := range w.nodes {
		if n.up && !n.paused {
			n.b.Tick(n.time())
			n.settle()
		}
	}
	w.after(broker.TickEvery, w.tick)
}

// Run runs all of it and returns what was wrong; nil: nothing.
func (w *World) Run() error {
	w.loading = true
	w.after(second, w.client)
	if w.o.Bins {
		w.after(second, w.fillBins)
	}
	if w.o.Again {
		w.after(second, w.tryAgain)
	}
	if w.o.Sets {
		w.after(second, w.change)
	}
	if w.o.Few {
		w.after(second, w.useFew)
	}
	if w.o.Keys {
		w.after(second, w.useKeyed)
	}
	if w.o.Fair {
		w.after(second, w.useFair)
	}
	if !w.o.Calm {
		w.after(2*second, w.fault)
		if w.o.Fills {
			w.after(2*second, w.fill)
		}
	}
	w.until(2*second + w.o.Fault)
	w.heal()
	w.until(w.now + 8*second)
	w.loading = false
	w.until(w.now + 14*second) // waits are over, and leases
	w.oracle.agreed()
	w.resting = true
	w.drain()
	return w.oracle.err
}

func (w *World) until(end int64) {
	for len(w.events) > 0 && w.events[0].at <= end && w.oracle.err == nil {
		e := w.events.pop()
		w.now = max(w.now, e.at)
		e.do()
	}
	w.now = max(w.now, end)
}

func (w *World) after(d int64, f func()) {
	w.seq++
	w.events.push(event{at: w.now + max(0, d), seq: w.seq, do: f})
}

// note adds a line to the trace.
func (w *World) note(format string, args ...any) {
	line := fmt.Sprintf("%d "+format, append([]any{w.now}, args...)...)
	if w.o.Log != nil {
		w.o.Log(line)
	}
	for _, c := range []byte(line) {
		w.trace = (w.trace ^ uint64(c)) * 1099511628211
	}
}

// Trace is a hash of all that has happened.
func (w *World) Trace() uint64 { return w.trace }

// event is something that happens at a time; seq keeps those of one time in order.
type event struct {
	at  int64
	seq uint64
	do  func()
}

type heap []event

func (h heap) less(a, b int) bool {
	return cmp.Or(cmp.Compare(h[a].at, h[b].at), cmp.Compare(h[a].seq, h[b].seq)) < 0
}

func (h *heap) push(e event) {
	*h = append(*h, e)
	for i := len(*h) - 1; i > 0 && h.less(i, (i-1)/2); i = (i - 1) / 2 {
		(*h)[i], (*h)[(i-1)/2] = (*h)[(i-1)/2], (*h)[i]
	}
}

func (h *heap) pop() event {
	e, last := (*h)[0], len(*h)-1
	(*h)[0], (*h)[last] = (*h)[last], event{}
	*h = (*h)[:last]
	for i := 0; ; {
		least := i
		for _, c := range []int{2*i + 1, 2*i + 2} {
			if c < last && h.less(c, least) {
				least = c
			}
		}
		if least == i {
			return e
		}
		(*h)[i], (*h)[least] = (*h)[least], (*h)[i]
		i = least
	}
}

func (w *World) alive() []*node {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return !n.up || n.paused })
}
