package node_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// A node without a disk that starts once a draw is over has another secret than
// it had. What counts is the seed that everybody was told, in its own queue and
// for those whom it takes over.
func TestNodeThatStartsAfterTheDrawTakesItsSeed(t *testing.T) {
	event := eviction.Event{Name: "sale", Prequeue: wallStart + 4e6, Start: wallStart + 8e6, End: wallStart + 900e6, Shuffle: true}
	room := eviction.Room{Name: "shop", Target: 1, Session: 10 * time.Minute, TicketTTL: time.Hour, ClaimWindow: time.Hour, Events: []eviction.Event{event}}
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	for i, name := range []string{"a", "b", "c"} {
		c.add(node.Config{Expect: 3, Joins: true, Rooms: []eviction.Room{room}, Secret: [32]byte{byte(i + 1)}}, name)
	}
	c.gossip()
	c.run(5 * time.Second)
	var tickets []node.Ticket
	for i := range 30 {
		tickets = append(tickets, c.join(c.node[i%3], "shop").Ticket)
	}
	c.run(5 * time.Second)
	for i := range tickets {
		a, err := c.checkIn(c.node[i%3], tickets[i])
		if err != nil {
			t.Fatal(err)
		}
		tickets[i] = a.Ticket
	}
	seed := c.room(c.node[0], "shop").Draw.Seed
	if seed == ([32]byte{}) {
		t.Fatal("no draw")
	}
	m := c.node[2]
	m.up = false
	c.gossip()
	c.run(6 * time.Second)
	m.cfg.Secret = [32]byte{99}
	m.saved = nil
	c.restart(m)
	c.run(5 * time.Second)
	rs := c.room(m, "shop")
	if rs.Draw.Seed != seed {
		t.Errorf("restarted node tells draw %+v, want seed %x", rs.Draw, seed[:4])
	}
	held := rs.Room
	held.Mode = eviction.Held
	if err := m.SetRoom(c.at(m), held); err != nil {
		t.Errorf("hold at the restarted node: %v", err)
	}
	c.run(time.Second)
	c.node[1].up = false
	c.gossip()
	c.run(30 * time.Second)
	for i := range tickets {
		if i%3 != 0 {
			if a, err := c.checkIn(c.node[2*(i%2)], tickets[i]); err == nil {
				tickets[i] = a.Ticket
			}
		}
	}
	c.run(2 * time.Second)
	bad, n := 0, 0
	back := held
	back.Mode, back.Target = eviction.Normal, 40
	if err := c.node[0].SetRoom(c.at(c.node[0]), back); err != nil {
		t.Fatal(err)
	}
	c.run(20 * time.Second)
	for _, l := range c.log {
		if l.Event == node.Entitled && l.Weight.Stamp < uint64(event.Start) {
			n++
			if l.Key.Stamp != eviction.Shuffled(seed, uint64(event.Start), l.Weight.ID) {
				bad++
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d bad of %d", bad, n)
	}
}

// Nodes with keys and no data may start together in the middle of an event, each
// with a seed of its own.
func TestNodesThatStartDuringAnEventAgreeOnItsDraw(t *testing.T) {
	event := eviction.Event{Name: "sale", Prequeue: wallStart - 9e6, Start: wallStart - 4e6, End: wallStart + 900e6, Shuffle: true}
	room := eviction.Room{Name: "shop", Target: 30, Session: 20 * time.Second, TicketTTL: time.Hour, Events: []eviction.Event{event}}
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	for i, name := range []string{"a", "b", "c"} {
		c.add(node.Config{Expect: 3, Joins: true, Rooms: []eviction.Room{room}, Secret: [32]byte{byte(i + 1)}, KeptKeys: true}, name)
	}
	c.gossip()
	c.run(10 * time.Second)
	for _, m := range c.node {
		rs := c.room(m, "shop")
		if !rs.Draw.Over() {
			t.Errorf("%s: keying %d, draw told %v: its queue is keyed with another seed than the configuration has", m.cfg.Self.Name, rs.Cut.Keying, rs.Draw.Over())
		}
	}
}

// A wave in which the method changes from random to fifo has replies by drawn
// places. As a cut, one of them would entitle everybody for thousands of years.
func TestDrawnPlacesAreNoCut(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 4, Session: time.Minute, QueueAll: true, TicketTTL: time.Hour, Method: eviction.Random, ClaimWindow: time.Hour})
	var tickets []node.Ticket
	for i := range 60 {
		tickets = append(tickets, c.join(c.node[i%3], "shop").Ticket)
	}
	c.run(time.Second)
	// someone comes in and ends at once, freeing a slot, as the operator changes the method
	done := 0
	for i := range tickets {
		a, err := c.leave(c.node[i%3], tickets[i])
		if err == nil && a.State == node.Admitted {
			c.end(c.node[i%3], a.Pass)
			done++
			break
		}
	}
	r := c.room(c.node[1], "shop").Room
	r.Method = eviction.FIFO
	if err := c.node[1].SetRoom(c.at(c.node[1]), r); err != nil {
		t.Fatal(err)
	}
	c.run(2 * time.Second)
	for _, m := range c.node {
		rs := c.room(m, "shop")
		if rs.Cut.Value.Stamp > uint64(wallStart+c.now+1e6) {
			t.Errorf("%s: method %v cut %d years ahead of now; %d ended", m.cfg.Self.Name, rs.Now.Method, (rs.Cut.Value.Stamp-uint64(wallStart+c.now))/1e6/86400/365, done)
		}
	}
}

