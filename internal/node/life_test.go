package node_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// shop is a room for two, in which everyone queues.
func shop() eviction.Room {
	return eviction.Room{Name: "shop", Target: 2, Session: 10 * time.Second, QueueAll: true}
}

// called waits until the holder of t is called.
func (c *cluster) called(m *member, t node.Ticket, limit time.Duration) node.Answer {
	c.t.Helper()
	var a node.Answer
	c.until("call", limit, func() bool {
		var err error
		if a, err = c.checkIn(m, t); err != nil {
			c.t.Fatal(err)
		}
		return a.State == node.Called
	})
	return a
}

func (c *cluster) wantUsed(room string, want int) {
	c.t.Helper()
	if owned, used := c.supply(room); used != want {
		c.t.Errorf("%d of %d slots are used, want %d", used, owned, want)
	}
}

// One visitor's whole way: join, wait, be called, leave, come and go on the
// site, end.
func TestVisit(t *testing.T) {
	c := founded(t, 3, shop())
	b := c.node[1]
	a := c.join(b, "shop")
	if a.State != node.Waiting || a.Position > 1 || a.Ticket.Home != b.cfg.Self.Member || a.Refresh < time.Second || a.Refresh > 3*time.Second {
		t.Fatalf("join: %+v", a)
	}
	if _, err := c.leave(b, a.Ticket); !errors.Is(err, ticket.ErrNotCalled) {
		t.Errorf("leave before the call: %v, want not called yet", err)
	}
	a = c.called(b, a.Ticket, time.Second)
	if a.Position != 1 || a.Pass != (node.Pass{}) || a.Wave == 0 {
		t.Errorf("called: %+v", a)
	}
	c.wantUsed("shop", 1)
	in, err := c.leave(b, a.Ticket)
	if err != nil || in.State != node.Admitted || in.Wave != a.Wave || in.Pass.Expires == 0 || in.Ticket != (node.Ticket{}) {
		t.Fatalf("leave: %+v, %v", in, err)
	}
	again, err := c.leave(b, a.Ticket)
	if err != nil || again.Pass != in.Pass {
		t.Errorf("leave again: %+v, %v; want the same pass", again.Pass, err)
	}
	for _, m := range c.node { // another node asks the home
		if v, err := c.visit(m, in.Pass); err != nil || v.State != node.Admitted {
			t.Errorf("visit at %s: %+v, %v", m.cfg.Self.Name, v, err)
		}
	}
	c.run(6 * time.Second)
	longer, err := c.refresh(c.node[2], in.Pass)
	if err != nil || longer.Pass.Expires-in.Pass.Expires < 5e6 {
		t.Fatalf("refresh after 6s: %+v, %v", longer.Pass, err)
	}
	c.run(6 * time.Second)
	c.wantUsed("shop", 1)
	c.end(c.node[0], longer.Pass)
	c.wantUsed("shop", 0)
	if _, err := c.visit(b, longer.Pass); !errors.Is(err, ticket.ErrPassExpired) {
		t.Errorf("visit after the end: %v", err)
	}
	if _, err := c.leave(b, a.Ticket); !errors.Is(err, ticket.ErrUsed) {
		t.Errorf("leave after the end: %v, want ticket used", err)
	}
	if _, err := c.checkIn(b, a.Ticket); !errors.Is(err, ticket.ErrUsed) {
		t.Errorf("check-in after the end: %v, want ticket used", err)
	}
	var events []node.Event
	for _, l := range c.log {
		events = append(events, l.Event)
	}
	if want := []node.Event{node.Entitled, node.CalledIn, node.AdmittedQ, node.Ended}; !slices.Equal(events, want) {
		t.Errorf("log %v, want %v", events, want)
	}
	if e := c.log[len(c.log)-1]; !e.Early || e.Visit < 12e6 || e.Visit > 13e6 || e.OnSite != 0 || c.log[2].OnSite != 1 {
		t.Errorf("the end is %+v, after %+v; want a visit of 12 s that ended early", e, c.log[2])
	}
}

// A ticket that was used is known as such for as long as any clock of a node takes it for good.
func TestAUsedTicketIsKnownByClocksApart(t *testing.T) {
	room := shop()
	room.Session, room.Refresh, room.TicketTTL = time.Second, time.Second, 8*time.Second
	c := founded(t, 1, room)
	a := c.node[0]
	used := c.join(a, "shop").Ticket
	in, err := c.leave(a, c.called(a, used, time.Second).Ticket)
	if err != nil {
		t.Fatal(err)
	}
	c.end(a, in.Pass)
	c.run(room.TicketTTL + 900*time.Millisecond)
	if _, err := c.checkIn(a, used); !errors.Is(err, ticket.ErrUsed) {
		t.Errorf("not yet two skews after the life of a ticket: %v, want ticket used", err)
	}
}

