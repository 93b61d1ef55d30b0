package simtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/node"
)

var (
	anyFirst = flag.Int("any", 1, "the first seed of TestScenarioNodesWithDisksComeAndGo")
	anySeeds = flag.Int("anyseeds", 60, "how many of them")
)

// Nodes with disks die, leave and are back, alone, some at a time and all at once; links are cut, messages are lost
// just after all have started, and disks take nothing for a while; and people join, ask anywhere, come in, end their visits and walk away. All oracles look on.
func TestScenarioNodesWithDisksComeAndGo(t *testing.T) {
	t.Parallel()
	for seed := *anyFirst; seed < *anyFirst+*anySeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newTrouble(t, uint64(seed)) //nolint:gosec // as given
			for range 50 {
				p.step()
				p.s.check()
			}
		})
	}
}

// anyTrouble is one run of it.
type anyTrouble struct {
	s     *script
	rng   *rand.Rand
	nodes int
	all   []*browser
}

func newTrouble(t *testing.T, seed uint64) *anyTrouble {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 77))
	nodes := 1 + rng.IntN(4)
	o := onDisks(nodes)
	o.Seed, o.Faults.DiskWait = seed, o.Cluster.Lease
	o.Cluster.Copies = rng.IntN(2)
	r := &o.Rooms[0]
	r.Refresh = []time.Duration{2 * time.Second, 5 * time.Second, 20 * time.Second}[rng.IntN(3)]
	r.Session = []time.Duration{3 * time.Second, 20 * time.Second, 2 * time.Minute}[rng.IntN(3)]
	r.ClaimWindow = []time.Duration{3 * time.Second, time.Minute}[rng.IntN(2)]
	r.QueueAll = rng.IntN(2) == 0
	return &anyTrouble{s: founded(t, o), rng: rng, nodes: nodes}
}

func (p *anyTrouble) step() {
	h := p.rng.IntN(p.nodes)
	switch k := p.rng.IntN(24); {
	case k < 5:
		p.join(1 + p.rng.IntN(6))
	case k < 10:
		p.ask(h, 2, opCheckIn)
	case k < 12:
		p.ask(h, 4, []op{opEnd, opAbandon, opRefresh, opRefresh}[p.rng.IntN(4)])
	case k < 14:
		d := &p.s.hosts[h].disk.visits
		d.hung = !d.hung
	case k < 15 && p.s.hosts[h].up():
		p.s.down(h)
	case k < 16 && p.s.hosts[h].up():
		p.s.stopped(h)
	case k < 19:
		p.boot(1 + 2*p.rng.IntN(2))
	case k < 21:
		p.s.run(40 * time.Second)
		p.ask(h, 1, opCheckIn)
	case k < 23:
		p.allDown()
	default:
		p.apart()
	}
	p.s.run([]time.Duration{10, 50, 200, 1000, 3000}[p.rng.IntN(5)] * time.Millisecond)
}

func (p *anyTrouble) join(n int) {
	for range n {
		b := p.s.browser()
		if _, err := b.ask(p.rng.IntN(p.nodes), opJoin); err == nil {
			p.all = append(p.all, b)
		}
	}
}

// ask has one of so many ask.
func (p *anyTrouble) ask(h, of int, o op) {
	for i, b := range p.all {
		if p.rng.IntN(of) > 0 {
			continue
		}
		if a, err := b.ask((h+i)%p.nodes, o); err == nil && o == opCheckIn && a.State == node.Called {
			_, _ = b.ask((h+i)%p.nodes, opLeave)
		}
	}
}

// boot starts one of so many of those that are down.
func (p *anyTrouble) boot(of int) {
	for i := range p.nodes {
		if !p.s.hosts[i].up() && p.rng.IntN(of) == 0 {
			p.s.restarted(i)
		}
	}
}

// apart cuts each node off from all others, or the first from the rest, for a while.
func (p *anyTrouble) apart() {
	sides := [][]int32{{0}}
	alone := p.rng.IntN(2) == 0
	for i := 1; i < p.nodes; i++ {
		if alone || i == 1 {
			sides = append(sides, nil)
		}
		sides[len(sides)-1] = append(sides[len(sides)-1], int32(i)) //nolint:gosec // a few
	}
	p.s.split(sides...)
	for range 1 + p.rng.IntN(12) {
		p.s.run(3 * time.Second)
		p.ask(p.rng.IntN(p.nodes), 4, opCheckIn)
	}
	p.s.mend()
}

// allDown has some leave and all die, and starts most of them again.
func (p *anyTrouble) allDown() {
	leave, most := 6, 1
	if p.rng.IntN(2) == 0 { // many leave, one soon after the other
		leave, most = 2, 1200
	}
	for _, i := range p.rng.Perm(p.nodes) {
		if p.s.hosts[i].up() && p.rng.IntN(leave) == 0 {
			p.s.stopped(i)
			p.s.run(time.Duration(p.rng.IntN(2)*p.rng.IntN(most)) * time.Millisecond)
		}
	}
	p.s.run(time.Duration(p.rng.IntN(3)*p.rng.IntN(1000)) * time.Millisecond)
	for i := range p.nodes {
		if p.s.hosts[i].up() {
			p.s.down(i)
		}
	}
	p.s.run(time.Duration(p.rng.IntN(2000)) * time.Millisecond)
	for i := range p.nodes {
		if p.rng.IntN(12) > 0 {
			p.s.restarted(i)
		}
	}
	if p.rng.IntN(2) == 0 {
		p.s.run(time.Duration(p.rng.IntN(2500)) * time.Millisecond)
		p.missed()
	}
}

// missed has all be lost for a moment that one host sends, or is sent, or both.
func (p *anyTrouble) missed() {
	at, until, way := int32(p.rng.IntN(p.nodes)), p.s.now+int64(p.rng.IntN(1500))*1000, p.rng.IntN(3) //nolint:gosec // a few
	p.s.tap = func(f *flight) verdict {
		if p.s.now < until && (way < 2 && f.to == at || way > 0 && f.from == at) {
			return lose
		}
		return pass
	}
}

// stopped has a host leave that will be started again.
func (s *script) stopped(i int) {
	s.goodbye(&s.hosts[i])
	s.hosts[i].gone = false
}

// restarted starts hosts that have left.
func (s *script) restarted(at ...int) {
	for _, i := range at {
		s.hosts[i].leaving = false
		s.boot(i)
	}
}
