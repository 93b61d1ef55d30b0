package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// The faults of the implementation that came with the thesis, and the tests
// that keep them out.
//
//	B1   one node alone never calls                    TestThesisOneNodeAloneCalls
//	B2   more are let in than the limit, no failure    TestThesisNoOverAdmissionHoweverLargeTheLimit
//	B3   a head that leaves freezes everything         qpid: TestRemovingTheFrontForAnyReasonMovesTheRoot,
//	                                                   TestRemovingTheFrontCorrectsTheParentsEntry
//	                                                   simtest: TestScenarioTheHeadAbandons
//	B4   two roots after a change of the tree          qpid: TestOneRootAfterTheTreeChanges
//	B5   passes of a dead node are forgotten           TestThesisPassesOfALostNodeCount
//	B6   an older aggregation is not ignored           TestThesisAnOlderWaveIsIgnored
//	B7   failure detection at random intervals         membership: TestThesisACrashIsNoticedInBoundedTime
//	B8   a copied ticket queues many times             TestThesisACopiedTicketQueuesOnce
//	B9   a lost answer costs the place                 TestThesisALostAnswerCostsNothing
//	B10  a roaming pass counts many times              TestThesisARoamingPassCountsOnce
//	B11  the queue changes before the insert can fail  qpid: TestItemsInsertedBeforeTheFirstInstallCount
//	B12  the root follows outdated messages            qpid: TestStaleMessageDoesNotWinTheRoot,
//	                                                   TestFindRootBeforeTheInstallIsKept
//	B13  a node removed by mistake goes on             TestThesisARemovedNodeStops
//	                                                   qpid: TestStrangersCannotChangeTheTable
//	                                                   membership: TestThesisARemovedNodeIsTakenBack
//	B14  counters start again after a restart          qpid: TestCountersStartAnewWithTheEpoch
//	                                                   membership: TestThesisAQuickRestartIsAnotherMember
//	B15  an old tree brings removed members back       qpid: TestOldInstallsAndMessagesChangeNothing
//	B16  a local rank is shown as the position         TestThesisPositionsAreOfTheWholeRoom
//	                                                   simtest: TestScenarioPositionsAreExactAheadAndCloseBehind
//	B17  wall clocks are taken for equal and monotone  TestThesisAWallClockThatStepsChangesNoOrder
//	                                                   simtest: TestScenarioPassExpiryAtClocksApart
//	B18  one lost message, one partition               TestThesisALostMessageStopsNothing
//	                                                   simtest: TestScenarioSplitOf50s
//	                                                   membership: TestThesisASplitOf50sHeals
//	B19  who was called at a lost node is forgotten    TestThesisTheCalledOfALostNodeAreCalledAgain

// B1: the aggregation of a node alone waited for answers that nobody could
// give. One node calls, and so does the one that is left of two: the lower name
// at once, the other one after survivor_after.
func TestThesisOneNodeAloneCalls(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		s := founded(t, short(1))
		s.arrive(0, 30)
		s.until(5*time.Second, "30 calls", func() bool { return s.calls(0) == 30 })
		s.finish()
	})
	for _, lost := range []int{1, 0} {
		t.Run(fmt.Sprintf("n%02d of two is lost", lost), func(t *testing.T) {
			o := short(2)
			o.Rooms[0].Survivor = 6 * time.Second
			s := founded(t, o)
			s.down(lost)
			from := s.now
			s.arrive(1-lost, 30)
			within := 4 * time.Second // six slots are left for 30 visitors of 1 s each
			if lost == 1 {
				s.until(within, "6 more calls than slots", func() bool { return s.calls(from) > 6 })
			}
			s.until(20*time.Second, "30 calls", func() bool { return s.calls(from) == 30 })
			if owned, _ := s.ownedNow(); owned != 12 {
				t.Errorf("%d slots, want 12", owned)
			}
			s.finish()
		})
	}
}

// B2: deleteMins were still under way when the next eviction counted, so that
// 237 visitors were let in for a limit of 100, and more the larger it was. S1 is
// checked at every event; besides, the limit is used.
func TestThesisNoOverAdmissionHoweverLargeTheLimit(t *testing.T) {
	for _, algorithm := range []eviction.Algorithm{eviction.ByCut, eviction.ByQPID} {
		for _, c := range []struct{ nodes, limit int }{{8, 100}, {8, 200}, {16, 300}} {
			t.Run(fmt.Sprintf("algorithm %d, %d nodes, limit %d", algorithm, c.nodes, c.limit), func(t *testing.T) {
				o := short(c.nodes)
				o.Net.Latency = Range{10 * time.Millisecond, 20 * time.Millisecond}
				o.Cluster.Period = 250 * time.Millisecond // a room by QPID is frozen during a wave
				o.Rooms[0].Target, o.Rooms[0].Algorithm, o.Rooms[0].QueueAll = c.limit, algorithm, true
				o.Rooms[0].Session = time.Minute
				o.Load.Browse = Range{20 * time.Second, time.Minute}
				s := founded(t, o)
				s.arriveOver(none, 3*c.limit, 3*time.Second)
				room := &s.checker.rooms[0]
				s.until(time.Minute, "a full room", func() bool { return room.activeMax >= c.limit*9/10 })
				s.run(30 * time.Second)
				if room.activeMax > c.limit {
					t.Errorf("%d visitors at once for a limit of %d", room.activeMax, c.limit)
				}
				s.inOrder(0)
			})
		}
	}
}

