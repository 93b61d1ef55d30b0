package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// What a node that leaves gives away is lost on the way, or its acknowledgement is, or
// the heir dies, or the node itself is killed in the middle, or there is a split: no
// slot is there twice, no visit is lost sight of while its pass is good, nobody is
// called beyond the limit, and after D all slots are back.
func TestScenarioWhatALeavingNodeGivesMayBeLost(t *testing.T) {
	gift := func(f *flight) bool {
		switch b := f.m.Body.(type) {
		case *eviction.Slots:
			return len(b.Visits) > 0
		case *eviction.Places:
			return true
		}
		return false
	}
	loses := func(what func(*flight) bool) func(*script) {
		return func(s *script) {
			s.tap = func(f *flight) verdict {
				if what(f) {
					return lose
				}
				return pass
			}
		}
	}
	n := 0
	troubles := []struct {
		name string
		make func(*script)
	}{
		{"gifts", loses(gift)},
		{"every other gift", loses(func(f *flight) bool { n++; return n%2 == 0 && gift(f) })},
		{"acknowledgements", loses(func(f *flight) bool { return f.kind == mSlotsAck || f.kind == mSyncReply })},
		{"goodbyes", loses(ofKind(mGoodbye, none, none))},
		{"commits", loses(ofKind(mCommit, none, none))},
		{"an heir", func(s *script) { s.down(2) }},
		{"the node", func(s *script) { s.run(2 * time.Millisecond); s.down(1) }},
		{"a majority", func(s *script) { s.run(time.Millisecond); s.split(hosts(1, 2), hosts(0, 3, 4)) }},
		{"gifts kept for later", func(s *script) {
			s.tap = func(f *flight) verdict {
				if gift(f) {
					return keep
				}
				return pass
			}
			s.run(time.Second)
			s.release()
		}},
	}
	for _, trouble := range troubles {
		t.Run(trouble.name, func(t *testing.T) {
			s := founded(t, crowdOf(5, 1))
			s.strict = true
			s.arriveOver(none, 300, time.Second)
			s.run(1500 * time.Millisecond)
			s.goodbye(&s.hosts[1])
			trouble.make(s)
			s.run(2700 * time.Millisecond)
			s.tap = nil
			s.mend()
			s.run(s.delay() + 5*time.Second)
			if owned, _ := s.ownedNow(); owned != 100 {
				t.Errorf("%d slots, want 100: %s", owned, s.ledgers(0))
			}
			if s.crowd.served < 290 { // who asked a node that died may have given up
				t.Errorf("%d of 300 are served", s.crowd.served)
			}
			s.finish()
		})
	}
}

// A node leaves as another has just come, which has not heard that it has an account: the commit was lost. The visits are not given
// to that account, as nobody would have their slots when the next wave opens another.
func TestScenarioANodeLeavesToOneThatHasNotBegun(t *testing.T) {
	o := short(1)
	o.Faults.Adds = 1
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	s.addHost(0)
	s.arrive(0, o.Rooms[0].Target)
	s.run(time.Second)
	lost := 0
	s.tap = func(f *flight) verdict {
		if _, ok := f.m.Body.(*eviction.Commit); !ok || f.to != 1 || lost == 2 {
			return pass
		}
		lost++
		if lost == 2 {
			s.goodbye(&s.hosts[0])
		}
		return lose
	}
	s.boot(1)
	s.until(5*time.Second, "n00 gone", func() bool { return s.hosts[0].gone && !s.hosts[0].up() })
	s.arrive(1, 24)
	s.run(10 * time.Second)
	if in := s.checker.rooms[0].live; in != o.Rooms[0].Target {
		t.Errorf("%d are on the site", in)
	}
	s.finish()
}

// A node that hears no commit still answers, and so has an account that will lapse any moment when another one leaves. It takes none of
// its visits: by its lease it would be taken to be over before their passes are.
func TestScenarioVisitsAreNotGivenToOneWhoseLeaseIsOver(t *testing.T) {
	for after := 1800 * time.Millisecond; after <= 3200*time.Millisecond; after += 100 * time.Millisecond {
		t.Run(after.String(), func(t *testing.T) {
			o := short(3)
			o.Load.Browse = Range{time.Minute, time.Minute}
			s := founded(t, o)
			s.arrive(2, o.Rooms[0].Target/2)
			s.run(time.Second)
			deaf := true
			s.tap = func(f *flight) verdict {
				if c, ok := f.m.Body.(*eviction.Commit); ok && deaf && f.to == 1 && len(c.Rooms) > 0 {
					return lose
				}
				return pass
			}
			s.run(after)
			s.goodbye(&s.hosts[2])
			s.run(300 * time.Millisecond)
			deaf = false
			s.arrive(0, 24)
			s.run(6 * time.Second)
			s.finish()
		})
	}
}

// A survivor with slots of its own, and one of the line that it left, are on a side: until it is sure that nobody has a quorum elsewhere, no
// line goes on. Slots of one are no slots of the other, also when one of them leaves.
func TestScenarioANodeThatLeavesGivesNothingToAnotherLine(t *testing.T) {
	o := short(3)
	o.Faults.Disk, o.Rooms[0].Survivor, o.Load.Browse = true, time.Second, Range{time.Minute, time.Minute}
	o.Cluster.Lease = 6 * time.Second // for as long as that it is not sure
	s := founded(t, o)
	s.split(hosts(0, 1), hosts(2))
	s.reboot(2) // into a life that the others have not heard of, and so do not hold for void
	s.until(60*time.Second, "n02 alone, with all slots", func() bool {
		r := &s.hosts[2].seen.rooms[0]
		return r.Line != s.hosts[1].seen.rooms[0].Line && r.Owned == o.Rooms[0].Target
	})
	s.reboot(1) // nor n02 of this
	s.until(5*time.Second, "its account", func() bool { return s.hosts[1].seen.rooms[0].Account.Born > 1<<20 })
	s.arrive(1, 3)
	s.until(20*time.Second, "slots at n01", func() bool { return s.hosts[1].seen.rooms[0].Owned > 0 })
	s.mend()
	s.split(hosts(0), hosts(1, 2))
	s.until(5*time.Second, "n01 on a side with n02", func() bool {
		return s.sees(1, 2) && s.sees(2, 2) && s.hosts[1].seen.status.Grade == eviction.Side && s.hosts[2].seen.status.Grade == eviction.Side
	})
	s.goodbye(&s.hosts[1])
	s.until(5*time.Second, "n01 gone", func() bool { return !s.hosts[1].up() })
	s.arrive(2, 24)
	s.run(3 * time.Second)
	s.mend()
	s.finish()
}
