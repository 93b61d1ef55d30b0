package qpid

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// topology is a tree of nodes. Nodes are numbers here; ids are their names.
type topology struct {
	ids []NodeID
	adj [][]int // sorted
}

// newTopology makes a tree of n nodes a, b, c… from its edges.
func newTopology(n int, edges ...[2]int) topology {
	t := topology{ids: make([]NodeID, n), adj: make([][]int, n)}
	for i := range n {
		t.ids[i] = NodeID('a' + rune(i))
	}
	for _, e := range edges {
		t.adj[e[0]] = append(t.adj[e[0]], e[1])
		t.adj[e[1]] = append(t.adj[e[1]], e[0])
	}
	for i := range t.adj {
		slices.Sort(t.adj[i])
	}
	return t
}

// path is a–b–c–…, star is a with all others around it.
func path(n int) topology {
	var edges [][2]int
	for i := 1; i < n; i++ {
		edges = append(edges, [2]int{i - 1, i})
	}
	return newTopology(n, edges...)
}

func star(n int) topology {
	var edges [][2]int
	for i := 1; i < n; i++ {
		edges = append(edges, [2]int{0, i})
	}
	return newTopology(n, edges...)
}

func (t topology) index(id NodeID) int { return slices.Index(t.ids, id) }

// sideMin is the lightest of the weights on v's side of the link from u to v.
func (t topology) sideMin(u, v int, weights []Weight) Weight {
	w := weights[v]
	for _, x := range t.adj[v] {
		if x != u {
			if side := t.sideMin(v, x, weights); side.Less(w) {
				w = side
			}
		}
	}
	return w
}

// snapshot is what a wave that collected these weights tells node v.
func (t topology) snapshot(v int, e Epoch, weights []Weight) Snapshot {
	s := Snapshot{Epoch: e, Position: v, Own: weights[v]}
	for _, u := range t.adj[v] {
		s.Neighbors = append(s.Neighbors, Neighbor{ID: t.ids[u], Weight: t.sideMin(v, u, weights)})
	}
	return s
}

// roots are the nodes that take themselves for the root.
func roots(nodes []*Node) []int {
	var found []int
	for i, n := range nodes {
		if n.IsRoot() {
			found = append(found, i)
		}
	}
	return found
}

// checkAlways says what is wrong with a node at rest between two inputs.
func checkAlways(n *Node) error {
	if n.frozen {
		return nil
	}
	switch {
	case n.own != n.Min():
		return fmt.Errorf("%s: own entry %v, lightest item %v", n.self, n.own, n.Min())
	case n.parent == n.self && n.lightest() != n.self:
		return fmt.Errorf("%s: root, but its table is lighter elsewhere: %v", n.self, n.Table())
	case n.parent != n.self && n.told != n.Report(n.parent):
		return fmt.Errorf("%s: told its parent %v, reports %v", n.self, n.told, n.Report(n.parent))
	case len(n.pending) > 0:
		return fmt.Errorf("%s: deleteMins wait at a node that is not frozen", n.self)
	}
	return nil
}

var (
	errRoots = errors.New("not exactly one root")
	errEq1   = errors.New("the weight-table invariant is broken")
	errStuck = errors.New("not at rest")
)

// checkQuiet says what is wrong with a network in which no message travels and
// all nodes have installed the same epoch: there is one root, it has the
// lightest item, all pointers lead to it, and Eq. 1 holds: a parent's entry for
// a child is the lightest weight below that child.
func checkQuiet(t topology, nodes []*Node) error {
	weights := make([]Weight, len(nodes))
	for i, n := range nodes {
		if n.Frozen() || n.Epoch() != nodes[0].Epoch() {
			return fmt.Errorf("%w: %s has epoch %v, frozen %v", errStuck, n.self, n.Epoch(), n.Frozen())
		}
		weights[i] = n.Min()
	}
	found := roots(nodes)
	if len(found) != 1 {
		return fmt.Errorf("%w: %v", errRoots, found)
	}
	root := found[0]
	if least := slices.MinFunc(weights, Weight.Compare); weights[root] != least {
		return fmt.Errorf("%w: root %s has %v, the lightest is %v", errRoots, t.ids[root], weights[root], least)
	}
	for i, n := range nodes {
		if i == root {
			continue
		}
		p := t.index(n.Parent())
		at, ok := nodes[p].neighbor(n.self)
		if !ok {
			return fmt.Errorf("%w: %s has a parent %s that is no neighbour", errEq1, n.self, n.Parent())
		}
		if got, want := nodes[p].neighbors[at].weight, t.sideMin(p, i, weights); got != want {
			return fmt.Errorf("%w: %s's entry for %s is %v, want %v", errEq1, n.Parent(), n.self, got, want)
		}
		for steps, x := 0, i; x != root; steps++ {
			x = t.index(nodes[x].Parent())
			if steps > len(nodes) {
				return fmt.Errorf("%w: the pointers from %s do not lead to the root", errRoots, n.self)
			}
		}
	}
	return nil
}

// network runs nodes over FIFO links that tests deliver by hand.
type network struct {
	topology
	nodes   []*Node
	links   map[[2]int][]Message
	epoch   Epoch
	weights []Weight // the snapshot of the wave under way
	removed []Removal
	answers []Answer
	trace   strings.Builder
	quiet   bool   // keep no trace
	seq     uint64 // of the last deleteMin, whoever called it
	sent    map[Kind]int
}

