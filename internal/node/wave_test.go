package node_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// only lets a function look at the messages of one kind and decide which
// arrive.
func only[B eviction.Body](decide func(m eviction.Message, b B) []eviction.Message) func(eviction.Message) []eviction.Message {
	return func(m eviction.Message) []eviction.Message {
		if b, ok := m.Body.(B); ok {
			return decide(m, b)
		}
		return []eviction.Message{m}
	}
}

// A wave costs three messages per edge of the tree, whatever its shape, and
// leaves everyone with a lease, the same list and the same epoch.
func TestWave(t *testing.T) {
	for _, n := range []int{1, 2, 9, 12} {
		c := founded(t, n, shop())
		clear(c.sent)
		before := c.node[0].Status().Installed.Num
		c.run(3 * time.Second)
		first := c.node[0].Status()
		waves := int(first.Installed.Num - before)
		for _, kind := range []string{"gather", "reply", "commit"} {
			if c.sent[kind] != waves*(n-1) {
				t.Errorf("%d nodes: %d %ss in %d waves, want %d", n, c.sent[kind], kind, waves, waves*(n-1))
			}
		}
		if waves < 13 || waves > 16 {
			t.Errorf("%d nodes: %d waves in 3s, want about five a second", n, waves)
		}
		for _, m := range c.node {
			s := m.Status()
			if s.Grade != eviction.Unanimous || s.Installed != first.Installed || !slices.Equal(s.List, first.List) || s.Frozen ||
				s.LeaseUntil < bootStart+c.now+9_700_000 || s.Leading != (m == c.node[0]) || !c.room(m, "shop").MayAdmit {
				t.Errorf("%d nodes: %s after a wave: %+v", n, m.cfg.Self.Name, s)
			}
		}
		if owned, _ := c.supply("shop"); owned != 2 {
			t.Errorf("%d nodes: %d slots, want 2", n, owned)
		}
	}
}

// S7, S8: who joins after their node's reply is not cut by that wave, even if
// there are slots for everyone: somebody earlier may be on their way.
func TestCutCountsOnlyStampsUpToT(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 9, Session: time.Minute, QueueAll: true})
	var held []eviction.Message
	var T uint64
	c.pass = func(m eviction.Message) []eviction.Message {
		if g, ok := m.Body.(*eviction.Gather); ok {
			T = g.T
		}
		if _, ok := m.Body.(*eviction.Reply); ok && m.From.Name == "c0" {
			held = append(held, m)
			return nil
		}
		return []eviction.Message{m}
	}
	early := c.join(c.node[1], "shop").Ticket
	c.until("gather about the room", time.Second, func() bool { return len(held) > 0 && T >= early.Stamp })
	late := c.join(c.node[1], "shop").Ticket
	if late.Stamp <= T {
		t.Fatalf("stamped %d after a reply that promised nothing up to %d", late.Stamp, T)
	}
	c.pass = nil
	if err := c.node[0].Step(c.at(c.node[0]), held[len(held)-1]); err != nil {
		t.Fatal(err)
	}
	c.deliver()
	cut := c.room(c.node[1], "shop").Cut.Value
	if cut.Less(early.Weight()) || !cut.Less(late.Weight()) {
		t.Errorf("cut %v after a wave up to %d; want it between %v and %v", cut, T, early.Weight(), late.Weight())
	}
	c.called(c.node[1], late, time.Second)
}

// A node answers an older gather, or one of a junior of a coordinator that it
// follows, with what it knows better; the sender goes on from there.
func TestNack(t *testing.T) {
	c := founded(t, 3, shop())
	b := c.node[1]
	s := b.Status()
	var nacks []*eviction.Nack
	c.pass = only(func(m eviction.Message, n *eviction.Nack) []eviction.Message {
		nacks = append(nacks, n)
		return nil
	})
	gather := func(lead *member, num uint64) {
		l := lead.cfg.Self
		g := &eviction.Gather{
			Epoch: qpid.Epoch{Num: num, Coordinator: qpid.NodeID(l.Member.String())}, Lead: l,
			List: []eviction.Member{l.Member, b.cfg.Self.Member}, T: uint64(wallStart + c.now), Wait: 1000,
		}
		if err := b.Step(c.at(b), eviction.Message{From: l.Member, To: b.cfg.Self.Member, Body: g}); err != nil {
			t.Fatal(err)
		}
		c.deliver()
	}
	gather(c.node[0], s.Epoch.Num-1)
	if len(nacks) != 1 || nacks[0].Epoch != s.Epoch || nacks[0].Lead.Member != (eviction.Member{}) {
		t.Errorf("to an old epoch: %+v", nacks)
	}
	gather(c.node[2], s.Epoch.Num+50)
	if len(nacks) != 2 || nacks[1].Lead.Member != c.node[0].cfg.Self.Member {
		t.Errorf("to a junior: %+v", nacks)
	}
	if now := b.Status(); now.Epoch != s.Epoch || now.Frozen {
		t.Errorf("a refused gather changed the node: %+v", now)
	}
	c.pass = nil
	if err := c.node[0].Step(c.at(c.node[0]), eviction.Message{
		From: b.cfg.Self.Member, To: c.node[0].cfg.Self.Member, Body: &eviction.Nack{Epoch: qpid.Epoch{Num: 5000, Coordinator: "z.1"}},
	}); err != nil {
		t.Fatal(err)
	}
	c.run(500 * time.Millisecond)
	if now := b.Status(); now.Installed.Num <= 5000 {
		t.Errorf("installed %v, want the coordinator to jump over what it was told", now.Installed)
	}
}

