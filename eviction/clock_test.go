package eviction

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom/qpid"
	"pgregory.net/rapid"
)

const (
	second = int64(1_000_000)
	wall0  = int64(1_700_000_000) * second
)

func TestClockSlewsTowardsTheWall(t *testing.T) {
	for _, ahead := range []int64{-400_000, 400_000} {
		c := newClock(500_000, Time{0, wall0})
		c.leased = true
		for s := int64(1); s <= 1000; s++ {
			before := c.now
			if jumped, _ := c.read(Time{s * second, wall0 + s*second + ahead}); jumped {
				t.Fatal("a step within the skew is a jump")
			}
			if moved := c.now - before - second; moved < -501 || moved > 501 {
				t.Fatalf("slewed %d µs within a second", moved)
			}
		}
		if off := c.now - wall0 - 1000*second - ahead; off != 0 {
			t.Errorf("after 1000 s the clock is still %d µs off", off)
		}
	}
}

func TestClockJump(t *testing.T) {
	for _, by := range []int64{-3600 * second, 3600 * second} {
		c := newClock(500_000, Time{0, wall0})
		c.leased = true
		if jumped, _ := c.read(Time{second, wall0 + second}); jumped || c.quarantined {
			t.Fatal("no step is a jump")
		}
		if jumped, _ := c.read(Time{2 * second, wall0 + 2*second + by}); !jumped || !c.quarantined || c.probed {
			t.Errorf("a step of %v is no jump", durationOf(by))
		}
		if c.now != wall0+2*second {
			t.Errorf("after a step of %v the pass time is off by %d", durationOf(by), c.now-wall0-2*second)
		}
	}
	c := newClock(500_000, Time{0, wall0})
	c.read(Time{second, wall0 - 3600*second})
	if c.now != wall0-3600*second {
		t.Error("a node that never had a lease does not follow the wall clock")
	}
}

// Whatever the clocks of the machine do, pass time and stamps never go back.
func TestClockNeverGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock(500_000, Time{0, wall0})
		c.leased = true
		now := Time{0, wall0}
		last, stamped := c.now, uint64(0)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			d := rapid.Int64Range(0, 10*second).Draw(t, "elapsed")
			now.Boot += d
			now.Wall += d + rapid.SampledFrom([]int64{0, 0, 1, -1, 100_000, -100_000, 499_999, -499_999, 3 * second, -3 * second}).Draw(t, "step")
			c.read(now)
			if c.now < last {
				t.Fatalf("pass time goes back by %d", last-c.now)
			}
			if slow := last + d - c.now; slow > d*slewMax/second+1 {
				t.Fatalf("pass time falls behind by %d in %d", slow, d)
			}
			last = c.now
			if rapid.Bool().Draw(t, "promise") {
				c.promise(uint64(c.now + rapid.Int64Range(-second, second).Draw(t, "to")))
			}
			s := c.stamp()
			if s <= stamped || s < uint64(c.now) {
				t.Fatalf("stamp %d after %d at %d", s, stamped, c.now)
			}
			stamped = s
		}
	})
}

// A node whose wall clock was set right while it had a lease is out of step
// with the others. It may come back when nothing that it timed is left.
func TestNodeFollowsTheWallWhenAllItTimedIsOver(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		s := newSolo(t, Room{Target: 10, Session: time.Second})
		s.gather(t, 1)
		s.commit(t, 1)
		s.now.Wall += step.Microseconds()
		s.stepDown(s.now, 0)     // its clock is not with the others'
		s.pass(12 * time.Second) // of lease, session and twice the skew: 12 s
		if off := s.clock.now - s.now.Wall; abs(off) < 3000*second {
			t.Fatalf("%v: pass time follows at once", step)
		}
		s.pass(time.Second)
		s.pass(time.Second)
		if off := s.clock.now - s.now.Wall; off != 0 {
			t.Errorf("%v: pass time is still %v off after everything has lapsed", step, durationOf(off))
		}
	}
}

