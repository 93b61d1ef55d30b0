package simtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

var (
	namesFirst = flag.Int("names", 1, "the first seed of TestScenarioNodesOfOneNameComeAndGo")
	namesSeeds = flag.Int("namesseeds", 40, "how many of them")
)

// Two or three nodes run under one name, among a few others. They are together or on either side of splits that come one
// after the other, and any of them is restarted once or some times in a row, alone or all but one at once, or leaves, or
// is paused; and for a while some may not hear all. In the end one node of each name is left. All oracles look on.
func TestScenarioNodesOfOneNameComeAndGo(t *testing.T) {
	t.Parallel()
	for seed := *namesFirst; seed < *namesFirst+*namesSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newNamesakes(t, uint64(seed)) //nolint:gosec // as given
			p.second()
			for range 3 + p.rng.IntN(6) {
				p.round()
			}
			p.hears()
			p.oneOfEach()
			p.s.finish()
		})
	}
}

// namesakes is one run of it.
type namesakes struct {
	s     *script
	rng   *rand.Rand
	nodes int
	more  int // hosts to come, under the name of another
	of    int // whose name the next one has

	silent []bool // hosts that say and keep less, see sayLittle
}

func newNamesakes(t *testing.T, seed uint64) *namesakes {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 78))
	p := &namesakes{rng: rng, nodes: 3 + rng.IntN(3)}
	o := short(p.nodes)
	o.Seed, o.Faults.Disk = seed, rng.IntN(5) > 0
	p.more = 1 + rng.IntN(5)/3
	o.Faults.Adds = p.more
	o.Load.Browse = []Range{{time.Second, time.Second}, {time.Minute, time.Minute}}[rng.IntN(2)]
	p.rule(&o.Rooms[0])
	if rng.IntN(2) == 0 {
		library := o.Rooms[0]
		library.Name = "library"
		if p.rule(&library); rng.IntN(2) == 0 { // one goes on alone, and the other does not
			o.Rooms[0].Survivor, library.Survivor = time.Second, 0
		}
		o.Rooms = append(o.Rooms, library)
	}
	p.s, p.of = founded(t, o), rng.IntN(p.nodes)
	return p
}

// rule draws what becomes of a room when its nodes are split.
func (p *namesakes) rule(r *eviction.Room) {
	r.OnPartition = []eviction.Policy{eviction.Majority, eviction.Majority, eviction.Majority, eviction.Stop}[p.rng.IntN(4)]
	r.Survivor = []time.Duration{0, 0, time.Second, 4 * time.Second}[p.rng.IntN(4)]
}

// second starts the next node that has the name of another, as a rule beside all but those that have it, and lets them
// meet: up to the first wave that two of them are in, or for some time.
func (p *namesakes) second() {
	h := p.s.addHost(0)
	h.name = p.s.hosts[p.of].name
	if p.rng.IntN(8) == 0 {
		h.disk.saveAt = 1 << 60 // it takes nothing, for a while
	}
	p.more--
	if p.rng.IntN(3) == 0 {
		p.of = p.rng.IntN(p.nodes)
	}
	i := int(h.index)
	apart := p.rng.IntN(6) > 0
	if apart {
		var of, others []int32
		for j := range p.s.hosts {
			if h := &p.s.hosts[j]; j == i || h.name != p.s.hosts[i].name {
				others = append(others, h.index)
			} else {
				of = append(of, h.index)
			}
		}
		p.s.mend()
		p.s.split(of, others)
	}
	p.s.boot(i)
	if p.rng.IntN(3) == 0 {
		p.s.run(p.pick(100, 500, 2000, 6000))
	} else {
		p.wait(3*time.Second, func() bool {
			return p.s.hosts[i].seen.status.Knows && p.s.hosts[i].seen.status.Grade >= eviction.Primary
		})
	}
	if p.rng.IntN(2) == 0 {
		p.s.run(p.pick(50, 200, 1000))
	}
	if apart && p.rng.IntN(8) == 0 {
		return
	}
	p.s.mend()
	if p.rng.IntN(8) > 0 {
		p.wait(3*time.Second, func() bool { return p.meet(i) })
	}
	p.s.run(p.pick(0, 0, 0, 100, 300))
}

