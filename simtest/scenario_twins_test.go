package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// A node is cut off and another one is started under its name, and so once more while
// the first two run. When the faults are over one node has the name, as the others'
// gossip knows one: deleteMins are passed on by name, and go round among two of them.
func TestScenarioOfThreeNodesOfANameOneIsLeft(t *testing.T) {
	o := short(3)
	o.Faults.Twins = 2
	o.Rooms[0].Algorithm, o.Rooms[0].QueueAll = eviction.ByQPID, true
	s := founded(t, o)
	for range 2 {
		s.trouble(Twin, &s.hosts[0], 2_000_000)
		s.run(time.Second)
	}
	s.arriveOver(1, 60, 20*time.Second)
	s.run(time.Second)
	s.finish()
	for i := range s.hosts {
		if h := &s.hosts[i]; h.name == s.hosts[0].name && h.up() != (i == len(s.hosts)-1) {
			t.Errorf("%s, node %d of %d: up %t", h.name, i, len(s.hosts), h.up())
		}
	}
}