// A coordinator whose clock is as far off as it may be, now found wrong and now right,
// costs the others a take-over each time. It leads again after a longer time each time,
// and as soon as ever when it has led for long.
func TestACoordinatorThatSteppedDownLeadsAgainLaterEachTime(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Second})
	exclude := micros(s.c.ExcludeAfter)
	down := func() int64 {
		s.stepDown(s.now, 0)
		left := s.now.Boot
		s.pass(durationOf(s.lead.banned - s.now.Boot))
		return s.now.Boot - left
	}
	for i, want := range []int64{2, 4, 8, 8} {
		if got := down(); got != want*exclude {
			t.Errorf("the %d. time it leads no wave for %v, want %v", i+1, durationOf(got), durationOf(want*exclude))
		}
	}
	s.pass(durationOf(8 * exclude))
	if got := down(); got != 2*exclude {
		t.Errorf("after it has led for long it leads no wave for %v, want %v", durationOf(got), durationOf(2*exclude))
	}
}

func TestMedian(t *testing.T) {
	tests := []struct {
		sorted []int64
		want   int64
	}{
		{[]int64{0}, 0},
		{[]int64{-9, 0}, 0},
		{[]int64{0, 9}, 0},
		{[]int64{-5, 0, 3}, 0},
		{[]int64{0, 7, 8}, 7},
		{[]int64{-9, -8, 0, 5}, 0},
		{[]int64{-9, -8, -3, 0}, -3},
		{[]int64{5, 6, 7, 8, 9}, 7},
	}
	for _, test := range tests {
		if got := new(Clock).median(test.sorted); got != test.want {
			t.Errorf("median(%v) = %d, want %d", test.sorted, got, test.want)
		}
	}
}

// Of two clocks that are apart nobody can tell which is right, but one whose machine
// stood still: its wall clock was set right meanwhile, and agrees with the other. It does not go back
// to where a pass that it timed would be good again.
func TestOfTwoClocksTheOneThatStoodStillGoesByItsWallClock(t *testing.T) {
	for _, test := range []struct{ wall, other, want int64 }{
		{5 * second, 5*second + 400_000, 5*second + 400_000},
		{5 * second, 4*second + 600_000, 4*second + 600_000},
		{0, 5 * second, 0},             // its wall clock stood still too, or the other one is ahead
		{5 * second, 0, 0},             // its wall clock alone is off
		{3600 * second, 5 * second, 0}, // all three differ
		{-5 * second, -5 * second, 0},  // and would bring a pass back
		{400_000, 600_000, 0},          // it is slewed
	} {
		c := newClock(500_000, Time{0, wall0})
		c.leased, c.vouched, c.agreed, c.given = true, true, true, wall0+second
		c.read(Time{second, wall0 + second + test.wall})
		sorted := []int64{min(0, test.other), max(0, test.other)}
		if got := c.median(sorted); got != test.want {
			t.Errorf("wall clock %v ahead, the other %v: went by %v, want %v", durationOf(test.wall), durationOf(test.other), durationOf(got), durationOf(test.want))
		}
		if before := c.now; c.stoodStill(test.other) {
			c.followWall()
			if c.now != wall0+second+test.wall || c.now < before || c.vouched || c.agreed {
				t.Errorf("went on at %v, vouched for %t", durationOf(c.now-wall0), c.vouched)
			}
		}
	}
}