// meet reports whether i and another of its name have installed one wave with both.
func (p *namesakes) meet(i int) bool {
	h := &p.s.hosts[i]
	for j := range p.s.hosts {
		if o := &p.s.hosts[j]; j != i && o.name == h.name && h.up() && o.up() && h.seen.status.Installed == o.seen.status.Installed {
			return true
		}
	}
	return false
}

// wait lets time pass until done, or for d.
func (p *namesakes) wait(d time.Duration, done func() bool) {
	for end := p.s.now + d.Microseconds(); p.s.now < end && !done(); {
		p.s.run(5 * time.Millisecond)
	}
}

func (p *namesakes) pick(ms ...int) time.Duration {
	return time.Duration(ms[p.rng.IntN(len(ms))]) * time.Millisecond
}

// round splits them, has some things happen, and as a rule ends the split.
func (p *namesakes) round() {
	p.hears()
	if p.rng.IntN(2) == 0 {
		p.deaf()
	}
	if p.more > 0 && p.rng.IntN(2) == 0 {
		p.second()
	}
	if p.rng.IntN(5) > 0 {
		p.apart(2 + p.rng.IntN(4)/3)
	}
	for range 1 + p.rng.IntN(3) {
		p.deed()
		p.s.run(p.pick(0, 0, 20, 100, 500))
	}
	for range 1 + p.rng.IntN(3) {
		p.s.arrive(p.rng.IntN(len(p.s.hosts)), 1+p.rng.IntN(12))
		p.s.run(p.pick(20, 300, 1000, 3000, 6000))
	}
	if p.rng.IntN(3) > 0 {
		p.boot()
	}
	if p.rng.IntN(3) == 0 {
		return // the next split comes right after this one
	}
	p.s.mend()
	switch i := p.rng.IntN(len(p.s.hosts)); p.rng.IntN(3) {
	case 0:
		p.wait(2*time.Second, func() bool { return p.meet(i) })
	default:
		p.s.run(p.pick(0, 100, 300, 1000, 5000))
	}
}

// apart puts each host on one of some sides.
func (p *namesakes) apart(n int) {
	p.s.mend()
	sides := make([][]int32, n)
	for i := range p.s.hosts {
		k := p.rng.IntN(len(sides))
		sides[k] = append(sides[k], int32(i)) //nolint:gosec // a few
	}
	p.s.split(sides...)
}

func (p *namesakes) deed() {
	h := p.rng.IntN(len(p.s.hosts))
	switch k := p.rng.IntN(16); {
	case k < 7:
		for range []int{1, 1, 2, 3}[p.rng.IntN(4)] {
			p.restart(h)
			p.s.run(p.pick(0, 0, 0, 50, 400))
		}
	case k < 10: // all but one, or all
		stays := p.rng.IntN(len(p.s.hosts) + 1)
		for range 1 + p.rng.IntN(5)/3 {
			for i := range p.s.hosts {
				if i != stays {
					p.restart(i)
				}
			}
			p.s.run(p.pick(0, 0, 100))
		}
	case k < 12 && p.s.hosts[h].up():
		p.s.down(h)
	case k < 13 && p.s.hosts[h].up():
		p.s.stopped(h)
	case k < 14:
		p.s.hosts[h].disk.saveAt = 0
	case k < 15:
		p.s.stall(h, p.pick(100, 400, 2500))
	default:
	}
}

// restart ends a host's process, if it runs, and starts the next.
func (p *namesakes) restart(i int) {
	if p.s.hosts[i].up() {
		p.s.down(i)
		p.forgets(i)
		p.s.boot(i)
	}
}

// boot starts some of those that are down.
func (p *namesakes) boot() {
	for i := range p.s.hosts {
		if !p.s.hosts[i].up() && p.rng.IntN(3) > 0 {
			p.forgets(i)
			p.s.restarted(i)
		}
	}
}

// oneOfEach has all nodes but one of each name go for good.
func (p *namesakes) oneOfEach() {
	for i := range p.s.hosts {
		h := &p.s.hosts[i]
		if h.disk.saveAt = 0; h.leaving { // it would leave when all are back
			p.s.down(i)
		}
	}
	for i := range p.nodes {
		var of []int
		for j := range p.s.hosts {
			if p.s.hosts[j].name == p.s.hosts[i].name {
				of = append(of, j)
			}
		}
		stays := of[p.rng.IntN(len(of))]
		for _, j := range of {
			if j != stays {
				p.s.down(j)
				p.s.hosts[j].gone = true
			}
		}
	}
}
