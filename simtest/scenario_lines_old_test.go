package simtest

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/anteroom/anteroom/eviction"
)

var (
	forgetFirst = flag.Int("forget", 1, "the first seed of TestScenarioRoomsLeaveLinesAndSomeSayLittle")
	forgetSeeds = flag.Int("forgetseeds", 20, "how many of them")
)

// The same, where some nodes do not say where a room came from, nor on which lines they were without it, nor do those below them in the
// tree, and forget it in a restart: as one of a version before does, which comes and goes. A room may stay behind, and no
// promise breaks.
func TestScenarioRoomsLeaveLinesAndSomeSayLittle(t *testing.T) {
	t.Parallel()
	for seed := *forgetFirst; seed < *forgetFirst+*forgetSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newFewHear(t, uint64(seed)) //nolint:gosec // as given
			p.silent = make([]bool, len(p.s.hosts))
			for range 6 + p.rng.IntN(14) {
				for i := range p.silent {
					if p.rng.IntN(4) == 0 {
						p.silent[i] = !p.silent[i]
					}
				}
				p.hardRound()
			}
			p.hears()
			p.s.mend()
			p.boot()
			p.s.finish()
		})
	}
}

// sayLittle takes out of a reply what a version before does not pass on.
func (p *namesakes) sayLittle(f *flight) {
	r, ok := f.m.Body.(*eviction.Reply)
	if !ok || !p.silent[f.from] {
		return
	}
	less := *r
	less.Rooms = slices.Clone(r.Rooms)
	for i := range less.Rooms {
		nodes := slices.Clone(less.Rooms[i].Nodes)
		for j := range nodes {
			nodes[j].Came, nodes[j].Without = eviction.Stay{}, nil
		}
		less.Rooms[i].Nodes = nodes
	}
	f.m.Body = &less
}

// forgets has the next life of a host that is down find what a version before has kept.
func (p *namesakes) forgets(i int) {
	d := &p.s.hosts[i].disk
	if p.silent == nil || !p.silent[i] || d.kept == nil {
		return
	}
	less := *d.kept
	less.Rooms = slices.Clone(less.Rooms)
	for i := range less.Rooms {
		less.Rooms[i].Came, less.Rooms[i].Without = eviction.Stay{}, nil
	}
	d.kept = &less
}
