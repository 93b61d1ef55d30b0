package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// The coordinator is cut off, and stays so. The others go on without it, and do not wait
// until it is back.
//
// Seen by the oracles of what is due while faults last.
func TestScenarioOthersGoOnWhileTheCoordinatorIsCutOff(t *testing.T) {
	s := founded(t, short(3))
	s.split(hosts(0), hosts(1, 2))
	s.run(10 * time.Second)
	if s.reached.n[reachStormWaves] == 0 {
		t.Error("nobody has looked")
	}
}

// So do calls: the people of a node that is cut off are waited for, for as long as it takes them
// to come to another one.
//
// Seen by the oracles of what is due while faults last.
func TestScenarioCallsGoOnWhileANodeIsCutOff(t *testing.T) {
	o := short(3)
	o.Rooms[0].Target = 2
	s := founded(t, o)
	for i := range s.hosts {
		s.arrive(i, 12)
	}
	s.run(time.Second)
	s.split(hosts(0), hosts(1, 2))
	s.run(20 * time.Second)
	if s.reached.n[reachStormCalls] == 0 {
		t.Error("nobody has looked")
	}
}

// A node has been cut off for so long that it goes on alone: with the slots that it has, and
// those that the others had, once. On its own line it has the limit, and not more.
//
// Seen by S3, which judges each line of a room.
func TestScenarioSurvivorsMakeTheLimitOnce(t *testing.T) {
	o := short(3)
	o.Rooms[0].Survivor = time.Second // D, that is
	s := founded(t, o)
	s.strict = true
	s.split(hosts(0), hosts(1, 2))
	s.run(15 * time.Second)
	if s.reached.n[reachSideSupply] == 0 {
		t.Error("nobody has looked")
	}
}

// Links to the coordinator are cut, not all of them: whoever it still reaches follows it, and reaches
// the others as well. These are a quorum, and go on, with everybody whom they reach; the
// coordinator has none. When the links are whole it leads again, with nobody in between.
//
// Seen by the oracles of what is due while faults last.
func TestScenarioACoordinatorThatReachesFewHoldsUpNobody(t *testing.T) {
	for _, c := range []struct {
		name    string
		nodes   int
		cut     []int32 // from n00
		cut1    []int32 // from n01
		down    []int   // before that
		primary []int32 // who are in primary waves meanwhile
		leads   int     // who leads them
	}{
		{"the next one alone", 5, hosts(2, 3, 4), nil, nil, hosts(1, 2, 3, 4), 2},
		{"two of the other four", 7, hosts(3, 4), nil, []int{5, 6}, hosts(1, 2, 3, 4), 3},
		{"the most junior alone", 5, hosts(1, 2, 3), nil, nil, hosts(1, 2, 3, 4), 1},
		{"one without whom there is no quorum", 5, hosts(2, 3), nil, []int{4}, hosts(1, 2, 3), 2},
		{"one that reaches one of the three others", 5, hosts(2, 3, 4), hosts(3, 4), nil, hosts(1, 2, 3, 4), 2},
		{"two, who are a quorum with it", 5, hosts(3, 4), nil, nil, hosts(0, 1, 2), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := short(c.nodes)
			o.Rooms[0].Session, o.Load.Browse = time.Minute, Range{200 * time.Millisecond, 200 * time.Millisecond} // D is long: no voter is given up
			s := founded(t, o)
			for _, i := range c.down {
				s.down(i)
			}
			s.run(3 * time.Second)
			s.split(hosts(0), c.cut)
			s.split(hosts(1), c.cut1)
			s.run(5 * time.Second)
			for second := range 40 {
				from := s.now
				for _, i := range c.primary {
					s.arrive(int(i), 1)
				}
				s.run(time.Second)
				for _, i := range c.primary {
					if st := &s.hosts[i].seen.status; st.Grade < eviction.Primary || !s.leased(&s.hosts[i]) {
						t.Fatalf("%s is in no primary waves after %d s: %s", s.hosts[i].name, second, s.statuses())
					}
				}
				if second > 5 && s.calls(from-4_000_000, c.primary...) == 0 {
					t.Fatalf("nobody was called for 5 s after %d s: %s%s", second, s.statuses(), s.ledgers(0))
				}
			}
			if got := s.hosts[c.primary[0]].seen.status.List[0]; got != s.lives[s.hosts[c.leads].life].member {
				t.Errorf("%v leads meanwhile, want n%02d", got, c.leads)
			}
			s.mend()
			s.until(3*time.Second, "one wave of all", func() bool { return s.together(c.nodes-len(c.down)) && s.hosts[0].seen.status.Leading })
			for end := s.now + 5_000_000; s.now < end; s.run(100 * time.Millisecond) {
				if !s.together(c.nodes - len(c.down)) {
					t.Fatalf("they come apart again: %s", s.statuses())
				}
			}
			s.finish()
		})
	}
}

// Three of seven are left, and the first and the last of them do not reach each other. Nobody
// has a quorum, so the one between stays with the senior one. When there are enough again, all are
// together.
func TestScenarioOneBetweenTwoWithoutAQuorumFollowsTheSenior(t *testing.T) {
	s := founded(t, short(7))
	for i := 3; i < 7; i++ {
		s.down(i)
	}
	s.split(hosts(0), hosts(2))
	s.run(5 * time.Second)
	for range 100 {
		s.run(100 * time.Millisecond)
		if l := s.hosts[1].seen.status.List; len(l) != 2 || l[0] != s.lives[s.hosts[0].life].member {
			t.Fatalf("n01 is in a wave of %v: %s", l, s.statuses())
		}
	}
	for i := 3; i < 7; i++ {
		s.boot(i)
	}
	s.run(time.Second)
	s.mend()
	s.run(2 * time.Second)
	s.finish()
}
