package simtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/fairness"
	"github.com/anteroom/anteroom/qpid"
)

// Fault B3 in a room: the visitors at the head of the line close their tabs. Who
// says so is gone at once; the silent are out of the line after three refresh
// intervals, or, called, after the claim window. Nothing is stuck for longer, in
// a room by cut or by QPID.
func TestScenarioTheHeadAbandons(t *testing.T) {
	for _, algorithm := range []eviction.Algorithm{eviction.ByCut, eviction.ByQPID} {
		for _, says := range []bool{true, false} {
			for _, lull := range []time.Duration{0, 3 * time.Second} { // the heads are called, or gone by then
				for _, heads := range []int{1, 12, 30} {
					t.Run(fmt.Sprintf("algorithm %d, says so %t, lull %v, %d heads", algorithm, says, lull, heads), func(t *testing.T) {
						abandon(t, algorithm, says, lull, heads)
					})
				}
			}
		}
	}
}

func abandon(t *testing.T, algorithm eviction.Algorithm, says bool, lull time.Duration, heads int) {
	o := short(3)
	o.Rooms[0].Algorithm, o.Rooms[0].QueueAll, o.Rooms[0].Session = algorithm, true, 10*time.Second
	o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
	s := founded(t, o)
	var inside, gone []*browser
	for i := range 12 {
		inside = append(inside, s.visit(i%3))
	}
	for i := range heads {
		b := s.browser()
		b.must(i%3, opJoin)
		gone = append(gone, b)
	}
	s.run(200 * time.Millisecond)
	from := s.now
	s.arrive(none, 30)
	s.run(200 * time.Millisecond)
	for i, b := range gone {
		if says {
			b.must((i+1)%3, opAbandon)
		}
	}
	s.run(lull)
	for i, b := range inside {
		b.must((i+1)%3, opEnd)
	}
	// Three times twelve visitors in at most 1.1 s each, and once the claim window for every twelve who do not come.
	patience := 4 * time.Second
	if !says && lull == 0 {
		patience += time.Duration((heads+11)/12) * 1500 * time.Millisecond
	}
	s.until(patience, "everybody behind the heads called", func() bool { return s.calls(from) >= 30 })
	if n := s.inOrder(from); n < 30 {
		t.Errorf("%d of 30 were entitled", n)
	}
	s.finish()
}

// limit changes a room's limit at host i.
func (s *script) limit(i, n int) {
	room := s.hosts[i].seen.rooms[0].Room
	room.Target = n
	s.setRoom(&s.hosts[i], 0, room)
}

// A limit is raised and lowered while visitors come and go, with all nodes there
// and with one missing. It takes force everywhere in a few waves. Nobody is
// thrown out when it is lowered, and nobody called until there is room.
func TestScenarioLimitRaisedAndLowered(t *testing.T) {
	for _, missing := range []int{none, 0, 3} {
		t.Run(fmt.Sprintf("missing %d", missing), func(t *testing.T) {
			s := founded(t, short(4))
			const at = 1
			s.visit(2)
			s.arriveOver(none, 900, 30*time.Second)
			s.run(time.Second)
			if missing != none {
				s.split(hosts(int32(missing)), without(hosts(0, 1, 2, 3), int32(missing)))
				s.run(2 * s.delay()) // its slots are made again
			}
			whole := func(n int) func() bool {
				return func() bool {
					owned := 0
					for i := range s.hosts {
						if i != missing {
							o, _ := s.ownedNow(i)
							owned += o
						}
					}
					return owned == n
				}
			}
			s.limit(at, 40)
			s.until(time.Second, "40 slots", whole(40))
			s.until(2*time.Second, "40 visitors on the site", func() bool { return s.checker.rooms[0].active >= 38 })
			b := s.visit(2) // the first one's pass has run out
			s.limit(2, 5)
			s.run(500 * time.Millisecond)
			from, last := s.now, s.checker.rooms[0].active
			if last < 10 {
				t.Fatalf("%d visitors are left: too few to see what a lower limit does", last)
			}
			for s.checker.rooms[0].active > 5 {
				s.run(50 * time.Millisecond)
				b.must(1, opVisit)
				if s.now < b.pass.Expires-epochWall-600_000 {
					continue
				}
				before := b.pass.Expires
				b.must(2, opRefresh)
				if b.pass.Expires <= before && missing != 2 {
					t.Fatalf("somebody is thrown out by a lower limit: the pass is not extended")
				}
			}
			b.must(2, opEnd)
			if n := s.calls(from); n > 5 {
				t.Errorf("%d visitors were called on the way from %d down to 5", n, last)
			}
			s.until(4*time.Second, "5 slots", whole(5))
			s.limit(at, 20)
			s.until(time.Second, "20 slots", whole(20))
			if got := s.checker.rooms[0].activeMax; got > 40 {
				t.Errorf("%d visitors at once", got)
			}
			s.finish()
		})
	}
}

