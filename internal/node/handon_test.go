package node_test

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// offer has node m make a link for t.
func (c *cluster) offer(m *member, t node.Ticket, id byte) (node.Answer, error) {
	return c.forward(m, func(m *member) (node.Answer, error) { return m.Offer(c.at(m), t, qpid.ItemID{2: id, 9: 1, 15: 7}) })
}

func (c *cluster) take(m *member, link ticket.Link) (node.Answer, error) {
	return c.forward(m, func(m *member) (node.Answer, error) { return m.Take(c.at(m), "shop", link.ID) })
}

func (c *cluster) mustOffer(m *member, t node.Ticket, id byte) node.Answer {
	c.t.Helper()
	a, err := c.offer(m, t, id)
	if err != nil || a.Link == (ticket.Link{}) {
		c.t.Fatalf("offer: %+v, %v", a, err)
	}
	return a
}

func (c *cluster) mustTake(m *member, link ticket.Link) node.Answer {
	c.t.Helper()
	a, err := c.take(m, link)
	if err != nil {
		c.t.Fatalf("take: %+v, %v", a, err)
	}
	return a
}

// full is a shop with people inside and in line.
func full(t *testing.T) (c *cluster, second node.Answer) {
	t.Helper()
	c = founded(t, 3, eviction.Room{Name: "shop", Target: 1, Session: time.Hour, QueueAll: true, TicketTTL: 30 * time.Minute})
	first := c.join(c.node[0], "shop")
	c.until("call", 5*time.Second, func() bool {
		a, err := c.leave(c.node[0], first.Ticket)
		return err == nil && a.State == node.Admitted
	})
	second = c.join(c.node[1], "shop")
	c.join(c.node[0], "shop")
	c.run(time.Second)
	return c, second
}

// The place is of whoever comes first by its link, at any node; all tickets of
// before are told so, and do nothing any more.
func TestAPlaceGoesOnToAnotherBrowserOnce(t *testing.T) {
	c, old := full(t)
	offer := c.mustOffer(c.node[0], old.Ticket, 5)
	if again := c.mustOffer(c.node[2], old.Ticket, 6); again.Link != offer.Link {
		t.Errorf("a second link, %v, beside %v", again.Link, offer.Link)
	}
	got := c.mustTake(c.node[2], offer.Link)
	if got.State != node.Waiting || got.Ticket.ID != old.Ticket.ID || got.Ticket.Stamp != old.Ticket.Stamp || got.Position != 1 || got.Ticket.Hand != 1 {
		t.Errorf("taken: %+v; want the first place", got)
	}
	if n := c.count(node.HandedOn); n != 1 {
		t.Errorf("%d lines of the log say so, want 1", n)
	}
	for i, m := range c.node {
		if _, err := c.take(m, offer.Link); !errors.Is(err, ticket.ErrLinkOver) {
			t.Errorf("node %d: the link was used: %v", i, err)
		}
		for name, ask := range map[string]func() (node.Answer, error){
			"check-in": func() (node.Answer, error) { return c.checkIn(m, old.Ticket) },
			"leave":    func() (node.Answer, error) { return c.leave(m, old.Ticket) },
			"offer":    func() (node.Answer, error) { return c.offer(m, old.Ticket, 9) },
			"abandon": func() (node.Answer, error) {
				return c.forward(m, func(m *member) (node.Answer, error) { return m.Abandon(c.at(m), old.Ticket) })
			},
		} {
			if a, err := ask(); !errors.Is(err, ticket.ErrHandedOn) {
				t.Errorf("node %d, %s with the old ticket: %+v, %v", i, name, a, err)
			}
		}
		if a, err := c.checkIn(m, got.Ticket); err != nil || a.Position != 1 {
			t.Errorf("node %d: the new ticket: %+v, %v", i, a, err)
		}
		if _, done := m.Glance(c.at(m), old.Ticket); done {
			t.Errorf("node %d answers the old ticket at a glance", i)
		}
	}
	back := c.mustTake(c.node[1], c.mustOffer(c.node[1], got.Ticket, 8).Link)
	if a, err := c.checkIn(c.node[0], back.Ticket); err != nil || a.Ticket.Hand != 2 {
		t.Errorf("and on again: %+v, %v", a, err)
	}
}

func TestALinkIsGoodForFiveMinutes(t *testing.T) {
	c, old := full(t)
	c.step = 1_000_000
	offer := c.mustOffer(c.node[0], old.Ticket, 5)
	c.run(4*time.Minute + 50*time.Second)
	renewed := c.mustOffer(c.node[0], old.Ticket, 6)
	if renewed.Link.ID == offer.Link.ID {
		t.Error("a link with ten seconds left is given out again")
	}
	if _, err := c.take(c.node[0], offer.Link); !errors.Is(err, ticket.ErrLinkOver) {
		t.Errorf("another one took its place: %v", err)
	}
	c.run(5*time.Minute + time.Second)
	if _, err := c.take(c.node[0], renewed.Link); !errors.Is(err, ticket.ErrLinkOver) {
		t.Errorf("after five minutes: %v", err)
	}
	if a, err := c.checkIn(c.node[0], old.Ticket); err != nil || a.Position != 1 {
		t.Errorf("the place is not where it was: %+v, %v", a, err)
	}
}

// A home that leaves gives the place away with the hand that it is in, and one that
// dies has told nobody: then the ticket that was taken over counts all the same.
func TestAPlaceThatWentOnStaysThereWhenItsHomeIsGone(t *testing.T) {
	for _, dies := range []bool{false, true} {
		c, old := full(t)
		c.lenient = true
		got := c.mustTake(c.node[2], c.mustOffer(c.node[0], old.Ticket, 5).Link)
		if dies {
			c.node[1].up = false
		} else {
			c.node[1].Goodbye(c.at(c.node[1]))
			c.run(3 * time.Second)
			c.node[1].up = false
		}
		c.gossip()
		c.run(15 * time.Second)
		if dies { // whoever comes first
			if a, err := c.checkIn(c.node[0], old.Ticket); err != nil || a.State != node.Waiting {
				t.Errorf("the old one is the first to come: %+v, %v", a, err)
			}
		}
		if a, err := c.checkIn(c.node[0], got.Ticket); err != nil || a.Position != 1 || a.Ticket.Hand != 1 {
			t.Errorf("dies %v: %+v, %v", dies, a, err)
		}
		for _, m := range []*member{c.node[0], c.node[2]} {
			if a, err := c.checkIn(m, old.Ticket); !errors.Is(err, ticket.ErrHandedOn) {
				t.Errorf("dies %v, at %s, the old ticket: %+v, %v", dies, m.cfg.Self.Name, a, err)
			}
		}
	}
}

// Whoever is on the site by then has nothing to hand on, and the old ticket brings
// no pass.
func TestTheOldTicketBringsNoPass(t *testing.T) {
	c, old := full(t)
	got := c.mustTake(c.node[2], c.mustOffer(c.node[0], old.Ticket, 5).Link)
	c.step = 100_000
	c.until("a call", 2*time.Hour, func() bool {
		a, err := c.leave(c.node[0], got.Ticket)
		return err == nil && a.State == node.Admitted
	})
	for i, m := range c.node {
		if a, err := c.checkIn(m, old.Ticket); !errors.Is(err, ticket.ErrHandedOn) {
			t.Errorf("node %d: %+v, %v", i, a, err)
		}
		if a, err := c.offer(m, got.Ticket, 6); !errors.Is(err, ticket.ErrUsed) {
			t.Errorf("node %d offers the place of somebody on the site: %+v, %v", i, a, err)
		}
	}
}
