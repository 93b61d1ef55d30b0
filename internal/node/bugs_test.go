package node_test

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// A pass that was given out is good until it expires, so a shorter session
// does not free its slot any sooner.
func TestRefreshNeverShortensASession(t *testing.T) {
	room := eviction.Room{Name: "shop", Target: 3, Session: time.Minute}
	c := founded(t, 1, room)
	a := c.node[0]
	first := c.admitted(a, "shop")
	room.Session = time.Second
	if err := a.SetRoom(c.at(a), room); err != nil {
		t.Fatal(err)
	}
	c.run(2 * time.Second)
	next, err := c.refresh(a, first)
	if err != nil {
		t.Fatal(err)
	}
	if next.Pass.Expires < first.Expires {
		t.Errorf("refreshed pass expires %d µs before the one it replaces", first.Expires-next.Pass.Expires)
	}
	c.run(10 * time.Second)
	if s := c.room(a, "shop"); s.Used != 1 {
		t.Errorf("%d slots used while the first pass still lives, want 1", s.Used)
	}
}

// A node whose ledger was voided while it was cut off throws nobody out: its
// passes run until they expire, and it takes their sessions over itself.
func TestSessionsSurviveTheirVoidedLedger(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 9, Session: 40 * time.Second})
	b := c.node[1]
	pass := c.admitted(b, "shop")
	c.split([]qpid.NodeID{"a0", "c0"}, []qpid.NodeID{"b0"})
	c.run(6 * time.Second)
	c.heal()
	c.until("new account", 5*time.Second, func() bool { return c.room(b, "shop").Account.Born > pass.Home.Born })
	a, err := c.visit(b, pass)
	if err != nil || a.State != node.Admitted {
		t.Fatalf("visit with an unexpired pass of the old account: %+v, %v", a, err)
	}
	c.run(15 * time.Second)
	if a, err = c.refresh(b, pass); err != nil || a.Pass.Expires <= pass.Expires {
		t.Errorf("refresh after the old lease has run out: %+v, %v; want it taken over and extended", a, err)
	}
}

// The account of a node that lost its lease closes while someone is called;
// that visitor gives up in the very moment in which the node notices.
func TestAbandonAsTheAccountLapses(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 3, Session: time.Second, QueueAll: true})
	b := c.node[1]
	ticket := c.join(b, "shop").Ticket
	c.until("call", 2*time.Second, func() bool { return c.room(b, "shop").Called == 1 })
	c.split([]qpid.NodeID{"a0", "c0"}, []qpid.NodeID{"b0"})
	c.run(10 * time.Second)
	c.now += (3 * time.Second).Microseconds()
	if _, err := b.Abandon(c.at(b), ticket); err != nil {
		t.Errorf("abandon: %v", err)
	}
}

// Seed 17918: the first that a node hears of after a long pause is a message that
// has nothing to do with its account, which has lapsed meanwhile.
func TestWhateverComesFirstTheAccountHasLapsed(t *testing.T) {
	for _, body := range []eviction.Body{&eviction.SyncRequest{}, &eviction.SyncReply{}, &eviction.SyncAck{}, &eviction.Urgent{Room: "shop"}} {
		c := founded(t, 3, eviction.Room{Name: "shop", Target: 3, Session: time.Second, QueueAll: true})
		a, b := c.node[0], c.node[1]
		c.join(b, "shop")
		c.until("call", 2*time.Second, func() bool { return c.room(b, "shop").Called == 1 })
		c.now += (20 * time.Second).Microseconds()
		if err := b.Step(c.at(b), eviction.Message{From: a.cfg.Self.Member, To: b.cfg.Self.Member, Body: body}); err != nil {
			t.Fatal(err)
		}
		if s := c.room(b, "shop"); s.Called > s.Used || s.Account.Born != 0 {
			t.Errorf("after a %s: %d called with %d slots in use, account %v", body.Kind(), s.Called, s.Used, s.Account)
		}
	}
}

