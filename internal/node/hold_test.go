package node_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

func (c *cluster) holdBack(m *member, t node.Ticket) node.Answer {
	c.t.Helper()
	a, err := c.forward(m, func(m *member) (node.Answer, error) { return m.HoldBack(c.at(m), t) })
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// Who is held back holds no slot, however often they ask, and loses nothing: the
// next one is called meanwhile, and a check-in without it finds them in front.
func TestWhoIsHeldBackTakesNoSlotAndKeepsThePlace(t *testing.T) {
	for _, method := range []eviction.Method{eviction.FIFO, eviction.Random} {
		room := shop()
		room.Target, room.Method, room.TicketTTL = 1, method, time.Minute
		c := founded(t, 2, room)
		a, b := c.node[0], c.node[1]
		first := c.called(a, c.join(a, "shop").Ticket, time.Second)
		second := c.join(b, "shop")
		held := c.holdBack(b, first.Ticket) // asked of another node
		if held.State != node.Waiting || held.Paused != ticket.PausedAddress || method == eviction.FIFO && held.Position != 1 {
			t.Fatalf("%v: held back: %+v", method, held)
		}
		in, err := c.leave(b, c.called(b, second.Ticket, time.Second).Ticket) // the slot goes on to the next
		if err != nil {
			t.Fatal(err)
		}
		for range 40 { // beyond ticket_ttl, which a sign of life puts off
			c.run(2 * time.Second)
			if in, err = c.refresh(b, in.Pass); err != nil {
				t.Fatal(err)
			}
			held = c.holdBack(a, held.Ticket)
			if held.State != node.Waiting {
				t.Fatalf("%v: held back: %+v", method, held)
			}
		}
		c.wantUsed("shop", 1)
		c.end(b, in.Pass)
		for range 30 {
			held = c.holdBack(a, held.Ticket)
			c.run(100 * time.Millisecond)
			c.wantUsed("shop", 0)
		}
		if got := c.called(a, held.Ticket, time.Second); got.Ticket.Stamp != first.Ticket.Stamp {
			t.Errorf("%v: called as %+v, want the place of %+v", method, got.Ticket, first.Ticket)
		}
	}
}

// Before their turn somebody held back stands in line as everybody does.
func TestWhoIsHeldBackBeforeTheirTurnStandsInLine(t *testing.T) {
	room := shop()
	room.Target = 1
	c := founded(t, 1, room)
	a := c.node[0]
	in, err := c.leave(a, c.called(a, c.join(a, "shop").Ticket, time.Second).Ticket)
	if err != nil {
		t.Fatal(err)
	}
	waits := c.join(a, "shop")
	if got := c.holdBack(a, waits.Ticket); got.State != node.Waiting || got.Paused == ticket.PausedAddress {
		t.Errorf("held back before the turn: %+v", got)
	}
	if s := c.room(a, "shop"); s.Parked != 0 {
		t.Errorf("%d are parked", s.Parked)
	}
	c.end(a, in.Pass)
	c.called(a, waits.Ticket, time.Second)
}

// Who is on the site already, by another tab, is not held back from it, nor is anybody once the
// room lets everyone through.
func TestWhoNeedNotWaitIsNotHeldBack(t *testing.T) {
	room := shop()
	room.Target, room.Session = 1, time.Minute
	c := founded(t, 1, room)
	a := c.node[0]
	first := c.join(a, "shop").Ticket
	in, err := c.leave(a, c.called(a, first, time.Second).Ticket)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.holdBack(a, first); got.State != node.Admitted || got.Pass.ID != in.Pass.ID {
		t.Errorf("held back on the site: %+v", got)
	}
	c.wantUsed("shop", 1)
	c.end(a, in.Pass)
	second := c.called(a, c.join(a, "shop").Ticket, time.Second).Ticket
	room.Method = eviction.Passthrough
	if err := a.SetRoom(c.at(a), room); err != nil {
		t.Fatal(err)
	}
	c.run(2 * time.Second)
	if got := c.holdBack(a, second); got.State != node.Admitted {
		t.Errorf("held back from a room that everybody passes through: %+v", got)
	}
}
