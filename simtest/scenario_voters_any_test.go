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
	votersFirst = flag.Int("voters", 1, "the first seed of TestScenarioVotersChangeAndSomeHearHalfOfIt")
	votersSeeds = flag.Int("votersseeds", 40, "how many of them")
)

// Nodes come, go for good, are split and restarted, so that voters change all the while; and some of them do not hear what
// waves say of the rooms, or some of it. All oracles look on.
func TestScenarioVotersChangeAndSomeHearHalfOfIt(t *testing.T) {
	t.Parallel()
	for seed := *votersFirst; seed < *votersFirst+*votersSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newVoters(t, uint64(seed)) //nolint:gosec // as given
			for range 4 + p.rng.IntN(8) {
				p.changeVoters()
			}
			p.hears()
			p.s.finish()
		})
	}
}

func newVoters(t *testing.T, seed uint64) *namesakes {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1213))
	p := &namesakes{rng: rng, nodes: 1 + rng.IntN(4), more: 1 + rng.IntN(3)}
	o := short(p.nodes)
	o.Seed, o.Faults.Disk, o.Faults.Adds = seed, true, p.more
	o.Cluster.Copies = rng.IntN(2)
	o.Load.Browse = []Range{{time.Second, time.Second}, {time.Minute, time.Minute}}[rng.IntN(2)]
	if rng.IntN(2) == 0 {
		o.Rooms[0].Session = time.Minute
	}
	if rng.IntN(2) == 0 {
		library := o.Rooms[0]
		library.Name = "library"
		o.Rooms = append(o.Rooms, library)
	}
	p.s = founded(t, o)
	return p
}

// changeVoters has a node come or go, on some side of a split or as it ends.
func (p *namesakes) changeVoters() {
	p.deaf()
	if p.rng.IntN(3) > 0 {
		p.apart(2)
		p.s.run(p.pick(500, 1000, 3000, 6000))
	}
	for range p.rng.IntN(3) {
		p.s.arrive(p.rng.IntN(len(p.s.hosts)), 1+p.rng.IntN(12))
		p.s.run(p.pick(20, 100, 500))
	}
	p.deaf()
	switch h := p.rng.IntN(len(p.s.hosts)); {
	case p.more > 0 && p.rng.IntN(2) == 0:
		p.more--
		p.s.boot(int(p.s.addHost(0).index))
	case p.rng.IntN(3) == 0 && p.s.hosts[h].up():
		p.s.stopped(h)
	case p.rng.IntN(3) == 0:
		p.restart(h)
	default:
	}
	if p.rng.IntN(3) > 0 {
		p.s.mend()
	}
	p.s.run(p.pick(100, 300, 1000, 3000, 6000))
	if p.rng.IntN(3) > 0 {
		p.boot()
	}
}

// deaf draws who does not hear what from now on: nobody; or some hear no commits, none that speak of one room, or no messages of
// another kind.
func (p *namesakes) deaf() {
	p.hears()
	if p.rng.IntN(4) == 0 {
		return
	}
	deaf, room := make([]bool, len(p.s.hosts)+p.more), p.s.o.Rooms[p.rng.IntN(len(p.s.o.Rooms))].Name
	for i := range deaf {
		deaf[i] = p.rng.IntN(2) == 0
	}
	kinds := []msgKind{mCommit, mCommit, mCommit, mSlots, mSlotsAck, mSyncRequest, mSyncReply, mGoodbye, mCopies, mCopiesAck, mOther}
	kind, all := kinds[p.rng.IntN(len(kinds))], p.rng.IntN(3) == 0
	p.s.tap = func(f *flight) verdict {
		if f.kind != kind || !deaf[f.to] {
			return pass
		}
		if c, ok := f.m.Body.(*eviction.Commit); ok && !all && !slices.ContainsFunc(c.Rooms, func(r eviction.RoomCommit) bool { return r.Room == room }) {
			return pass
		}
		p.s.hosts[f.to].deaf = true
		return lose
	}
}

// hears has everything arrive again.
func (p *namesakes) hears() {
	p.s.tap = nil
	for i := range p.s.hosts {
		p.s.hosts[i].deaf = false
	}
}
