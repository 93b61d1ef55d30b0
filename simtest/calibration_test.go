package simtest

import (
	"flag"
	"math"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/estimate"
	"github.com/anteroom/anteroom/internal/node"
)

// calibration is how often the truth fell under the quartiles that visitors were
// told while they waited.
type calibration struct {
	told    []telling
	unknown int // answers without an estimate
	reasons map[int32]int64
}

// telling is one estimate.
type telling struct {
	ticket int32
	at     int64 // true time
	wait   node.Wait
	reason int64 // when the page last gave a reason for a longer wait; 0: never
}

// calibrate listens to all that visitors are told.
func (s *script) calibrate() *calibration {
	c := &calibration{reasons: make(map[int32]int64)}
	s.told = func(q *request) {
		ticket := s.ticketOf(q.answer.Ticket.ID)
		if r := &s.hosts[q.at].seen.rooms[q.room]; r.Missing > 0 || r.Active > r.Now.Target {
			c.reasons[ticket] = s.now
		}
		switch a := &q.answer; {
		case a.State != node.Waiting:
		case a.Wait == node.Wait{}:
			c.unknown++
		default:
			c.told = append(c.told, telling{ticket, s.now, a.Wait, c.reasons[ticket]})
		}
	}
	return c
}

// under is which shares of the truth fell under each quartile, in percent, of
// those that were told to visitors who were called.
func (c *calibration) under(s *script) (under [3]float64, n int) {
	for _, t := range c.told {
		called := s.crowd.tickets[t.ticket].calledAt
		if called < t.at {
			continue
		}
		n++
		took := time.Duration(called-t.at) * time.Microsecond
		for i, q := range []time.Duration{t.wait.P25, t.wait.P50, t.wait.P75} {
			if took <= q {
				under[i]++
			}
		}
	}
	for i := range under {
		under[i] *= 100 / float64(max(1, n))
	}
	return under, n
}

// jumps are the estimates that were more than the double of one that the same person
// was told within a minute before, without a reason since. Below a minute the page
// says the same of all.
func (c *calibration) jumps() (all []telling) {
	const minute = int64(time.Minute / time.Microsecond)
	before := make(map[int32][]telling)
	for _, t := range c.told {
		for len(before[t.ticket]) > 0 && t.at-before[t.ticket][0].at > minute {
			before[t.ticket] = before[t.ticket][1:]
		}
		for _, b := range before[t.ticket] {
			if t.wait.P50 > 2*max(b.wait.P50, time.Minute) && t.reason < b.at {
				all = append(all, t)
				break
			}
		}
		before[t.ticket] = append(before[t.ticket], t)
	}
	return all
}

// visitors brings n visitors who have the traits of the load, evenly over d.
func (s *script) visitors(n int, d time.Duration) {
	for i := range n {
		v := s.newVisitor()
		p := &s.crowd.visitors.at[v]
		p.traits, p.asks, p.host = s.drawTraits(), uint8(1+s.rngLoad.IntN(12)), s.anyHost(none)
		p.since = s.now + d.Microseconds()*int64(i)/int64(n)
		s.agenda.push(p.since, evWake, v, 0)
	}
}

// crowds are the ways in which visitors come, and what happens meanwhile. All
// estimates count, also those of which nobody could know that the limit would change.
var crowds = []struct {
	name string
	past float64 // what was seen of the room before: how long visits lasted in such a crowd, times this; 0: nothing
	off  float64 // how far the three shares may be from 25, 50 and 75 %, on average, in points
	set  func(o *Options)
	run  func(s *script)
}{
	{"steady", 0, 6, nil, func(s *script) {
		s.visitors(80, 5*time.Second)
		s.visitors(1400, 10*time.Minute)
		s.run(11 * time.Minute)
	}},
	{"first crowd", 0, 12, firstCrowd, crowdAtAnEmptySite},
	{"first crowd, as before", 1, 12, firstCrowd, crowdAtAnEmptySite},
	{"first crowd, shorter before", 0.5, 22, firstCrowd, crowdAtAnEmptySite},
	{"first crowd, longer before", 2, 42, firstCrowd, crowdAtAnEmptySite},
	{"bursts", 0, 8, nil, func(s *script) {
		for range 6 {
			s.visitors(200, 2*time.Second)
			s.run(2 * time.Minute)
		}
	}},
	{"abandoning", 0, 16, func(o *Options) { o.Load.Silent, o.Load.Cancel, o.Load.NoShow = 15, 20, 10 }, func(s *script) {
		s.visitors(80, 5*time.Second)
		s.visitors(2200, 10*time.Minute)
		s.run(11 * time.Minute)
	}},
	{"limit changed", 0, 20, nil, func(s *script) {
		s.visitors(1500, 8*time.Minute)
		s.run(3 * time.Minute)
		s.limit(1, 20)
		s.run(3 * time.Minute)
		s.limit(2, 60)
		s.run(4 * time.Minute)
	}},
	{"node lost", 0, 9, nil, func(s *script) {
		s.visitors(1400, 10*time.Minute)
		s.run(4 * time.Minute)
		s.down(0)
		s.run(2 * time.Minute)
		s.boot(0)
		s.run(5 * time.Minute)
	}},
	{"rate", 0, 4, func(o *Options) { o.Rooms[0].NewPerMinute = 90 }, func(s *script) {
		s.visitors(1000, 8*time.Minute)
		s.run(11 * time.Minute)
	}},
	{"event with draw", 0, 15, func(o *Options) {
		o.Rooms[0].Event = eviction.Event{Start: wallAt((3 * time.Minute).Microseconds()), Shuffle: true}
	}, func(s *script) {
		s.visitors(600, 2*time.Minute)
		s.run(3 * time.Minute)
		s.visitors(400, 2*time.Minute)
		s.run(8 * time.Minute)
	}},
}

