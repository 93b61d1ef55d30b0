package qpid

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
)

var exploreFlag = flag.Bool("explore", false, "explore larger bounds (minutes, gigabytes)")

// plan is what happens in an exploration. Each thing happens once, in every
// possible order relative to everything else.
type plan struct {
	topology
	waves   int         // the first is the founding one; a later one may overtake an earlier
	inserts [][2]uint64 // node, stamp
	removes [][2]uint64 // node, stamp: once the item is there
	deletes []int       // nodes that call deleteMin
	losses  int         // messages that links may lose before the last install
	freeze  bool        // as the protocol wants it; false shows why
}

func (p *plan) name() string {
	shape := "path"
	if len(p.ids) > 3 && len(p.adj[0]) > 1 {
		shape = "star"
	}
	return fmt.Sprintf("%s of %d/%d waves %d inserts %d removes %d deleteMins %d losses",
		shape, len(p.ids), p.waves, len(p.inserts), len(p.removes), len(p.deletes), p.losses)
}

// world is one state. Worlds share nodes and links: what an event changes, it
// copies first.
type world struct {
	*plan
	nodes    []*Node
	links    [][]Message // from*len(nodes)+to; a link to oneself stays empty
	replied  [][]bool    // by wave and node
	snapshot [][]Weight  // by wave and node, of those that replied
	done     [][]bool    // by wave and node: installed
	inserted uint        // bit set of inserts done
	removed  uint        // bit set of removes done
	called   uint        // bit set of deletes called
	answered uint        // bit set of deletes answered
	excused  uint        // bit set of deletes of which a message was lost
	taken    []Weight    // by deleteMin, in order
	lost     int
}

// tally is the result of an exploration.
type tally struct {
	states, ends              int
	twoRoots, deadlocks, eq1  int
	wrongRoot, other          int
	findRoots, frozenDeletes  int // events that show that the exploration got anywhere
	overtaken, earlyFindRoots int
	first                     error // the first fault, with the events that led to it
}

func (t tally) String() string {
	return fmt.Sprintf("%d states, %d of them final; %d with two roots, %d deadlocks, %d breaches of Eq. 1, %d wrong roots, %d other faults",
		t.states, t.ends, t.twoRoots, t.deadlocks, t.eq1, t.wrongRoot, t.other)
}

// explore visits every state that the plan can lead to.
func explore(p *plan) tally {
	n := len(p.ids)
	start := &world{
		plan: p, nodes: make([]*Node, n), links: make([][]Message, n*n),
		replied: grid[bool](p.waves, n), done: grid[bool](p.waves, n), snapshot: grid[Weight](p.waves, n),
	}
	for i, id := range p.ids {
		node, err := New(Config{Self: id, HopsMax: 8})
		if err != nil {
			panic(err)
		}
		start.nodes[i] = node
	}
	x := explorer{seen: map[[sha256.Size]byte]bool{}}
	x.visit(start)
	return x.tally
}

func grid[T any](rows, cols int) [][]T {
	g := make([][]T, rows)
	for i := range g {
		g[i] = make([]T, cols)
	}
	return g
}

type explorer struct {
	tally
	seen  map[[sha256.Size]byte]bool // hashes of keys
	trail []string                   // events from the start to the present state
}

// visit looks at a state that has not been seen, and at all that follow.
func (x *explorer) visit(w *world) {
	key := sha256.Sum256(w.key())
	if x.seen[key] {
		return
	}
	x.seen[key] = true
	x.states++
	if len(roots(w.nodes)) > 1 {
		x.twoRoots++
		x.fault(fmt.Errorf("%w: %v", errRoots, roots(w.nodes)), w)
	}
	for _, n := range w.nodes {
		if err := checkAlways(n); err != nil {
			x.other++
			x.fault(err, w)
		}
	}
	events := w.events()
	for _, e := range events {
		next, err := e.apply(w)
		x.trail = append(x.trail, e.String())
		if err != nil {
			x.other++
			x.fault(err, next)
		}
		x.reach(w, e)
		x.visit(next)
		x.trail = x.trail[:len(x.trail)-1]
	}
	if len(events) == 0 {
		x.ends++
		x.end(w)
	}
}

// end judges a state in which nothing can happen any more.
func (x *explorer) end(w *world) {
	err := checkQuiet(w.topology, w.nodes)
	switch {
	case errors.Is(err, errEq1):
		x.eq1++
	case errors.Is(err, errRoots):
		x.wrongRoot++
	case err != nil:
		x.deadlocks++
	case w.answered|w.excused != 1<<len(w.deletes)-1:
		x.deadlocks++
		err = fmt.Errorf("answered %b, excused %b of %d deleteMins", w.answered, w.excused, len(w.deletes))
	default:
		return
	}
	x.fault(err, w)
}

