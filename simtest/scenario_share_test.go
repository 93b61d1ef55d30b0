package simtest

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// In a room that shares, C dies and comes back as another life, having forgotten
// everything, while A is cut off: neither side has a quorum, so nobody voids the account
// of the dead. When they meet again its D is over twice, both have forgotten it in the
// first wave with the new C, and no wave about the room has named it. Nothing of it can
// act any more: its slots are made again at once.
func TestScenarioSlotsOfTheDeadThatNobodyVoided(t *testing.T) {
	const c, a, b = 0, 1, 2 // c has all the slots
	forgotten := 0
	for phase := range 10 { // a wave asks about a quiet room once a second
		o := short(3)
		o.Rooms[0].OnPartition, o.Rooms[0].Method = eviction.Share, eviction.Reject
		s := founded(t, o)
		dead := s.hosts[c].seen.rooms[0].Account.Member
		s.split(hosts(a), hosts(b, c))
		s.reboot(c)
		s.run(2*s.delay() + 2*time.Second + time.Duration(phase)*s.o.Cluster.Period)
		s.mend()
		s.until(3*time.Second, "one wave of all", func() bool { return s.together(3) })
		s.until(3*time.Second, "all slots", func() bool { owned, _ := s.ownedNow(); return owned == 12 })
		room := &s.checker.rooms[0]
		if !slices.ContainsFunc(room.voided(room.lines[0]), func(v eviction.Void) bool { return v.Member == dead }) {
			forgotten++
		}
		s.finish()
	}
	if forgotten == 0 {
		t.Error("all have voided the account of the dead: nothing is shown here")
	}
}
