package simtest

import (
	"testing"
	"time"
)

// A room's sessions get shorter, and a node is lost at once. Its passes are as long as
// they were, so its slots are waited for as long: what counts is the longest pass
// that may be about, not the session that passes are given for now.
func TestScenarioAShorterSessionForgetsNoLongerPass(t *testing.T) {
	for _, lost := range []int{0, 2} { // the coordinator, the youngest
		o := short(3)
		o.Rooms[0].Session = 8 * time.Second
		o.Load.Browse = Range{time.Minute, time.Minute}
		s := founded(t, o)
		s.arrive(lost, 8)
		s.run(time.Second)
		room := s.hosts[1].seen.rooms[0].Room
		room.Session = time.Second
		s.setRoom(&s.hosts[1], 0, room)
		s.until(2*time.Second, "all know of it", func() bool {
			for i := range s.hosts {
				if s.hosts[i].seen.rooms[0].Room.Session != room.Session {
					return false
				}
			}
			return true
		})
		s.run(500 * time.Millisecond)
		s.down(lost)
		s.arrive(1, 30)
		s.run(12 * time.Second)
		s.finish()
	}
}

// A room's sessions get longer, and only the coordinator and one other node know of it
// when both are lost. The rest reckons with the sessions that it knows, so nobody
// may have got a longer pass yet.
func TestScenarioALongerSessionWaitsUntilAllAgree(t *testing.T) {
	o := short(5)
	o.Rooms[0].Session = time.Second
	o.Load.Browse = Range{time.Minute, time.Minute}
	s := founded(t, o)
	room := s.hosts[0].seen.rooms[0].Room
	room.Session = 10 * time.Second
	s.setRoom(&s.hosts[0], 0, room)
	commit := ofKind(mCommit, none, none)
	s.tap = func(f *flight) verdict {
		if f.to > 1 && commit(f) {
			return lose
		}
		return pass
	}
	s.until(2*time.Second, "one other knows of it", func() bool { return s.hosts[1].seen.rooms[0].Room.Session == room.Session })
	s.arrive(1, 8)
	s.run(50 * time.Millisecond)
	s.down(0)
	s.down(1)
	s.tap = nil
	s.arrive(2, 30)
	s.run(12 * time.Second)
	s.finish()
}
