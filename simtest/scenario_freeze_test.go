package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// From its reply to its install a node sends no update and no findRoot. Links
// keep order, so one of an older epoch that comes after a gather or a reply was
// sent in between. Meanwhile visitors come, leave and are called, all through every
// wave, and nowhere are there two roots.
func TestScenarioNoQPIDMessagesDuringAWave(t *testing.T) {
	for _, fanout := range []int{1, 2, 8} { // a path, a tree, a star
		t.Run(fmt.Sprintf("fanout %d", fanout), func(t *testing.T) {
			o := short(5)
			o.Cluster.Fanout = fanout
			o.Cluster.Deadline, o.Cluster.ExcludeAfter = 400*time.Millisecond, time.Second
			o.Net.Latency = Range{5 * time.Millisecond, 15 * time.Millisecond}
			o.Rooms[0].Algorithm, o.Rooms[0].QueueAll, o.Rooms[0].Target = eviction.ByQPID, true, 60
			o.Load.Takes, o.Load.Browse = 1500, Range{0, 100 * time.Millisecond}
			s := founded(t, o)
			type pair struct{ from, to int32 }
			wave := map[pair]qpid.Epoch{} // the last that came this way
			seen := 0
			s.tap = func(f *flight) verdict {
				s.oneRoot()
				p := pair{f.from, f.to}
				switch m := f.m.Body.(type) {
				case *eviction.Gather:
					if len(m.Rooms) > 0 { // a quiet room is not part of every wave
						wave[p] = m.Epoch
					}
				case *eviction.Reply:
					if len(m.Rooms) > 0 {
						wave[p] = m.Epoch
					}
				case *eviction.RoomQPID:
					if k := m.Msg.Kind; k != qpid.MsgUpdate && k != qpid.MsgFindRoot {
						break
					}
					seen++
					if m.Msg.Epoch.Compare(wave[p]) < 0 {
						s.fail("S4", "%s has replied to %v and sends %v", s.hosts[f.from].name, wave[p], m.Msg)
					}
				default:
				}
				return pass
			}
			s.arriveOver(none, 150, 4*time.Second)
			s.agenda.push(s.now, evTake, 0, 0)
			s.run(5 * time.Second)
			if seen < 50 {
				t.Errorf("%d updates and findRoots: too few to see anything", seen)
			}
			s.finish()
		})
	}
}