// An operator changes the event while those who gathered for it still wait in
// the order of its draw.
func TestEventChangedAfterItsStart(t *testing.T) {
	for name, change := range map[string]func(*eviction.Event){
		"seed":    func(e *eviction.Event) { e.Seed[3] = 7 },
		"shuffle": func(e *eviction.Event) { e.Shuffle = false },
		"removed": func(e *eviction.Event) { *e = eviction.Event{} },
		"start":   func(e *eviction.Event) { e.Start += 1e6; e.Seed[3] = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			room := eviction.Room{
				Name: "shop", Target: 2, Session: time.Second, QueueAll: true,
				Event: eviction.Event{Start: wallStart + 4e6, Shuffle: true, Seed: [32]byte{1}},
			}
			c := founded(t, 2, room)
			var tickets []node.Ticket
			for i := range 12 {
				tickets = append(tickets, c.join(c.node[i%2], "shop").Ticket)
			}
			c.run(2500 * time.Millisecond)
			change(&room.Event)
			err := c.node[1].SetRoom(c.at(c.node[1]), room)
			if refused := errors.Is(err, node.ErrInvalid); refused != (name == "seed") {
				t.Fatalf("set room: %v; only the seed of a draw that is over is refused", err)
			}
			c.admitAll(tickets, 10*time.Second)
		})
	}
}

// A node comes back in a wave that does not ask about an idle room. Nobody has
// told it yet that its account there is void, so it must not act on it.
func TestNoLeaseForRoomsThatAWaveLeavesOut(t *testing.T) {
	for offset := range 10 {
		c := founded(t, 3, eviction.Room{Name: "shop", Target: 9, Session: time.Minute})
		a, b := c.node[0], c.node[1]
		c.split([]qpid.NodeID{"a0", "c0"}, []qpid.NodeID{"b0"})
		c.run(12*time.Second + time.Duration(offset)*100*time.Millisecond)
		c.heal()
		for range 300 {
			c.run(10 * time.Millisecond)
			mine := c.room(b, "shop")
			for _, v := range c.room(a, "shop").Voided {
				if v.Member == mine.Account.Member && mine.Account.Born <= v.Epoch && mine.MayAdmit {
					t.Fatalf("%v after the heal b acts on %v, a holds %v for void", time.Duration(c.now)*time.Microsecond, mine.Account, v)
				}
			}
		}
		if !c.room(b, "shop").MayAdmit {
			t.Fatalf("b may not act after all")
		}
	}
}

// A node that was cut off and went on with waves of its own still asks which
// of its people went elsewhere meanwhile.
func TestTicketTakenOverWhileItsHomeRanWavesAlone(t *testing.T) {
	for _, home := range []int{0, 1, 2} {
		c := founded(t, 3, eviction.Room{Name: "shop", Target: 1, Session: time.Minute, QueueAll: true})
		h, other := c.node[home], c.node[(home+1)%3]
		c.join(other, "shop")
		c.until("call", time.Second, func() bool { return c.room(other, "shop").Called == 1 })
		ticket := c.join(h, "shop").Ticket
		var rest []qpid.NodeID
		for i, m := range c.node {
			if i != home {
				rest = append(rest, m.cfg.Self.Name)
			}
		}
		c.split(rest, []qpid.NodeID{h.cfg.Self.Name})
		c.run(6 * time.Second)
		a, err := c.checkIn(other, ticket)
		if err != nil || a.Ticket.Home == ticket.Home {
			t.Fatalf("check-in elsewhere: %+v, %v; want the ticket taken over", a, err)
		}
		c.run(time.Second)
		c.heal()
		c.run(3 * time.Second)
		if n := c.room(h, "shop").Queued; n != 0 {
			t.Errorf("after the heal %d wait at %s, whose only ticket went elsewhere", n, h.cfg.Self.Name)
		}
	}
}

// A cluster of one sends no messages, and still keeps what it must not forget.
// TestOfTwoWhoTookAPlaceOverAtOnceOneGivesItUp has two nodes with a place at the same
// generation, one of which hears of the other. The one that kept it could say later that
// it was given up, while the other had it.
func TestOfTwoWhoTookAPlaceOverAtOnceOneGivesItUp(t *testing.T) {
	for _, first := range []int{0, 1} {
		r := shop()
		r.Target = 1
		c := founded(t, 2, r)
		has, takes := c.node[first], c.node[1-first]
		c.called(has, c.join(has, "shop").Ticket, 5*time.Second) // nobody else is, for a minute
		second := c.join(has, "shop").Ticket
		place := eviction.Place{ID: second.ID, Stamp: second.Stamp, Refresh: 60_000}
		err := takes.Step(c.at(takes), eviction.Message{
			From: has.cfg.Self.Member, To: takes.cfg.Self.Member, Body: &eviction.Places{Room: "shop", Places: []eviction.Place{place}},
		})
		if err != nil {
			t.Fatal(err)
		}
		c.run(3 * time.Second)
		for i, m := range c.node {
			a, err := m.CheckIn(c.at(m), second)
			if err != nil || (a.Forward == eviction.Member{}) != (i == 0) {
				t.Errorf("joined at %s: %s answers %+v, %v; the place is to stay at %s alone", has.cfg.Self.Name, m.cfg.Self.Name, a, err, c.node[0].cfg.Self.Name)
			}
		}
	}
}

