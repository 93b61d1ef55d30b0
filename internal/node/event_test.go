package node_test

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// Every node begins with a seed of its own for an event of its file. The cluster
// goes by one of them, before anybody is told of it, and keeps it: when the file
// is read again at any node, and when all nodes come back from their disks.
func TestOneSeedForAnEvent(t *testing.T) {
	event := eviction.Event{Name: "sale", Prequeue: wallStart + 8e6, Start: wallStart + 40e6, End: wallStart + 90e6, Shuffle: true}
	room := eviction.Room{Name: "shop", Target: 4, Session: time.Minute, QueueAll: true, TicketTTL: time.Hour, Events: []eviction.Event{event}}
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	for i, name := range []string{"a", "b", "c"} {
		c.add(node.Config{Expect: 3, Joins: true, Disk: true, Rooms: []eviction.Room{room}, Secret: [32]byte{byte(i + 1)}}, name)
	}
	c.gossip()
	c.run(10 * time.Second)
	seed := c.room(c.node[0], "shop").Room.Events[0].Seed
	same := func(when string) {
		t.Helper()
		for _, m := range c.node {
			rs := c.room(m, "shop")
			if rs.Room.Events[0].Seed != seed || rs.Draw.Commitment != rs.Room.Events[0].Commitment() || rs.Draw.Over() != (c.now >= 40e6) {
				t.Errorf("%s: %s has the seed %x and tells of %+v, want %x", when, m.cfg.Self.Name, rs.Room.Events[0].Seed, rs.Draw, seed)
			}
		}
	}
	same("at first")
	again := room
	again.Target = 5
	if err := c.node[2].SetRoom(c.at(c.node[2]), again); err != nil {
		t.Fatal(err)
	}
	c.run(time.Second)
	same("after the file was read again")
	if rs := c.room(c.node[0], "shop"); rs.Room.Target != 5 {
		t.Fatalf("the limit is %d", rs.Room.Target)
	}
	for i, m := range c.node {
		m.cfg.Secret = [32]byte{byte(i + 100)}
		c.restart(m)
	}
	c.run(10 * time.Second)
	same("after a restart of everything")
	c.run(41*time.Second - time.Duration(c.now)*time.Microsecond)
	same("after the start")

	other := again
	other.Events = []eviction.Event{event}
	other.Events[0].Seed = [32]byte{77}
	if err := c.node[0].SetRoom(c.at(c.node[0]), other); !errors.Is(err, node.ErrInvalid) {
		t.Errorf("another seed for a draw that is over: %v", err)
	}
}

// In the pre-queue nobody has a position, whatever was shown before it; after the
// draw everybody has one, and it may be a higher one.
func TestPositionsAreThoseOfTheDraw(t *testing.T) {
	room := eviction.Room{
		Name: "shop", Target: 1, Session: time.Minute, TicketTTL: time.Hour,
		Events: []eviction.Event{{Name: "sale", Prequeue: wallStart + 6e6, Start: wallStart + 12e6, End: wallStart + 90e6, Shuffle: true, Seed: [32]byte{3}}},
	}
	c := founded(t, 3, room)
	c.admitted(c.node[0], "shop")
	var tickets []node.Ticket
	for i := range 30 {
		tickets = append(tickets, c.join(c.node[i%3], "shop").Ticket)
	}
	ask := func(d time.Duration) (at []int) {
		t.Helper()
		c.run(d)
		for i := range tickets {
			a, err := c.checkIn(c.node[i%3], tickets[i])
			if err != nil {
				t.Fatal(err)
			}
			tickets[i] = a.Ticket
			at = append(at, a.Position)
		}
		return at
	}
	for i, at := range ask(time.Second) {
		if at != i+1 {
			t.Errorf("before the pre-queue number %d has the position %d", i+1, at)
		}
	}
	for _, at := range ask(5 * time.Second) {
		if at != 0 {
			t.Fatalf("in the pre-queue somebody has the position %d", at)
		}
	}
	ask(4 * time.Second) // parked people are back in line
	seen := map[int]bool{}
	for _, at := range ask(time.Second) {
		seen[at] = true
	}
	if len(seen) != 30 || !seen[1] || !seen[30] {
		t.Errorf("after the draw there are %d positions: %v", len(seen), seen)
	}
}