// A pass nobody refreshes runs out, and its slot is free a little later, when
// the slowest clock agrees.
func TestPassRunsOut(t *testing.T) {
	c := founded(t, 2, shop())
	a := c.node[0]
	in, err := c.leave(a, c.called(a, c.join(a, "shop").Ticket, time.Second).Ticket)
	if err != nil {
		t.Fatal(err)
	}
	c.run(9900 * time.Millisecond)
	if _, err := c.visit(a, in.Pass); err != nil {
		t.Errorf("just before its end: %v", err)
	}
	c.run(200 * time.Millisecond)
	if _, err := c.visit(a, in.Pass); !errors.Is(err, ticket.ErrPassExpired) {
		t.Errorf("just after its end: %v", err)
	}
	c.wantUsed("shop", 1)
	c.run(1500 * time.Millisecond)
	c.wantUsed("shop", 0)
	if e := c.log[len(c.log)-1]; e.Event != node.Ended || e.Early || e.Visit != 10e6 {
		t.Errorf("the end is %+v; want a visit of 10 s that ran out", e)
	}
}

// Who is silent leaves the queue and finds their old place when they return;
// who is silent for the life of a ticket has lost it.
func TestParkedAndBack(t *testing.T) {
	room := shop()
	room.Target, room.Refresh, room.TicketTTL, room.Session = 1, time.Second, 8*time.Second, time.Minute
	c := founded(t, 2, room)
	a := c.node[0]
	if _, err := c.leave(a, c.called(a, c.join(a, "shop").Ticket, time.Second).Ticket); err != nil {
		t.Fatal(err)
	}
	first, second := c.join(a, "shop").Ticket, c.join(c.node[1], "shop").Ticket
	for range 5 {
		c.run(time.Second)
		if _, err := c.checkIn(a, second); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.room(a, "shop"); s.Parked != 1 || s.Queued != 0 {
		t.Fatalf("parked %d, queued %d; want the silent one parked", s.Parked, s.Queued)
	}
	c.run(1200 * time.Millisecond)
	if now, err := c.checkIn(a, second); err != nil || now.Position != 1 {
		t.Errorf("position %d, %v behind a parked one, want 1", now.Position, err)
	}
	if now, err := c.checkIn(c.node[1], first); err != nil || now.State != node.Waiting || now.Position != 1 {
		t.Errorf("back: %+v, %v; want the old place", now, err)
	}
	if s := c.room(a, "shop"); s.Parked != 0 || s.Queued != 1 {
		t.Errorf("parked %d, queued %d after the return", s.Parked, s.Queued)
	}
	c.run(13 * time.Second)
	if _, err := c.checkIn(a, first); !errors.Is(err, ticket.ErrExpired) {
		t.Errorf("after 13s of silence: %v, want expired", err)
	}
}

// Who is called and does not come within the window makes room for the next,
// and is called again when they return.
func TestClaimWindow(t *testing.T) {
	room := shop()
	room.Target, room.ClaimWindow = 1, 3*time.Second
	c := founded(t, 2, room)
	a := c.node[0]
	first, second := c.join(a, "shop").Ticket, c.join(a, "shop").Ticket
	c.called(a, first, time.Second)
	if now, err := c.checkIn(a, second); err != nil || now.State != node.Waiting {
		t.Fatalf("second: %+v, %v", now, err)
	}
	c.run(3500 * time.Millisecond)
	c.called(a, second, time.Second)
	back, err := c.checkIn(a, first)
	if err != nil || back.State != node.Waiting || back.Position != 1 {
		t.Errorf("the first returns: %+v, %v; want to wait in front", back, err)
	}
	c.wantUsed("shop", 1)
}

func TestAbandon(t *testing.T) {
	room := shop()
	room.Target = 1
	c := founded(t, 2, room)
	a, b := c.node[0], c.node[1]
	abandon := func(m *member, ticket node.Ticket) {
		t.Helper()
		if _, err := c.forward(m, func(m *member) (node.Answer, error) { return m.Abandon(c.at(m), ticket) }); err != nil {
			t.Error(err)
		}
	}
	first, second, third := c.join(a, "shop").Ticket, c.join(b, "shop").Ticket, c.join(a, "shop").Ticket
	c.called(a, first, time.Second)
	abandon(b, third) // who waits
	abandon(b, third)
	abandon(b, first) // who is called: the slot goes to the next
	c.called(a, second, time.Second)
	for _, tk := range []node.Ticket{first, third} {
		if _, err := c.checkIn(b, tk); !errors.Is(err, ticket.ErrExpired) {
			t.Errorf("check-in after giving up: %v", err)
		}
	}
	in, err := c.leave(b, second)
	if err != nil {
		t.Fatal(err)
	}
	abandon(a, second) // who is on the site stays there
	if _, err := c.visit(a, in.Pass); err != nil {
		t.Errorf("visit: %v", err)
	}
}

func TestQueueFull(t *testing.T) {
	room := shop()
	room.Target, room.QueueMax = 1, 3
	c := founded(t, 1, room)
	a := c.node[0]
	for range 3 {
		c.join(a, "shop")
	}
	if _, err := a.Join(c.at(a), "shop", qpid.ItemID{99}, false); !errors.Is(err, ticket.ErrQueueFull) {
		t.Errorf("join of the fourth: %v, want queue full", err)
	}
}

func TestOpenRoomAdmitsAtOnce(t *testing.T) {
	room := shop()
	room.QueueAll, room.Target = false, 6
	c := founded(t, 3, room)
	for range 2 {
		for _, m := range c.node {
			c.admitted(m, "shop")
		}
	}
	if a := c.join(c.node[0], "shop"); a.State != node.Waiting {
		t.Errorf("the seventh is %v", a.State)
	}
	c.wantUsed("shop", 6)
	if n := c.count(node.AdmittedO); n != 6 {
		t.Errorf("%d open admissions logged", n)
	}
	c.run(2 * time.Second)
	if c.room(c.node[0], "shop").Open {
		t.Error("the room is open while someone waits")
	}
}

func TestPassthroughAndReject(t *testing.T) {
	room := shop()
	room.Method = eviction.Passthrough
	c := founded(t, 1, room)
	a := c.node[0]
	for range 5 { // beyond the limit
		if p := c.admitted(a, "shop"); p.Home != (eviction.Account{}) {
			t.Errorf("pass of %v, want nobody's", p.Home)
		}
	}
	c.wantUsed("shop", 0)
	room.Method = eviction.Reject
	if err := a.SetRoom(c.at(a), room); err != nil {
		t.Fatal(err)
	}
	c.run(time.Second)
	if _, err := a.Join(c.at(a), "shop", qpid.ItemID{1}, false); !errors.Is(err, ticket.ErrRejected) {
		t.Errorf("join: %v, want rejected", err)
	}
}

func TestUnknownRoom(t *testing.T) {
	c := founded(t, 1, shop())
	a := c.node[0]
	_, join := a.Join(c.at(a), "x", qpid.ItemID{1}, false)
	_, checkIn := a.CheckIn(c.at(a), node.Ticket{Room: "x"})
	_, leave := a.Leave(c.at(a), node.Ticket{Room: "x"})
	_, abandon := a.Abandon(c.at(a), node.Ticket{Room: "x"})
	_, visit := a.Visit(c.at(a), node.Pass{Room: "x"})
	_, refresh := a.Refresh(c.at(a), node.Pass{Room: "x"})
	_, end := a.End(c.at(a), node.Pass{Room: "x"})
	_, del := a.DeleteMin(c.at(a), "x")
	for i, err := range []error{join, checkIn, leave, abandon, visit, refresh, end, del} {
		if !errors.Is(err, ticket.ErrRoomUnknown) {
			t.Errorf("call %d: %v, want no such room", i, err)
		}
	}
	if _, ok := a.Room("x", c.at(a)); ok {
		t.Error("an unknown room has a status")
	}
}

func TestNewSaysEverythingThatIsWrong(t *testing.T) {
	_, err := node.New(node.Config{
		Expect: -1, Cluster: eviction.Config{Lease: -1},
		Rooms: []eviction.Room{{Name: "a"}, {Name: "a"}, {Target: -1}},
	}, eviction.Time{})
	if !errors.Is(err, node.ErrInvalid) {
		t.Fatalf("error %v", err)
	}
	for _, part := range []string{"node.id", "node.expect", "cluster.lease", `room "a": named twice`, "name: empty", "total_active_users"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no error says %q:\n%v", part, err)
		}
	}
	c := founded(t, 1, shop())
	if err := c.node[0].SetRoom(c.at(c.node[0]), eviction.Room{Name: "shop", Target: -1}); !errors.Is(err, node.ErrInvalid) {
		t.Errorf("SetRoom: %v", err)
	}
}

