package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/governor"
)

// bearing is a world with an origin behind it. Each person on the site asks it ten
// times a second; it answers what so many visitors ask, and fails the rest.
type bearing struct {
	*script
	config  governor.Config
	bears   int
	all     governor.Figures
	watch   governor.Watch
	of      int   // whose watch it is
	sum     int64 // visitors on the site, at each tenth of a second
	refused int64 // of them those whose requests failed
}

// play runs the world for d, and has whoever runs the waves judge the origin.
func (b *bearing) play(d time.Duration) (sum, refused int64) {
	before := [2]int64{b.sum, b.refused}
	for end := b.now + d.Microseconds(); b.now < end; {
		b.run(100 * time.Millisecond)
		there := 0
		for i := range b.hosts {
			if b.hosts[i].up() {
				there += b.hosts[i].seen.rooms[0].OnSite
			}
		}
		over := max(0, there-b.bears)
		b.sum, b.refused = b.sum+int64(there), b.refused+int64(over)
		b.all = b.all.Plus(governor.Figures{Asked: uint64(there), Answered: uint64(there), Failed: uint64(over)})
		b.govern()
	}
	return b.sum - before[0], b.refused - before[1]
}

func (b *bearing) govern() {
	first := b.coordinator()
	if first == none {
		return
	}
	if b.of != first { // another node begins to judge by what it hears from now on
		b.of, b.watch = first, governor.Watch{}
	}
	h := &b.hosts[first]
	at := time.UnixMicro(b.now)
	b.watch.Hear("all", b.all, at)
	if j, over := b.watch.Close(b.config, at); over {
		r := &h.seen.rooms[0]
		h.n.Govern(h.clock.read(b.now), "shop", b.config.Next(governor.Room{Limit: r.Room.Target, Bound: r.Bound, Inside: r.Active}, j.Verdict))
		b.drain(h)
	}
}

// An origin bears more than the limit, then half as many visitors, under full load. From
// 30 s on fewer than 1 % of its answers fail, and nine tenths of what it bears are used;
// all oracles of the limit look on. Whoever runs the waves is killed meanwhile: the next
// one goes on with the bound. When the origin is well again the room is at its limit.
func TestScenarioALimitFollowsWhatItsOriginBears(t *testing.T) {
	t.Parallel()
	o := short(4)
	o.Rooms[0].Target, o.Load.Browse = 60, Range{6 * time.Second, 10 * time.Second}
	b := &bearing{script: founded(t, o), config: governor.Config{Errors: 0.01}, bears: 66, of: none}
	b.arriveOver(none, 2400, 180*time.Second)
	b.play(10 * time.Second)
	if used := b.checker.rooms[0].active; used < 54 {
		t.Fatalf("%d visitors inside: too few to overload anything", used)
	}
	b.bears = 30
	if sum, refused := b.play(10 * time.Second); 20*refused < sum {
		t.Fatalf("%d of %d requests failed at first: the origin is not overloaded", refused, sum)
	}
	b.play(20 * time.Second)
	sum, refused := b.play(40 * time.Second)
	mean := float64(sum-refused) / 400
	if 100*refused > sum || mean < 27 {
		t.Errorf("%d of %d requests failed, want at most 1 %%; %.1f visitors were served at a time, want at least 27", refused, sum, mean)
	}
	bound := b.hosts[b.coordinator()].seen.rooms[0].Bound
	b.down(b.coordinator())
	for range 30 {
		b.play(100 * time.Millisecond)
		for i := range b.hosts {
			if h := &b.hosts[i]; h.up() && h.seen.rooms[0].Bound == 0 {
				t.Fatalf("%s has forgotten the bound, which was %d", h.name, bound)
			}
		}
	}
	b.bears = 66
	b.play(70 * time.Second)
	if r := &b.hosts[b.coordinator()].seen.rooms[0]; r.Bound != 0 || r.Now.Target != 60 {
		t.Errorf("the origin is well again, and the bound is %d", r.Bound)
	}
	b.finish()
}

// A bound lowers the limit and leaves the rate as it is, as long as all nodes are there:
// those deal the rate by their share of the limit's slots, and the governor has burned
// some.
func TestScenarioABoundLeavesTheRate(t *testing.T) {
	o := short(3)
	o.Rooms[0].Target, o.Rooms[0].NewPerMinute = 60, 600
	s := founded(t, o)
	h := &s.hosts[s.coordinator()]
	h.n.Govern(h.clock.read(s.now), "shop", 30)
	s.drain(h)
	s.arriveOver(none, 400, 20*time.Second)
	s.run(5 * time.Second)
	from := s.now
	s.run(12 * time.Second)
	if n := s.calls(from); n < 108 {
		t.Errorf("%d visitors were called in 12 s at 10 a second, want at least 108", n)
	}
	if most := s.checker.rooms[0].activeMax; most > 30 {
		t.Errorf("%d visitors were inside at once, the bound is 30", most)
	}
	s.finish()
}
