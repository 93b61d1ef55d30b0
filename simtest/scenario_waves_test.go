package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// The coordinator goes down before or after each single message of a wave that
// calls visitors and moves slots, and comes back or does not. Nobody is let in
// twice, nobody waits for ever, and no slot is made or lost.
func TestScenarioCoordinatorChangesAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		moments []moment
		kinds   []msgKind
	}{
		{[]moment{beforeSave, beforeSend, afterSend}, []msgKind{mProbe, mGather, mCommit, mSlots, mSlotsAck}},
		{[]moment{beforeStep, afterStep}, []msgKind{mProbeAck, mReply, mUrgent, mSlots, mSlotsAck}},
	} {
		for _, kind := range at.kinds {
			for _, when := range at.moments {
				for count := 1; count <= 3; count++ {
					for _, back := range []bool{true, false} {
						t.Run(fmt.Sprintf("%v %d moment %d back %t", kind, count, when, back), func(t *testing.T) {
							crashAt(t, kind, when, count, back)
						})
					}
				}
			}
		}
	}
}

func crashAt(t *testing.T, kind msgKind, when moment, count int, back bool) {
	s := founded(t, short(4))
	s.nemesis.traps = append(s.nemesis.traps, trap{fault: CrashInWave, kind: kind, when: when, host: 0, count: count, last: 700_000})
	s.hosts[0].gone = !back
	for _, h := range []int{1, 0, 2, 0, 3, 0, 1, 0} { // slots go back and forth
		if !s.nemesis.traps[0].closed {
			s.arrive(h, 10)
			s.run(500 * time.Millisecond)
		}
	}
	if !s.nemesis.traps[0].closed {
		t.Fatal("the moment did not come")
	}
	s.run(6 * time.Second)
	s.finish()
}

// A commit reaches one node, and then that node and the coordinator are gone.
// Whatever the commit decided, those who are left decide anew and safely.
func TestScenarioCommitReachesOneNodeThenItDies(t *testing.T) {
	t.Parallel()
	for _, disk := range []bool{false, true} {
		for skip := range 12 { // waves after the visitors came: cut, transfers, voids, settlement
			for _, back := range []bool{true, false} {
				if skip >= 6 && !back {
					continue // three of five for good: nothing goes on
				}
				t.Run(fmt.Sprintf("disk %t wave %d back %t", disk, skip, back), func(t *testing.T) {
					o := short(5)
					o.Faults.Disk = disk
					s := founded(t, o)
					s.arriveOver(none, 40, 500*time.Millisecond)
					if skip >= 6 { // a lost node's slots are voided and made again
						s.down(4)
						s.run(time.Duration(skip-6) * s.delay() / 4)
					}
					s.run(time.Duration(skip%6) * s.o.Cluster.Period)
					s.lonelyCommit(back)
					s.run(8 * time.Second)
					s.finish()
				})
			}
		}
	}
}

// lonelyCommit lets the next commit of n00 reach one node only, and takes both
// down.
func (s *script) lonelyCommit(back bool) {
	s.t.Helper()
	got := int32(none)
	s.tap = func(f *flight) verdict {
		switch {
		case f.kind != mCommit || f.from != 0:
			return pass
		case got != none:
			return lose
		}
		got = f.to
		return pass
	}
	s.until(3*time.Second, "a commit", func() bool { return got != none })
	s.down(0)
	s.run(50 * time.Millisecond) // the other copies are lost
	s.down(int(got))
	s.tap = nil
	if !back {
		s.hosts[0].gone, s.hosts[got].gone = true, true
		return
	}
	s.agenda.push(s.now+1_500_000, evStart, 0, 0)
	s.agenda.push(s.now+2_000_000, evStart, got, 0)
}

// A founding decides who the voters are. If its commit reaches only some of
// them, the cluster must still come to be.
func TestScenarioFoundingReachesOneNode(t *testing.T) {
	for reach := range 4 {
		t.Run(fmt.Sprintf("%d of 4", reach), func(t *testing.T) {
			s := direct(t, short(5))
			n, epoch := 0, uint64(0)
			s.tap = func(f *flight) verdict {
				c, ok := f.m.Body.(*eviction.Commit)
				if !ok || epoch != 0 && c.Epoch.Num != epoch {
					return pass
				}
				epoch = c.Epoch.Num
				n++
				if n > reach {
					return lose
				}
				return pass
			}
			s.until(5*time.Second, "a founding", func() bool { return n == 4 })
			s.arrive(none, 10)
			s.run(5 * time.Second)
			s.finish()
		})
	}
}

// The node checks its lease, lets a visitor in, and is paused before the
// visitor hears of it: for less than the lease, for longer, until its slots
// have been made again. The pass lasts from the check on, not from the answer.
func TestScenarioLeaseCheckThenPause(t *testing.T) {
	for asleep := 500 * time.Millisecond; asleep < 8*time.Second; asleep += 500 * time.Millisecond {
		for _, o := range []op{opJoin, opLeave, opRefresh} {
			t.Run(fmt.Sprintf("%v, %v", o, asleep), func(t *testing.T) {
				opt := short(3)
				opt.Rooms[0].QueueAll = o == opLeave
				s := founded(t, opt)
				const x = 2
				b := s.browser()
				switch o {
				case opLeave:
					b.must(x, opJoin)
					s.until(time.Second, "a call", func() bool { return s.hosts[x].seen.rooms[0].Called == 1 })
					b.must(x, opCheckIn)
				case opRefresh:
					b = s.visit(x)
					s.run(500 * time.Millisecond)
				default:
				}
				a := b.must(x, o) // the check
				if a.State != node.Admitted {
					t.Fatalf("not let in: %+v", a)
				}
				checked := s.now
				s.stall(x, asleep)
				s.arriveOver(0, 40, time.Second)
				s.run(asleep)
				_, err := b.ask(1, opVisit) // the answer: the pass is shown to another node
				if expired := s.now >= checked+s.o.Rooms[0].Session.Microseconds(); expired != (err != nil) {
					t.Errorf("%v after the check the pass gives %v", micros(s.now-checked), err)
				}
				s.run(50 * time.Millisecond)
				_, _ = b.ask(x, opRefresh) // at its home, which knows nothing yet
				s.run(8 * time.Second)
				s.finish()
			})
		}
	}
}

// The same with the check after the pause: requests that waited for the node
// are answered before or after its timers run, and never on the lease of
// before.
func TestScenarioPauseThenLeaseCheck(t *testing.T) {
	for seed := range uint64(6) {
		for asleep := 2 * time.Second; asleep < 8*time.Second; asleep += 750 * time.Millisecond {
			t.Run(fmt.Sprintf("seed %d, %v", seed, asleep), func(t *testing.T) {
				o := short(3)
				o.Seed, o.Load.Timeout = seed+1, 20*time.Second
				s := founded(t, o)
				const x = 2
				s.stall(x, asleep)
				s.arrive(x, 6) // their requests wait
				s.run(asleep - 10*time.Millisecond)
				s.arrive(0, 20)
				s.run(8 * time.Second)
				s.finish()
			})
		}
	}
}