// Digests from before a draw speak of other weights. What is shown never rises,
// so nothing is shown until there are new ones.
func TestPositionsAfterADrawAreThoseOfTheDraw(t *testing.T) {
	start := wallStart + 12e6
	room := eviction.Room{
		Name: "shop", Target: 1, Session: time.Minute, TicketTTL: time.Hour,
		Events: []eviction.Event{{Name: "sale", Prequeue: wallStart + 4e6, Start: start, End: wallStart + 90e6, Shuffle: true, Seed: [32]byte{3}}},
	}
	c := founded(t, 10, room)
	c.admitted(c.node[0], "shop")
	c.run(3 * time.Second)
	var tickets []node.Ticket
	for i := range 300 {
		tickets = append(tickets, c.join(c.node[i%10], "shop").Ticket)
	}
	for c.now < 14e6 {
		c.run(10 * time.Millisecond)
		for i := range tickets {
			if (c.now/10_000+int64(i))%40 == 0 && c.now > 11.5e6 {
				a, err := c.checkIn(c.node[i%10], tickets[i])
				if err != nil {
					t.Fatal(err)
				}
				tickets[i] = a.Ticket
			}
		}
	}
	off := 0
	key := func(tk node.Ticket) uint64 { return eviction.Shuffled([32]byte{3}, uint64(start), tk.ID) }
	for i := range tickets {
		at := 1
		for j := range tickets {
			if key(tickets[j]) < key(tickets[i]) {
				at++
			}
		}
		if int(tickets[i].Position) < at*8/10-2 {
			off++
		}
	}
	if off > 0 {
		t.Errorf("%d of 300 are shown a position that is more than 20%% too good, until they are called", off)
	}
}

// An event came and went while the coordinator was cut off, and its rooms have
// no trace of it.
func TestCoordinatorLearnsOfADrawItMissed(t *testing.T) {
	room := eviction.Room{Name: "shop", Target: 2, Session: 2 * time.Second, TicketTTL: time.Hour, QueueAll: true}
	c := founded(t, 3, room)
	c.split([]qpid.NodeID{"a0"}, []qpid.NodeID{"b0", "c0"})
	c.run(4 * time.Second)
	r := c.room(c.node[1], "shop").Room
	r.Events = []eviction.Event{{Name: "sale", Prequeue: wallStart + c.now + 1e6, Start: wallStart + c.now + 3e6, End: wallStart + c.now + 8e6, Shuffle: true}}
	if err := c.node[1].SetRoom(c.at(c.node[1]), r); err != nil {
		t.Fatal(err)
	}
	c.run(10 * time.Second)
	r = c.room(c.node[1], "shop").Room
	r.Events = nil
	if err := c.node[1].SetRoom(c.at(c.node[1]), r); err != nil {
		t.Fatal(err)
	}
	c.run(time.Second)
	c.heal()
	c.run(30 * time.Second)
	tk := c.join(c.node[1], "shop").Ticket
	c.run(5 * time.Second)
	if a, err := c.checkIn(c.node[1], tk); err != nil || a.State != node.Called {
		t.Errorf("%v, %v: nobody is called 35 s after the heal", a.State, err)
	}
}