// A copy of a ticket goes on under a node that took it over; the older copy is
// the same visitor there, and opens no second place.
func TestTicketOfADeadNode(t *testing.T) {
	room := shop()
	room.Target = 0
	c := founded(t, 3, room)
	dead := c.node[1]
	held := c.join(dead, "shop").Ticket
	dead.up = false
	c.gossip()
	a, err := c.checkIn(c.node[0], held)
	if err != nil || a.Forward != held.Home {
		t.Errorf("at once: %+v, %v; want to be sent to its home, which may yet answer", a, err)
	}
	c.run(4 * time.Second)
	a, err = c.checkIn(c.node[0], held)
	if err != nil || a.Ticket.Home == held.Home || a.Ticket.Gen != 1 || a.Ticket.Weight() != held.Weight() {
		t.Fatalf("after its node is left out: %+v, %v; want it taken over", a.Ticket, err)
	}
	old, err := c.checkIn(c.node[2], held)
	if err != nil || old.Ticket.Home != a.Ticket.Home || old.Ticket.Gen != 1 {
		t.Errorf("the older copy elsewhere: %+v, %v; want the same place", old.Ticket, err)
	}
	queued := 0
	for _, m := range []*member{c.node[0], c.node[2]} {
		queued += c.room(m, "shop").Queued
	}
	if queued != 1 {
		t.Errorf("%d places for one visitor", queued)
	}
	stale := held
	stale.Home.Name, stale.Issued = "z", held.Issued-(10*time.Minute).Microseconds()
	stale.ID[5]++
	if _, err := c.checkIn(c.node[0], stale); !errors.Is(err, ticket.ErrExpired) {
		t.Errorf("a lost node's ticket ten minutes old: %v, want expired", err)
	}
}

