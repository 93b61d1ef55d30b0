package qpid

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// chaos drives a network at random: what is delivered next, when nodes take
// part in waves, which waves die, which tree the next one brings, and, if
// faulty, which messages are lost and which nodes lose all they had.
type chaos struct {
	*network
	r         *rand.Rand
	faulty    bool
	replied   []bool
	installed []bool
	live      sortedSlice
	stamp     uint64
	delivered []Message     // some that were, to be repeated
	open      map[OpID]bool // deleteMins not answered yet
	excused   map[OpID]bool // those of which a message was lost
	seenRoots int

	removedSeen, answersSeen int
	counts                   map[string]int // what happened
}

func newChaos(seed uint64, faulty bool) *chaos {
	r := rand.New(rand.NewPCG(seed, 1))
	n := 2 + r.IntN(8)
	c := &chaos{
		network: newNetwork(randomTree(r, n)), r: r, faulty: faulty,
		replied: make([]bool, n), installed: make([]bool, n),
		open: map[OpID]bool{}, excused: map[OpID]bool{}, counts: map[string]int{},
	}
	c.startWave()
	return c
}

func randomTree(r *rand.Rand, n int) topology {
	perm := r.Perm(n)
	var edges [][2]int
	for i := 1; i < n; i++ {
		edges = append(edges, [2]int{perm[i], perm[r.IntN(i)]})
	}
	return newTopology(n, edges...)
}

// step does one thing and returns what is wrong after it.
func (c *chaos) step() error {
	v := c.r.IntN(len(c.nodes))
	var err error
	switch p := c.r.IntN(100); {
	case p < 45:
		if links := c.busy(); len(links) > 0 {
			err = c.deliverOne(links[c.r.IntN(len(links))])
		}
	case p < 60:
		c.stamp++
		w := item(c.stamp/2+c.r.Uint64N(20), c.stamp)
		c.nodes[v].Insert(w)
		c.live.insert(w)
	case p < 64:
		if q := c.nodes[v].queue; q.Len() > 0 {
			w, _ := q.Select(min(c.r.IntN(3), q.Len()-1))
			c.nodes[v].Remove(w)
			c.live.delete(w)
		}
	case p < 72:
		c.seq++
		op := OpID{c.ids[v], c.seq}
		c.open[op] = true
		c.nodes[v].DeleteMin(op)
	case p < 96:
		err = c.waveStep(v)
	case p < 97:
		err = c.repeat()
	case p < 98 && c.faulty:
		c.lose()
	case p < 99 && c.faulty && c.r.IntN(10) == 0:
		c.restart(v)
	}
	if err != nil {
		return err
	}
	if err := c.account(); err != nil {
		return err
	}
	if found := roots(c.nodes); len(found) > 1 {
		return fmt.Errorf("%w: %v", errRoots, found)
	} else if len(found) == 1 {
		c.seenRoots++
	}
	return nil
}

func (c *chaos) deliverOne(link [2]int) error {
	m := c.links[link][0]
	if len(c.delivered) < 20 {
		c.delivered = append(c.delivered, m)
	} else {
		c.delivered[c.r.IntN(20)] = m
	}
	to := c.nodes[link[1]]
	if to.Frozen() {
		c.counts["at a frozen node: "+m.Kind.String()]++
	}
	err := c.deliver(link)
	c.counts[m.Kind.String()]++
	if errors.Is(err, ErrGap) && c.faulty {
		c.counts["gap"]++
		if !to.Frozen() {
			return fmt.Errorf("%s has a gap and is not frozen", to.self)
		}
		return nil
	}
	return err
}

// waveStep lets node v take its next part in the wave, or starts another wave,
// with another tree, whether the present one is finished or not.
func (c *chaos) waveStep(v int) error {
	switch {
	case !c.replied[v]:
		c.replied[v] = true
		c.reply(v)
	case !slices.Contains(c.replied, false) && !c.installed[v]:
		c.installed[v] = true
		c.counts["install"]++
		if err := c.install(v); err != nil && !errors.Is(err, ErrGap) {
			return err
		}
	case c.r.IntN(30) == 0:
		if slices.Contains(c.installed, false) {
			c.counts["wave died"]++
		}
		c.newWave()
	}
	return nil
}

func (c *chaos) newWave() {
	c.startWave()
	clear(c.replied)
	clear(c.installed)
	c.topology = randomTree(c.r, len(c.nodes))
}

// repeat delivers an old update or findRoot once more, which must change nothing.
func (c *chaos) repeat() error {
	if len(c.delivered) == 0 {
		return nil
	}
	m := c.delivered[c.r.IntN(len(c.delivered))]
	n := c.nodes[c.index(m.To)]
	if m.Kind > MsgFindRoot || m.Epoch.Compare(n.epoch) > 0 {
		return nil
	}
	before := fmt.Sprint(n.Table(), n.parent, n.frozen)
	if err := n.Step(m); err != nil {
		return fmt.Errorf("repeated: %w", err)
	}
	if after := fmt.Sprint(n.Table(), n.parent, n.frozen); after != before {
		return fmt.Errorf("repeating %v changed %s to %s", m, before, after)
	}
	c.counts["repeated"]++
	return nil
}

