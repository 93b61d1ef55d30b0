package simtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

var (
	linesFirst = flag.Int("lines", 1, "the first seed of TestScenarioRoomsLeaveLinesInAnyWay")
	linesSeeds = flag.Int("linesseeds", 20, "how many of them")
	hardFirst  = flag.Int("hard", 1, "the first seed of TestScenarioRoomsLeaveLinesAndFewHear")
	hardSeeds  = flag.Int("hardseeds", 20, "how many of them")
)

// Rooms that go on alone each in its own time, and some never, on nodes that are on up to four sides of splits that come
// one soon after the other, and are restarted, leave or are paused. Limits change. In the end all are together: every room is
// where its nodes are. All oracles look on.
func TestScenarioRoomsLeaveLinesInAnyWay(t *testing.T) {
	t.Parallel()
	for seed := *linesFirst; seed < *linesFirst+*linesSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newLeavers(t, uint64(seed)) //nolint:gosec // as given
			for range 4 + p.rng.IntN(10) {
				p.leaveLines()
			}
			p.together()
			p.s.finish()
		})
	}
}

func newLeavers(t *testing.T, seed uint64) *namesakes {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 4711))
	p := &namesakes{rng: rng, nodes: 3 + rng.IntN(6)}
	o := short(p.nodes)
	o.Seed, o.Faults.Disk = seed, true
	o.Load.Browse = []Range{{time.Second, time.Second}, {time.Minute, time.Minute}}[rng.IntN(2)]
	o.Rooms[0].Survivor = time.Second
	for _, name := range []string{"library", "cafe", "museum"}[:1+rng.IntN(3)] {
		room := o.Rooms[0]
		room.Name, room.Survivor = name, []time.Duration{0, 0, 0, 3 * time.Second}[rng.IntN(4)]
		if rng.IntN(6) == 0 {
			room.OnPartition = eviction.Stop
		}
		o.Rooms = append(o.Rooms, room)
	}
	p.s = founded(t, o)
	return p
}

// leaveLines splits them, has some things happen, and as a rule ends the split, often soon.
func (p *namesakes) leaveLines() {
	if p.rng.IntN(5) > 0 {
		p.apart(2 + p.rng.IntN(3))
	}
	for range p.rng.IntN(3) {
		if h := &p.s.hosts[p.rng.IntN(len(p.s.hosts))]; p.rng.IntN(4) > 0 {
			p.deed()
		} else if h.up() {
			i := p.rng.IntN(len(p.s.o.Rooms))
			room := p.s.o.Rooms[i]
			room.Target = []int{4, 12, 12, 20}[p.rng.IntN(4)]
			p.s.setRoom(h, i, room)
		}
		p.s.run(p.pick(0, 0, 20, 100, 500))
	}
	for range 1 + p.rng.IntN(2) {
		p.s.arrive(p.rng.IntN(len(p.s.hosts)), 1+p.rng.IntN(12))
		p.s.run(p.pick(20, 100, 200, 300, 500, 1000, 3000, 6000))
	}
	if p.rng.IntN(3) > 0 {
		p.boot()
	}
	if p.rng.IntN(3) > 0 {
		p.s.mend()
		p.s.run(p.pick(0, 100, 200, 300, 400, 600, 800, 1000, 3000))
	}
}

// together ends all splits, has every node run, and looks where the rooms are.
func (p *namesakes) together() {
	p.s.t.Helper()
	p.s.mend()
	for i := range p.s.hosts {
		if p.s.hosts[i].leaving {
			p.s.down(i)
		}
		p.s.hosts[i].disk.saveAt = 0
		if !p.s.hosts[i].up() {
			p.s.restarted(i)
		}
	}
	p.s.run(30 * time.Second)
	for i := range p.s.hosts {
		for room := range p.s.o.Rooms {
			if r := p.s.hosts[i].seen.rooms[room]; r.Line != p.s.hosts[i].seen.status.Line {
				p.s.t.Errorf("at %s room %s is on line %v, and the node on %v: %s", p.s.hosts[i].name, r.Room.Name, r.Line, p.s.hosts[i].seen.status.Line, p.s.statuses())
			}
		}
	}
}

// Up to ten nodes, and of the commits by which rooms leave lines, or votes are asked for, many are lost: to some, at random, or all but a few of those of one
// wave, of which its coordinator may die. No other room than the first ever goes on alone.
func TestScenarioRoomsLeaveLinesAndFewHear(t *testing.T) {
	t.Parallel()
	for seed := *hardFirst; seed < *hardFirst+*hardSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newFewHear(t, uint64(seed)) //nolint:gosec // as given
			for range 6 + p.rng.IntN(14) {
				p.hardRound()
			}
			p.hears()
			p.together()
			p.s.finish()
		})
	}
}

