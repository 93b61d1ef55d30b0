package node_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// copying is a cluster that keeps so many copies of each place.
func copying(t testing.TB, nodes, copies int, room eviction.Room) *cluster {
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	for i := range nodes {
		c.add(node.Config{Expect: nodes, Joins: true, Rooms: []eviction.Room{room}, Cluster: eviction.Config{Copies: copies}}, string(rune('a'+i))+"0")
	}
	c.gossip()
	c.run(2 * time.Second)
	return c
}

func lineUp() eviction.Room {
	return eviction.Room{Name: "shop", Target: 0, Session: time.Minute, QueueAll: true, Refresh: time.Minute, TicketTTL: time.Hour}
}

// Thirty wait at each of three nodes, and one dies: its thirty wait on at the other two,
// though no browser has asked.
func TestWhoWaitedAtALostNodeWaitsOnWithoutAsking(t *testing.T) {
	c := copying(t, 3, 1, lineUp())
	for range 30 {
		for _, m := range c.node {
			c.join(m, "shop")
		}
	}
	for _, m := range c.node {
		if r := c.room(m, "shop"); r.Bare != 0 || r.Kept == 0 {
			t.Fatalf("%s: %d of %d are kept by nobody, and %d of others are kept there", m.cfg.Self.Name, r.Bare, r.Queued, r.Kept)
		}
		told := 0
		m.Copied("shop", func(id qpid.ItemID, heir eviction.Member) {
			told++
			if heir == m.cfg.Self.Member || m.KeptBy("shop", id) != heir {
				t.Errorf("%s tells that %v keeps the place of %x, and then %v", m.cfg.Self.Name, heir, id, m.KeptBy("shop", id))
			}
		})
		if told != 30 {
			t.Errorf("%s tells of %d that an heir keeps them, want all 30", m.cfg.Self.Name, told)
		}
	}
	c.node[1].up = false
	c.gossip()
	c.run(4 * time.Second)
	here, there := c.room(c.node[0], "shop"), c.room(c.node[2], "shop")
	if here.Queued+there.Queued != 90 || here.Queued <= 30 || there.Queued <= 30 {
		t.Errorf("%d and %d wait, want 90 together, and some of the lost node's at each", here.Queued, there.Queued)
	}
	if here.Bare+there.Bare != 0 {
		t.Errorf("%d and %d are kept by nobody", here.Bare, there.Bare)
	}
	if n := c.count(node.WentOn); n != 30 {
		t.Errorf("%d places went on, want 30", n)
	}
}

// Whoever is let in or gives up is kept by nobody any more.
func TestWhoIsGoneIsNotKept(t *testing.T) {
	c := copying(t, 3, 1, lineUp())
	var answers []node.Answer
	for range 12 {
		answers = append(answers, c.join(c.node[0], "shop"))
	}
	for _, a := range answers {
		if _, err := c.node[0].Abandon(c.at(c.node[0]), a.Ticket); err != nil {
			t.Fatal(err)
		}
		c.deliver()
	}
	for _, m := range c.node {
		if r := c.room(m, "shop"); r.Kept != 0 {
			t.Errorf("%s keeps %d places", m.cfg.Self.Name, r.Kept)
		}
	}
}

// A newcomer is not to be told of a place that nobody keeps. Where the heir does not
// answer, another one keeps the place after exclude_after.
func TestAPlaceIsUnkeptUntilAnHeirHasIt(t *testing.T) {
	c := copying(t, 3, 1, lineUp())
	a := c.node[0]
	for range 10 {
		c.join(a, "shop") // so that both of the others have answered
	}
	before := c.room(c.node[1], "shop").Kept + c.room(c.node[2], "shop").Kept
	var mute eviction.Member
	c.pass = func(m eviction.Message) []eviction.Message {
		if _, ok := m.Body.(*eviction.Copies); ok && m.From == a.cfg.Self.Member && (mute == eviction.Member{} || m.To == mute) {
			mute = m.To
			return nil
		}
		return []eviction.Message{m}
	}
	joined := c.join(a, "shop")
	if !a.Unkept("shop", joined.Ticket.ID) {
		t.Fatal("the place counts as kept, and no heir has heard of it")
	}
	c.run(2500 * time.Millisecond)
	if a.Unkept("shop", joined.Ticket.ID) || c.room(a, "shop").Bare != 0 {
		t.Error("the heir has been mute for longer than exclude_after, and no other keeps the place")
	}
	for _, m := range c.node[1:] {
		if kept := c.room(m, "shop").Kept; m.cfg.Self.Member != mute && kept != before+1 {
			t.Errorf("%d places are kept by the other node, want all %d", kept, before+1)
		}
	}
}