// Somebody who let a call pass is back, and their turn is certain; whoever has the
// slot ends the visit. They are called at once, without a wave or a tick.
func TestWhoseTurnItIsGetsASlotAsItComesFree(t *testing.T) {
	room := shop()
	room.Target, room.ClaimWindow, room.Refresh = 1, 2*time.Second, time.Second
	c := founded(t, 1, room)
	a := c.node[0]
	first := c.join(a, "shop")
	second := c.join(a, "shop")
	c.until("call of the second", 10*time.Second, func() bool { return c.count(node.CalledIn) == 2 })
	in, err := c.leave(a, second.Ticket)
	if err != nil || in.State != node.Admitted {
		t.Fatalf("leave: %+v, %v", in, err)
	}
	if back, err := c.checkIn(a, first.Ticket); err != nil || back.State != node.Waiting {
		t.Fatalf("back, while the slot is used: %+v, %v", back, err)
	}
	c.run(time.Second)
	c.end(a, in.Pass)
	if got := c.count(node.CalledIn); got != 3 {
		t.Errorf("%d calls when the slot came free, want 3", got)
	}
}

// A record tells how far the waves were, within a gap: a later life of the node
// numbers its own beyond that. The gap must not be used up while nothing else
// changes that is worth a record.
func TestTheRecordKeepsUpWithTheWaves(t *testing.T) {
	c := newCluster(t, 1, shop())
	a := c.node[0]
	a.cfg.Disk = true
	c.start(a)
	c.run(2 * time.Second)
	before := a.Status().Epoch.Num
	if a.saved == nil || a.saved.Epoch > before {
		t.Fatalf("saved %+v", a.saved)
	}
	const far = 900_000 // waves; the gap is 2²⁰
	nack := &eviction.Nack{Epoch: qpid.Epoch{Num: before + far, Coordinator: "z"}}
	if err := a.Step(c.at(a), eviction.Message{From: eviction.Member{Name: "z", Boot: 1}, To: a.cfg.Self.Member, Body: nack}); err != nil {
		t.Fatal(err)
	}
	c.run(time.Second)
	if now := a.Status().Epoch.Num; now < before+far || a.saved.Epoch < before+far {
		t.Errorf("wave %d, and the record is of wave %d", now, a.saved.Epoch)
	}
}
