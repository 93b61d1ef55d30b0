package simtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// wrongBy sets how wrong the wall clocks are, in the order of the hosts.
func (s *script) wrongBy(offsets ...time.Duration) {
	for i, d := range offsets {
		s.hosts[i].clock.set(s.now, d.Microseconds())
	}
}

// clockOf reads the wall clock of a host. Without a step it is the pass time.
func (s *script) clockOf(i int) int64 { return s.hosts[i].clock.read(s.now).Wall }

// The order of entitlement is that of the stamps exactly, whatever the clocks
// and however long messages take: the cut counts nobody stamped after the T of
// its gather, and nobody is stamped before a T that was replied to. Here clocks
// are apart by more than a wave takes, and there are slots for everybody or
// for a few at a time.
func TestScenarioOrderIsExactWithClocksApart(t *testing.T) {
	for _, limit := range []int{5, 40, 3000} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("limit %d, seed %d", limit, seed+1), func(t *testing.T) {
				o := short(4)
				o.Seed = seed + 1
				o.Net.Latency = Range{time.Millisecond, 15 * time.Millisecond}
				o.Rooms[0].Target, o.Rooms[0].QueueAll = limit, true
				o.Load.Browse = Range{0, 50 * time.Millisecond}
				s := assemble(t, o)
				s.wrongBy(40*time.Millisecond, -40*time.Millisecond, 0, -20*time.Millisecond) // the coordinator is ahead of all
				s.begin()
				s.arriveOver(none, min(1500, 40*limit), 4*time.Second)
				s.run(6 * time.Second)
				s.finish()
				if n := s.inOrder(0); n == 0 {
					t.Error("nobody was called")
				}
			})
		}
	}
}

// Two clocks are as far apart as they may be, and a pass ends. Until the
// reader's own clock passes its expiry every node honours it, from then on none
// does, and its slot is given to the next person only when no clock in charge
// can honour it any more.
func TestScenarioPassExpiryAtClocksApart(t *testing.T) {
	const apart = 45 * time.Millisecond // from the middle, with all other errors within 100 ms
	for _, home := range []int{0, 1, 2} {
		for _, at := range []int{0, 1, 2} {
			for off := -240 * time.Millisecond; off <= 240*time.Millisecond; off += 60 * time.Millisecond {
				t.Run(fmt.Sprintf("home %d, shown at %d, %v", home, at, off), func(t *testing.T) {
					s := assemble(t, short(3))
					s.wrongBy(-apart, 0, apart)
					s.begin()
					s.arriveOver(none, 40, time.Second)
					b := s.visit(home)
					s.run(time.Second)
					s.until(3*time.Second, "the end", func() bool { return s.clockOf(at) >= b.pass.Expires+off.Microseconds() })
					now := s.clockOf(home) // it is asked, wherever the pass is shown
					switch _, err := b.ask(at, opVisit); {
					case now >= b.pass.Expires && !errors.Is(err, ticket.ErrPassExpired):
						t.Errorf("%v after its end the pass gives %v", micros(now-b.pass.Expires), err)
					case now < b.pass.Expires && s.clockOf(at) < b.pass.Expires && err != nil:
						t.Errorf("%v before its end the pass gives %v", micros(b.pass.Expires-now), err)
					}
					_, _ = b.ask(at, opRefresh)
					s.run(time.Second)
					s.finish()
				})
			}
		}
	}
}

// The worst that a lost node can leave behind: it is cut off, its clock is
// ahead, and it extends a pass in the last moment of its lease. Elsewhere the
// room is full of visitors who take every slot the moment it is made again, and
// the pass is shown and refreshed there around its end.
func TestScenarioLastPassOfALostNode(t *testing.T) {
	t.Parallel()
	const apart = 45 * time.Millisecond
	for _, ahead := range []bool{true, false} {
		for _, refresh := range []bool{true, false} {
			for off := -2 * time.Second; off <= time.Second; off += 250 * time.Millisecond {
				t.Run(fmt.Sprintf("ahead %t, refreshed %t, %v", ahead, refresh, off), func(t *testing.T) {
					o := short(5)
					o.Rooms[0].Session = 4 * time.Second
					o.Load.Browse = Range{time.Minute, time.Minute}
					s := assemble(t, o)
					const x = 4 // so junior that it leads no wave of its own before its lease is over
					if ahead {
						s.wrongBy(-apart, -apart, 0, 0, apart)
					} else {
						s.wrongBy(apart, apart, 0, 0, -apart)
					}
					s.begin()
					b := s.visit(x)
					s.tap = func(f *flight) verdict { // gossip notices nothing
						if f.from == x || f.to == x {
							return lose
						}
						return pass
					}
					s.arrive(0, 30)
					s.until(3*time.Second, "the end of the lease", func() bool {
						h := &s.hosts[x]
						return h.seen.rooms[0].LeaseUntil-h.clock.boot(s.now) < 20_000
					})
					before := b.pass.Expires
					b.must(x, opRefresh)
					if b.pass.Expires <= before {
						t.Fatalf("x did not extend the pass")
					}
					s.until(6*time.Second, "its end", func() bool { return s.clockOf(0) >= b.pass.Expires+off.Microseconds() })
					_, _ = b.ask(1, opVisit)
					if refresh {
						_, _ = b.ask(1, opRefresh)
					}
					s.run(3 * time.Second)
					s.until(2*time.Second, "a full room", func() bool {
						owned, used := s.ownedNow(0, 1, 2, 3)
						return owned == 12 && used == 12
					})
					s.finish()
				})
			}
		}
	}
}