// A deleted room with on_partition: stop keeps no lost node among the voters.
func TestDeletedRoomStopsForNobody(t *testing.T) {
	for _, del := range []bool{false, true} {
		one := eviction.Room{Name: "one", Target: 4, Session: 2 * time.Second, OnPartition: eviction.Stop, TicketTTL: time.Hour, Survivor: 0}
		two := one
		two.Name = "two"
		c := founded(t, 3, one, two)
		if del {
			r := c.room(c.node[0], "two").Room
			r.Mode = eviction.Deleted
			if err := c.node[0].SetRoom(c.at(c.node[0]), r); err != nil {
				t.Fatal(err)
			}
		}
		c.run(2 * time.Second)
		dead := c.node[2]
		dead.up = false
		c.gossip()
		c.run(5 * time.Second)
		for _, name := range []string{"one", "two"} {
			r := c.room(c.node[0], name).Room
			if r.Mode == eviction.Deleted {
				continue // as operator.Reclaim does
			}
			r.Reclaimed = []eviction.Member{dead.cfg.Self.Member}
			if err := c.node[0].SetRoom(c.at(c.node[0]), r); err != nil {
				t.Fatal(err)
			}
		}
		c.run(60 * time.Second)
		if s := c.node[0].Status(); s.Grade != eviction.Unanimous {
			t.Errorf("two deleted %v: one never calls again after the reclaim: grade %v", del, s.Grade)
		}
	}
}

func TestHeldRoomIsHeldInAPassthroughEvent(t *testing.T) {
	room := eviction.Room{
		Name: "shop", Target: 2, Session: time.Minute, TicketTTL: time.Hour, QueueAll: true,
		Events: []eviction.Event{{Name: "free", Prequeue: wallStart + 3e6, Start: wallStart + 3e6, End: wallStart + 90e6, Set: eviction.SetMethod, Method: eviction.Passthrough}},
	}
	c := founded(t, 3, room)
	c.run(3 * time.Second)
	for _, mode := range []eviction.Mode{eviction.Held, eviction.Draining} {
		r := c.room(c.node[0], "shop").Room
		r.Mode = mode
		if err := c.node[0].SetRoom(c.at(c.node[0]), r); err != nil {
			t.Fatal(err)
		}
		c.run(time.Second)
		c.ids++
		a, err := c.node[1].Join(c.at(c.node[1]), "shop", [16]byte{9, byte(c.ids)}, false)
		if err == nil && a.State == node.Admitted {
			t.Errorf("a %v room lets a newcomer walk in", mode)
		}
	}
}

// A room that was suspended after its draw has its events back, from any node.
func TestRoomComesBackWithItsDrawAtAnyNode(t *testing.T) {
	event := eviction.Event{Name: "sale", Prequeue: wallStart + 4e6, Start: wallStart + 8e6, End: wallStart + 900e6, Shuffle: true}
	room := eviction.Room{Name: "shop", Target: 1, Session: 10 * time.Minute, TicketTTL: time.Hour, Events: []eviction.Event{event}}
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	for i, name := range []string{"a", "b", "c"} {
		c.add(node.Config{Expect: 3, Joins: true, Rooms: []eviction.Room{room}, Secret: [32]byte{byte(i + 1)}}, name)
	}
	c.gossip()
	c.run(10 * time.Second)
	off := room
	off.Events, off.Method = nil, eviction.Passthrough
	if err := c.node[0].SetRoom(c.at(c.node[0]), off); err != nil {
		t.Fatal(err)
	}
	c.run(time.Second)
	for _, m := range c.node {
		if err := m.SetRoom(c.at(m), room); err != nil {
			t.Errorf("back at %s: %v", m.cfg.Self.Name, err)
		}
	}
}

