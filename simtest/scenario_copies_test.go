package simtest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/internal/node"
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
	r.Target, r.QueueAll, r.TicketTTL, r.ClaimWindow = 8+d.IntN(30), d.one(2), time.Minute, 20*time.Second
	r.Refresh = d.between(5*time.Second, 20*time.Second)
	o.Load = Load{Flash: d.pick(0, 1, 2, 4), Browse: Range{200 * time.Millisecond, d.between(500*time.Millisecond, 2*time.Second)}, Timeout: time.Second, Sticky: d.one(2)}
	o.Faults = Faults{Kills: 3, Last: Range{500 * time.Millisecond, 1200 * time.Millisecond}, Detect: Range{300 * time.Millisecond, 900 * time.Millisecond}, KeepKeys: true, Disk: d.one(2)}
	return o
}

// discordant runs worlds of the first seeds, and counts the pairs of people who had their
// turn in the wrong order, in all, and places that went on at an heir. With strict no world
// may have any.
func discordant(t *testing.T, strict bool, world func(seed uint64) Options) (wrong, pairs, went int64) {
	t.Helper()
	for seed := range uint64(40) {
		res, err := Run(world(seed))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		f := fairness.Measure(res.Rooms[0].Admissions, 0)
		if f.DiscordantPairs > 0 && strict {
			t.Errorf("seed %d: %d pairs of %d people in the wrong order", seed, f.DiscordantPairs, f.N)
		}
		if n := calledLate(res.Rooms[0].Admissions); n > 0 && strict {
			t.Errorf("seed %d: %d pairs were called in the wrong order, %v or more apart", seed, n, callsApart)
		}
		wrong, pairs = wrong+f.DiscordantPairs, pairs+int64(f.N)*int64(f.N-1)/2
		went += reachedIn(&res, reachWentOn)
	}
	return wrong, pairs, went
}

// callsApart is for how long a call may be behind that of somebody who came later, as
// slots are on their way from node to node.
const callsApart = 400 * time.Millisecond

// calledLate counts the pairs of people who were called in the wrong order, and not at
// about the same time.
func calledLate(as []fairness.Admission) (pairs int) {
	for i := range as {
		for j := range as {
			if a, b := &as[i], &as[j]; !a.Open && !b.Open && a.Joined.Less(b.Joined) && a.CalledAt-b.CalledAt > callsApart.Microseconds() {
				pairs++
			}
		}
	}
	return pairs
}

// One node after the other dies, and nobody is overtaken by it: those who waited there go
// on at their heirs. Without copies some are overtaken, in the same worlds.
func TestScenarioANodeDiesAndNobodyIsOvertaken(t *testing.T) {
	t.Parallel()
	_, pairs, went := discordant(t, true, func(seed uint64) Options { return oneDies(seed, 1) })
	without, _, _ := discordant(t, false, func(seed uint64) Options { return oneDies(seed, 0) })
	t.Logf("none of %d pairs in the wrong order, %d without copies; %d places went on", pairs, without, went)
	if went == 0 || without == 0 {
		t.Errorf("%d places went on, and %d pairs are in the wrong order without copies: the worlds show nothing", went, without)
	}
}

// A node stands still for longer than browsers wait for an answer. Whoever asked there, and
// waits at another one, is not taken for gone meanwhile, and so is overtaken by nobody.
func TestScenarioANodeHangsAndNobodyIsOvertaken(t *testing.T) {
	t.Parallel()
	_, pairs, _ := discordant(t, true, func(seed uint64) Options {
		o := oneDies(seed, 1)
		o.Rooms[0].Refresh, o.Rooms[0].QueueAll = 3*time.Second, true
		o.Load.Sticky, o.Load.Timeout, o.Load.HTTP = false, 5*time.Second, Range{time.Millisecond, 2 * time.Millisecond}
		o.Faults.Kills, o.Faults.Mix, o.Faults.Every, o.Faults.Last = 0, []Fault{Pause}, 20*time.Second, Range{7 * time.Second, 8 * time.Second}
		return o
	})
	t.Logf("none of %d pairs in the wrong order", pairs)
}

