package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

const (
	hostsMax    = 4
	visitorsMax = 4

	bootZero = 1_000_000_000         // boot time of all machines at the start of a model, µs
	wallZero = 1_000_000_000_000_000 // Unix time then, µs
)

// model is a small world: what is in it, and what may happen to it. Whatever
// may happen happens in every order.
type model struct {
	nodes    int
	cluster  eviction.Config
	room     eviction.Room
	visitors []script
	prelude  func(*world) // what happened before, in one way only
	schedule []moment     // the times at which things happen, after the prelude
	faults   faults
	coarse   coarse
	demand   demand
	lie      lie
}

// faults bounds what goes wrong.
type faults struct {
	drops     limit[string] // messages that links lose
	late      limit[string] // times at which time passes with messages under way
	crashes   limit[int]    // nodes that die
	restarts  uint8         // that come back under their name, in another life
	disks     bool          // who comes back has what was saved; else nothing
	pauses    limit[int]    // nodes whose inputs are withheld while time passes
	cuts      []cut         // partitions, each once, one at a time
	heals     uint8         // of them that end
	doubts    uint8         // members that a node takes for dead though they are not
	doubtable [][2]int      // who may doubt whom
	until     int           // nodes crash, start again and are paused or cut off only before this moment; 0: always
}

// limit bounds something that happens to messages of some kinds, or to some
// hosts; to any if of is nil.
type limit[T comparable] struct {
	n  uint8
	of []T
}

func (l limit[T]) more(used uint8, what T) bool {
	return used < l.n && (l.of == nil || slices.Contains(l.of, what))
}

// coarse says what is not explored: where one order stands for all.
type coarse struct {
	eager   []string // kinds of messages that arrive as soon as nothing is before them on their link
	told    bool     // everyone hears at once who is there
	patient bool     // time waits until everyone has heard who is there
	deeds   int      // visitors act only before this moment; 0: always
}

// demand is what is asked of a model beside the promises that always hold.
type demand struct {
	stable bool               // the view never changes: order is exact, and there is one QPID root
	end    func(*world) error // holds when nothing more can happen
	seen   []string           // happens at least once, see world.note
	most   int                // states; give up beyond them. 0: visit all
}

// lie is a fault that no protocol can bear. It shows that the promises bite.
type lie struct {
	wire  func(eviction.Message) eviction.Message // what becomes of a message when it is sent
	clock func(host int, now int64) int64         // what a host takes for now
	log   func([]node.Admission) []node.Admission // what a node says that it did
	blind map[string][]string                     // fields that the fingerprint leaves out
}

// moment is a time of the schedule.
type moment struct {
	name  string
	at    int  // ms since the start of the model
	quiet bool // until then the world runs by itself, in one way only
}

// cut is a partition: the directed links that carry nothing while it lasts.
// What is on them is held, what is sent over them is lost.
type cut struct {
	name  string
	links [][2]int
	loses [2]int // a link that loses commits only
}

// between cuts both directions between two groups of hosts.
func between(name string, a, b []int) cut {
	c := cut{name: name}
	for _, x := range a {
		for _, y := range b {
			c.links = append(c.links, [2]int{x, y}, [2]int{y, x})
		}
	}
	return c
}

// script is what a visitor does, one thing after the other.
type script []deed

type deed struct {
	kind inputKind
	host int
	old  bool // with the first ticket, as a copy of it would
}

func join(h int) deed      { return deed{inJoin, h, false} }
func leave(h int) deed     { return deed{inLeave, h, false} }
func ask(h int) deed       { return deed{inCheckIn, h, false} }
func askAgain(h int) deed  { return deed{inCheckIn, h, true} }
func refresh(h int) deed   { return deed{inRefresh, h, false} }
func end(h int) deed       { return deed{inEnd, h, false} }
func deleteMin(h int) deed { return deed{inDelete, h, false} }

// cluster is what the models run with: production's numbers in proportion,
// rounded so that a wave is due at every second.
func cluster() eviction.Config {
	return eviction.Config{
		Period: time.Second, Urgent: time.Second, Deadline: 500 * time.Millisecond, Lease: 4 * time.Second,
		MaxSkew: 100 * time.Millisecond, ExcludeAfter: 2 * time.Second, Margin: 100 * time.Millisecond,
	}
}

// room has slots places. Passes are good for a second, so D is 5.8 s.
func room(slots int) eviction.Room {
	return eviction.Room{Name: "shop", Target: slots, Session: time.Second, QueueAll: true}
}

// byQPID is a room that calls people with deleteMins.
func byQPID(slots int) eviction.Room {
	r := room(slots)
	r.Algorithm = eviction.ByQPID
	return r
}

// lossless reports whether all messages arrive, and in time.
func (m *model) lossless() bool {
	return m.demand.stable && m.faults.drops.n == 0 && m.faults.late.n == 0
}

// time is what a host's clocks show at now. They all show the same.
func (m *model) time(host int, now int64) eviction.Time {
	if m.lie.clock != nil {
		now = m.lie.clock(host, now)
	}
	return eviction.Time{Boot: bootZero + now, Wall: wallZero + now}
}

func hostOf(name qpid.NodeID) int { return int(name[0] - 'a') }

func hostName(h int) qpid.NodeID { return qpid.NodeID('a' + rune(h)) }

// peer is a life as gossip presents it: it started at started.
func peer(h int, life uint8, started int64) eviction.Peer {
	return eviction.Peer{
		Member: eviction.Member{Name: hostName(h), Boot: uint64(life)},
		Start:  wallZero + started + int64(h),
	}
}

func (m *model) birth(h int, life uint8, now int64) node.Config {
	return node.Config{
		Self: peer(h, life, now), Expect: m.nodes, Joins: true, Cluster: m.cluster, Rooms: []eviction.Room{m.room}, Disk: m.faults.disks,
	}
}

// ticketID is the identity of visitor v's ticket.
func ticketID(v int) qpid.ItemID { return qpid.ItemID{byte(v + 1)} }

// visitorOf is the visitor to whom a ticket belongs.
func visitorOf(id qpid.ItemID) int { return int(id[0]) - 1 }

func ms(n int) int64 { return int64(n) * 1000 }

func clock(now int64) string { return fmt.Sprintf("%.3f s", float64(now)/1e6) }

// together starts all nodes, each with the full view.
func together(w *world) {
	for h := range w.m.nodes {
		w.start(h)
	}
	for h := range w.m.nodes {
		w.hear(h, w.everyone()...)
	}
}

// since returns a prelude in which a cluster is founded, has visitors do their
// next deed after two seconds, and runs quietly until the given ms.
func since(until int, visitors ...int) func(*world) {
	return func(w *world) {
		together(w)
		w.quiet(ms(2200))
		for _, v := range visitors {
			w.visit(v)
			w.hurry()
		}
		w.quiet(ms(until))
	}
}
