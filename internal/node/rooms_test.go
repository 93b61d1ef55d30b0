package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// Every kind of room lets everyone in, and never too many at a time.
func TestEveryKindOfRoom(t *testing.T) {
	for name, room := range map[string]eviction.Room{
		"fifo":    {},
		"random":  {Method: eviction.Random},
		"qpid":    {Algorithm: eviction.ByQPID},
		"paced":   {NewPerMinute: 600},
		"event":   {Event: eviction.Event{Start: wallStart + 3e6}},
		"shuffle": {Event: eviction.Event{Start: wallStart + 3e6, Shuffle: true, Seed: [32]byte{9}}},
		"share":   {OnPartition: eviction.Share},
		"stop":    {OnPartition: eviction.Stop},
	} {
		t.Run(name, func(t *testing.T) {
			room.Name, room.Target, room.Session, room.QueueAll, room.TicketTTL = "shop", 4, time.Minute, true, time.Hour
			c := founded(t, 3, room)
			var tickets []node.Ticket
			for i := range 40 {
				tickets = append(tickets, c.join(c.node[i%3], "shop").Ticket)
			}
			var inside []node.Pass
			for round := 0; len(tickets) > 0; round++ {
				if round > 1500 {
					c.dump()
					t.Fatalf("%d of 40 never got in", len(tickets))
				}
				c.run(20 * time.Millisecond)
				if at := wallStart + c.now; at < room.Event.Start && c.count(node.CalledIn) > 0 {
					t.Fatal("someone is called before the start")
				}
				if owned, used := c.supply("shop"); used > 4 || owned > 4 {
					t.Fatalf("%d slots, %d used", owned, used)
				}
				tickets = slices.DeleteFunc(tickets, func(ticket node.Ticket) bool {
					a, err := c.leave(c.node[round%3], ticket)
					if err == nil && a.State == node.Admitted {
						inside = append(inside, a.Pass)
					}
					return err == nil && a.State == node.Admitted
				})
				if len(inside) > 0 {
					c.end(c.node[round%3], inside[0])
					inside = inside[1:]
				}
			}
			order := c.entitlements()
			if len(order) != 40 {
				t.Errorf("%d entitlements for 40 people", len(order))
			}
			if sorted := slices.IsSortedFunc(order, qpid.Weight.Compare); sorted == (name == "random" || name == "shuffle") {
				t.Errorf("in order of arrival: %v", sorted)
			}
		})
	}
}

// S13: no more newcomers in a minute than the room allows, across a change of
// coordinator too.
func TestPacing(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 1000, Session: time.Minute, NewPerMinute: 60, QueueAll: true, TicketTTL: time.Hour})
	for i := range 200 {
		c.join(c.node[1+i%2], "shop")
	}
	var calls []int64
	for range 700 {
		before := c.count(node.CalledIn)
		c.run(100 * time.Millisecond)
		for range c.count(node.CalledIn) - before {
			calls = append(calls, c.now)
		}
		if c.now > 20e6 && c.node[0].up {
			c.node[0].up = false
			c.gossip()
		}
	}
	for i := range calls {
		n := 0
		for _, at := range calls[i:] {
			if at-calls[i] < 60e6 {
				n++
			}
		}
		if n > 60 {
			t.Fatalf("%d called within a minute", n)
		}
	}
	if len(calls) < 40 {
		t.Errorf("only %d called in 70 s at one a second", len(calls))
	}
}

// A pass of a lost node is honoured at once and extended by its heir when
// nothing else can extend it, on a slot of the heir's.
func TestPassOfADeadNode(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 6, Session: 30 * time.Second})
	dead := c.node[2]
	pass := c.admitted(dead, "shop")
	dead.up = false
	c.gossip()
	c.run(2 * time.Second)
	for _, m := range c.node[:2] {
		if a, err := c.visit(m, pass); err != nil || a.State != node.Admitted {
			t.Errorf("visit at %s: %+v, %v", m.cfg.Self.Name, a, err)
		}
		if a, err := c.refresh(m, pass); err != nil || a.Pass != pass {
			t.Errorf("refresh while the dead node might: %+v, %v; want the same pass", a.Pass, err)
		}
	}
	c.run(10 * time.Second)
	a, err := c.refresh(c.node[0], pass)
	if err != nil || a.Pass.Home == pass.Home || a.Pass.Expires <= pass.Expires {
		t.Fatalf("refresh after its lease: %+v, %v; want it taken over", a.Pass, err)
	}
	if b, err := c.refresh(c.node[1], pass); err != nil || b.Pass.Home != a.Pass.Home {
		t.Errorf("the older copy at another node: %+v, %v; want the same session", b.Pass, err)
	}
	c.wantUsed("shop", 1)
	c.end(c.node[1], a.Pass)
	c.until("settlement", time.Minute, func() bool { owned, _ := c.supply("shop"); return owned == 6 })
	if _, used := c.supply("shop"); used != 0 {
		t.Errorf("%d used in the end", used)
	}
}

