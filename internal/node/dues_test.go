package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// A join, a check-in and the end of a visit are of one room: no other is looked at.
// A tick looks at none in which nothing is due.
func TestNoOtherRoomIsLookedAt(t *testing.T) {
	var rooms []eviction.Room
	for i := range 50 {
		rooms = append(rooms, eviction.Room{Name: fmt.Sprintf("room%02d", i), Target: 1, Session: time.Minute, QueueAll: true})
	}
	now := eviction.Time{Boot: 1e9, Wall: 1_700_000_000_000_000}
	n, err := New(Config{Self: eviction.Peer{Member: eviction.Member{Name: "a", Boot: 1}}, Expect: 1, Rooms: rooms}, now)
	if err != nil {
		t.Fatal(err)
	}
	pass := func(µs int64) {
		now.Boot, now.Wall = now.Boot+µs, now.Wall+µs
	}
	run := func(d time.Duration) {
		for end := now.Boot + d.Microseconds(); now.Boot < end; pass(10_000) {
			n.Tick(now)
			n.Ready(now)
		}
	}
	run(3 * time.Second)
	looked := func(what string, most int) {
		t.Helper()
		if got := len(n.dues.spare); got > most {
			t.Errorf("%s: %d rooms were looked at, want %d at most", what, got, most)
		}
		if err := n.Overlooked(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range rooms {
		if _, err := n.Join(now, rooms[i].Name, qpid.ItemID{byte(i)}, false); err != nil {
			t.Fatal(err)
		}
		looked("join", 1)
		pass(1)
	}
	run(time.Second) // everybody is called
	answer, err := n.Join(now, "room07", qpid.ItemID{0: 1, 1: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	looked("join", 1)
	if _, err := n.CheckIn(now, answer.Ticket); err != nil {
		t.Fatal(err)
	}
	looked("check-in", 1)
	pass(20_000)
	for n.ev.Deadline(now)-now.Boot < 40_000 { // a wave is about to begin
		run(10 * time.Millisecond)
	}
	n.Tick(now)
	n.Tick(now)
	looked("tick", 0)
}
