package eviction

import (
	"strings"
	"testing"
	"time"
)

// A room goes through its events: before the pre-queue it is as configured, from
// then on as the event has it, and from its end on as configured.
func TestRoomFollowsItsEvents(t *testing.T) {
	r := Room{
		Name: "shop", Target: 10, Session: time.Minute, Method: Passthrough,
		Events: []Event{
			{Name: "sale", Prequeue: 100, Start: 200, End: 300, Set: SetTarget | SetSession, Target: 3, Session: time.Hour},
			{Name: "encore", Prequeue: 300, Start: 400, End: 500, Set: SetMethod | SetNoRenewal | SetNewPerMinute, Method: Random, NoRenewal: true, NewPerMinute: 7},
		},
	}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		t       uint64
		event   string
		target  int
		method  Method
		started bool
	}{
		{0, "", 10, Passthrough, true},
		{99, "", 10, Passthrough, true},
		{100, "sale", 3, FIFO, false},
		{199, "sale", 3, FIFO, false},
		{200, "sale", 3, Passthrough, true},
		{299, "sale", 3, Passthrough, true},
		{300, "encore", 10, Random, false},
		{400, "encore", 10, Random, true},
		{500, "", 10, Passthrough, true},
	} {
		now := r.At(c.t)
		if now.Event.Name != c.event || now.Target != c.target || now.Method != c.method || now.started(c.t) != c.started {
			t.Errorf("at %d: event %q, limit %d, %v, started %v; want %+v", c.t, now.Event.Name, now.Target, now.Method, now.started(c.t), c)
		}
	}
	if d := r.longest(); d != time.Hour {
		t.Errorf("the longest session is %v", d)
	}
	r.Events[1].Prequeue = 299
	if err := r.Validate(); err == nil || !strings.Contains(err.Error(), "it begins before events[0] ends") {
		t.Errorf("events that overlap: %v", err)
	}
}

// A seed is made once: the same event keeps it, whoever proposes it again, and
// nobody can tell it from what is public.
func TestSeedsStayWithTheirEvents(t *testing.T) {
	r := Room{Name: "shop", Events: []Event{{Name: "sale", Start: 7, Shuffle: true}, {Name: "plain", Start: 9}}}
	a, b := r.Seeded([]byte("a")), r.Seeded([]byte("b"))
	if a.Events[0].Seed == ([32]byte{}) || a.Events[0].Seed == b.Events[0].Seed || a.Events[1].Seed != ([32]byte{}) || r.Events[0].Seed != ([32]byte{}) {
		t.Errorf("seeds %x, %x, %x", a.Events[0].Seed, b.Events[0].Seed, a.Events[1].Seed)
	}
	if again := r.KeepSeeds(&a).Seeded([]byte("b")); again.Events[0].Seed != a.Events[0].Seed {
		t.Error("the same event has another seed")
	}
	moved := r
	moved.Events = []Event{{Name: "sale", Start: 8, Shuffle: true}}
	if got := moved.KeepSeeds(&a).Seeded([]byte("b")).Events[0].Seed; got == a.Events[0].Seed || got == ([32]byte{}) {
		t.Error("an event at another time keeps the seed")
	}
}

// Whoever came before the start of a draw takes part in it, from its pre-queue on until it is
// drawn; who came at the start stands behind them.
func TestADrawIsOfThoseWhoCameBeforeItsStart(t *testing.T) {
	r := Room{Name: "shop", Target: 1, Session: time.Minute, Events: []Event{{Name: "sale", Prequeue: 100, Start: 200, End: 300, Shuffle: true}}}
	for _, c := range []struct {
		stamp, keying uint64
		t             int64
		want          int64
	}{
		{150, 0, 150, 200},
		{199, 0, 210, 200}, // which no wave has drawn yet
		{200, 0, 210, 0},
		{50, 0, 99, 0},
		{50, 0, 100, 200},
		{150, 200, 210, 0},
	} {
		g := newGate(newClusterSettings(Config{}.WithDefaults()), r)
		g.keying = c.keying
		if got := g.DrawComes(c.stamp, c.t); got != c.want {
			t.Errorf("stamped %d, at %d: the draw to come is at %d, want %d", c.stamp, c.t, got, c.want)
		}
	}
}

// An operator's change says no seeds. The draw that made the order of the queue keeps its own, and
// no draw to come has that: everybody knows it by then.
func TestARoomKeepsTheSeedOfItsDraw(t *testing.T) {
	drawn, none := [32]byte{1}, [32]byte{}
	r := Room{Name: "shop", Target: 1, Session: time.Minute, Events: []Event{
		{Name: "sale", Prequeue: 100, Start: 200, End: 300, Shuffle: true},
		{Name: "encore", Prequeue: 300, Start: 400, End: 500, Shuffle: true},
	}}
	g := newGate(newClusterSettings(Config{}.WithDefaults()), r)
	g.keying, g.seed = 200, drawn
	if got := g.KeepDraw(r); got.Events[0].Seed != drawn || got.Events[1].Seed != none {
		t.Errorf("seeds %x and %x, want that of the draw and none yet", got.Events[0].Seed[:1], got.Events[1].Seed[:1])
	}
	g.keying = 0
	if got := g.KeepDraw(r); got.Events[0].Seed != none || got.Events[1].Seed != none {
		t.Errorf("before any draw: seeds %x and %x, want none yet", got.Events[0].Seed[:1], got.Events[1].Seed[:1])
	}
}