// A node that says goodbye hands its free slots over at once; those in use stay
// with it until its visitors' passes have run out. Its visitors take their place
// along.
func TestScenarioGracefulLeave(t *testing.T) {
	for _, leaver := range []int{0, 3} {
		for _, inUse := range []int{0, 2} {
			t.Run(fmt.Sprintf("n%02d, %d in use", leaver, inUse), func(t *testing.T) {
				s := founded(t, short(4))
				var inside []*browser
				for range inUse {
					inside = append(inside, s.visit(leaver))
				}
				stay := []int{}
				for i := range s.hosts {
					if i != leaver {
						stay = append(stay, i)
					}
				}
				s.goodbye(&s.hosts[leaver])
				s.until(200*time.Millisecond, "the free slots with the others", func() bool {
					owned, _ := s.ownedNow(stay...)
					return owned == 12-inUse
				})
				s.until(2*time.Second, "a wave of the rest", func() bool { return s.together(3) && !s.hosts[leaver].up() })
				for _, b := range inside { // their passes are honoured, then taken over
					b.must(stay[0], opVisit)
				}
				from := s.now
				s.arrive(stay[1], 12-inUse)
				s.until(time.Second, "everybody let in", func() bool { return s.calls(from) == 12-inUse })
				s.until(2*s.delay(), "all slots", func() bool { owned, _ := s.ownedNow(stay...); return owned == 12 })
				s.until(5*time.Second, "voters without it", func() bool {
					v := s.hosts[stay[0]].seen.status.Voters
					return len(v.Names) == 3 && v.Next == nil
				})
				s.finish()
			})
		}
	}
}

// Everything goes down and comes back, with and without disks and kept signing
// keys. With the keys nobody who waited is overtaken by someone who comes
// afterwards; without keys and disks all starts anew at once.
func TestScenarioColdStart(t *testing.T) {
	for _, disk := range []bool{false, true} {
		for _, keys := range []bool{false, true} {
			for _, down := range []time.Duration{100 * time.Millisecond, time.Second, 6 * time.Second} {
				t.Run(fmt.Sprintf("disk %t, keys %t, down for %v", disk, keys, down), func(t *testing.T) {
					coldStart(t, disk, keys, down)
				})
			}
		}
	}
}

func coldStart(t *testing.T, disk, keys bool, down time.Duration) {
	o := short(3)
	o.Faults.Disk, o.Faults.KeepKeys = disk, keys
	o.Rooms[0].Refresh, o.Rooms[0].TicketTTL = 3*time.Second, 10*time.Second // browsers back off by up to 2.5 s
	s := founded(t, o)
	s.arriveOver(none, 60, time.Second)
	s.run(1500 * time.Millisecond)
	waited := len(s.crowd.tickets)
	for i := range s.hosts {
		s.down(i)
	}
	s.run(down)
	for i := range s.hosts {
		s.boot(i)
	}
	from := s.now
	s.until(5*time.Second, "one wave of all", func() bool { return s.together(3) })
	s.arriveOver(none, 40, 500*time.Millisecond)
	fresh := len(s.crowd.tickets)
	if !keys && !disk {
		s.until(3*time.Second, "a call", func() bool { return s.calls(from) > 0 })
	}
	s.until(s.delay()+40*time.Second, "everybody called", func() bool { return s.queuedNow() == 0 && s.calls(from) >= 40 })
	if keys {
		first := uint64(0) // epoch that entitled somebody who came afterwards
		for i := fresh; i < len(s.crowd.tickets); i++ {
			if tk := &s.crowd.tickets[i]; tk.epoch != 0 && (first == 0 || tk.epoch < first) {
				first = tk.epoch
			}
		}
		for i := range waited {
			if tk := &s.crowd.tickets[i]; tk.calledAt > from && tk.epoch > first {
				t.Errorf("ticket %d waited since %v and was entitled at %d, after a newcomer, at %d", i, micros(tk.joined), tk.epoch, first)
			}
		}
	}
	s.finish()
}