// A node lets somebody in and dies before their heir has heard of it, which goes on with
// their place. Their pass is good there, and shows that the place is none any more.
func TestScenarioAPassIsGoodWhereItsPlaceWentOn(t *testing.T) {
	o := short(3)
	o.Cluster.Copies = 1
	r := &o.Rooms[0]
	r.Target, r.QueueAll, r.Session, r.TicketTTL, r.ClaimWindow, r.Refresh = 1, true, 2*time.Minute, 2*time.Minute, 2*time.Minute, 5*time.Second
	s := founded(t, o)
	const x = 2
	first, b := s.visit(0), s.browser()
	b.must(x, opJoin)
	s.run(500 * time.Millisecond)
	first.must(0, opEnd)
	s.until(5*time.Second, "a call", func() bool { return b.must(x, opCheckIn).State == node.Called })
	s.run(100 * time.Millisecond) // the heir keeps the visit, and is not told that it has begun
	s.tap = func(f *flight) verdict {
		if f.kind == mCopies && f.from == x {
			return lose
		}
		return pass
	}
	if a := b.must(x, opLeave); a.State != node.Admitted {
		t.Fatalf("no pass: %v", a)
	}
	s.down(x)
	s.until(3*time.Second, "the place to go on", func() bool { return s.reached.n[reachWentOn] > 0 })
	for h := range x {
		b.must(h, opVisit)
	}
	if n := s.hosts[0].seen.rooms[0].Queued + s.hosts[1].seen.rooms[0].Queued; n > 0 {
		t.Errorf("%d are in line whose pass was seen", n)
	}
	s.finish()
}

// No heir hears of anybody, or no home of an heir that has: whoever waited at the node
// that dies is waited for. That is as good as their browsers are; if they were not
// waited for, hundreds were passed.
func TestScenarioWhoIsKeptByNobodyIsWaitedFor(t *testing.T) {
	t.Parallel()
	wrong, pairs, _ := discordant(t, false, func(seed uint64) Options {
		o := oneDies(seed, 1)
		o.Net.Copies = 6000
		o.Rooms[0].Refresh, o.Rooms[0].QueueAll, o.Load.Flash = time.Second, true, 1
		return o
	})
	t.Logf("%d of %d pairs in the wrong order", wrong, pairs)
	if wrong > 20 {
		t.Errorf("%d of %d pairs in the wrong order", wrong, pairs)
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

// Heirs come and go, and what they are told is lost on the way, as is what they answer: nobody
// is told to forget a place before another has it.
func TestScenarioHeirsComeAndGo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		d := dice{rand.New(rand.NewPCG(seed, 24))}
		o := short(d.pick(4, 5, 6))
		o.Seed, o.Users, o.Span, o.Limit = seed, 300, 12*time.Second, 4*time.Minute
		o.Cluster.Copies, o.Cluster.Period, o.Cluster.ExcludeAfter, o.Cluster.Lease = 1, 60*time.Millisecond, 2*time.Second, 5*time.Second
		o.Net = Net{Latency: Range{time.Millisecond, 20 * time.Millisecond}, Copies: d.pick(6000, 8000, 9000)}
		r := &o.Rooms[0]
		r.Target, r.QueueAll, r.TicketTTL = 10, true, time.Minute
		o.Load = Load{Flash: 1, Browse: Range{200 * time.Millisecond, time.Second}, Timeout: time.Second, Sticky: true}
		o.Faults = Faults{
			Mix:   []Fault{SlowLink, Pause, Pause, CutOff},
			Every: 300 * time.Millisecond, Last: Range{100 * time.Millisecond, 600 * time.Millisecond}, Grays: 3, Detect: Range{100 * time.Millisecond, 300 * time.Millisecond}, KeepKeys: true,
		}
		if _, err := Run(o); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
