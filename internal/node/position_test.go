package node_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// S11: what a visitor is shown never rises, whatever happens to the others, and
// the check-ins asked for stay within the bounds.
func TestPositionNeverRises(t *testing.T) {
	room := shop()
	room.Target, room.Session, room.TicketTTL = 3, time.Second, time.Minute
	c := founded(t, 3, room)
	type person struct {
		ticket node.Ticket
		shown  int
		due    int64
	}
	at := func(p *person, issued int64) node.Ticket {
		t := p.ticket
		t.Issued = issued
		return t
	}
	var people []*person
	for i := range 120 {
		a := c.join(c.node[i%3], "shop")
		people = append(people, &person{a.Ticket, a.Position, c.now + a.Refresh.Microseconds()})
	}
	for round := 0; len(people) > 0 && round < 4000; round++ {
		c.run(50 * time.Millisecond)
		if round == 100 {
			c.split([]qpid.NodeID{"a0", "b0"}, []qpid.NodeID{"c0"})
		}
		if round == 250 {
			c.heal()
		}
		people = slices.DeleteFunc(people, func(p *person) bool {
			if c.now < p.due {
				return false
			}
			a, err := c.leave(c.node[round%2], p.ticket)
			switch {
			case err == nil && a.State == node.Admitted:
				return true
			case err != nil && !errors.Is(err, ticket.ErrNotCalled):
				t.Fatal(err)
			case p.shown > 0 && (a.Position > p.shown || a.Position < 1):
				t.Fatalf("shown %d after %d", a.Position, p.shown)
			case a.Refresh > 22*time.Second || a.Refresh < 1800*time.Millisecond && a.Ticket != at(p, a.Ticket.Issued): // sooner, if their home is out of reach and may be taken for lost by then
				t.Fatalf("asked back after %v", a.Refresh)
			}
			p.ticket, p.shown, p.due = a.Ticket, a.Position, c.now+a.Refresh.Microseconds()
			return false
		})
	}
	if len(people) > 0 {
		c.dump()
		t.Fatalf("%d never got in", len(people))
	}
}

// The first 256 of a room see exactly how many are before them.
func TestPositionIsExactInFront(t *testing.T) {
	room := shop()
	room.Target = 0
	c := founded(t, 3, room)
	var tickets []node.Ticket
	for i := range 300 {
		tickets = append(tickets, c.join(c.node[i%3], "shop").Ticket)
	}
	c.run(2500 * time.Millisecond)
	for i, ticket := range tickets {
		a, err := c.checkIn(c.node[0], ticket)
		if err != nil || i < 256 && a.Position != i+1 || a.Queued != 300 {
			t.Errorf("the one with %d before them is at %d of %d, %v", i, a.Position, a.Queued, err)
		}
	}
}

// A side without a majority tells nobody that its own people are the line: they stand where
// they stood, and so does the number of all, as of before the split. Who joins there is
// told no position before the sides have met, and then the right one.
func TestASideDoesNotTakeItsPeopleForTheLine(t *testing.T) {
	room := shop()
	room.Target = 0
	c := founded(t, 3, room)
	at := map[*member][]node.Ticket{}
	for i := range 30 {
		m := c.node[i%3]
		at[m] = append(at[m], c.join(m, "shop").Ticket)
	}
	c.run(2500 * time.Millisecond)
	side, split := c.node[2], c.at(c.node[2]).Wall
	c.split([]qpid.NodeID{"a0", "b0"}, []qpid.NodeID{"c0"})
	c.run(10 * time.Second)
	if g := side.Status().Grade; g != eviction.Side {
		t.Fatalf("%s is in waves of grade %v, want a side's", side.cfg.Self.Name, g)
	}
	for i, ticket := range at[side] {
		if a, err := c.checkIn(side, ticket); err != nil || a.Position != 3*i+3 || a.Queued != 30 {
			t.Errorf("the one with %d before them is at %d of %d, %v", 3*i+2, a.Position, a.Queued, err)
		}
	}
	if r := c.room(side, "shop"); r.Total != 30 || r.Counted == 0 || r.Counted > split {
		t.Errorf("%d wait as of %d, want 30 as of before the split at %d", r.Total, r.Counted, split)
	}
	if r := c.room(c.node[0], "shop"); r.Total != 20 || r.Counted != 0 {
		t.Errorf("with the majority %d wait as of %d, want 20 as of now", r.Total, r.Counted)
	}
	late := c.join(side, "shop")
	c.run(3 * time.Second)
	if a, err := c.checkIn(side, late.Ticket); err != nil || a.Position != 0 || a.Queued != 31 {
		t.Errorf("a newcomer of the side is at %d of %d, %v; want no position, of 31", a.Position, a.Queued, err)
	}
	c.heal()
	c.run(5 * time.Second)
	if a, err := c.checkIn(side, late.Ticket); err != nil || a.Position != 31 || a.Queued != 31 {
		t.Errorf("when the sides have met the newcomer is at %d of %d, %v; want 31 of 31", a.Position, a.Queued, err)
	}
	if r := c.room(side, "shop"); r.Total != 31 || r.Counted != 0 {
		t.Errorf("when the sides have met %d wait as of %d, want 31 as of now", r.Total, r.Counted)
	}
}

// Whoever gives up the lightest place of a room that calls by deleteMin: the other
// nodes hear of it at once, with nothing else to wait for.
func TestThatTheLightestGaveUpIsToldAtOnce(t *testing.T) {
	room := shop()
	room.Target, room.Algorithm = 0, eviction.ByQPID
	c := founded(t, 3, room)
	b := c.node[1]
	a := c.join(b, "shop")
	c.join(c.node[2], "shop")
	c.run(2 * time.Second)
	if _, err := b.Abandon(c.at(b), a.Ticket); err != nil {
		t.Fatal(err)
	}
	r := b.Ready(c.at(b))
	if !slices.ContainsFunc(r.Messages, func(m eviction.Message) bool { return m.Body.Kind() == (&eviction.RoomQPID{}).Kind() }) {
		t.Errorf("after the lightest was given up the node sends %v", r.Messages)
	}
}
