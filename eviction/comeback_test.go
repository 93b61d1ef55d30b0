package eviction

import (
	"testing"
	"time"
)

// The wave that sees a node lost may bring the room another configuration. Who waits for its people, as the
// coordinator decides and as every node keeps it, goes by that: in a room that stops they are waited for until their
// node is back, and not as long as it takes to take them over.
func TestTheLostAreAwaitedByTheConfigurationOfTheWave(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy Policy
		due    bool // it is not known for how long
	}{
		{"as it was", Majority, false},
		{"stops", Stop, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSolo(t, Room{Target: 10, Session: time.Second, Refresh: time.Minute})
			s.gather(t, 1)
			s.commit(t, 1, func(_ *Commit, r *RoomCommit) { r.Waiting, r.Queued = []int{0, 0, 3}, 3 })
			next := s.g.cfg
			next.OnPartition = c.policy
			next.Version.Stamp++
			list := []Member{memberA, memberB}
			decided := s.g.awaitLost(&next, list, nil, s.now.Boot, next.OnPartition.admits(Primary, true, false))
			s.gather(t, 2, list...)
			s.commit(t, 1, func(_ *Commit, r *RoomCommit) { r.Born, r.Agreed, r.Config = []uint64{1, 1}, false, &next })
			if kept := s.g.back; len(kept.of) != 1 || kept.due != decided.due || kept.until != decided.until {
				t.Errorf("b waits for %v, due %t, until %d; it was decided for %v, due %t, until %d",
					kept.of, kept.due, kept.until, decided.of, decided.due, decided.until)
			}
			if decided.due != c.due {
				t.Errorf("due %t, want %t", decided.due, c.due)
			}
		})
	}
}