// B5: the passes of a dead node stopped counting at once. They count until they
// have run out, and are good at every other node meanwhile. Their sessions go on
// at other nodes as soon as somebody leaves there, before anybody who waits.
func TestThesisPassesOfALostNodeCount(t *testing.T) {
	o := short(3)
	o.Rooms[0].Session = 6 * time.Second
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	const x = 2
	var lost, others []*browser
	for range 4 {
		lost, others = append(lost, s.visit(x)), append(others, s.visit(0))
	}
	s.arrive(0, 20)
	s.run(time.Second)
	s.down(x)
	end := s.now + (2 * time.Second).Microseconds()
	for s.now < end {
		s.run(100 * time.Millisecond)
		for i, b := range lost {
			b.patient(i%2, opVisit)
		}
		if owned, _ := s.ownedNow(); owned > 8 {
			t.Fatalf("%d slots while 4 passes of the lost node are good: %s", owned, s.ledgers(0))
		}
	}
	s.run(time.Second)
	for i, b := range lost {
		b.must(i%2, opRefresh) // the room is full: they wait for a slot
	}
	for _, b := range others {
		b.must(0, opEnd)
	}
	s.run(time.Second)
	for i, b := range lost {
		before := b.pass.Expires
		b.must(i%2, opRefresh)
		if b.pass.Expires <= before {
			t.Errorf("pass %d of the lost node is not extended", i)
		}
	}
	s.run(8 * time.Second) // the passes of before would be over, and D is
	if owned, _ := s.ownedNow(); owned != 12 {
		t.Errorf("%d slots, want 12: %s", owned, s.ledgers(0))
	}
	s.finish()
}

// B6: an aggregation older than the present one was carried on with, and set
// the clock of aggregations back. Old gathers, replies and commits change
// nothing here, however late they come; the sender of an old gather is told.
func TestThesisAnOlderWaveIsIgnored(t *testing.T) {
	for _, kind := range []msgKind{mGather, mReply, mCommit} {
		t.Run(kind.String(), func(t *testing.T) {
			s := founded(t, short(3))
			to := int32(1)
			from := int32(0)
			if kind == mReply {
				from, to = 1, 0
			}
			late := ofKind(kind, from, to)
			nacks := 0
			s.tap = func(f *flight) verdict {
				if late(f) && len(s.kept) == 0 {
					if g, ok := f.m.Body.(*eviction.Gather); ok { // as to one that has asked for the list
						full := *g
						full.List = s.hosts[from].seen.status.List
						f.m.Body = &full
					}
					return keep
				}
				if f.kind == mNack {
					nacks++
				}
				return pass
			}
			s.until(time.Second, "a message to keep", func() bool { return len(s.kept) == 1 })
			s.tap = func(f *flight) verdict {
				if f.kind == mNack {
					nacks++
				}
				return pass
			}
			s.arriveOver(none, 20, 300*time.Millisecond)
			s.run(time.Second)
			before, room := s.hosts[to].n.Status(), s.hosts[to].seen.rooms[0]
			nacks = 0
			s.release()
			after := s.hosts[to].n.Status()
			if after.Epoch != before.Epoch || after.Installed != before.Installed || after.Frozen != before.Frozen ||
				after.LeaseUntil != before.LeaseUntil || s.hosts[to].seen.rooms[0].Cut != room.Cut {
				t.Errorf("an old %v changed %+v to %+v", kind, before, after)
			}
			s.run(50 * time.Millisecond)
			if told := nacks > 0; told != (kind == mGather) {
				t.Errorf("%d nacks after an old %v", nacks, kind)
			}
			s.finish()
		})
	}
}