// The pre-queue begins by a node's own clock, whether there are waves or not.
func TestPrequeueOfAPassthroughRoomBeginsByTheClock(t *testing.T) {
	room := eviction.Room{
		Name: "shop", Target: 1, Session: 10 * time.Minute, TicketTTL: time.Hour, Method: eviction.Passthrough,
		Events: []eviction.Event{{Name: "sale", Prequeue: wallStart + 3e6, Start: wallStart + 50e6, End: wallStart + 80e6}},
	}
	c := founded(t, 3, room)
	c.pass = func(m eviction.Message) []eviction.Message {
		if _, ok := m.Body.(*eviction.Reply); ok {
			return nil
		}
		return []eviction.Message{m}
	}
	for range 8 {
		c.run(time.Second)
		c.ids++
		a, err := c.node[1].Join(c.at(c.node[1]), "shop", [16]byte{9, byte(c.ids)}, false)
		if c.now > 3e6+1e6 && err == nil && a.State == node.Admitted {
			t.Errorf("somebody walked in %v after the pre-queue began", time.Duration(c.now-3e6)*time.Microsecond)
		}
	}
}

// Those who wait when an event of a passthrough room ends, or when a room is
// suspended, are let in by their next check-in; a call's slot is free again.
func TestPeopleWhoWaitWalkInOnceTheRoomIsPassthrough(t *testing.T) {
	room := eviction.Room{
		Name: "shop", Target: 2, Session: time.Minute, TicketTTL: time.Hour, Method: eviction.Passthrough,
		Events: []eviction.Event{{
			Name: "sale", Prequeue: wallStart + 10e6, Start: wallStart + 12e6, End: wallStart + 16e6,
			Set: eviction.SetMethod, Method: eviction.FIFO,
		}},
	}
	c := founded(t, 3, room)
	c.run(time.Duration(11e6-c.now) * time.Microsecond)
	var tickets []node.Ticket
	for i := range 12 {
		tickets = append(tickets, c.join(c.node[i%3], "shop").Ticket)
	}
	c.run(3 * time.Second)
	before := c.now
	states := map[node.State]int{}
	for i := range tickets {
		a, err := c.checkIn(c.node[(i+1)%3], tickets[i])
		if err != nil {
			t.Fatal(err)
		}
		states[a.State]++
	}
	if states[node.Called] != 2 || states[node.Waiting] != 10 {
		t.Fatalf("during the event %v, want 2 called and 10 who wait", states)
	}
	c.run(3 * time.Second)
	for i := range tickets {
		for range 2 { // an answer may be lost
			a, err := c.checkIn(c.node[(i+2)%3], tickets[i])
			if err != nil || a.State != node.Admitted || a.Pass.Expires < wallStart+before+60e6 {
				t.Errorf("visitor %d after the event: %v with a pass until %d, %v", i, a.State, a.Pass.Expires-wallStart, err)
			}
		}
	}
	for _, m := range c.node {
		if rs := c.room(m, "shop"); rs.Queued+rs.Called+rs.Used != 0 {
			t.Errorf("%s has %d in line, %d called, %d slots in use; want none", m.cfg.Self.Name, rs.Queued, rs.Called, rs.Used)
		}
	}
}

// Who waits for a draw that is some time off asks as seldom as anybody whose turn is as far
// away, and soon when it is near.
func TestWhoWaitsForADrawIsAskedBackByItsStart(t *testing.T) {
	event := eviction.Event{Name: "sale", Prequeue: wallStart + 1e6, Start: wallStart + 600e6, End: wallStart + 900e6, Shuffle: true}
	c := founded(t, 1, eviction.Room{Name: "shop", Target: 1, Session: time.Minute, TicketTTL: time.Hour, Refresh: 20 * time.Second, Events: []eviction.Event{event}})
	m := c.node[0]
	waits := c.join(m, "shop")
	if waits.Refresh < 18*time.Second || waits.Refresh > 22*time.Second {
		t.Errorf("ten minutes before the draw: asked back after %v, want some 20 s", waits.Refresh)
	}
	c.now += event.Start - wallStart - c.now - 40e6
	c.run(100 * time.Millisecond)
	if a, err := c.checkIn(m, waits.Ticket); err != nil || a.Refresh < 8*time.Second || a.Refresh > 12*time.Second {
		t.Errorf("40 s before the draw: asked back after %v, %v; want a quarter of that", a.Refresh, err)
	}
}
