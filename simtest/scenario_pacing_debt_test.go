package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// Two nodes are cut off again and again, and go on alone for the sake of another room, in
// which survivors may. They let nobody into the paced one meanwhile, so nothing is owed.
func TestScenarioASlowPacedRoomBesideOneOfSurvivors(t *testing.T) {
	const rate = 12 // per minute
	o := short(5)
	o.Rooms[0].NewPerMinute, o.Rooms[0].Target, o.Rooms[0].TicketTTL = rate, 1000, time.Hour
	other := o.Rooms[0]
	other.Name, other.NewPerMinute, other.Survivor = "library", 0, 6*time.Second
	o.Rooms = append(o.Rooms, other)
	s := founded(t, o)
	s.setRoom(&s.hosts[0], 0, o.Rooms[0])
	s.arriveOver(none, 200, time.Second)
	s.run(70 * time.Second)
	from, alone := s.now, false
	for range 4 {
		s.split(hosts(3, 4), hosts(0, 1, 2))
		s.run(15 * time.Second)
		alone = alone || s.alone(3, 4)
		s.mend()
		s.run(15 * time.Second)
	}
	if !alone {
		t.Error("the two that are cut off never went on alone")
	}
	if n, want := s.calls(from), 2*rate*8/10; n < want {
		t.Errorf("%d visitors were called in two minutes at %d a minute, want %d", n, rate, want)
	}
	s.finish()
}

// A paced room stands still while its coordinator is away: all nodes are needed there. When
// it is back more than a minute later nothing is owed of what was let in before.
func TestScenarioAPacedRoomThatStoppedOwesNothingAMinuteLater(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"restarted", "cut off", "cut off with another"} {
		t.Run(how, func(t *testing.T) {
			o := short(5)
			o.Rooms[0].NewPerMinute, o.Rooms[0].Target, o.Rooms[0].TicketTTL = 6, 1000, time.Hour
			o.Rooms[0].OnPartition = eviction.Stop
			s := founded(t, o)
			s.arriveOver(none, 100, time.Second)
			s.run(60 * time.Second)
			switch how {
			case "restarted":
				s.down(0)
			case "cut off":
				s.split(hosts(0), hosts(1, 2, 3, 4))
			default:
				s.split(hosts(0, 1, 2), hosts(3, 4))
			}
			s.run(120 * time.Second)
			s.mend()
			s.boot(0)
			s.until(10*time.Second, "one wave of all", func() bool { return s.together(5) })
			from := s.now
			s.run(25 * time.Second)
			if n := s.calls(from); n < 2 {
				t.Errorf("%d visitors were called in 25 s at 6 a minute", n)
			}
			s.finish()
		})
	}
}

// All nodes of a paced room are restarted at once, with their disks or with signing keys alone:
// in no minute are there more than new_users_per_minute (S13).
func TestScenarioAPacedRoomThatIsRestarted(t *testing.T) {
	t.Parallel()
	for _, disk := range []bool{false, true} {
		for _, rate := range []int{6, 60} {
			for _, down := range []time.Duration{100 * time.Millisecond, 6 * time.Second} {
				t.Run(fmt.Sprintf("disk %t, rate %d, down for %v", disk, rate, down), func(t *testing.T) {
					o := short(3)
					o.Faults.Disk = disk
					o.Rooms[0].NewPerMinute, o.Rooms[0].Target = rate, 1000
					o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
					s := founded(t, o)
					s.run(62 * time.Second)
					s.arriveOver(none, 5*rate, 5*time.Second)
					s.run(10 * time.Second)
					for i := range s.hosts {
						s.down(i)
					}
					s.run(down)
					for i := range s.hosts {
						s.boot(i)
					}
					s.arriveOver(none, 10*rate, 50*time.Second)
					from := s.now
					s.run(90 * time.Second)
					if n := s.calls(from); n < rate/3 {
						t.Errorf("%d visitors were called in a minute and a half at %d a minute", n, rate)
					}
					s.finish()
				})
			}
		}
	}
}

// The coordinator of a paced room is cut off, and goes on leading by itself. The others let
// people in, and are lost. Two of them come back to it, and have forgotten, and then a third: what
// those have let in counts (S13).
func TestScenarioThePaceIsForgottenByMost(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			o := short(5)
			o.Seed = seed + 1
			o.Faults.Disk = true
			o.Rooms[0].NewPerMinute, o.Rooms[0].Target = 6, 10_000
			o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
			s := founded(t, o)
			s.run(20 * time.Second)
			s.split(hosts(0), hosts(1, 2, 3, 4))
			s.run(60 * time.Second)
			s.arriveOver(none, 50, 20*time.Second)
			s.run(20 * time.Second)
			for h := 1; h < 5; h++ {
				s.down(h)
			}
			s.run(100 * time.Millisecond)
			s.boot(3)
			s.boot(4)
			s.run(3 * time.Second)
			s.mend()
			s.run(1500 * time.Millisecond)
			s.boot(2)
			s.run(2 * time.Second)
			s.arriveOver(none, 50, 20*time.Second)
			s.run(40 * time.Second)
			s.finish()
		})
	}
}

