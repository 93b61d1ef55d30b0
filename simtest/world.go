package simtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// eventKind says what an event of the agenda is about.
type eventKind uint8

const (
	evTick    eventKind = iota // a: host whose node asked for a Tick
	evMessage                  // a: flight that arrives
	evUser                     // the next person comes
	evWake                     // a: visitor who does what comes next
	evReach                    // a: request that reaches the node it was sent to
	evForward                  // a: request that reaches the node it was forwarded to
	evBack                     // a: request whose answer is back at the first node
	evAnswer                   // a: request whose answer reaches the visitor
	evTimeout                  // a: request that the visitor gives up on
	evBelief                   // a, b: what host a believes of host b changes
	evView                     // a: host whose node is told of its new view
	evStart                    // a: host that comes up
	evResume                   // a: host whose pause ends
	evStop                     // a: host that said goodbye and goes down now
	evFault                    // the next fault of the mix
	evExtra                    // a: Fault that was asked for by number
	evStage                    // a: trouble that moves on or ends
	evTake                     // the next deleteMin
	evJoined                   // the answer to a join may go out
	evSynced                   // a batch of visits is on a disk
	evUnkept                   // joins are answered for which nobody keeps the place
	evSample                   // the oracles look at everything
	evPhase                    // a: phase that begins
)

// phase of a run; see the package comment.
type phase uint8

const (
	storm   phase = iota // faults fly
	healing              // no more faults; things settle
	settled              // waves must commit
	whole                // slots must be whole
	drained              // everybody is done; slots must be free
)

// world is one run.
type world struct {
	o                   Options
	now                 int64 // µs of true time since the world began
	same                int   // events since it went on last
	phase               phase
	agenda              agenda
	hosts               []host
	lives               []life
	wires               wires
	gossip              gossip
	crowd               crowd
	nemesis             nemesis
	checker             checker
	trace               trace
	reached             reached
	keys                keys
	told                func(q *request) // looks at each answer about a place; nil: nobody does
	visited             func(took int64) // hears for how long each visit lasted that is over, µs; nil: nobody does
	broken              *Violation
	spoilt              bool // a script has broken a room, to see what becomes of it
	over                bool
	unmade              int // how many of the last rooms no node starts with: they are made while it runs
	rngLoad             *rand.Rand
	rngQuiet            *rand.Rand
	rngNet              *rand.Rand
	rngFaults           *rand.Rand
	rngFiles, rngVisits *rand.Rand
	scripted            bool // a script says which settings a node starts with
}

// Streams of one seed. A change to what one of them draws leaves the others alone.
const (
	streamOptions = iota + 1
	streamLoad
	streamNet
	streamFaults
	streamStandstill
	streamResession
	streamSaves
	streamGray
	streamGrayLinks
	streamExpect
	streamTwins
	streamFiles
	streamPolicies
	streamCopies
	streamQuiet
	streamVisits
)

// Violation is a promise that did not hold.
type Violation struct {
	Oracle string        // S1 … S25, L1 … L7
	At     time.Duration // since the run began
	Text   string
}

func (v *Violation) Error() string { return fmt.Sprintf("%s broken at %v: %s", v.Oracle, v.At, v.Text) }

// fail ends the run; only the first failure counts.
func (w *world) fail(oracle, format string, args ...any) {
	if w.broken != nil {
		return
	}
	w.broken = &Violation{Oracle: oracle, At: time.Duration(w.now) * time.Microsecond, Text: fmt.Sprintf(format, args...)}
	w.printf("VIOLATION %v", w.broken)
}

// Run simulates one world. The error is a *Violation, or says what is wrong
// with the options; the result is good as far as the run got.
func Run(o Options) (Result, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return Result{}, err
	}
	w := newWorld(o)
	w.run()
	if w.broken != nil {
		return w.result(), w.broken
	}
	return w.result(), nil
}

