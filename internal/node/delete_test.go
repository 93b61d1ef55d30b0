package node_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// A deleteMin whose answer is lost is given up after exclude_after, and not before: an answer that
// only takes its time is not refused to the caller.
func TestADeleteMinIsGivenUpAfterExcludeAfter(t *testing.T) {
	room := shop()
	room.Target, room.Algorithm = 4, eviction.ByQPID
	c := founded(t, 2, room)
	asks := c.node[1] // not the root of an empty room
	op, err := asks.DeleteMin(c.at(asks), "shop")
	if err != nil {
		t.Fatal(err)
	}
	wait := asks.cfg.Cluster.WithDefaults().ExcludeAfter
	for asked := c.now; ; c.now += c.step {
		asks.Tick(c.at(asks))
		r := asks.Ready(c.at(asks)) // whose messages nobody gets
		if took := time.Duration(c.now-asked) * time.Microsecond; len(r.Taken) > 0 || took > wait+time.Second {
			if len(r.Taken) != 1 || r.Taken[0].Op != op || r.Taken[0].Outcome != qpid.Refused || took < wait || took > wait+100*time.Millisecond {
				t.Errorf("after %v: %+v, want it refused after %v", took, r.Taken, wait)
			}
			return
		}
	}
}
