package node_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// What a cluster runs with does not change because somebody starts a node with
// another file; what an operator sets does, everywhere.
func TestNewcomersFileChangesNothing(t *testing.T) {
	shop := eviction.Room{Name: "shop", Target: 10, Session: time.Minute, Settings: "ours"}
	c := founded(t, 2, shop)
	other := shop
	other.Target, other.Settings = 99, "theirs"
	c.add(node.Config{Joins: true, Rooms: []eviction.Room{other}}, "c0")
	c.gossip()
	c.run(3 * time.Second)
	for _, m := range c.node {
		if r := c.room(m, "shop").Room; r.Target != 10 || r.Settings != "ours" {
			t.Errorf("%d %q at %v after a node with another file joined", r.Target, r.Settings, m.Status().Self)
		}
	}
	if owned, _ := c.supply("shop"); owned != 10 {
		t.Errorf("%d slots, want the 10 of the cluster", owned)
	}
	other.Target = 12
	if err := c.node[2].SetRoom(c.at(c.node[2]), other); err != nil {
		t.Fatal(err)
	}
	c.run(3 * time.Second)
	for _, m := range c.node {
		if r := c.room(m, "shop").Room; r.Target != 12 || r.Settings != "theirs" {
			t.Errorf("%d %q at %v after an operator set 12", r.Target, r.Settings, m.Status().Self)
		}
	}
}

func TestNodeWithoutRoomsGetsThoseOfTheCluster(t *testing.T) {
	shop := eviction.Room{Name: "shop", Target: 10, Session: time.Minute, Settings: "routes and all"}
	c := founded(t, 2, shop)
	c.add(node.Config{Joins: true}, "c0")
	c.gossip()
	c.run(3 * time.Second)
	r, ok := c.node[2].Room("shop", c.at(c.node[2]))
	if !ok || r.Room.Target != 10 || r.Room.Settings != shop.Settings || !r.MayAdmit {
		t.Errorf("%v %+v, may admit %v; want the cluster's room", ok, r.Room, r.MayAdmit)
	}
}

// Which node leads does not matter: one that was started without rooms hears of
// those in the others' files.
func TestCoordinatorWithoutRoomsGetsThoseOfTheOthers(t *testing.T) {
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	shop := eviction.Room{Name: "shop", Target: 10, Session: time.Minute}
	c.add(node.Config{Expect: 2, Joins: true}, "a0")
	c.run(50 * time.Millisecond) // it is the most senior
	c.add(node.Config{Expect: 2, Joins: true, Rooms: []eviction.Room{shop}}, "b0")
	c.gossip()
	c.run(4 * time.Second)
	for _, m := range c.node {
		if r, ok := m.Room("shop", c.at(m)); !ok || r.Room.Target != 10 || !r.MayAdmit {
			t.Errorf("%v at %v: %+v", ok, m.Status().Self, r.Room)
		}
	}
	if owned, _ := c.supply("shop"); owned != 10 {
		t.Errorf("%d slots, want 10", owned)
	}
}

// A node that has been up for longest runs the waves, though it was not there
// when the others founded the cluster and has not heard of their quiet rooms.
func TestACoordinatorLearnsOfAQuietRoom(t *testing.T) {
	c := newCluster(t, 0)
	room := eviction.Room{Name: "shop", Target: 6, Session: 5 * time.Second}
	a := c.add(node.Config{Joins: true}, "a0")
	for _, name := range []string{"b0", "c0"} {
		c.add(node.Config{Expect: 2, Joins: true, Rooms: []eviction.Room{room}}, name)
	}
	c.split([]qpid.NodeID{"a0"}, []qpid.NodeID{"b0", "c0"})
	c.run(5 * time.Second)
	b := c.node[1]
	if s := c.room(b, "shop"); s.Account.Born == 0 || !s.Open {
		t.Fatalf("b0 and c0 have founded nothing: %+v", s)
	}
	c.heal()
	c.until("a0 leads", 5*time.Second, func() bool { return a.Status().Leading && !b.Status().Leading && len(b.Status().List) == 3 })
	for range 20 {
		c.run(time.Second)
		if s := c.room(b, "shop"); !s.Open {
			t.Fatalf("the room is closed at b0: %+v", s)
		}
	}
	if s := c.room(a, "shop"); s.Account.Born == 0 || s.Room.Target != 6 {
		t.Errorf("a0 runs the waves and has not heard of the room: %+v", s)
	}
}