// The policies of a side without a quorum.
func TestPartitionPolicies(t *testing.T) {
	for _, test := range []struct {
		policy      eviction.Policy
		small, most bool // who goes on calling
	}{
		{eviction.Majority, false, true},
		{eviction.Share, true, true},
		{eviction.Stop, false, false},
	} {
		c := founded(t, 3, eviction.Room{Name: "shop", Target: 9, Session: time.Minute, OnPartition: test.policy, QueueAll: true})
		for range 2 {
			for _, m := range c.node {
				c.join(m, "shop")
			}
		}
		c.run(time.Second) // slots are where people waited
		c.split([]qpid.NodeID{"a0", "b0"}, []qpid.NodeID{"c0"})
		c.run(12 * time.Second)
		if small, most := c.room(c.node[2], "shop").MayAdmit, c.room(c.node[0], "shop").MayAdmit; small != test.small || most != test.most {
			t.Errorf("policy %d: the smaller side may call: %v, the larger: %v; want %v and %v", test.policy, small, most, test.small, test.most)
		}
		c.heal()
		c.until("end of the split", 20*time.Second, func() bool {
			for _, m := range c.node {
				if !c.room(m, "shop").MayAdmit {
					return false
				}
			}
			return true
		})
	}
}

// Two are cut off from each other: the lowest name goes on.
func TestTwoNodes(t *testing.T) {
	c := founded(t, 2, shop())
	c.split([]qpid.NodeID{"a0"}, []qpid.NodeID{"b0"})
	c.run(12 * time.Second)
	if a, b := c.room(c.node[0], "shop").MayAdmit, c.room(c.node[1], "shop").MayAdmit; !a || b {
		t.Errorf("may call: a %v, b %v; want a only", a, b)
	}
}

// The last node standing goes on after survivor_after, and not before; when the
// others are back there is one limit again.
func TestSurvivor(t *testing.T) {
	room := eviction.Room{Name: "shop", Target: 4, Session: time.Second, Survivor: 20 * time.Second}
	c := founded(t, 3, room)
	c.split([]qpid.NodeID{"a0", "b0"}, []qpid.NodeID{"c0"})
	last := c.node[2]
	c.run(19 * time.Second)
	if c.room(last, "shop").MayAdmit {
		t.Error("a side without a quorum calls before survivor_after")
	}
	c.until("survivor", 15*time.Second, func() bool { s := c.room(last, "shop"); return s.MayAdmit && s.Owned == 4 })
	c.heal()
	c.until("one side", 5*time.Second, func() bool { owned, _ := c.supply("shop"); return owned <= 4 })
	c.until("all slots", 30*time.Second, func() bool { owned, _ := c.supply("shop"); return owned == 4 })
	line := c.node[0].Status().Line
	for _, m := range c.node {
		if s := m.Status(); s.Line != line || c.room(m, "shop").Line != line {
			t.Errorf("%s is on line %v, want %v", m.cfg.Self.Name, s.Line, line)
		}
	}
}

// Deleted rooms take none of the places of others, and are not without bound.
func TestDeletedRoomsTakeNoPlaces(t *testing.T) {
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	room := eviction.Room{Name: "shop", Target: 4, Session: time.Minute, TicketTTL: time.Hour}
	c.add(node.Config{Expect: 1, RoomsMax: 2, Rooms: []eviction.Room{room}}, "a")
	c.gossip()
	set := func(name string, m eviction.Mode) error {
		c.run(time.Second)
		r := room
		r.Name, r.Mode = name, m
		return c.node[0].SetRoom(c.at(c.node[0]), r)
	}
	for i, step := range []struct {
		name string
		mode eviction.Mode
		ok   bool
	}{
		{"one", eviction.Normal, true},
		{"two", eviction.Normal, false},
		{"one", eviction.Deleted, true},
		{"two", eviction.Normal, true},
		{"one", eviction.Normal, false}, // it would be the third again
		{"two", eviction.Deleted, true},
		{"three", eviction.Normal, true},
		{"three", eviction.Deleted, true},
		{"four", eviction.Normal, false}, // three are remembered
		{"one", eviction.Normal, true},
	} {
		if err := set(step.name, step.mode); (err == nil) != step.ok {
			t.Fatalf("step %d, %s %v: %v", i+1, step.name, step.mode, err)
		}
	}
}