// S6: a message of a wave that comes twice, or comes late, changes nothing.
func TestWaveMessagesAreIdempotent(t *testing.T) {
	c := founded(t, 3, shop())
	b := c.node[1]
	var gathers, commits []eviction.Message
	c.pass = func(m eviction.Message) []eviction.Message {
		if m.To == b.cfg.Self.Member {
			switch m.Body.(type) {
			case *eviction.Gather:
				gathers = append(gathers, m)
			case *eviction.Commit:
				commits = append(commits, m)
			}
		}
		return []eviction.Message{m}
	}
	for range 3 {
		c.join(b, "shop")
		c.run(300 * time.Millisecond)
	}
	c.pass = func(m eviction.Message) []eviction.Message { return nil }
	status, room := b.Status(), c.room(b, "shop")
	for _, m := range slices.Concat(gathers, commits, gathers) {
		if err := b.Step(c.at(b), m); err != nil {
			t.Error(err)
		}
	}
	if now := b.Status(); !reflect.DeepEqual(now, status) {
		t.Errorf("status after messages that were there before:\n%+v\nbefore:\n%+v", now, status)
	}
	if now := c.room(b, "shop"); !reflect.DeepEqual(now, room) {
		t.Errorf("room after messages that were there before:\n%+v\nbefore:\n%+v", now, room)
	}
}

// A commit whose wave has been overtaken by the next gather is not installed.
func TestCommitOfAnOldEpoch(t *testing.T) {
	c := founded(t, 3, shop())
	b := c.node[1]
	var held []eviction.Message
	c.pass = only(func(m eviction.Message, _ *eviction.Commit) []eviction.Message {
		if m.To != b.cfg.Self.Member {
			return []eviction.Message{m}
		}
		held = append(held, m)
		return nil
	})
	installed := b.Status().Installed
	c.until("two waves", 2*time.Second, func() bool { return len(held) >= 2 && b.Status().Frozen })
	if err := b.Step(c.at(b), held[0]); err != nil {
		t.Error(err)
	}
	if now := b.Status(); now.Installed != installed || !now.Frozen {
		t.Errorf("installed %v, frozen %v after a commit of an earlier epoch", now.Installed, now.Frozen)
	}
	if err := b.Step(c.at(b), held[len(held)-1]); err != nil {
		t.Error(err)
	}
	if now := b.Status(); now.Installed.Num <= installed.Num+1 || now.Frozen {
		t.Errorf("installed %v, frozen %v after the commit of its own wave", now.Installed, now.Frozen)
	}
}

// The next most senior takes over, at once where gossip has noticed, within
// exclude_after where it has not; the lost node's slots come back after D.
func TestTakeOverOfTheCoordinator(t *testing.T) {
	for _, noticed := range []bool{true, false} {
		c := founded(t, 4, eviction.Room{Name: "shop", Target: 8, Session: time.Second, QueueAll: true})
		c.node[0].up = false
		limit := 500 * time.Millisecond
		if noticed {
			c.gossip()
		} else {
			limit = 3 * time.Second
		}
		died := c.now
		c.until("next coordinator", 4*time.Second, func() bool {
			s := c.node[3].Status()
			return len(s.List) == 3 && s.Installed.Coordinator == "b0.1" && s.Grade == eviction.Primary
		})
		if took := time.Duration(c.now-died) * time.Microsecond; took > limit {
			t.Errorf("noticed %v: it took %v, want %v", noticed, took, limit)
		}
		if owned, _ := c.supply("shop"); owned == 8 {
			t.Error("the lost node's slots are back before D")
		}
		c.until("all slots", 15*time.Second, func() bool { owned, _ := c.supply("shop"); return owned == 8 })
		if took := c.now - died; took < 10_000_000 {
			t.Errorf("slots were made again %d µs after their node was lost, its lease was longer", took)
		}
	}
}