func TestSingleNodeSaves(t *testing.T) {
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	a := c.add(node.Config{Disk: true, Rooms: []eviction.Room{{Name: "shop", Target: 3, Session: time.Second}}}, "a0")
	c.gossip()
	c.run(time.Second)
	if err := a.SetRoom(c.at(a), eviction.Room{Name: "shop", Target: 7, Session: time.Second}); err != nil {
		t.Fatal(err)
	}
	c.run(2 * time.Second)
	c.restart(a)
	c.run(time.Second)
	if got := c.room(a, "shop").Room.Target; got != 7 {
		t.Errorf("after a restart the limit is %d, want the 7 that was set", got)
	}
	c.until("slots", 40*time.Second, func() bool { return c.room(a, "shop").Owned == 7 })
}

// Passes given out while a room let everybody through hold no slot: once the
// room has a limit again they run out.
func TestPassthroughPassesRunOutUnderALimit(t *testing.T) {
	room := eviction.Room{Name: "shop", Target: 1, Session: 10 * time.Second, Method: eviction.Passthrough}
	c := founded(t, 1, room)
	a := c.node[0]
	pass := c.admitted(a, "shop")
	c.run(time.Second)
	if got, err := c.refresh(a, pass); err != nil || got.Pass.Expires <= pass.Expires {
		t.Errorf("refresh while everybody is let through: %+v, %v", got.Pass, err)
	}
	room.Method = eviction.FIFO
	if err := a.SetRoom(c.at(a), room); err != nil {
		t.Fatal(err)
	}
	c.run(2 * time.Second)
	if got, err := c.refresh(a, pass); err != nil || got.Pass.Expires != pass.Expires {
		t.Errorf("refresh under a limit: %+v, %v; want the same pass, expiring at %d", got.Pass, err, pass.Expires)
	}
}

// Where nobody knows how long the wait is, nobody is asked back every 2 s.
func TestUnknownWaitAsksBackSeldom(t *testing.T) {
	c := founded(t, 1, eviction.Room{Name: "shop", Target: 0, Session: time.Minute})
	a := c.join(c.node[0], "shop")
	if a.Wait != (node.Wait{}) || a.Refresh < 15*time.Second {
		t.Errorf("wait %v, asked back after %v; want unknown, and about 20s", a.Wait, a.Refresh)
	}
}

// A later change wins over every one that its node knew of, whatever the clocks
// of those who made them.
func TestLaterChangeOfARoomWins(t *testing.T) {
	room := eviction.Room{Name: "shop", Target: 3, Session: time.Second}
	c := founded(t, 2, room)
	a, b := c.node[0], c.node[1]
	a.wrong = (400 * time.Millisecond).Microseconds() // within the skew: its clock follows, slowly
	c.step = 100_000
	c.run(15 * time.Minute)
	c.step = 10_000
	room.Target = 4
	if err := a.SetRoom(c.at(a), room); err != nil {
		t.Fatal(err)
	}
	c.run(200 * time.Millisecond)
	room.Target = 5
	if err := b.SetRoom(c.at(b), room); err != nil {
		t.Fatal(err)
	}
	c.run(5 * time.Second)
	for _, m := range c.node {
		if got := c.room(m, "shop").Room.Target; got != 5 {
			t.Errorf("limit at %s is %d, want the 5 that was set last", m.cfg.Self.Name, got)
		}
	}
}

// Who comes back from silence to find the cut beyond their place is entitled
// there and then, and the log says so.
func TestReturnToAPlaceWithinTheCutIsLogged(t *testing.T) {
	c := founded(t, 2, eviction.Room{Name: "shop", Target: 1, Session: time.Second, QueueAll: true, Refresh: time.Second, TicketTTL: time.Minute})
	a, b := c.node[0], c.node[1]
	hold := c.join(a, "shop").Ticket
	c.until("call", time.Second, func() bool { return c.room(a, "shop").Called == 1 })
	early := c.join(a, "shop").Ticket
	c.until("parked", 20*time.Second, func() bool { return c.room(a, "shop").Parked == 1 })
	if _, err := c.leave(a, hold); err != nil {
		t.Fatal(err)
	}
	late := c.join(b, "shop").Ticket
	c.until("call", 10*time.Second, func() bool { return c.room(b, "shop").Called == 1 })
	if _, err := c.checkIn(a, early); err != nil {
		t.Fatal(err)
	}
	if _, err := c.leave(b, late); err != nil {
		t.Fatal(err)
	}
	c.until("call", 10*time.Second, func() bool { return c.room(a, "shop").Called == 1 })
	n := 0
	for _, l := range c.log {
		if l.Event == node.Entitled && l.Weight == early.Weight() {
			n++
		}
	}
	if n != 1 {
		t.Errorf("logged %d entitlements of the ticket that came back, want 1", n)
	}
}