// An heir stands still for longer than it may take until it hears of a home that is in waves.
// When it goes on it is in a wave with the home before it hears of its places, and keeps them.
func TestAnHeirThatStoodStillKeepsItsPlaces(t *testing.T) {
	c := copying(t, 2, 1, lineUp())
	home, heir := c.node[0], c.node[1]
	for range 10 {
		c.join(home, "shop")
	}
	if kept := c.room(heir, "shop").Kept; kept != 10 {
		t.Fatalf("%d places are kept, want all 10", kept)
	}
	heir.up = false
	c.run(2*heir.cfg.Cluster.WithDefaults().ExcludeAfter + time.Second)
	c.pass = func(m eviction.Message) []eviction.Message {
		if _, ok := m.Body.(*eviction.Copies); ok && m.To == heir.cfg.Self.Member {
			return nil // it is late
		}
		return []eviction.Message{m}
	}
	heir.up = true
	began := heir.Status().Installed
	for end := c.now + 5_000_000; heir.Status().Installed == began && c.now < end; c.now += c.step {
		home.Tick(c.at(home))
		c.deliver()
	}
	if heir.Status().Installed == began {
		t.Fatal("there was no wave with both")
	}
	c.run(100 * time.Millisecond)
	if kept := c.room(heir, "shop").Kept; kept != 10 {
		t.Errorf("%d of 10 places are kept by the heir that stood still", kept)
	}
}

// What is kept of a home that has said nothing for long, while it was in the waves, is not
// right any more: it has others keep its places.
func TestPlacesOfAHomeThatSaysNothingAreForgotten(t *testing.T) {
	c := copying(t, 3, 1, lineUp())
	home, heir := c.node[0], c.node[1]
	for range 12 {
		c.join(home, "shop")
	}
	if c.room(heir, "shop").Kept == 0 {
		t.Fatal("the heir keeps nothing")
	}
	c.pass = func(m eviction.Message) []eviction.Message {
		if _, ok := m.Body.(*eviction.Copies); ok && m.From == home.cfg.Self.Member && m.To == heir.cfg.Self.Member {
			return nil
		}
		return []eviction.Message{m}
	}
	c.run(2*heir.cfg.Cluster.WithDefaults().ExcludeAfter + time.Second)
	if kept := c.room(heir, "shop").Kept; kept != 0 {
		t.Errorf("%d places are kept of a home that has not been heard of for so long", kept)
	}
}

// A node alone has nobody to keep anything, and lets nobody wait for that.
func TestANodeAloneKeepsNobodyWaiting(t *testing.T) {
	c := copying(t, 1, 1, lineUp())
	if a := c.join(c.node[0], "shop"); c.node[0].Unkept("shop", a.Ticket.ID) {
		t.Error("a newcomer waits for an heir, and there is none")
	}
}

// Rooms in which each side may go on by itself, or all stop, have no copies.
func TestOnlyRoomsOfTheMajorityAreCopied(t *testing.T) {
	for _, policy := range []eviction.Policy{eviction.Share, eviction.Stop} {
		room := lineUp()
		room.OnPartition = policy
		c := copying(t, 3, 1, room)
		c.join(c.node[0], "shop")
		if r := c.room(c.node[0], "shop"); r.Bare != -1 {
			t.Errorf("%v: %d are kept by nobody, want no count", policy, r.Bare)
		}
	}
}

// BenchmarkJoinThatIsKept is a join at one of three nodes with all that follows from it
// at all of them, but waves: ten joins go to each node at once. With copies=1 each place
// is kept by another node. B/kept is the memory of the heirs, for each place.
func BenchmarkJoinThatIsKept(b *testing.B) {
	for _, copies := range []int{0, 1} {
		b.Run(fmt.Sprintf("copies=%d", copies), func(b *testing.B) {
			room := lineUp()
			room.QueueMax = 10_000_000
			c := copying(b, 3, copies, room)
			joined := 0
			for b.Loop() {
				m := c.node[joined/10%3]
				id := qpid.ItemID{0: byte(joined * 151), 1: byte(joined), 2: byte(joined >> 8), 3: byte(joined >> 16), 4: byte(joined >> 24)}
				if _, err := m.Join(c.at(m), "shop", id, false); err != nil {
					b.Fatal(err)
				}
				joined++
				c.now++
				if joined%30 == 0 {
					c.deliver()
				}
			}
			c.deliver()
			if bare := c.room(c.node[0], "shop").Bare; copies == 1 && bare > 0 {
				b.Fatalf("%d are kept by nobody", bare)
			}
			c.inFlight, c.log = nil, slices.Clip(c.log[:0])
			before := memory()
			for _, m := range c.node[1:] {
				m.Node, m.up = nil, false
			}
			b.ReportMetric(float64(before-memory())/float64(max(1, joined*2/3)), "B/place")
		})
	}
}

func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