func (c *chaos) lose() {
	if links := c.busy(); len(links) > 0 {
		link := links[c.r.IntN(len(links))]
		c.drop(c.links[link][0])
		c.links[link] = c.links[link][1:]
	}
}

// restart is a crash and a new life under the same name.
func (c *chaos) restart(v int) {
	c.counts["restart"]++
	n := c.nodes[v]
	n.queue.Ascend(func(w Weight) bool { c.live.delete(w); return true })
	for op := range c.open {
		if op.Caller == n.self {
			c.excused[op] = true
		}
	}
	for _, m := range n.pending {
		c.drop(m)
	}
	for link, ms := range c.links {
		if link[0] == v || link[1] == v {
			for _, m := range ms {
				c.drop(m)
			}
			delete(c.links, link)
		}
	}
	fresh, err := New(Config{Self: n.self})
	if err != nil {
		panic(err)
	}
	c.nodes[v] = fresh
	c.newWave() // a new life is a new member
}

func (c *chaos) drop(m Message) {
	c.counts["lost: "+m.Kind.String()]++
	if m.Kind > MsgFindRoot {
		c.excused[m.Op] = true
	}
}

// account holds what nodes did since it was last called against the oracle.
func (c *chaos) account() error {
	for v := range c.nodes {
		c.collect(v)
	}
	for ; c.removedSeen < len(c.removed); c.removedSeen++ {
		if x := c.removed[c.removedSeen]; !c.live.delete(x.Weight) {
			return fmt.Errorf("%v took %v, which is not there", x.Op, x.Weight)
		}
	}
	for ; c.answersSeen < len(c.answers); c.answersSeen++ {
		a := c.answers[c.answersSeen]
		c.counts["answer: "+a.Outcome.String()]++
		if !c.open[a.Op] {
			return fmt.Errorf("%v was answered twice or never called", a.Op)
		}
		delete(c.open, a.Op)
	}
	for _, n := range c.nodes {
		if err := checkAlways(n); err != nil {
			return err
		}
	}
	return nil
}

// heal plays a wave to its end and lets everything arrive.
func (c *chaos) heal() error {
	c.newWave()
	c.wave()
	c.settle()
	if err := checkQuiet(c.topology, c.nodes); err != nil {
		return err
	}
	if err := c.account(); err != nil {
		return err
	}
	for op := range c.open {
		if !c.excused[op] {
			return fmt.Errorf("%v was never answered", op)
		}
	}
	return nil
}

// drain takes all that is left, one after another from anywhere: it must come
// in order, and nothing may be missing.
func (c *chaos) drain() error {
	for want := range slices.Values(append(slices.Clone(c.live), Empty(0))) {
		op := c.deleteMin(c.r.IntN(len(c.nodes)))
		c.settle()
		a := c.answers[len(c.answers)-1]
		if a.Op != op || want.IsEmpty() != (a.Outcome == NothingWaits) || !want.IsEmpty() && a.Weight != want {
			return fmt.Errorf("deleteMin gave %v, want %v", a, want)
		}
	}
	return checkQuiet(c.topology, c.nodes)
}

func (c *chaos) run(steps int) error {
	for i := range steps {
		if err := c.step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	if err := c.heal(); err != nil {
		return fmt.Errorf("after healing: %w", err)
	}
	if err := c.drain(); err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	return nil
}

func TestRandomNetworks(t *testing.T) {
	sum := map[string]int{}
	for _, faulty := range []bool{false, true} {
		for seed := range uint64(200) {
			c := newChaos(seed, faulty)
			err := c.run(1000)
			if err != nil {
				t.Fatalf("seed %d, faulty %v: %v\n%s", seed, faulty, err, tail(c.trace.String(), 4000))
			}
			sum["root"] += c.seenRoots
			for what, n := range c.counts {
				sum[what] += n
				if !faulty && n > 0 && what == "gap" {
					t.Errorf("seed %d: %d gaps without a loss", seed, n)
				}
			}
		}
	}
	t.Log(sum)
	for _, what := range []string{
		"root", "install", "wave died", "update", "findRoot", "deleteMin", "taken", "gap", "restart", "repeated",
		"answer: taken", "answer: nothing waits", "at a frozen node: deleteMin", "at a frozen node: findRoot",
		"at a frozen node: update", "lost: findRoot", "lost: update", "lost: deleteMin",
	} {
		if sum[what] == 0 {
			t.Errorf("never happened: %s", what)
		}
	}
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
