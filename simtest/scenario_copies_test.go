package simtest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/fairness"
)

// oneDies is a world in which visitors do as they are told, and one node dies and is back
// after a moment: nothing else happens.
func oneDies(seed uint64, copies int) Options {
	d := dice{rand.New(rand.NewPCG(seed, 17))}
	o := short(d.pick(3, 3, 4, 5, 6))
	o.Seed, o.Users, o.Span, o.Limit, o.After = seed, 150+d.IntN(350), 12*time.Second, 4*time.Minute, Measure
	o.Cluster.Copies = copies
	o.Cluster.Period, o.Cluster.ExcludeAfter = d.between(60*time.Millisecond, 150*time.Millisecond), d.between(500*time.Millisecond, time.Second)
	o.Cluster.Exact = d.pick(8, 64, 512)
	o.Net.Latency = Range{time.Millisecond, d.between(2*time.Millisecond, 10*time.Millisecond)}
	o.Clocks.Offset = d.upTo(30 * time.Millisecond)
	r := &o.Rooms[0]
	r.Target, r.QueueAll, r.TicketTTL, r.ClaimWindow = 8+d.IntN(30), d.one(2), 20*time.Second, 20*time.Second
	r.Refresh = d.between(500*time.Millisecond, 3*time.Second)
	o.Load = Load{Flash: d.pick(0, 1, 2, 4), Browse: Range{200 * time.Millisecond, d.between(500*time.Millisecond, 2*time.Second)}, Timeout: time.Second, Sticky: d.one(2)}
	o.Faults = Faults{Kills: 1, Last: Range{time.Second, 4 * time.Second}, Detect: Range{300 * time.Millisecond, 900 * time.Millisecond}, KeepKeys: true, Disk: d.one(2)}
	return o
}

// One node dies, whichever it is, and nobody is overtaken by it: those who waited there go
// on at their heirs. Without copies some are overtaken, in the same worlds.
func TestScenarioANodeDiesAndNobodyIsOvertaken(t *testing.T) {
	const worlds = 40
	discordant := func(t *testing.T, copies int) (sum, pairs int64, went int64) {
		for seed := range uint64(worlds) {
			res, err := Run(oneDies(seed, copies))
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			f := fairness.Measure(res.Rooms[0].Admissions, 0)
			if f.DiscordantPairs > 0 && copies > 0 {
				t.Errorf("seed %d: %d pairs of %d people in the wrong order", seed, f.DiscordantPairs, f.N)
			}
			sum, pairs = sum+f.DiscordantPairs, pairs+int64(f.N)*int64(f.N-1)/2
			went += reachedIn(&res, reachWentOn)
		}
		return sum, pairs, went
	}
	with, pairs, went := discordant(t, 1)
	without, _, _ := discordant(t, 0)
	t.Logf("%d of %d pairs in the wrong order, %d without copies; %d places went on", with, pairs, without, went)
	if went == 0 || without == 0 {
		t.Errorf("%d places went on, and %d pairs are in the wrong order without copies: the worlds show nothing", went, without)
	}
}

func reachedIn(r *Result, g goal) int64 {
	for _, c := range r.Reached {
		if c.Name == g.String() {
			return c.N
		}
	}
	panic(fmt.Sprintf("simtest: no goal %v", g))
}

var _ = eviction.Majority