// One that began ahead goes by its wall clock when that is right, as soon as this brings no
// pass back that it timed.
func TestOfTwoClocksTheOneThatBeganAheadGoesByItsWallClock(t *testing.T) {
	for _, test := range []struct{ wall, other, given, want int64 }{
		{-5 * second, -5 * second, 0, -5 * second},
		{-5 * second, -5*second - 400_000, 0, -5*second - 400_000},
		{-5 * second, -5 * second, wall0 - 5*second - 1, -5 * second},
		{-5 * second, -5 * second, wall0 - 5*second, 0},
		{-5 * second, 0, 0, 0},              // its wall clock alone is off
		{0, -5 * second, 0, 0},              // or the other one is behind
		{-3600 * second, -5 * second, 0, 0}, // all three differ
		{-400_000, -600_000, 0, 0},          // it is slewed
	} {
		c := newClock(500_000, Time{0, wall0})
		c.leased, c.vouched, c.given = true, true, test.given
		c.read(Time{second, wall0 + second + test.wall})
		if got := c.median([]int64{min(0, test.other), max(0, test.other)}); got != test.want {
			t.Errorf("wall clock %v ahead, the other %v: went by %v, want %v", durationOf(test.wall), durationOf(test.other), durationOf(got), durationOf(test.want))
		}
	}
}

func TestMeasure(t *testing.T) {
	r := measure(1000, 3000, 2500)
	if !r.ok || r.offset != 500 || r.err != 1000 {
		t.Errorf("measure = %+v, want 500 ± 1000", r)
	}
}

// chiSquare of counts against an even spread; degrees of freedom: len-1.
func chiSquare(counts []int) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	want := float64(total) / float64(len(counts))
	sum := 0.0
	for _, n := range counts {
		sum += (float64(n) - want) * (float64(n) - want) / want
	}
	return sum
}

// The draw is fair: a ticket's place in one epoch's draw is even over the
// range, and says nothing of its place in the next, whatever the ids look like.
func TestDrawIsEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ids := map[string]func(int) qpid.ItemID{
		"random": func(int) (id qpid.ItemID) {
			for i := range id {
				id[i] = byte(rng.Uint32())
			}
			return id
		},
		"counted": func(i int) qpid.ItemID { return qpid.ItemID{14: byte(i >> 8), 15: byte(i)} },
	}
	for name, id := range ids {
		place, pair, winner := make([]int, 16), make([]int, 16), make([]int, 64)
		for i := range 65536 {
			x := id(i)
			a := draw(qpid.Epoch{Num: 7, Coordinator: "a.1"}, x).Stamp >> 59
			b := draw(qpid.Epoch{Num: 8, Coordinator: "a.1"}, x).Stamp >> 59
			place[a]++
			pair[a>>2<<2|b>>2]++
		}
		for epoch := range 16384 { // the lightest of 64 tickets
			best, at := qpid.Weight{Stamp: 1 << 63}, 0
			for i := range 64 {
				if w := draw(qpid.Epoch{Num: uint64(epoch), Coordinator: "b.2"}, id(i)); w.Less(best) {
					best, at = w, i
				}
			}
			winner[at]++
		}
		// The 99.9th percentiles for 15 and 63 degrees of freedom are 37.7 and 103.4.
		for what, got := range map[string]float64{"places": chiSquare(place), "pairs": chiSquare(pair)} {
			if got > 37.7 {
				t.Errorf("%s ids: %s are uneven: χ² = %.1f", name, what, got)
			}
		}
		if got := chiSquare(winner); name == "counted" && got > 103.4 {
			t.Errorf("%s ids: winners are uneven: χ² = %.1f", name, got)
		}
	}
}