// A node that fails waves is left out for a while, longer each time, and comes
// back when it answers.
func TestBlame(t *testing.T) {
	c := founded(t, 4, shop())
	deaf := true
	c.pass = func(m eviction.Message) []eviction.Message {
		if _, ok := m.Body.(*eviction.Gather); ok && deaf && m.To.Name == "c0" {
			return nil // though it answers probes, and gossip sees it
		}
		return []eviction.Message{m}
	}
	a := c.node[0]
	with := func() bool { return slices.Contains(a.Status().List, c.node[2].cfg.Self.Member) }
	c.until("wave without it", 4*time.Second, func() bool { return !with() })
	stalls := 0
	for range 60 {
		before := a.Status().Installed
		c.run(time.Second)
		if a.Status().Installed == before {
			stalls++
		}
	}
	if stalls > 20 {
		t.Errorf("waves stood still in %d of 60 s for a node that never answers", stalls)
	}
	deaf = false
	c.until("wave with it", 20*time.Second, with)
}

// Founding takes as many as were told to expect each other.
func TestFoundingNeedsThoseExpected(t *testing.T) {
	c := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	for _, name := range []string{"a0", "b0", "c0"} {
		c.add(node.Config{Expect: 3, Joins: true, Rooms: []eviction.Room{shop()}}, name)
	}
	c.node[2].up = false
	c.gossip()
	c.run(3 * time.Second)
	for _, m := range c.node[:2] {
		if s := m.Status(); s.Line.Founded() || s.Waiting == "" {
			t.Fatalf("two of three founded a cluster: %+v", s)
		}
		if _, err := m.Join(c.at(m), "shop", qpid.ItemID{1}, false); err == nil {
			t.Error("joined a cluster that is not there")
		}
	}
	c.node[2].up = true
	c.gossip()
	c.until("founding", time.Second, func() bool { return c.node[1].Status().Grade == eviction.Unanimous })

	alone := &cluster{t: t, step: 10_000, sent: map[string]int{}}
	m := alone.add(node.Config{Joins: true, Rooms: []eviction.Room{shop()}}, "a0")
	alone.gossip()
	alone.run(time.Minute)
	if s := m.Status(); s.Line.Founded() {
		t.Errorf("a node that was to join others founded a cluster: %+v", s)
	}
}

// The first test of all: one node, which nobody answers.
func TestSingleNode(t *testing.T) {
	c := founded(t, 1, shop())
	var tickets []node.Ticket
	for range 5 {
		tickets = append(tickets, c.join(c.node[0], "shop").Ticket)
	}
	c.admitAll(tickets, 5*time.Second)
	if got := c.entitlements(); len(got) != 5 || !slices.IsSortedFunc(got, qpid.Weight.Compare) {
		t.Errorf("entitled %v", got)
	}
	if len(c.sent) > 0 {
		t.Errorf("a single node sent %v", c.sent)
	}
}

// A node that restarts is another member: its old slots come back after D, and
// nobody is called beyond the limit meanwhile.
func TestRestart(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 6, Session: 2 * time.Second})
	c.admitted(c.node[2], "shop")
	c.admitted(c.node[2], "shop")
	c.restart(c.node[2])
	died := c.now
	for ok := false; !ok; {
		c.run(100 * time.Millisecond)
		owned, _ := c.supply("shop")
		ok = owned == 6
		if ok && c.now-died < 12_000_000 {
			t.Fatalf("all slots are back after %d µs, the lost ones may be in use", c.now-died)
		}
		if owned > 6 || c.now-died > 20_000_000 {
			t.Fatalf("%d slots %d µs after the restart", owned, c.now-died)
		}
	}
	if s := c.node[2].Status(); s.Grade != eviction.Unanimous || s.Self.Boot != 2 {
		t.Errorf("the new life: %+v", s)
	}
}

// Who leaves on purpose hands its free slots over: nobody waits D for them, and
// the next coordinator does not wait to find out.
func TestGracefulLeave(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 9, Session: time.Minute})
	a := c.node[0]
	a.Goodbye(c.at(a))
	c.deliver()
	if got, err := a.Join(c.at(a), "shop", qpid.ItemID{1: 77}, false); !errors.Is(err, ticket.ErrUnavailable) {
		t.Errorf("who joins at a node that has said goodbye gets %v, %v, want to be told to try another", got, err)
	}
	c.run(time.Second)
	a.up = false
	c.gossip()
	c.until("slots", 3*time.Second, func() bool { owned, _ := c.supply("shop"); return owned == 9 })
	c.until("voters without it", 5*time.Second, func() bool {
		return slices.Equal(c.node[1].Status().Voters.Names, []qpid.NodeID{"b0", "c0"})
	})
}

