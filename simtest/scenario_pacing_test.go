package simtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// New users per minute over a change of coordinator and a split: the rate is
// held in every window (S13), and it is not lost either.
func TestScenarioNewUsersPerMinute(t *testing.T) {
	t.Parallel()
	const rate = 1200 // per minute: 20 a second
	for _, trouble := range []string{"nobody for a while", "crash", "pause", "split", "split of the small side", "split, and both share", "split of the small side, and both share"} {
		t.Run(trouble, func(t *testing.T) {
			o := short(5)
			o.Rooms[0].NewPerMinute, o.Rooms[0].Target = rate, 1000
			if strings.HasSuffix(trouble, "share") {
				o.Rooms[0].OnPartition = eviction.Share
			}
			o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
			s := founded(t, o)
			if trouble == "nobody for a while" { // what could have been let in meanwhile is forfeit, at every node
				s.run(20 * time.Second)
				for i := range s.hosts {
					s.arriveOver(i, 150, time.Second)
					s.run(10 * time.Second)
				}
			}
			s.arriveOver(none, 1000, time.Second)
			s.run(5 * time.Second)
			switch trouble {
			case "crash":
				s.down(0)
			case "pause":
				s.stall(0, 3*time.Second)
			case "split", "split, and both share":
				s.split(hosts(0, 1), hosts(2, 3, 4))
			case "split of the small side", "split of the small side, and both share":
				s.split(hosts(4), hosts(0, 1, 2, 3))
			}
			s.run(5 * time.Second)
			s.mend()
			s.boot(0)
			s.run(3 * time.Second)
			from := s.now
			s.run(10 * time.Second)
			if n := s.calls(from); n < 170 || n > 221 {
				t.Errorf("%d visitors were called in 10 s at 20 a second", n)
			}
			s.finish()
		})
	}
}

// Visitors walk into a quiet room, and after a while more come than it lets in: in
// no minute are there more than new_users_per_minute (S13), also where the
// coordinator is lost meanwhile.
func TestScenarioWalkInsCountTowardsTheMinute(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{6, 60} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("rate %d, lost %t", rate, lost), func(t *testing.T) {
				o := short(3)
				o.Rooms[0].NewPerMinute, o.Rooms[0].Target, o.Rooms[0].TicketTTL = rate, 1000, time.Minute
				s := founded(t, o)
				for i := range 4 {
					s.run(100*time.Second + time.Duration(i)*270*time.Millisecond)
					for h := range s.hosts {
						s.arrive(h, 1)
					}
					s.arrive(none, 2*rate)
					s.run(10 * time.Second)
					if lost {
						s.down(i % 2)
					}
					from := s.now
					s.run(150 * time.Second)
					if n := s.calls(from); n < rate {
						t.Errorf("%d visitors were called in 150 s at %d a minute", n, rate)
					}
					s.boot(i % 2)
				}
				s.finish()
			})
		}
	}
}

// A paced room that shares is split into three sides, all quiet, each of which lets in at
// once what it may: in no minute are there more than new_users_per_minute (S13), also where
// the sides meet one after another, or one of them ends and its slots are made again.
func TestScenarioThreeSidesOfAPacedRoom(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{6, 60, 1200} {
		for _, then := range []string{"all meet", "two meet first", "one is lost"} {
			t.Run(fmt.Sprintf("rate %d, %s", rate, then), func(t *testing.T) {
				o := short(5)
				o.Rooms[0].NewPerMinute, o.Rooms[0].Target, o.Rooms[0].TicketTTL = rate, 10_000, time.Minute
				o.Rooms[0].OnPartition, o.Rooms[0].Session = eviction.Share, 2*time.Second
				o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
				s := founded(t, o)
				s.split(hosts(0, 1), hosts(2, 3), hosts(4))
				s.run(100 * time.Second)
				from := s.now
				for h := range s.hosts {
					s.arrive(h, 2*rate/5)
				}
				s.run(4 * time.Second)
				if then == "one is lost" {
					s.down(4)
				}
				s.mend()
				if then == "two meet first" {
					s.split(hosts(0, 1, 2, 3), hosts(4))
					s.run(6 * time.Second)
					s.mend()
				}
				s.run(time.Second)
				s.boot(4)
				s.run(100 * time.Second)
				if n := s.calls(from); n < rate {
					t.Errorf("%d visitors were called in 100 s at %d a minute", n, rate)
				}
				s.finish()
			})
		}
	}
}

// The limit of a paced room that shares is lowered or raised on one side of a split, which
// is then the larger or smaller part of it: both together let in no more than
// new_users_per_minute (S13).
func TestScenarioThePaceOfASideWhoseLimitChanges(t *testing.T) {
	t.Parallel()
	for _, target := range []int{40, 400} {
		for _, at := range []int{0, 3} {
			t.Run(fmt.Sprintf("limit %d at n%02d", target, at), func(t *testing.T) {
				o := short(5)
				o.Rooms[0].NewPerMinute, o.Rooms[0].Target, o.Rooms[0].TicketTTL = 120, 100, time.Minute
				o.Rooms[0].OnPartition = eviction.Share
				o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
				s := founded(t, o)
				s.split(hosts(0, 1, 2), hosts(3, 4))
				s.run(10 * time.Second)
				o.Rooms[0].Target = target
				s.setRoom(&s.hosts[at], 0, o.Rooms[0])
				s.run(70 * time.Second)
				for h := range s.hosts {
					s.arrive(h, 100)
				}
				s.run(70 * time.Second)
				s.mend()
				s.run(20 * time.Second)
				s.finish()
			})
		}
	}
}

