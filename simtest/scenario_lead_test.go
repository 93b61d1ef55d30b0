package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// No reply reaches the coordinator, while all else does: it goes on answering
// that it is at work, and has left everybody out. To be the most senior is not
// enough to be left the lead: the others are a quorum, and go on without waiting
// for longer than it takes to see that its waves fail.
func TestScenarioACoordinatorThatHearsNobodyLetsOthersLead(t *testing.T) {
	o := short(5)
	o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
	s := founded(t, o)
	reply := ofKind(mReply, none, 0)
	s.tap = func(f *flight) verdict {
		if reply(f) {
			return lose
		}
		return pass
	}
	s.arriveOver(none, 1500, 20*time.Second)
	longest, last := int64(0), s.now
	for end := s.now + 20_000_000; s.now < end; s.run(10 * time.Millisecond) {
		if s.calls(s.now-10_000) > 0 {
			last = s.now
		}
		longest = max(longest, s.now-last)
	}
	c := s.o.Cluster
	if most := (3*c.ExcludeAfter + 2*c.Deadline).Microseconds(); longest > most {
		t.Errorf("nobody was called for %v, want at most %v", micros(longest), micros(most))
	}
	s.finish()
}

// The coordinator stands still in the middle of a wave. The replies wait for it,
// but its timer is first: it must not take its own absence for that of the
// others, and leave them all out. Somebody else leads them by then, who has a
// quorum, so what is demanded is that it leads them again.
func TestScenarioACoordinatorThatStoodStillBlamesNobody(t *testing.T) {
	for seed := range uint64(6) { // half of them wake with the timer first
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			o := short(5)
			o.Seed = seed + 1
			s := founded(t, o)
			s.until(time.Second, "a wave", func() bool {
				st := &s.hosts[0].seen.status
				return st.Frozen && st.Epoch.Num > st.Installed.Num
			})
			s.stall(0, 700*time.Millisecond)
			s.run(700 * time.Millisecond)
			back := s.now
			s.until(3*time.Second, "a wave of its own with all five", func() bool {
				st := &s.hosts[0].seen.status
				return s.checker.installs[0] > back && st.Grade >= eviction.Primary && len(st.List) == 5 && st.List[0] == st.Self
			})
			if took := s.now - back; took > 400_000 { // whoever is left out is so for exclude_after
				t.Errorf("it leads all five %v after it went on", micros(took))
			}
			s.finish()
		})
	}
}

// A node returns as the most senior of all by a clock that is five seconds
// behind, and reaches one other only. By what it hears that one is off as much as
// itself: only who has a quorum of clocks with it may say so, for who is told
// stops.
func TestScenarioACoordinatorsOwnClockStopsNobody(t *testing.T) {
	o := short(5)
	o.Faults.Disk = true // it knows its voters
	o.Load.Browse = Range{200 * time.Millisecond, 200 * time.Millisecond}
	s := founded(t, o)
	s.run(time.Second)
	s.down(0)
	s.hosts[0].clock.set(s.now, -5_000_000)
	s.split(hosts(0), hosts(2, 3, 4))
	s.until(2*time.Second, "four without it", func() bool { return s.sees(1, 4) })
	s.boot(0)
	s.arriveOver(1, 100, 4*time.Second)
	for from := s.now; s.now < from+4_000_000; s.run(10 * time.Millisecond) {
		if st := s.hosts[1].seen.status; st.Quarantined || !s.leased(&s.hosts[1]) {
			t.Fatalf("stopped: %s", s.statuses())
		}
	}
	s.finish()
}

// Of seven nodes three are cut off, without a quorum, and nothing comes from the one that
// leads them, first to one and then to the other. The first takes the lead, and hears that
// the other one still follows: it leaves the lead for a deadline, not for as long again.
func TestScenarioWhoLeavesTheLeadAsksAgainSoon(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			o := short(7)
			o.Seed = seed + 1
			s := founded(t, o)
			s.split(hosts(0, 1, 2), hosts(3, 4, 5, 6))
			s.until(5*time.Second, "three without a quorum", func() bool { return s.sees(0, 3) && s.sees(1, 3) && s.sees(2, 3) })
			s.run(time.Second)
			from := s.now
			s.tap = func(f *flight) verdict {
				if f.from == 0 && (f.to == 1 || f.to == 2 && s.now-from > 150_000) {
					return lose
				}
				return pass
			}
			s.until(5*time.Second, "two that go on", func() bool { return s.sees(1, 2) && s.sees(2, 2) })
			if took := s.now - from; took > 1_600_000 {
				t.Errorf("they go on after %v", micros(took))
			}
			s.tap = nil
			s.mend()
			s.until(20*time.Second, "all together", func() bool { return s.together(7) })
			s.finish()
		})
	}
}
