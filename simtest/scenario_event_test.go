package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// from is an event that gathers, opens and ends so long after the beginning.
func from(prequeue, start, end time.Duration, e eviction.Event) eviction.Event {
	e.Prequeue, e.Start, e.End = wallAt(prequeue.Microseconds()), wallAt(start.Microseconds()), wallAt(end.Microseconds())
	return e
}

// watchEvents runs for d and compares, ten times in 100 ms, what the nodes that
// have installed the same wave think of room 0.
func (s *script) watchEvents(d time.Duration) {
	s.t.Helper()
	for end := s.now + d.Microseconds(); s.now < end; s.run(10 * time.Millisecond) {
		first := map[qpid.Epoch]*host{}
		for i := range s.hosts {
			h := &s.hosts[i]
			if !h.up() || h.seen.rooms[0].Account.Born == 0 {
				continue
			}
			at := h.seen.status.Installed
			o := first[at]
			if o == nil {
				first[at] = h
				continue
			}
			if a, b := &o.seen.rooms[0].Now, &h.seen.rooms[0].Now; a.Event != b.Event || a.Target != b.Target || a.Method != b.Method {
				s.t.Fatalf("after wave %v %s is in event %q with a limit of %d, %s in %q with %d", at, o.name, a.Event.Name, a.Target, h.name, b.Event.Name, b.Target)
			}
		}
	}
}

// Nodes whose clocks differ go over to an event in one wave: of so many beginnings
// and ends some fall between a wave's T and a node's own clock.
func TestScenarioAllGoOverToAnEventInOneWave(t *testing.T) {
	for shift := range 6 {
		o := short(4)
		for i := range 5 {
			at := 4*time.Second + time.Duration(i)*730*time.Millisecond + time.Duration(shift)*30*time.Millisecond
			o.Rooms[0].Events = append(o.Rooms[0].Events, from(at, at+190*time.Millisecond, at+410*time.Millisecond,
				eviction.Event{Name: fmt.Sprint("sale ", i), Set: eviction.SetTarget, Target: 3 + i}))
		}
		s := founded(t, o)
		s.wrongBy(0, 40*time.Millisecond, -30*time.Millisecond, 20*time.Millisecond)
		s.arriveOver(none, 40, 4*time.Second)
		s.watchEvents(8*time.Second - micros(s.now))
		s.run(5 * time.Second)
		s.finish()
	}
}

// Two events, one after the other, on nodes with clocks that are some 30 ms
// apart, and one of them lost at a bad moment. Nodes go over together; while
// visitors gather nobody is called (S14); each event has its own limit and its own
// draw; between them and afterwards the room is as it was.
func TestScenarioEventsInARow(t *testing.T) {
	for _, crash := range []time.Duration{0, 5900 * time.Millisecond, 6050 * time.Millisecond, 9 * time.Second} {
		t.Run(fmt.Sprintf("crash at %v", crash), func(t *testing.T) {
			o := short(4)
			o.Rooms[0].Events = []eviction.Event{
				from(4*time.Second, 6*time.Second, 9*time.Second, eviction.Event{Name: "sale", Shuffle: true, Seed: [32]byte{1}, Set: eviction.SetTarget, Target: 5}),
				from(10*time.Second, 11*time.Second, 13*time.Second, eviction.Event{
					Name: "encore", Shuffle: true, Seed: [32]byte{2}, Set: eviction.SetTarget | eviction.SetMethod, Target: 20, Method: eviction.FIFO,
				}),
			}
			s := founded(t, o)
			s.wrongBy(0, 30*time.Millisecond, -20*time.Millisecond, 10*time.Millisecond)
			s.arriveOver(none, 150, 9*time.Second)
			for _, at := range []struct {
				until  time.Duration
				event  string
				target int
			}{
				{3500 * time.Millisecond, "", 12},
				{5500 * time.Millisecond, "sale", 5},
				{8500 * time.Millisecond, "sale", 5},
				{9700 * time.Millisecond, "", 12},
				{10500 * time.Millisecond, "encore", 20},
				{12500 * time.Millisecond, "encore", 20},
				{13700 * time.Millisecond, "", 12},
			} {
				if crash > 0 && at.until > crash && s.hosts[0].up() {
					s.watchEvents(crash - micros(s.now))
					s.down(0)
				}
				s.watchEvents(at.until - micros(s.now))
				if now := s.hosts[3].seen.rooms[0].Now; now.Event.Name != at.event || now.Target != at.target {
					t.Errorf("at %v: event %q with a limit of %d, want %q with %d", at.until, now.Event.Name, now.Target, at.event, at.target)
				}
			}
			if crash > 0 {
				s.boot(0)
			}
			s.run(5 * time.Second)
			s.finish()
			draws := map[int64]int{}
			for i := range s.crowd.tickets {
				if tk := &s.crowd.tickets[i]; tk.epoch > 0 && tk.key.Stamp != tk.stamp {
					draws[keyingOf(&s.o.Rooms[0], tk)]++
				}
			}
			if a, b := draws[o.Rooms[0].Events[0].Start], draws[o.Rooms[0].Events[1].Start]; a < 5 || b < 5 || draws[0] > 0 {
				t.Errorf("%d had their turn by the first draw and %d by the second, %d by none", a, b, draws[0])
			}
		})
	}
}

// An event gives longer sessions than its room. Whoever waits for the passes of a
// lost node to run out reckons with them, also when the event is over and a node
// has never known it otherwise.
func TestScenarioAnEventsSessionIsWaitedFor(t *testing.T) {
	o := short(4)
	o.Load.Browse = Range{time.Minute, time.Minute}
	o.Rooms[0].Events = []eviction.Event{
		from(3*time.Second, 4*time.Second, 6*time.Second, eviction.Event{Set: eviction.SetSession, Session: 12 * time.Second}),
	}
	s := founded(t, o)
	s.run(4500*time.Millisecond - micros(s.now))
	s.arrive(3, 12)
	s.run(time.Second)
	s.down(3)
	s.arrive(0, 30)
	s.run(20 * time.Second)
	s.finish()
	if s.now < 20_000_000 {
		t.Errorf("over at %v", micros(s.now))
	}
}