// Slots that were on their way to a node when it said goodbye do not end with it.
func TestSlotsOnTheirWayToANodeThatLeavesGoOn(t *testing.T) {
	c := founded(t, 3, eviction.Room{Name: "shop", Target: 9, Session: time.Minute, QueueAll: true})
	leaver := c.node[2]
	var held []eviction.Message
	c.pass = func(m eviction.Message) []eviction.Message {
		if _, ok := m.Body.(*eviction.Slots); ok && m.To == leaver.cfg.Self.Member {
			held = append(held, m)
			return nil
		}
		return []eviction.Message{m}
	}
	for range 9 {
		c.join(leaver, "shop")
	}
	c.until("slots on their way", time.Second, func() bool { return len(held) > 0 })
	c.pass = nil
	leaver.Goodbye(c.at(leaver))
	c.inFlight = append(c.inFlight, held...)
	c.deliver()
	c.run(time.Second)
	leaver.up = false
	c.gossip()
	c.until("slots", 3*time.Second, func() bool { owned, _ := c.supply("shop"); return owned == 9 })
}

// A lower limit throws nobody out and lets nobody in until enough have gone; a
// higher one takes force at once.
func TestLimitLoweredAndRaised(t *testing.T) {
	room := eviction.Room{Name: "shop", Target: 6, Session: time.Minute}
	c := founded(t, 3, room)
	var passes []node.Pass
	for i := range 6 {
		passes = append(passes, c.admitted(c.node[i%3], "shop"))
	}
	set := func(target int) {
		room.Target = target
		if err := c.node[1].SetRoom(c.at(c.node[1]), room); err != nil {
			t.Fatal(err)
		}
		c.run(time.Second)
	}
	set(3)
	ticket := c.join(c.node[0], "shop").Ticket
	c.run(time.Second)
	for i := range 3 {
		if a, err := c.checkIn(c.node[0], ticket); err != nil || a.State != node.Waiting {
			t.Fatalf("%d on the site of 3: %+v, %v", 6-i, a, err)
		}
		for _, p := range passes {
			if _, err := c.visit(c.node[2], p); err != nil {
				t.Errorf("thrown out: %v", err)
			}
		}
		c.end(c.node[1], passes[0])
		passes = passes[1:]
		c.run(time.Second)
	}
	c.wantUsed("shop", 3)
	if owned, _ := c.supply("shop"); owned != 3 || c.room(c.node[0], "shop").Closed {
		t.Errorf("%d slots, closed %v; want 3, open again", owned, c.room(c.node[0], "shop").Closed)
	}
	c.end(c.node[1], passes[0])
	c.called(c.node[0], ticket, time.Second)
	set(8)
	if owned, _ := c.supply("shop"); owned != 8 {
		t.Errorf("%d slots a second after the limit was raised to 8", owned)
	}
}

// A room is created while the cluster runs: everywhere, with its slots.
func TestRoomCreatedAtRunTime(t *testing.T) {
	c := founded(t, 3, shop())
	c.run(time.Hour / 100)
	if err := c.node[2].SetRoom(c.at(c.node[2]), eviction.Room{Name: "tickets", Target: 5, Session: time.Second, QueueAll: true}); err != nil {
		t.Fatal(err)
	}
	c.until("room", 2*time.Second, func() bool {
		owned, _ := c.supply("tickets")
		return owned == 5 && len(c.node[1].Rooms()) == 2
	})
	var tickets []node.Ticket
	for _, m := range c.node {
		tickets = append(tickets, c.join(m, "tickets").Ticket)
	}
	c.admitAll(tickets, 5*time.Second)
}

// Lost messages of any kind only cost time.
func TestEveryMessageOfAWaveMayBeLost(t *testing.T) {
	for _, kind := range []string{"gather", "reply", "commit", "slots", "slots_ack", "probe", "probe_ack", "urgent"} {
		c := founded(t, 3, shop())
		n := 0
		c.pass = func(m eviction.Message) []eviction.Message {
			if m.Body.Kind() == kind { // each third of them: of all messages it might be one node's each time
				n++
				if n%3 == 0 {
					return nil
				}
			}
			return []eviction.Message{m}
		}
		var tickets []node.Ticket
		for i := range 12 {
			tickets = append(tickets, c.join(c.node[i%3], "shop").Ticket)
		}
		c.admitAll(tickets, time.Minute)
		if owned, used := c.supply("shop"); owned > 2 || used > owned {
			t.Errorf("%s: %d slots, %d used", kind, owned, used)
		}
	}
}