func (x *explorer) fault(err error, w *world) {
	if x.first == nil {
		x.first = fmt.Errorf("%w\n  %s\n%s", err, strings.Join(x.trail, "\n  "), w.describe())
	}
}

// reach counts the events without which an exploration proves little.
func (x *explorer) reach(w *world, e event) {
	switch e.kind {
	case eventDeliver:
		m := w.links[e.a*len(w.nodes)+e.b][0]
		if m.Kind == MsgFindRoot {
			x.findRoots++
			if m.Epoch.Compare(w.nodes[e.b].epoch) > 0 {
				x.earlyFindRoots++
			}
		}
		if m.Kind == MsgDeleteMin && w.nodes[e.b].frozen {
			x.frozenDeletes++
		}
	case eventReply:
		if e.a > 0 && !w.done[e.a-1][e.b] {
			x.overtaken++
		}
	default:
	}
}

func TestExploreWaves(t *testing.T) {
	far := [][2]uint64{{0, 2}, {2, 1}} // at both ends of the path, or at two leaves
	small := []*plan{
		{topology: path(3), waves: 1, inserts: [][2]uint64{{0, 3}, {1, 2}, {2, 1}}, deletes: []int{0, 2}},
		{topology: path(3), waves: 2, inserts: [][2]uint64{{0, 3}, {1, 2}, {2, 1}}},
		{topology: path(3), waves: 2, inserts: far, deletes: []int{1}},
		{topology: path(3), waves: 2, inserts: far, removes: [][2]uint64{{2, 1}}},
		{topology: path(3), waves: 2, inserts: far, losses: 1},
		{topology: path(3), waves: 2, inserts: far[1:], deletes: []int{0}, losses: 1},
		{topology: path(3), waves: 3, inserts: far},
		{topology: star(4), waves: 1, inserts: [][2]uint64{{1, 3}, {2, 2}, {3, 1}}, deletes: []int{1}},
		{topology: star(4), waves: 2, inserts: [][2]uint64{{1, 2}, {2, 1}}},
	}
	large := []*plan{
		{topology: path(3), waves: 2, inserts: [][2]uint64{{0, 3}, {1, 2}, {2, 1}}, deletes: []int{0, 2}},
		{topology: path(3), waves: 2, inserts: far, removes: [][2]uint64{{2, 1}}, deletes: []int{0}, losses: 1},
		{topology: path(3), waves: 3, inserts: far, deletes: []int{0}},
		{topology: path(4), waves: 2, inserts: [][2]uint64{{0, 2}, {3, 1}}, deletes: []int{1}},
		{topology: star(4), waves: 2, inserts: [][2]uint64{{1, 3}, {2, 2}, {3, 1}}, deletes: []int{1}},
		{topology: star(4), waves: 2, inserts: [][2]uint64{{1, 2}, {2, 1}}, deletes: []int{1, 3}},
		{topology: star(4), waves: 2, inserts: [][2]uint64{{1, 2}, {2, 1}}, deletes: []int{3}, losses: 1},
	}
	plans := small
	if *exploreFlag {
		plans = large
	}
	var reached tally
	for _, p := range plans {
		p.freeze = true
		t.Run(p.name(), func(t *testing.T) {
			got := explore(p)
			t.Log(got)
			if got.first != nil {
				t.Errorf("%v\n%v", got, got.first)
			}
			reached.findRoots += got.findRoots
			reached.frozenDeletes += got.frozenDeletes
			reached.overtaken += got.overtaken
			reached.earlyFindRoots += got.earlyFindRoots
		})
	}
	if reached.findRoots == 0 || reached.frozenDeletes == 0 || reached.overtaken == 0 || reached.earlyFindRoots == 0 {
		t.Errorf("the exploration never saw one of: findRoot %d, deleteMin at a frozen node %d, "+
			"a wave overtaking an install %d, findRoot before the install %d",
			reached.findRoots, reached.frozenDeletes, reached.overtaken, reached.earlyFindRoots)
	}
}

// TestExploreWithoutFreezeFindsTwoRoots shows that the exploration can fail,
// and why the freeze is there.
func TestExploreWithoutFreezeFindsTwoRoots(t *testing.T) {
	got := explore(&plan{topology: path(3), waves: 2, inserts: [][2]uint64{{0, 2}, {2, 1}}})
	t.Log(got)
	if got.twoRoots == 0 {
		t.Error("no state with two roots")
	}
}