// A cluster is founded anew with signing keys from before, by fewer nodes than there were, and the
// coordinator is lost at once, or all are restarted: nobody knows whom those before have let in
// within the minute, and who goes on knows that (S13).
func TestScenarioAPacedRoomIsFoundedAnew(t *testing.T) {
	for _, then := range []string{"the coordinator is lost", "all are restarted"} {
		t.Run(then, func(t *testing.T) {
			o := short(12)
			o.Expect = 7
			o.Faults.Disk = then == "all are restarted"
			o.Rooms[0].NewPerMinute, o.Rooms[0].Target = 12, 1000
			o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
			s := founded(t, o)
			s.run(100 * time.Second)
			for h := range s.hosts {
				s.arriveOver(h, 1, 100*time.Millisecond)
			}
			s.run(time.Second)
			if n := s.calls(0); n < 12 {
				t.Fatalf("%d of twelve were let in at once", n)
			}
			for h := range s.hosts {
				s.down(h)
				s.hosts[h].expect, s.hosts[h].disk = 3, disk{} // emptied but for the keys
			}
			s.run(100 * time.Millisecond)
			for h := range 3 {
				s.boot(h)
			}
			s.until(10*time.Second, "one wave of all", func() bool { return s.together(3) })
			s.run(time.Second)
			s.down(0)
			if then == "all are restarted" {
				for h := range 3 {
					s.down(h)
				}
				s.run(100 * time.Millisecond)
				for h := range 3 {
					s.boot(h)
				}
			}
			s.arriveOver(none, 50, 50*time.Second)
			s.run(80 * time.Second)
			s.finish()
		})
	}
}

// The nodes of a slow paced room are restarted one after another, with their disks. The
// coordinator goes on, and nothing is owed: nor of a node's own side, where each may have one,
// when its slots are made again and more than a minute is over. Until then nobody has the part
// of the rate that is that side's.
func TestScenarioASlowPacedRoomWhoseNodesAreRestarted(t *testing.T) {
	t.Parallel()
	const rate = 12 // per minute
	for policy, part := range map[eviction.Policy]float64{eviction.Majority: 0.9, eviction.Share: 0.3} {
		t.Run(policy.String(), func(t *testing.T) {
			o := short(5)
			o.Faults.Disk = true
			o.Rooms[0].NewPerMinute, o.Rooms[0].Target, o.Rooms[0].TicketTTL = rate, 1000, time.Hour
			o.Rooms[0].OnPartition, o.Rooms[0].Session = policy, 2*time.Minute
			o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
			s := founded(t, o)
			s.arriveOver(none, 200, time.Second)
			s.run(62 * time.Second)
			from := s.now
			for i := range 8 {
				h := 1 + i%4
				s.down(h)
				s.run(2 * time.Second)
				s.boot(h)
				s.run(18 * time.Second)
			}
			s.run(20 * time.Second)
			if n, want := s.calls(from), int(3*rate*part); n < want {
				t.Errorf("%d visitors were called in three minutes at %d a minute, want %d", n, rate, want)
			}
			s.finish()
		})
	}
}

// The waves of a slow paced room change hands again and again: the coordinator stands still or is
// cut off and comes back, or all nodes are restarted one after another. Who goes on has the bucket
// that was left, and the rate is all but kept (S13).
func TestScenarioASlowPacedRoomWhoseCoordinatorComesAndGoes(t *testing.T) {
	t.Parallel()
	for what, happens := range map[string]func(s *script, i int){
		"it stands still": func(s *script, _ int) {
			s.stall(0, 8*time.Second)
			s.run(20 * time.Second)
		},
		"it is cut off": func(s *script, _ int) {
			s.split(hosts(0), hosts(1, 2, 3, 4))
			s.run(8 * time.Second)
			s.mend()
			s.run(12 * time.Second)
		},
		"all are restarted": func(s *script, i int) {
			s.down(i % 5)
			s.run(2 * time.Second)
			s.boot(i % 5)
			s.run(18 * time.Second)
		},
	} {
		for _, rate := range []int{6, 12} {
			t.Run(fmt.Sprint(what, ", ", rate, " a minute"), func(t *testing.T) {
				o := short(5)
				o.Faults.Disk = true
				o.Rooms[0].NewPerMinute, o.Rooms[0].Target, o.Rooms[0].TicketTTL = rate, 1000, time.Hour
				s := founded(t, o)
				s.arriveOver(none, 20*rate, time.Second)
				s.run(62 * time.Second)
				from := s.now
				for i := range 9 {
					happens(s, i)
				}
				if n, want := s.calls(from), 3*rate*85/100; n < want {
					t.Errorf("%d visitors were called in three minutes at %d a minute, want %d", n, rate, want)
				}
				s.finish()
			})
		}
	}
}
