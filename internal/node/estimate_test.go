package node

import (
	"math"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/estimate"
	"github.com/anteroom/anteroom/qpid"
)

func newRoomOf(t *testing.T, c eviction.Room) *room {
	t.Helper()
	c.Name = "shop"
	now := eviction.Time{Boot: 1e9, Wall: 1.7e15}
	n, err := New(Config{Self: eviction.Peer{Member: eviction.Member{Name: "a", Boot: 1}}, Rooms: []eviction.Room{c}}, now)
	if err != nil {
		t.Fatal(err)
	}
	return n.rooms[0]
}

// A quarter of the wait, within two seconds and the room's interval, and a
// tenth more or less, different for each visitor and each visit.
func TestRefreshAfter(t *testing.T) {
	tests := []struct {
		interval, wait, want time.Duration
	}{
		{20 * time.Second, 0, 2 * time.Second},
		{20 * time.Second, 4 * time.Second, 2 * time.Second},
		{20 * time.Second, 20 * time.Second, 5 * time.Second},
		{20 * time.Second, time.Hour, 20 * time.Second},
		{20 * time.Second, math.MaxInt64, 20 * time.Second},
		{time.Second, 0, time.Second},
		{time.Second, time.Hour, time.Second},
	}
	for _, test := range tests {
		r := newRoomOf(t, eviction.Room{Refresh: test.interval})
		least, most := time.Duration(math.MaxInt64), time.Duration(0)
		for i := range 256 {
			for _, seen := range []int64{0, 1e9, 5e9} {
				v := &visitor{id: qpid.ItemID{byte(i)}, seen: seen}
				got := time.Duration(r.refreshAfter(v, test.wait)) * time.Millisecond
				least, most = min(least, got), max(most, got)
			}
		}
		if low, high := test.want*9/10, test.want*11/10; least != low || most != high {
			t.Errorf("interval %v, wait %v: asked back after %v to %v, want %v to %v", test.interval, test.wait, least, most, low, high)
		}
	}
}

func TestTurnByTheRate(t *testing.T) {
	near := func(got time.Duration, want float64) bool { return math.Abs(got.Seconds()-want) < 0.02*want+0.01 }
	r := newRoomOf(t, eviction.Room{Target: 60, Session: time.Minute}) // one a second, before anyone was called
	if d := r.turn(100); !near(d, 100) {
		t.Errorf("turn of the hundredth at one a second: %v", d)
	}
	r = newRoomOf(t, eviction.Room{Target: 600, Session: time.Minute, NewPerMinute: 30})
	if d := r.turn(10); !near(d, 20) {
		t.Errorf("turn of the tenth at 30 a minute: %v", d)
	}
	for name, c := range map[string]eviction.Room{"no slots": {Session: time.Minute}, "no session": {Target: 9}} {
		if d := newRoomOf(t, c).turn(10); d != 0 {
			t.Errorf("%s: turn %v, want unknown", name, d)
		}
	}
	r = newRoomOf(t, eviction.Room{Target: 60, Session: time.Minute, Method: eviction.Random})
	if d := r.turn(0); d <= 0 || d > time.Second {
		t.Errorf("turn in a draw of one: %v", d)
	}
	if d := newRoomOf(t, eviction.Room{Target: 1, Session: 1000 * time.Hour}).turn(1 << 30); d > 12*24*time.Hour || d <= 0 {
		t.Errorf("a very long wait: %v", d)
	}
}

// What people were told is remembered for as long as they do, and not for much longer.
func TestForecastsAreRememberedForAMinute(t *testing.T) {
	w := waits{forecast: &estimate.Forecast{}}
	for now := int64(0); now < 3*memoryOfWait; now += 1_000_000 {
		w.remember(now, 0, 10, false)
		if now < memoryOfWait {
			continue
		}
		if age := now - w.past[0].at; age < memoryOfWait || age > memoryOfWait+2*pastEvery {
			t.Fatalf("after %d s what was told %d s ago is the oldest that is remembered, want some %d", now/1e6, age/1e6, int64(memoryOfWait)/1e6)
		}
	}
}
