package simtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

var (
	votesFirst = flag.Int("votes", 1, "the first seed of TestScenarioVotesComeBackInAnyWay")
	votesSeeds = flag.Int("votesseeds", 10, "how many of them")
)

// A node is cut off, and another one under its name takes its vote. Others are cut off, too, and their slots made again. The
// other one goes or stays; then both who were cut off are back for about one wave, and a split follows in which they would
// be a quorum. Of that some messages may be lost. All oracles look on.
func TestScenarioVotesComeBackInAnyWay(t *testing.T) {
	t.Parallel()
	for seed := *votesFirst; seed < *votesFirst+*votesSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newVotes(t, uint64(seed)) //nolint:gosec // as given
			for range 1 + p.rng.IntN(3)/2 {
				p.voteBack()
			}
			p.hears()
			p.s.mend()
			p.oneOfEach()
			p.s.finish()
		})
	}
}

func newVotes(t *testing.T, seed uint64) *namesakes {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3011))
	p := &namesakes{rng: rng, nodes: 3 + rng.IntN(3), more: 2}
	o := short(p.nodes)
	o.Seed, o.Faults.Disk, o.Faults.Adds = seed, rng.IntN(2) == 0, p.more
	o.Cluster.Copies = min(1, rng.IntN(5)) // what is free of a lost node's slots is soon made again
	o.Load.Browse = Range{50 * time.Second, 50 * time.Second}
	if rng.IntN(8) > 0 {
		o.Rooms[0].Session = time.Minute
	}
	if rng.IntN(3) == 0 {
		library := o.Rooms[0]
		library.Name = "library"
		o.Rooms = append(o.Rooms, library)
		o.Cluster.WaveBytes = []int{0, 1}[rng.IntN(2)] // they take turns
	}
	p.s = founded(t, o)
	return p
}

// voteBack is one round of it: first is cut off, other takes its vote from rest, then away are cut off.
func (p *namesakes) voteBack() {
	s, perm := p.s, p.rng.Perm(p.nodes)
	if i := slices.Index(perm, 0); p.rng.IntN(2) == 0 {
		perm[0], perm[i] = perm[i], perm[0] // of an even number half is enough with it
	}
	var all []int32
	for _, i := range perm {
		all = append(all, int32(i)) //nolint:gosec // a few
	}
	end := 1 + (p.nodes-1)/2
	first, away, rest := all[:1:1], all[1:end:end], all[end:]
	p.more--
	h := s.addHost(0)
	h.name = s.hosts[first[0]].name
	other := int(h.index)
	with := append(slices.Clone(rest), h.index)
	if p.rng.IntN(4) == 0 { // it is no founder
		s.reboot(int(first[0]))
		p.wait(5*time.Second, func() bool { return s.together(p.nodes) })
		s.run(time.Second)
	}
	s.split(first, append(slices.Clone(with), away...))
	s.boot(other)
	p.wait(3*time.Second, func() bool { return s.hosts[other].seen.status.Knows && s.leased(&s.hosts[other]) })
	if p.rng.IntN(4) > 0 {
		p.wait(6*time.Second, func() bool { return p.owned(with)+p.owned(away) == s.o.Rooms[0].Target })
	}
	s.run(p.pick(500, 1000, 2000))
	s.split(away, with)
	p.wait([]time.Duration{2, 20, 20, 20}[p.rng.IntN(4)]*time.Second, func() bool { return p.owned(with) == s.o.Rooms[0].Target })
	if p.rng.IntN(4) == 0 {
		longer := s.o.Rooms[0]
		longer.Session = 2 * time.Minute
		s.setRoom(&s.hosts[rest[0]], 0, longer)
		s.run(2 * time.Second)
	}
	s.arrive(int(rest[0]), p.owned(with)) // whoever waits has every wave speak of the room
	s.run(p.pick(300, 2000, 2000))
	p.otherEnds(other)
	s.run(p.pick(0, 300, 3000, 12000))
	p.backForAWave(first[0], away, rest, with)
	s.arrive(int(away[0]), s.o.Rooms[0].Target)
	s.run(p.pick(3000, 6000, 12000))
}

// owned is how many slots of the first room are at some hosts.
func (p *namesakes) owned(at []int32) (owned int) {
	for _, i := range at {
		if h := &p.s.hosts[i]; h.up() {
			owned += h.seen.rooms[0].Owned
		}
	}
	return owned
}

// otherEnds draws what becomes of a node that has a vote.
func (p *namesakes) otherEnds(i int) {
	switch p.rng.IntN(5) {
	case 0, 1:
		p.s.down(i)
		p.s.hosts[i].gone = true
	case 2:
		p.restart(i)
	default:
	}
}

// backForAWave has those who were cut off back for about as long as it takes, and cuts the others off. Some may not hear all of it.
func (p *namesakes) backForAWave(first int32, away, rest, with []int32) {
	s := p.s
	switch cut := append(slices.Clone(away), first); p.rng.IntN(6) {
	case 0, 1, 2, 3: // none of what is said of rooms
		deaf := p.rng.IntN(4) == 0
		for i := range s.hosts {
			s.hosts[i].deaf = true // who goes before all others cannot gather
		}
		s.tap = func(f *flight) verdict {
			c, ok := f.m.Body.(*eviction.Commit)
			if ok && slices.Contains(cut, f.to) && (len(c.Rooms) > 0 || deaf && f.to == first) || f.kind == mGather && slices.Contains(cut, f.from) {
				return lose
			}
			return pass
		}
	case 4:
		p.deaf()
	default:
	}
	s.mend()
	lead := &s.hosts[rest[0]]
	p.wait(5*time.Second, func() bool {
		a, b := &s.hosts[first], &s.hosts[away[0]]
		in := func(h *host) bool {
			return h.up() && len(h.seen.status.List) == s.upCount() && h.seen.status.Installed == lead.seen.status.Installed
		}
		return in(a) && in(b) || in(b) && slices.ContainsFunc(b.seen.status.List, func(m eviction.Member) bool { return m.Name == a.name && s.lives[a.life].member == m })
	})
	s.run(p.pick(0, 0, 0, 50, 200))
	s.split(with, append(slices.Clone(away), first))
	p.hears()
}