// Visitors gather before an event and are drawn in an order that each of them can
// check: a keyed hash of their ticket, with the seed that is published when it
// begins. A node that goes down before, at or after the start changes nobody's
// lot, and whoever comes after the start is behind all who were there.
func TestScenarioPreQueueShuffleUnderACrash(t *testing.T) {
	for _, crash := range []time.Duration{-time.Second, -20 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond} {
		for _, victim := range []int{0, 2} {
			t.Run(fmt.Sprintf("n%02d goes down at %v", victim, crash), func(t *testing.T) {
				o := short(4)
				start := 5 * time.Second
				o.Rooms[0].Event = eviction.Event{Start: wallAt(start.Microseconds()), Shuffle: true, Seed: [32]byte{1, 2, 3}}
				s := founded(t, o)
				s.arriveOver(none, 80, time.Second)
				s.run(start + crash - micros(s.now))
				s.down(victim)
				s.run(start + 300*time.Millisecond - micros(s.now))
				gathered := len(s.crowd.tickets)
				s.arriveOver(1, 20, 500*time.Millisecond)
				s.agenda.push(s.now+1_000_000, evStart, int32(victim), 0)
				s.run(10 * time.Second)
				s.finish()
				checkDraw(t, s, gathered, int32(victim))
			})
		}
	}
}

// checkDraw compares the lots with what anybody can compute from the seed.
func checkDraw(t *testing.T, s *script, gathered int, victim int32) {
	e := s.o.Rooms[0].Event
	inPlace, late := 0, uint64(0)
	for i := range s.crowd.tickets {
		tk := &s.crowd.tickets[i]
		want := qpid.Weight{Stamp: tk.stamp, ID: tk.id}
		if tk.stamp < uint64(e.Start) {
			h := hmac.New(sha256.New, e.Seed[:])
			h.Write(tk.id[:])
			want.Stamp, _ = bits.Mul64(binary.BigEndian.Uint64(h.Sum(nil)), uint64(e.Start))
		}
		if tk.epoch == 0 {
			continue // it was not entitled: its person started over
		}
		if tk.key != want {
			t.Errorf("ticket %d has the lot %v, want %v", i, tk.key, want)
		}
		if i < gathered && !tk.touched && tk.home != victim {
			inPlace++
			late = max(late, tk.epoch)
		}
	}
	if inPlace < 50 {
		t.Errorf("only %d of %d stayed in place", inPlace, gathered)
	}
	for i := gathered; i < len(s.crowd.tickets); i++ {
		if tk := &s.crowd.tickets[i]; tk.epoch != 0 && tk.epoch < late {
			t.Errorf("ticket %d came after the start and was entitled at %d, before somebody who was there, at %d", i, tk.epoch, late)
		}
	}
}

// A room with a fresh draw at every wave, and nodes that go down: everybody
// gets in, and who came first has no better chance.
func TestScenarioRandomRoomUnderACrash(t *testing.T) {
	o := short(4)
	o.Rooms[0].Method, o.Rooms[0].Target = eviction.Random, 10
	o.Load.Browse = Range{300 * time.Millisecond, 300 * time.Millisecond}
	s := founded(t, o)
	s.arriveOver(none, 400, 200*time.Millisecond)
	s.run(3 * time.Second)
	s.down(0)
	s.run(3 * time.Second)
	s.boot(0)
	s.run(3 * time.Second)
	s.reboot(2)
	s.finish()
	var of []fairness.Admission
	for _, a := range s.admissions(0) {
		if !a.Open {
			of = append(of, a)
		}
	}
	if r := fairness.Measure(of, 0); r.N < 300 || r.KendallTau < 0.4 || r.KendallTau > 0.6 {
		t.Errorf("tau = %.3f over %d visitors; a lottery's is 0.5", r.KendallTau, r.N)
	}
}

// A room by QPID in which the lightest ticket changes, and deleteMins come from
// everywhere, all through every wave: at most one root per epoch at any time,
// one root that holds the lightest when nothing is in flight, every deleteMin
// answered, and everybody let in.
func TestScenarioDeleteMinsDuringWaves(t *testing.T) {
	for _, fanout := range []int{1, 2, 8} { // a path, a tree, a star
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("fanout %d, seed %d", fanout, seed+1), func(t *testing.T) {
				o := short(5)
				o.Seed, o.Cluster.Fanout = seed+1, fanout
				o.Cluster.Deadline, o.Cluster.ExcludeAfter = 400*time.Millisecond, time.Second
				o.Net.Latency = Range{5 * time.Millisecond, 15 * time.Millisecond}
				o.Rooms[0].Algorithm, o.Rooms[0].QueueAll, o.Rooms[0].Target = eviction.ByQPID, true, 60
				o.Load.Takes, o.Load.Browse = 1500, Range{0, 100 * time.Millisecond}
				s := founded(t, o)
				s.arriveOver(none, 300, 8*time.Second)
				s.agenda.push(s.now, evTake, 0, 0)
				end := s.now + 10_000_000
				for s.now < end {
					s.run(5 * time.Millisecond)
					s.checkRoots(0)
					s.check()
				}
				s.finish()
			})
		}
	}
}