func newFewHear(t *testing.T, seed uint64) *namesakes {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 815))
	p := &namesakes{rng: rng, nodes: 4 + rng.IntN(7)}
	o := short(p.nodes)
	o.Seed, o.Faults.Disk = seed, true
	o.Load.Browse = []Range{{time.Second, time.Second}, {time.Minute, time.Minute}}[rng.IntN(2)]
	o.Rooms[0].Survivor = time.Second
	for _, name := range []string{"library", "cafe", "museum"}[:1+rng.IntN(3)] {
		room := o.Rooms[0]
		room.Name, room.Survivor = name, 0
		o.Rooms = append(o.Rooms, room)
	}
	p.s = founded(t, o)
	return p
}

// loses draws what is lost from now on, and what replies leave out. Who does not hear all is deaf.
func (p *namesakes) loses() {
	p.hears()
	lost := p.losses()
	p.s.tap = func(f *flight) verdict {
		if p.silent != nil {
			p.sayLittle(f)
		}
		if lost == nil || lost(f) == pass {
			return pass
		}
		p.s.hosts[f.to].deaf = true
		return lose
	}
}

// losses says of each message whether it is lost; nil: none is.
func (p *namesakes) losses() func(f *flight) verdict {
	s := p.s
	switch p.rng.IntN(7) {
	case 0, 1:
		return nil
	case 2: // all commits to some
		deaf := map[int32]bool{}
		for i := range s.hosts {
			if p.rng.IntN(3) == 0 {
				deaf[int32(i)] = true
			}
		}
		return func(f *flight) verdict {
			if f.kind == mCommit && deaf[f.to] {
				return lose
			}
			return pass
		}
	case 3: // single commits
		n := 2 + p.rng.IntN(5)
		return func(f *flight) verdict {
			if f.kind == mCommit && p.rng.IntN(n) == 0 {
				return lose
			}
			return pass
		}
	case 4, 5:
		return p.fewHear()
	default: // any message
		return func(f *flight) verdict {
			if p.rng.IntN(30) == 0 {
				return lose
			}
			return pass
		}
	}
}

// fewHear has the commits of one wave in which a room leaves, or is asked, reach a few; its coordinator may die of it.
func (p *namesakes) fewHear() func(f *flight) verdict {
	s := p.s
	dies, some := p.rng.IntN(2) == 0, 1+p.rng.IntN(4)
	skip := p.rng.IntN(4)
	asks := p.rng.IntN(2) == 0
	hit, done := map[qpid.Epoch]bool{}, map[qpid.Epoch]bool{}
	return func(f *flight) verdict {
		c, ok := f.m.Body.(*eviction.Commit)
		if !ok {
			return pass
		}
		if !done[c.Epoch] {
			done[c.Epoch] = true
			for i := range c.Rooms {
				r := &c.Rooms[i]
				if !r.From.Founded() || (r.From == r.Line) != asks {
					continue
				}
				if skip > 0 {
					skip--
					continue
				}
				hit[c.Epoch] = true
				if h := f.from; dies {
					dies = false
					up := p.pick(50, 500, 3000)
					if s.hosts[h].up() {
						s.crash(&s.hosts[h], "the script")
						s.agenda.push(s.now+100+up.Microseconds(), evStart, h, 0)
					}
				}
			}
		}
		if hit[c.Epoch] && p.rng.IntN(some+1) > 0 {
			return lose
		}
		return pass
	}
}

// hardRound is as leaveLines, with losses and restarts.
func (p *namesakes) hardRound() {
	if p.rng.IntN(5) > 0 {
		p.apart(2 + p.rng.IntN(3))
	}
	p.loses()
	for range p.rng.IntN(3) {
		if p.rng.IntN(2) == 0 {
			p.deed()
		} else {
			p.restart(p.rng.IntN(len(p.s.hosts)))
		}
		p.s.run(p.pick(0, 0, 20, 100, 500))
	}
	for range 1 + p.rng.IntN(2) {
		p.s.arrive(p.rng.IntN(len(p.s.hosts)), 1+p.rng.IntN(12))
		p.s.run(p.pick(20, 100, 200, 300, 500, 1000, 3000, 6000))
		if p.rng.IntN(2) == 0 {
			p.loses()
		}
	}
	if p.rng.IntN(3) > 0 {
		p.boot()
	}
	if p.rng.IntN(3) > 0 {
		p.s.mend()
		p.s.run(p.pick(0, 100, 200, 300, 400, 600, 800, 1000, 3000))
	}
}
