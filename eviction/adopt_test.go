package eviction

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// others are settings that differ from the defaults in everything.
func others() Config {
	return Config{
		Period: 300 * time.Millisecond, Urgent: 70 * time.Millisecond, Deadline: 700 * time.Millisecond, Lease: 20 * time.Second,
		MaxSkew: time.Second, ExcludeAfter: 3 * time.Second, Margin: 400 * time.Millisecond, Fanout: 3, Exact: 16, Samples: 8, WaveBytes: 1 << 16,
	}
}

// After Adopt a node is as if it had been made with those settings.
func TestAdoptIsAsIfMadeWithIt(t *testing.T) {
	now := Time{Boot: 5e9, Wall: 1_700_000_000_000_000}
	r := record()
	all := others()
	r.Reckons = all.bounds()
	r.Rooms[0].TTL = time.Minute
	r.Rooms[0].Cut = Cut{Epoch: 99, Value: qpid.Weight{Stamp: uint64(now.Wall) + 1_500_000}} // within twice their max_skew, not ours
	start := Start{Self: Peer{Member{"b", 2}, now.Wall}, Joins: true, Record: r}
	rooms := []Room{{Name: "shop", Target: 10, Session: time.Second}, {Name: "desk", Target: 10, Session: time.Second}}
	made, took := NewNode(others(), start, rooms, now), NewNode(Config{}, start, rooms, now)
	if err := took.Adopt(now, others()); err != nil {
		t.Fatal(err)
	}
	if *took.c != *made.c || took.clock.skew != made.clock.skew || took.clock.hlc < made.clock.hlc {
		t.Errorf("settings %+v, a skew of %d and a promise of %d; want %+v, %d and %d", took.c, took.clock.skew, took.clock.hlc, made.c, made.clock.skew, made.clock.hlc)
	}
	for i, g := range took.gates {
		want := made.gates[i]
		if *g.c != *want.c || g.delay() != want.delay() || g.ttlUntil != want.ttlUntil || g.ttl != want.ttl {
			t.Errorf("%s: D %v, until %d; want %v, %d", g.cfg.Name, durationOf(g.delay()), g.ttlUntil, durationOf(want.delay()), want.ttlUntil)
		}
	}
	if g := took.addGate(Room{Name: "later"}); g.c != took.c {
		t.Errorf("a room that comes later has %+v", g.c)
	}
	for _, n := range []*Node{made, took} { // both lead from here on
		n.Tick(now)
	}
	if g, want := took.Gate("shop"), made.Gate("shop"); g.pacer.from != want.pacer.from || took.Deadline(now) != made.Deadline(now) {
		t.Errorf("it leads with pacing from %d and a deadline %d, want %d and %d", g.pacer.from, took.Deadline(now), want.pacer.from, made.Deadline(now))
	}
}

func TestAdoptRefusesWhatIsNotValid(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Minute})
	if err := s.Adopt(s.now, Config{Lease: time.Second}); err == nil || s.c.Config != (Config{}).WithDefaults() {
		t.Errorf("Adopt = %v, settings %+v; want an error, and nothing changed", err, s.c)
	}
}

// A wave that is under way does not bind: nothing is granted before its commit.
// But a commit that comes after all would grant a lease by the new settings that
// the coordinator reckons by the old.
func TestAdoptDropsTheOpenWaveAndIsRefusedAfterOne(t *testing.T) {
	s := newSolo(t, Room{Target: 10, Session: time.Minute})
	s.gather(t, 5)
	open := s.wave
	if err := s.Adopt(s.now, others()); err != nil {
		t.Fatalf("with a wave open: %v", err)
	}
	c := &Commit{Epoch: open.epoch, Grade: Primary, Line: Line{1, "a"}, Voters: Voters{Version: 1, Names: []qpid.NodeID{"a", "b", "c"}, At: open.epoch}}
	if err := s.Step(s.now, Message{memberA, memberB, c}); err != nil || s.Status().Installed != (qpid.Epoch{}) || s.LeaseOf(s.g) > s.now.Boot {
		t.Errorf("the commit of a wave from before: %v, installed %v", err, s.Status().Installed)
	}

	s.gather(t, 6)
	s.commit(t, 6)
	if until := s.LeaseOf(s.g); until != s.now.Boot+micros(others().Lease) {
		t.Errorf("the lease lasts %v, want %v", durationOf(until-s.now.Boot), others().Lease)
	}
	if err := s.Adopt(s.now, Config{}); !errors.Is(err, ErrSettled) || s.c.Config != others() {
		t.Errorf("after a wave: %v, settings %+v; want ErrSettled, and nothing changed", err, s.c)
	}
}