// B13: a node that the others had removed by mistake went on serving and never
// learned of it. Its lease stops it; the next wave that it is in tells it.
func TestThesisARemovedNodeStops(t *testing.T) {
	for _, x := range []int32{2, 0} {
		t.Run(fmt.Sprintf("n%02d", x), func(t *testing.T) {
			s := founded(t, short(3))
			account := s.hosts[x].seen.rooms[0].Account
			doubt := &trouble{kind: Suspicion, host: x}
			s.suspect(doubt)
			s.tap = func(f *flight) verdict { // they do not talk to it either
				if f.from == x || f.to == x {
					return lose
				}
				return pass
			}
			s.topology()
			s.run(s.o.Cluster.Lease)
			from := s.now
			s.arrive(int(x), 20)
			s.arrive(1, 20)
			s.run(4 * time.Second)
			if n := s.calls(from, x); n != 0 {
				t.Errorf("the removed node called %d visitors", n)
			}
			if n := s.calls(from, 1); n < 20 {
				t.Errorf("the others called %d of 20 visitors", n)
			}
			s.trust(doubt)
			s.tap = nil
			s.topology()
			s.until(5*time.Second, "one wave of all", func() bool { return s.together(3) })
			s.until(3*time.Second, "a new account", func() bool { return s.hosts[x].seen.rooms[0].Account.Born > account.Born })
			s.finish()
		})
	}
}

// B17: stamps, epochs and evictions took wall clocks for equal and monotone. A
// clock that steps, by minutes and either way, changes neither the order at its
// own node nor anybody else's turn, and no pass lasts longer for it.
func TestThesisAWallClockThatStepsChangesNoOrder(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -3 * time.Second, 3 * time.Second, time.Hour} {
		for _, x := range []int{0, 2} {
			t.Run(fmt.Sprintf("n%02d by %v", x, step), func(t *testing.T) {
				s := founded(t, short(3))
				s.arriveOver(none, 120, 6*time.Second)
				s.run(2 * time.Second)
				s.hosts[x].clock.set(s.now, step.Microseconds())
				s.hosts[x].mishaps++
				s.run(2 * time.Second)
				s.hosts[x].clock.set(s.now, 0)
				s.hosts[x].mishaps++
				s.run(2 * time.Second)
				stamps := make([]uint64, len(s.hosts))
				for i := range s.crowd.tickets {
					tk := &s.crowd.tickets[i]
					if tk.home == none || tk.touched {
						continue
					}
					if tk.stamp <= stamps[tk.home] {
						t.Errorf("ticket %d is stamped %v after %v", i, tk.stamp, stamps[tk.home])
					}
					if late := int64(tk.stamp) - wallAt(tk.joined); max(late, -late) > 2_200_000 {
						t.Errorf("ticket %d is stamped %v off", i, micros(late))
					}
					stamps[tk.home] = tk.stamp
				}
				s.finish()
			})
		}
	}
}

// Slots that are lost on their way arrive all the same: nothing else is sent
// between the two nodes that would bring them along, since nobody leaves meanwhile.
func TestThesisALostTransferIsRepeated(t *testing.T) {
	for nth := 1; nth <= 3; nth++ {
		o := short(4)
		o.Rooms[0].QueueAll = true
		o.Load.Browse = Range{6 * time.Second, 6 * time.Second}
		s := founded(t, o)
		n := 0
		s.tap = func(f *flight) verdict {
			if f.kind == mSlots {
				n++
				if n == nth {
					return lose
				}
			}
			return pass
		}
		s.arrive(3, s.o.Rooms[0].Target)
		s.until(3*time.Second, "as many calls as there are slots", func() bool { return s.calls(0) == s.o.Rooms[0].Target })
		if n <= nth {
			t.Errorf("%d transfers, and the %d. was lost", n, nth)
		}
		s.finish()
	}
}

// B18: one lost findRoot left no root for ever, and any other lost message had
// its price. Here each kind of message is lost once, in turn, in a room by cut
// and in one by QPID: everybody gets in all the same, and no slot is lost.
func TestThesisALostMessageStopsNothing(t *testing.T) {
	t.Parallel()
	last := 3
	if testing.Short() {
		last = 1
	}
	for _, algorithm := range []eviction.Algorithm{eviction.ByCut, eviction.ByQPID} {
		for kind := range mSyncRequest { // those of a stable view
			for nth := 1; nth <= last; nth++ {
				t.Run(fmt.Sprintf("algorithm %d, %v %d", algorithm, kind, nth), func(t *testing.T) {
					o := short(4)
					o.Rooms[0].Algorithm, o.Rooms[0].QueueAll = algorithm, true
					o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
					s := founded(t, o)
					n := 0
					s.tap = func(f *flight) verdict {
						if f.kind == kind {
							n++
							if n == nth {
								return lose
							}
						}
						return pass
					}
					s.arriveOver(none, 36, 300*time.Millisecond)
					s.until(8*time.Second, "36 calls", func() bool { return s.calls(0) == 36 })
					s.inOrder(0)
					s.finish()
				})
			}
		}
	}
}
