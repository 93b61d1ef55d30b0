package simtest

import (
	"slices"
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
// the others as well. These are a quorum, and go on, with everybody whom they reach, the coordinator too if
// the first of them reaches it; it has none. When the links are whole it leads again, with nobody in between.
//
// Seen by the oracles of what is due while faults last.
func TestScenarioACoordinatorThatReachesFewHoldsUpNobody(t *testing.T) {
	t.Parallel()
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
		{"two of the other four", 7, hosts(3, 4), nil, []int{5, 6}, hosts(0, 1, 2, 3, 4), 1},
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

// Links are cut so that one node reaches enough of the others, and whoever is senior to it and leads it does not: it finds that out,
// takes the lead, and gives it back when the links are whole. So it is after a crash of everything.
//
// Seen by the script alone: those who are a quorum do not all reach one another.
func TestScenarioOneThatReachesAllLeadsWhereNobodyElseDoes(t *testing.T) {
	for _, c := range []struct {
		name    string
		nodes   int
		links   [][2]int32 // that are whole
		primary []int32    // who come to be in primary waves
		leads   int        // who leads them
	}{
		{"the third of five", 5, star(5, 2), hosts(0, 1, 2, 3, 4), 2},
		{"the second of five", 5, star(5, 1), hosts(0, 1, 2, 3, 4), 1},
		{"the most junior of five", 5, star(5, 4), hosts(0, 1, 2, 3, 4), 4},
		{"the sixth of seven", 7, star(7, 5), hosts(0, 1, 2, 3, 4, 5, 6), 5},
		{"the most senior, who leads anyway", 5, star(5, 0), hosts(0, 1, 2, 3, 4), 0},
		{"two of seven who reach the same, of whom one has to do without the other", 7, [][2]int32{{0, 3}, {0, 4}, {3, 5}, {3, 6}, {4, 5}, {4, 6}}, hosts(0, 3, 5, 6), 3},
		{"one with two others, whom seniors lead", 7, [][2]int32{{0, 3}, {3, 4}, {3, 5}, {1, 4}, {2, 5}}, hosts(0, 3, 4, 5), 3},
		{"the most junior of three, led by a quorum", 3, star(3, 2), hosts(0, 2), 0},
	} {
		for _, fresh := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: ", from a crash of everything on"}[fresh], func(t *testing.T) {
				o := onDisks(c.nodes)
				o.Rooms[0].Session, o.Load.Browse = time.Minute, Range{200 * time.Millisecond, 200 * time.Millisecond}
				s := founded(t, o)
				if fresh {
					s.allDown()
					s.only(c.links)
					s.launch()
				} else {
					s.only(c.links)
				}
				s.run(8 * time.Second)
				for second := range 20 {
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
					if second > 5 && len(c.primary) == c.nodes && s.calls(from-4_000_000, c.primary...) == 0 {
						t.Fatalf("nobody was called for 5 s after %d s: %s%s", second, s.statuses(), s.ledgers(0))
					}
				}
				if got := s.hosts[c.primary[0]].seen.status.List[0]; got != s.lives[s.hosts[c.leads].life].member {
					t.Errorf("%v leads meanwhile, want n%02d", got, c.leads)
				}
				s.mend()
				s.until(3*time.Second, "one wave of all", func() bool { return s.together(c.nodes) && s.hosts[0].seen.status.Leading })
				for end := s.now + 3_000_000; s.now < end; s.run(100 * time.Millisecond) {
					if !s.together(c.nodes) {
						t.Fatalf("they come apart again: %s", s.statuses())
					}
				}
			})
		}
	}
}

// A side that is no quorum looks for none: its waves go on, and who follows sends no probe.
func TestScenarioASideWithoutAQuorumLooksForNone(t *testing.T) {
	s := founded(t, short(5))
	s.split(hosts(0, 1), hosts(2, 3, 4))
	s.run(3 * time.Second)
	s.tap = func(f *flight) verdict {
		if f.kind == mProbe && f.from == 1 {
			t.Errorf("n01 probes n%02d", f.to)
		}
		return pass
	}
	for range 200 {
		s.run(100 * time.Millisecond)
		if l := s.hosts[1].seen.status.List; len(l) != 2 {
			t.Fatalf("n01 is in a wave of %v: %s", l, s.statuses())
		}
	}
	s.finish()
}

// Nobody of seven in a ring reaches a quorum, and gossip tells each of all. Who follows looks for one now and then, and is in every wave meanwhile.
func TestScenarioWhoLooksForAQuorumInVainStaysWhereItIs(t *testing.T) {
	s := founded(t, short(7))
	s.only([][2]int32{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 0}})
	s.run(3 * time.Second)
	probes := 0
	s.tap = func(f *flight) verdict {
		if f.kind == mProbe && f.from == 1 {
			probes++
		}
		return pass
	}
	before, at := s.hosts[0].seen.status.Installed.Num, s.now
	for range 400 {
		s.run(100 * time.Millisecond)
		if l := s.hosts[1].seen.status.List; len(l) != 3 || l[0] != s.lives[s.hosts[0].life].member {
			t.Fatalf("n01 is in a wave of %v: %s", l, s.statuses())
		}
	}
	waves, took := s.hosts[0].seen.status.Installed.Num-before, micros(s.now-at)
	if c := s.o.Cluster; waves < uint64(took/c.Period)-2 || probes == 0 || probes > 5*2*3 { // five times, of two neighbours, thrice each at most
		t.Errorf("%d waves and %d probes of n01 in %v", waves, probes, took)
	}
	s.finish()
}

// star are the links of one of n nodes with each of the others.
func star(n, centre int32) (links [][2]int32) {
	for i := range n {
		if i != centre {
			links = append(links, [2]int32{centre, i})
		}
	}
	return links
}

// only cuts all links but these.
func (s *script) only(links [][2]int32) {
	for i := range int32(len(s.hosts)) {
		for j := range i {
			if !slices.Contains(links, [2]int32{i, j}) && !slices.Contains(links, [2]int32{j, i}) {
				s.split(hosts(i), hosts(j))
			}
		}
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