func newWorld(o Options) *world {
	w := &world{
		o:         o,
		rngLoad:   rand.New(rand.NewPCG(o.Seed, streamLoad)),
		rngQuiet:  rand.New(rand.NewPCG(o.Seed, streamQuiet)),
		rngNet:    rand.New(rand.NewPCG(o.Seed, streamNet)),
		rngFaults: rand.New(rand.NewPCG(o.Seed, streamFaults)),
		rngFiles:  rand.New(rand.NewPCG(o.Seed, streamFiles)),
		rngVisits: rand.New(rand.NewPCG(o.Seed, streamVisits)),
		trace:     trace{hash: offsetFNV, print: o.Trace},
	}
	// Places for every node that can ever be added.
	places := o.hostsEver()
	w.wires.init(places, o.Net, w.rngNet, rand.New(rand.NewPCG(o.Seed, streamGrayLinks)), rand.New(rand.NewPCG(o.Seed, streamCopies)))
	w.gossip.init(places)
	w.checker.init(o)
	w.crowd.init(o)
	w.hosts = make([]host, 0, places)
	for range o.Nodes {
		w.addHost(o.Expect)
	}
	w.plan()
	return w
}

// plan fills the agenda with what is known beforehand.
func (w *world) plan() {
	span := w.o.Span.Microseconds()
	within := int64(300_000)
	if w.o.Expect < w.o.Nodes {
		within *= 10 // some found the cluster without the others,
		if w.o.Faults.Every > 0 {
			w.apart(within) // some of whom may do so too
		}
	}
	for i := range w.hosts {
		w.agenda.push(w.rngFaults.Int64N(within), evStart, int32(i), 0)
	}
	if w.o.Users > 0 {
		w.agenda.push(w.crowd.arrival(w, 0), evUser, 0, 0)
	}
	if w.o.Load.Takes > 0 {
		w.agenda.push(1_000_000, evTake, 0, 0)
	}
	w.nemesis.plan(w)
	w.agenda.push(samplePeriod, evSample, 0, 0)
	w.agenda.push(span, evPhase, int32(healing), 0)
}

// run works the agenda off.
func (w *world) run() {
	for w.broken == nil && !w.over {
		if len(w.agenda.heap) == 0 {
			panic("simtest: nothing left to do and not over")
		}
		e := w.agenda.pop()
		w.same++
		if e.at > w.now {
			w.same = 0
		}
		w.now = e.at
		w.happen(e)
		if w.same == sameMax {
			w.fail("L7", "%d events at one time, and no end to them", w.same)
		}
	}
}

// sameMax is how much may happen at one time: more than everybody who waits can do.
const sameMax = 1_000_000

func (w *world) happen(e event) {
	switch e.kind {
	case evTick:
		w.tick(&w.hosts[e.a], e.at)
	case evMessage:
		w.arrive(e.a)
	case evUser:
		w.nextUser(e.a)
	case evWake:
		w.wake(e.a)
	case evReach:
		w.reach(e.a)
	case evForward:
		w.forwarded(e.a)
	case evBack:
		w.back(e.a)
	case evAnswer:
		w.answer(e.a)
	case evTimeout:
		w.timeout(e.a)
	case evBelief:
		w.believe(e.a, e.b, e.at)
	case evView:
		w.tellView(&w.hosts[e.a])
	case evStart:
		w.start(&w.hosts[e.a])
	case evResume:
		w.resume(&w.hosts[e.a], e.at)
	case evStop:
		w.stop(&w.hosts[e.a], e.b)
	case evFault:
		w.nextFault()
	case evExtra:
		w.strike(Fault(e.a))
	case evStage:
		w.stage(e.a)
	case evTake:
		w.nextTake()
	case evJoined:
		w.joined(e.a, e.b)
	case evSynced:
		w.synced(&w.hosts[e.a], e.b)
	case evUnkept:
		w.unkept(&w.hosts[e.a], e.b)
	case evSample:
		w.sample()
	case evPhase:
		w.enter(phase(e.a))
	}
}

// errNoKey is what a browser is told when no node can open its ticket any more.
var errNoKey = errors.New("simtest: the ticket's key is lost")

// formerHome is the life of a former home that a ticket names; none where it does
// not: a home that was told of the newest one alone does not know those between.
func (w *world) formerHome(m eviction.Member) int32 {
	if m == (eviction.Member{}) {
		return none
	}
	return w.lifeOf(m)
}

// lifeOf finds a member's life: its place is in the low bits of the boot id.
func (w *world) lifeOf(m eviction.Member) int32 {
	i := int32(m.Boot & 0xffff)
	if int(i) >= len(w.lives) || w.lives[i].member != m {
		panic(fmt.Sprintf("simtest: a node named %v, which never lived", m))
	}
	return i
}