// A node whose clock is two seconds off, from its start or by a step, and
// another whose links are dead while gossip calls it alive: the rest go on
// without them, hardly interrupted, and take them back when they are well. By
// its clock the bad node may be the most senior of all.
func TestScenarioClockOffAndDeadLinkDoNotStopTheOthers(t *testing.T) {
	for _, off := range []time.Duration{2 * time.Second, -2 * time.Second} {
		for _, step := range []bool{true, false} {
			for _, bad := range []int{0, 4} { // the coordinator, the youngest
				t.Run(fmt.Sprintf("%v, step %t, n%02d", off, step, bad), func(t *testing.T) {
					s := badClock(t, off, step, bad)
					const dead = 3 // reaches nobody but n01 and n02, who gossip for it
					s.split(hosts(dead), hosts(0, 4))
					s.run(3 * time.Second)
					waves := 0
					for last, end := s.hosts[1].seen.status.Installed, s.now+7_000_000; s.now < end; s.run(10 * time.Millisecond) {
						if now := s.hosts[1].seen.status.Installed; now != last {
							waves, last = waves+1, now
						}
						if s.now%1_000_000 < 10_000 {
							s.arrive(1, 4)
						}
					}
					if waves < 50 {
						t.Errorf("%d waves in 7 s at 100 ms: %s", waves, s.statuses())
					}
					if n := s.calls(0, 1); n < 28 {
						t.Errorf("%d of 28 visitors were called: %s", n, s.statuses())
					}
					if s.sees(1, 5) {
						t.Errorf("n%02d takes part with its clock %v off: %s", bad, off, s.statuses())
					}
					s.finish()
				})
			}
		}
	}
}

// A node starts with a clock that is just good enough. Then its wall clock is set
// right, by so much that it no longer follows, and the clock that it keeps drifts
// until the others leave it out. Once nothing that it timed is alive it goes by
// the wall clock again, and is back. Seed 11342 of the swarm.
func TestScenarioAClockThatDriftsOutOfBoundsComesBack(t *testing.T) {
	s := assemble(t, short(5))
	const bad = 4
	s.hosts[bad].clock.set(0, 90_000)
	s.hosts[bad].clock.drift = 2000
	s.launch()
	s.until(5*time.Second, "a cluster of five", func() bool { return s.sees(0, 5) })
	s.run(time.Second)
	s.hosts[bad].clock.set(s.now, -20_000)
	s.hosts[bad].mishaps++
	s.until(10*time.Second, "four without it", func() bool { return s.sees(0, 4) })
	s.until(10*time.Second, "all five again", func() bool { return s.sees(0, 5) && s.sees(bad, 5) })
	s.hosts[bad].clock.drift = 0
	s.finish()
}

// badClock is a cluster of which one node's clock goes wrong, or was so from
// the start.
func badClock(t *testing.T, off time.Duration, step bool, bad int) *script {
	t.Helper()
	if step {
		s := founded(t, short(5))
		s.hosts[bad].clock.set(s.now, off.Microseconds())
		s.hosts[bad].mishaps++
		return s
	}
	s := assemble(t, short(5))
	s.hosts[bad].clock.set(0, off.Microseconds())
	for i := range s.hosts {
		s.hosts[i].expect = 4 // the others start together without it
	}
	s.hosts[bad].expect = 0
	s.launch()
	s.until(5*time.Second, "a cluster of the four", func() bool { return s.sees(2, 4) })
	s.run(2 * time.Second)
	return s
}

// sees reports whether host i has installed a primary wave of n nodes.
func (s *script) sees(i, n int) bool {
	st := &s.hosts[i].seen.status
	return len(st.List) == n && s.leased(&s.hosts[i])
}

// The one node that survivor_after leaves has a wrong clock, and there is nobody who could say so.
// Its visits end by that clock, their passes are of a time to come when it is right again, and D waits
// for no such pass: the node says that all of its visits are kept, as it would after D.
func TestScenarioPassesByASurvivorsWrongClockAreNotWaitedFor(t *testing.T) {
	o := short(3)
	o.Cluster.Copies = 1
	o.Rooms[0].Survivor = time.Second
	o.Rooms[0].NoRenewal = true
	o.Faults.Disk = true
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.split(hosts(0, 1), hosts(2))
	const x = 2
	s.down(x)
	s.run(200 * time.Millisecond)
	s.hosts[x].clock.set(s.now, time.Hour.Microseconds())
	s.hosts[x].mishaps++
	s.boot(x)
	s.until(4*s.delay(), "one node alone", func() bool { return s.alone(x) })
	s.arrive(x, 6)
	s.run(4 * time.Second)
	s.hosts[x].clock.set(s.now, 0)
	s.mend()
	s.until(4*s.delay(), "all together", func() bool { return s.together(3) })
	s.run(2 * time.Second)
	s.arrive(0, 6)
	s.run(time.Second)
	s.down(x)
	s.arrive(0, 30)
	s.run(2 * s.delay())
	s.finish()
}