// The first who comes into a paced room that was quiet for 45 s goes straight in,
// whatever node they come to and whenever.
func TestScenarioAQuietPacedRoomHasATokenReady(t *testing.T) {
	o := short(3)
	o.Rooms[0].NewPerMinute, o.Rooms[0].Target = 6, 1000
	s := founded(t, o)
	for i := range 12 {
		s.run(45*time.Second + time.Duration(i)*83*time.Millisecond)
		if a := s.browser().must(i%3, opJoin); a.State != node.Admitted {
			t.Errorf("person %d waits for a token", i)
		}
	}
	s.finish()
}

// A paced room with slots to spare goes on at its rate when the coordinator is killed, or
// another node: nobody waits until all tokens of before have lapsed, a third of the nodes does
// not leave two thirds of the rate, and the spare slots were not all at one node.
func TestScenarioAPacedRoomGoesOnAtItsRate(t *testing.T) {
	const rate = 3000 // per minute: 50 a second
	for _, host := range []int{0, 1} {
		t.Run(fmt.Sprintf("n%02d is lost", host), func(t *testing.T) {
			o := short(3)
			o.Cluster = eviction.Config{Copies: 1}
			o.Rooms[0] = eviction.Room{
				Name: "shop", NewPerMinute: rate, Target: 100, QueueAll: true,
				Session: 5 * time.Minute, Refresh: 2 * time.Second, ClaimWindow: time.Minute, TicketTTL: time.Hour,
			}
			o.Load.Browse = Range{time.Minute, time.Minute}
			o.Faults.Detect = Range{1200 * time.Millisecond, 1800 * time.Millisecond}
			s := founded(t, o)
			s.arriveOver(none, 2000, time.Second)
			s.run(time.Second)
			o.Rooms[0].Target = 1000
			s.setRoom(&s.hosts[0], 0, o.Rooms[0])
			s.run(7 * time.Second)
			lost := s.now
			s.down(host)
			s.run(4 * time.Second)
			if s.calls(lost) == 0 {
				t.Error("nobody is called for 4 s")
			}
			again := s.now
			s.run(5 * time.Second)
			if n, want := s.calls(again), 5*rate/60*9/10; n < want {
				t.Errorf("%d visitors were called in 5 s at %d a second", n, rate/60)
			}
		})
	}
}

// A node of a slow paced room is away for some seconds, again and again, or cut off. Nobody
// else has let anybody in meanwhile, so nothing is owed: the room goes on at its rate.
func TestScenarioASlowPacedRoomWhereANodeComesAndGoes(t *testing.T) {
	const rate = 12 // per minute
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprintf("cut off %t", cut), func(t *testing.T) {
			o := short(5)
			o.Rooms[0].NewPerMinute, o.Rooms[0].Target, o.Rooms[0].TicketTTL = rate, 1000, time.Hour
			s := founded(t, o)
			s.arriveOver(none, 100, time.Second)
			s.run(60 * time.Second)
			from := s.now
			for range 5 {
				if cut {
					s.split(hosts(4), hosts(0, 1, 2, 3))
					s.run(8 * time.Second)
					s.mend()
				} else {
					s.stall(4, 8*time.Second)
					s.run(8 * time.Second)
				}
				s.run(16 * time.Second)
			}
			if n, want := s.calls(from), 2*rate*8/10; n < want {
				t.Errorf("%d visitors were called in two minutes at %d a minute, want %d", n, rate, want)
			}
			s.finish()
		})
	}
}

// A room is paced by its events. Another node runs the waves when the second one begins, and
// has for half a minute: it knows that nobody was paced meanwhile, and nothing is owed.
func TestScenarioAnEventThatPacesBeginsAtOnce(t *testing.T) {
	for _, policy := range []eviction.Policy{eviction.Majority, eviction.Share} {
		t.Run(policy.String(), func(t *testing.T) {
			o := short(5)
			o.Rooms[0].Target, o.Rooms[0].TicketTTL, o.Rooms[0].QueueAll = 1000, time.Hour, true
			o.Rooms[0].OnPartition = policy
			paces := eviction.Event{Set: eviction.SetNewPerMinute, NewPerMinute: 6}
			o.Rooms[0].Events = []eviction.Event{
				from(4*time.Second, 5*time.Second, 20*time.Second, paces),
				from(90*time.Second, 95*time.Second, 200*time.Second, paces),
			}
			s := founded(t, o)
			s.run(60 * time.Second)
			s.down(0)
			s.run(30 * time.Second)
			s.arriveOver(none, 50, time.Second)
			s.run(101*time.Second - micros(s.now))
			if n := s.calls(95_000_000); n == 0 {
				t.Error("nobody is called in the first six seconds of the event")
			}
			s.finish()
		})
	}
}