// A wave that fails is repeated about the same rooms, not a second later.
func TestFailedWaveIsRepeated(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 3, Session: time.Minute, QueueAll: true})
	c.run(300 * time.Millisecond)
	lost := false
	c.pass = func(m eviction.Message) []eviction.Message {
		if r, ok := m.Body.(*eviction.Reply); ok && !lost && m.From.Name == "c0" && len(r.Rooms) > 0 {
			lost = true
			return nil
		}
		return []eviction.Message{m}
	}
	c.join(c.node[1], "shop")
	before := c.now
	c.until("call", 5*time.Second, func() bool { return c.room(c.node[1], "shop").Called == 1 })
	if took := time.Duration(c.now-before) * time.Microsecond; !lost || took > 850*time.Millisecond {
		t.Errorf("called after %v, reply lost %v; want the deadline, a period and a little", took, lost)
	}
}

// Everyone who knew of the cluster is gone, one after the other, and those who
// are left only ever heard of it. They go on as survivors do.
func TestClusterThatNobodyKnowsOfGoesOn(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 3, Session: time.Second, Survivor: eviction.SurvivorAuto})
	for _, m := range c.node[1:] {
		m.up = false
	}
	c.gossip()
	c.run(time.Second)
	for _, m := range c.node[1:] {
		c.restart(m)
	}
	c.run(5 * time.Second)
	c.node[0].up = false
	c.gossip()
	c.run(time.Second)
	c.restart(c.node[0])
	c.step = 50_000
	c.until("slots", 7*time.Minute, func() bool { owned, _ := c.supply("shop"); return owned == 3 })
	if c.now < (5 * time.Minute).Microseconds() {
		t.Errorf("founded anew after %d s, before survivor_after", c.now/1e6)
	}
}

// Under `share` a node that is away keeps its slots. One that said goodbye, or
// came back as another life of the same name, is not away.
func TestSharedSlotsOfALifeThatIsOver(t *testing.T) {
	for _, how := range []string{"goodbye", "restart"} {
		c := founded(t, 3, eviction.Room{Name: "shop", Target: 6, Session: time.Second, OnPartition: eviction.Share})
		x := c.node[2]
		c.admitted(x, "shop")
		if how == "goodbye" {
			x.Goodbye(c.at(x))
			c.deliver()
			c.run(time.Second)
			x.up = false
			c.gossip()
		} else {
			c.restart(x)
		}
		c.until(how+": all slots", 30*time.Second, func() bool { owned, _ := c.supply("shop"); return owned == 6 })
	}
}

// Two coordinators that do not see each other court the same node. The one that
// it answered first may have founded a cluster, and have its word for it only.
func TestTwoFoundingsShareNoSlots(t *testing.T) {
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	for _, name := range []string{"a0", "d0", "b0", "c0"} {
		c.add(node.Config{Expect: 3, Joins: true, Rooms: []eviction.Room{{Name: "shop", Target: 6, Session: 5 * time.Second}}}, name)
	}
	blind := func(m eviction.Message) []eviction.Message { // a and d do not see each other
		if m.From.Name == "a0" && m.To.Name == "d0" || m.From.Name == "d0" && m.To.Name == "a0" {
			return nil
		}
		if _, ok := m.Body.(*eviction.Commit); ok && m.From.Name == "a0" {
			return nil // the founding reaches nobody
		}
		return []eviction.Message{m}
	}
	c.pass = blind
	for i, view := range [][]int{{0, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}} {
		var peers []eviction.Peer
		for _, j := range view {
			peers = append(peers, c.node[j].cfg.Self)
		}
		c.node[i].SetView(c.at(c.node[i]), eviction.NewView(peers))
	}
	for range 900 {
		c.run(10 * time.Millisecond)
		usable := 0
		for _, m := range c.node {
			if s, ok := m.Room("shop", c.at(m)); ok && s.MayAdmit {
				usable += s.Owned
			}
		}
		if usable > 6 {
			c.dump()
			t.Fatalf("%d slots may be used after %d ms", usable, c.now/1000)
		}
	}
}
