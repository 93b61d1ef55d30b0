package simtest

import (
	"testing"
	"time"
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
