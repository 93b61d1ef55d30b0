package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// S7, the certified prefix. A node promises in its reply to stamp nobody at or
// before the T of the gather, so those up to T are all counted. Whoever comes
// after the reply is not: somebody at another node may be stamped earlier and
// come later still. So the cut stops at T, however much time passes until the
// decision, and even when there are slots for everybody.
func TestScenarioCutStopsAtTheGathersT(t *testing.T) {
	for _, limit := range []int{30, 3000} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("limit %d, seed %d", limit, seed+1), func(t *testing.T) {
				o := short(4)
				o.Seed = seed + 1
				o.Net.Latency = Range{5 * time.Millisecond, 15 * time.Millisecond}
				o.Rooms[0].Target, o.Rooms[0].QueueAll = limit, true
				o.Load.Browse = Range{0, 20 * time.Millisecond}
				s := assemble(t, o)
				s.wrongBy(40*time.Millisecond, -40*time.Millisecond, 0, -20*time.Millisecond) // the coordinator is ahead of all
				s.begin()
				w := &cutWatch{s: s, t: map[uint64]uint64{}}
				s.tap = w.look
				s.arriveOver(none, 1000, 3*time.Second)
				s.run(5 * time.Second)
				w.check()
				s.finish()
			})
		}
	}
}

// cutWatch knows the T of each gather.
type cutWatch struct {
	s    *script
	t    map[uint64]uint64 // epoch → T
	late int               // visitors who waited at a commit's arrival and had come after their node's reply
}

func (c *cutWatch) look(f *flight) verdict {
	switch b := f.m.Body.(type) {
	case *eviction.Gather:
		c.t[b.Epoch.Num] = b.T
	case *eviction.Commit:
		for i := range c.s.crowd.tickets {
			if t := &c.s.crowd.tickets[i]; t.home == f.to && t.state == queued && t.stamp > c.t[b.Epoch.Num] {
				c.late++
			}
		}
	default:
	}
	return pass
}

// check compares everybody's stamp with the T of the wave that entitled them.
func (c *cutWatch) check() {
	c.s.t.Helper()
	entitled := 0
	for i := range c.s.crowd.tickets {
		t := &c.s.crowd.tickets[i]
		if t.calledAt == 0 {
			continue
		}
		entitled++
		switch T := c.t[t.epoch]; {
		case t.epoch == 0:
			c.s.fail("S7", "ticket %d was called and no wave has entitled it: it came below a cut that counted nobody like it", i)
		case t.stamp > T:
			c.s.fail("S7", "ticket %d was entitled by wave %d, and is stamped %v after its T", i, t.epoch, micros(int64(t.stamp-T)))
		}
	}
	c.s.check()
	if entitled < 300 || c.late < 100 {
		c.s.t.Fatalf("%d visitors called, %d commits met somebody who came late: too few to see anything", entitled, c.late)
	}
}