// A shuffled pre-queue is a draw among those who came before the start; who
// came later stands behind them in order of arrival.
func TestShuffleKey(t *testing.T) {
	start := wall0
	g := newGate(newClusterSettings(Config{}.WithDefaults()), Room{Name: "shop", Event: Event{Start: start, Shuffle: true, Seed: [32]byte{1}}})
	early := qpid.Weight{Stamp: uint64(start) - 5, ID: qpid.ItemID{1}}
	late := qpid.Weight{Stamp: uint64(start) + 5, ID: qpid.ItemID{2}}
	if g.Rekey(uint64(start)-1) || g.Key(early) != early {
		t.Error("re-keyed before the start")
	}
	if !g.Rekey(uint64(start)) || g.Rekey(uint64(start)+1) {
		t.Error("want one re-keying, at the start")
	}
	if k := g.Key(early); k.Stamp >= uint64(start) || k.ID != early.ID || !k.Less(late) || k == early {
		t.Errorf("key of one who gathered: %v", k)
	}
	if g.Key(late) != late {
		t.Error("one who came after the start was drawn")
	}
	places := make([]int, 16)
	for i := range 16384 {
		k := g.Key(qpid.Weight{Stamp: uint64(start) - 1, ID: qpid.ItemID{byte(i >> 8), byte(i)}})
		places[k.Stamp*16/uint64(start)]++
	}
	if got := chiSquare(places); got > 37.7 {
		t.Errorf("the shuffle is uneven: χ² = %.1f, %v", got, places)
	}
	g.cfg.Event.Seed[0] = 9
	before := g.Key(early)
	if g.Rekey(uint64(start)+2) || g.Key(early) != before {
		t.Error("a seed that changes after the start changes places")
	}
	if fmt.Sprint(g.Keying()) != fmt.Sprint(start) {
		t.Errorf("keying %d, want the start", g.Keying())
	}
}

// Whose clock the others took for right does not follow its wall clock when it
// is alone later, or it would stamp places an hour ahead, and whoever takes them
// over would be dragged along. Found by seed 5773.
func TestClockThatOthersAgreedWithDoesNotFollowTheWall(t *testing.T) {
	const hour = 3600 * second
	c := newClock(500_000, Time{0, wall0})
	c.vouched, c.agreed = true, true
	c.read(Time{second, wall0 + second + hour})
	if !c.quarantined {
		t.Fatal("a step of an hour is no jump")
	}
	c.quarantined, c.probed = false, true // they have measured it again
	if _, set := c.read(Time{2 * second, wall0 + 2*second + hour}); set || c.now != wall0+2*second || !c.vouched {
		t.Errorf("set %v to %v, vouched for %v", set, durationOf(c.now-wall0), c.vouched)
	}
	c.agreed = false // they find it off: they have all followed such a step
	if _, set := c.read(Time{3 * second, wall0 + 3*second + hour}); !set || c.now != wall0+3*second+hour || c.vouched {
		t.Errorf("set %v to %v, vouched for %v; want it to follow, and to be measured again", set, durationOf(c.now-wall0), c.vouched)
	}
}

// A node starts with a clock that is off by less than max_skew, is found wrong by the
// others, since theirs are off to the other side, and its wall clock is set right. It goes
// by that at once: it would take minutes to follow by and by, and nobody has gone by it yet.
func TestClockThatWasFoundWrongFollowsASmallStep(t *testing.T) {
	for _, found := range []bool{true, false} {
		c := newClock(300_000, Time{0, wall0})
		if found {
			c.distrust(0)
		}
		c.read(Time{1_000_000, wall0 + 1_200_000})
		if right := c.now == wall0+1_200_000; right != found {
			t.Errorf("found wrong %t: a second after a step of 0.2 s the clock is %d ahead of before", found, c.now-wall0)
		}
	}
}

// Two coordinators may be as far apart as clocks that are right can be. What a node has promised to the later of them
// holds, also when its clock is set back after it has heard from the other.
func TestAPromiseToACoordinatorOutlastsOneOfBefore(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Second})
	s.now.Wall += 100_000 // its T is later than that of the second
	s.gather(t, 1)
	promised := uint64(s.now.Wall)
	s.commit(t, 1)
	s.now.Wall -= 100_000
	s.gather(t, 2)
	s.commit(t, 1)
	s.clock.distrust(s.now.Boot)
	s.pass(time.Minute)
	s.now.Wall -= (10 * time.Minute).Microseconds()
	s.pass(time.Microsecond)
	if stamp := s.clock.stamp(); stamp <= promised {
		t.Errorf("a stamp of %d after a promise of %d", stamp, promised)
	}
}