func newNetwork(t topology) *network {
	w := &network{topology: t, links: map[[2]int][]Message{}, weights: make([]Weight, len(t.ids)), sent: map[Kind]int{}}
	for _, id := range t.ids {
		n, err := New(Config{Self: id})
		if err != nil {
			panic(err)
		}
		w.nodes = append(w.nodes, n)
	}
	return w
}

// startWave begins a wave; reply and install take the nodes through it, in any
// order as long as all have replied before one installs.
func (w *network) startWave() { w.epoch = Epoch{Num: w.epoch.Num + 1, Coordinator: "a"} }

func (w *network) reply(v int) {
	w.nodes[v].Freeze()
	w.weights[v] = Empty(v)
	if m := w.nodes[v].Min(); !m.IsEmpty() {
		w.weights[v] = m
	}
}

func (w *network) install(v int) error {
	err := w.nodes[v].Install(w.snapshot(v, w.epoch, w.weights))
	w.collect(v)
	return err
}

// wave plays a whole wave while nothing else happens.
func (w *network) wave() {
	w.startWave()
	for v := range w.nodes {
		w.reply(v)
	}
	for v := range w.nodes {
		if err := w.install(v); err != nil {
			panic(err)
		}
	}
}

func (w *network) insert(v int, stamp uint64) {
	w.nodes[v].Insert(item(stamp, 0))
	w.collect(v)
}

func (w *network) remove(v int, stamp uint64) bool {
	ok := w.nodes[v].Remove(item(stamp, 0))
	w.collect(v)
	return ok
}

func (w *network) deleteMin(v int) OpID {
	w.seq++
	op := OpID{Caller: w.ids[v], Seq: w.seq}
	w.nodes[v].DeleteMin(op)
	w.collect(v)
	return op
}

// collect moves the work of a node to the links and the records.
func (w *network) collect(v int) {
	r := w.nodes[v].Ready()
	for _, m := range r.Messages {
		link := [2]int{v, w.index(m.To)}
		w.links[link] = append(w.links[link], m)
		w.sent[m.Kind]++
		w.tracef("  %s\n", show(m))
	}
	for _, x := range r.Removed {
		w.tracef("  %s: %s leaves for %v\n", w.ids[v], showWeight(x.Weight), x.Op)
	}
	for _, a := range r.Answers {
		w.tracef("  %s: %v is answered: %s\n", w.ids[v], a.Op, showAnswer(a))
	}
	w.removed = append(w.removed, r.Removed...)
	w.answers = append(w.answers, r.Answers...)
}

// deliver hands over the first message of a link.
func (w *network) deliver(link [2]int) error {
	m := w.links[link][0]
	w.links[link] = w.links[link][1:]
	w.tracef("%s\n", show(m))
	err := w.nodes[link[1]].Step(m)
	if err != nil {
		w.tracef("  %s: error: %v\n", w.ids[link[1]], errorLine(err))
	}
	w.collect(link[1])
	return err
}

func (w *network) tracef(format string, args ...any) {
	if !w.quiet {
		fmt.Fprintf(&w.trace, format, args...)
	}
}

// busy lists the links on which messages travel, in order.
func (w *network) busy() [][2]int {
	var links [][2]int
	for u := range w.nodes {
		for v := range w.nodes {
			if len(w.links[[2]int{u, v}]) > 0 {
				links = append(links, [2]int{u, v})
			}
		}
	}
	return links
}

// settle delivers all messages, those of the first busy link first.
func (w *network) settle() {
	for range 1_000_000 {
		links := w.busy()
		if len(links) == 0 {
			return
		}
		if err := w.deliver(links[0]); err != nil {
			panic(fmt.Sprintf("%v\n%s", err, w.trace.String()))
		}
	}
	panic("messages go round for ever\n" + w.trace.String())
}

// root is the only root, or -1.
func (w *network) root() int {
	if found := roots(w.nodes); len(found) == 1 {
		return found[0]
	}
	return -1
}

// show, showWeight and showAnswer print for people: in tests an item's stamp
// says which one it is.
func show(m Message) string {
	s := fmt.Sprintf("%s→%s %s", m.From, m.To, m.Kind)
	switch m.Kind {
	case MsgUpdate, MsgFindRoot:
		return fmt.Sprintf("%s %s", s, showWeight(m.Weight))
	case MsgDeleteMin:
		return fmt.Sprintf("%s %v", s, m.Op)
	default:
		return fmt.Sprintf("%s %v: %s", s, m.Op, showAnswer(m.answer()))
	}
}

func showWeight(w Weight) string {
	if w.IsEmpty() {
		return "–"
	}
	return fmt.Sprint(w.Stamp)
}

func showAnswer(a Answer) string {
	if a.Outcome == Taken {
		return fmt.Sprintf("%s from %s", showWeight(a.Weight), a.Home)
	}
	return fmt.Sprintf("%v, says %s", a.Outcome, a.Home)
}

// errorLine leaves out what would make golden files hard to read.
func errorLine(err error) string {
	if errors.Is(err, ErrGap) {
		return ErrGap.Error()
	}
	return err.Error()
}
