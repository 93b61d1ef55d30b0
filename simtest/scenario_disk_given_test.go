package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// A node gives all of its visits away as it leaves, and others do not take them: its account had been void, as it heard of no wave. It is in
// a wave with another account then, of which nothing is under way, and its disk has those visits yet: their passes are good. So after a crash of
// everything their slots are waited for.
func TestScenarioVisitsGivenByAnAccountThatIsVoidStayOnTheDisk(t *testing.T) {
	s := founded(t, onDisks(2))
	s.fill(1)
	given, deaf := 0, true
	s.tap = func(f *flight) verdict {
		if m, ok := f.m.Body.(*eviction.Slots); ok && f.from == 1 {
			given = max(given, len(m.Visits))
		}
		if deaf && f.kind == mGather && f.to == 1 {
			return lose
		}
		return pass
	}
	s.arriveOver(0, 20, 2*time.Second) // waves speak of the room
	s.until(20*time.Second, "n01 void", func() bool { return s.sees(0, 1) })
	s.run(time.Second)
	s.stopped(1)
	s.until(time.Second, "visits given", func() bool { return given > 0 })
	deaf = false
	s.run(5 * time.Second)
	if s.tap = nil; given < 12 || s.hosts[1].up() {
		t.Fatalf("%d visits were given, n01 runs: %t", given, s.hosts[1].up())
	}
	s.down(0)
	from := s.now
	s.restarted(0, 1)
	s.callsNobody(from)
}