// firstCrowd is of people whose visits end by the clock.
func firstCrowd(o *Options) {
	o.Rooms[0].Target, o.Load.Vanish, o.Load.Browse = 20, 100, Range{time.Second, 30 * time.Second}
}

func crowdAtAnEmptySite(s *script) {
	s.visitors(60, time.Second)
	s.run(4 * time.Minute)
	s.visitors(100, time.Second)
	s.run(8 * time.Minute)
}

// before tells all nodes how long visits lasted in another world, times factor.
func (s *script) before(o Options, run func(s *script), factor float64) {
	var lasted []estimate.Lasted
	o.Seed += 1 << 32
	earlier := founded(s.t, o)
	earlier.visited = func(took int64) {
		lasted = append(lasted, estimate.Lasted{Age: int64(float64(took) * factor), N: 1})
	}
	run(earlier)
	for i := range s.hosts {
		s.hosts[i].n.Before("shop", node.VisitTerms(&s.o.Rooms[0]), lasted)
	}
}

var (
	worlds     = flag.Int("worlds", 4, "how many worlds of each crowd TestEstimatesAreCalibrated averages over")
	firstWorld = flag.Uint64("world", 101, "the seed of the first")
)

// What visitors are told is true about as often as it says: of those who were told that
// half of visitors like them are called within so long, half are. And what one person
// is told does not jump. The table that it logs, of more than one world, is in
// docs/operating.md.
func TestEstimatesAreCalibrated(t *testing.T) {
	if testing.Short() {
		t.Skip("eight hours of a crowd, in one goroutine; left out of -short")
	}
	for _, c := range crowds {
		t.Run(c.name, func(t *testing.T) {
			var under [3]float64
			n, unknown, of := 0, 0, *worlds
			if c.name == "node lost" { // who is told what when it is depends on the world
				of *= 3
			}
			for i := range of {
				o := short(3)
				o.Seed = *firstWorld + uint64(i)
				o.Cluster.Period, o.Cluster.Urgent = 200*time.Millisecond, 50*time.Millisecond
				r := &o.Rooms[0]
				r.Target, r.Session, r.Refresh, r.ClaimWindow, r.TicketTTL = 40, 60*time.Second, 5*time.Second, 10*time.Second, time.Minute
				o.Load.Browse = Range{5 * time.Second, 35 * time.Second}
				o.Span = 20 * time.Minute
				if c.set != nil {
					c.set(&o)
				}
				s := founded(t, o)
				if c.past > 0 {
					s.before(o, c.run, c.past)
				}
				told := s.calibrate()
				c.run(s)
				s.check()
				u, m := told.under(s)
				for k := range u {
					under[k] += u[k] / float64(of)
				}
				n, unknown = n+m, unknown+told.unknown
				if jumps := told.jumps(); len(jumps) > 0 {
					t.Errorf("%d estimates have more than doubled within a minute, the first %v for ticket %d at %v", len(jumps), jumps[0].wait.P50, jumps[0].ticket, micros(jumps[0].at))
				}
			}
			t.Logf("| %s | %d | %.0f | %.0f | %.0f | %d |", c.name, n/of, under[0], under[1], under[2], unknown/of)
			off := (math.Abs(under[0]-25) + math.Abs(under[1]-50) + math.Abs(under[2]-75)) / 3
			if n < 2000 || off > c.off {
				t.Errorf("of %d estimates %.0f %%, %.0f %% and %.0f %% were under the quartiles: %.0f points off, want at most %.0f", n, under[0], under[1], under[2], off, c.off)
			}
		})
	}
}
