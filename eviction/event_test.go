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
