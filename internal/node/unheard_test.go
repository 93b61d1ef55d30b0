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

// waiting is a room into which nobody gets.
func waiting() eviction.Room {
	return eviction.Room{Name: "shop", Session: 2 * time.Hour, QueueAll: true, Refresh: 2 * time.Second, TicketTTL: 20 * time.Second, ClaimWindow: 5 * time.Second}
}

// Somebody is silent for longer than a place is kept. With the ticket that they had they are
// refused; one that another node has renewed meanwhile brings the place back, unless they
// gave it back themselves.
func TestAPlaceThatWasGivenUpIsTakenUpAgain(t *testing.T) {
	c := founded(t, 3, waiting())
	m := c.node[0]
	left, asks, gone := c.join(m, "shop").Ticket, c.join(m, "shop").Ticket, c.join(m, "shop").Ticket
	c.run(2 * time.Minute)
	if r := c.room(m, "shop"); r.Queued+r.Parked > 0 {
		t.Fatalf("%d wait and %d are parked, want none", r.Queued, r.Parked)
	}
	if _, err := m.CheckIn(c.at(m), gone); !errors.Is(err, ticket.ErrExpired) {
		t.Errorf("who was silent hears %v, want that the place was given up", err)
	}
	left.Issued, asks.Issued = m.Status().Clock, m.Status().Clock
	if _, err := m.Abandon(c.at(m), left); err != nil {
		t.Fatal(err)
	}
	if a, err := m.CheckIn(c.at(m), left); !errors.Is(err, ticket.ErrExpired) {
		t.Errorf("who gave it back hears %v, %v, want that the place was given up", a.State, err)
	}
	if a, err := m.CheckIn(c.at(m), asks); err != nil || a.State != node.Waiting || a.Ticket.Stamp != asks.Stamp {
		t.Errorf("who asked elsewhere hears %v, %v, stamp %d, want to wait with %d", a.State, err, a.Ticket.Stamp, asks.Stamp)
	}
	if r := c.room(m, "shop"); r.Queued != 1 || r.Parked != 0 {
		t.Errorf("%d wait and %d are parked, want one", r.Queued, r.Parked)
	}
}

// By another node's clock, which may be two skews apart, the ticket was young enough when it was
// shown there.
func TestATicketThatBringsAPlaceBackIsJudgedByClocksApart(t *testing.T) {
	room := waiting()
	for over, want := range map[time.Duration]error{900 * time.Millisecond: nil, 1100 * time.Millisecond: ticket.ErrExpired} {
		c := founded(t, 3, room)
		m := c.node[0]
		asks := c.join(m, "shop").Ticket
		c.run(2 * time.Minute)
		asks.Issued = m.Status().Clock - (room.TicketTTL + over).Microseconds()
		if a, err := m.CheckIn(c.at(m), asks); !errors.Is(err, want) {
			t.Errorf("with a ticket that is older than a place is kept by %v: %v, %v; want %v", over, a.State, err, want)
		}
	}
}

// A node that has given somebody's place up for silence is asked with a pass that another
// one, which is lost since, has given them: they went on there.
func TestAPassIsGoodWhereItsPlaceWasGivenUp(t *testing.T) {
	c := founded(t, 3, waiting())
	m, lost := c.node[0], c.node[2]
	a := c.join(m, "shop")
	c.run(2 * time.Minute)
	p := node.Pass{Room: "shop", ID: a.Ticket.ID, Stamp: a.Ticket.Stamp, Home: eviction.Account{Member: lost.cfg.Self.Member, Born: 1}, Expires: m.Status().Clock + time.Hour.Microseconds()}
	lost.up = false
	c.gossip()
	c.run(5 * time.Second)
	for _, at := range c.node[:2] {
		b, err := at.Visit(c.at(at), p)
		if err == nil && b.Forward != (eviction.Member{}) {
			continue // the other one is the heir
		}
		if err != nil || b.State != node.Admitted {
			t.Errorf("%s says %v, %v, want to be on the site", at.cfg.Self.Name, b.State, err)
		}
	}
}

// A machine sleeps for ten minutes, and its wall clock is set back by an hour meanwhile. A node alone
// goes on with its own time, by which it has timed passes: nobody who waits is stamped anew, nor who
// joins, and all keep the order in which they came.
func TestAClockThatIsSetBackStampsNobodyAnew(t *testing.T) {
	room := waiting()
	room.TicketTTL = time.Hour
	c := newCluster(t, 1, room)
	c.run(time.Second)
	m := c.node[0]
	var all []node.Ticket
	for range 3 {
		all = append(all, c.join(m, "shop").Ticket)
	}
	c.run(time.Second)
	c.now += 600_000_000
	m.wrong = -3_600_000_000
	for i := range 30 {
		c.run(time.Second)
		if i == 5 {
			all = append(all, c.join(m, "shop").Ticket)
		}
		for j := range all {
			a, err := m.CheckIn(c.at(m), all[j])
			if err != nil {
				t.Fatalf("after %d s number %d: %v", i, j, err)
			}
			if a.Ticket.Stamp != all[j].Stamp {
				t.Fatalf("after %d s number %d is stamped anew", i, j)
			}
			all[j] = a.Ticket
		}
	}
	if after := all[3].Stamp - all[2].Stamp; after < 600_000_000 {
		t.Errorf("who joins after it is stamped %d µs after who joined before", after)
	}
}

// A node whose clock is ahead gives its places to another. Whoever has one of them is stamped
// anew when they ask: they would wait for that time to come. So are the parked, who come back in
// front of nobody else.
func TestAPlaceOfATimeToComeIsStampedAnewWhenItsBearerAsks(t *testing.T) {
	for _, parked := range []bool{false, true} {
		c := founded(t, 2, waiting())
		m, gives := c.node[0], c.node[1]
		place := eviction.Place{ID: qpid.ItemID{7}, Stamp: uint64(m.Status().Clock + time.Hour.Microseconds()), Gen: 1, Refresh: 2000, Parked: parked}
		if err := m.Step(c.at(m), eviction.Message{From: gives.cfg.Self.Member, To: m.cfg.Self.Member, Body: &eviction.Places{Room: "shop", Places: []eviction.Place{place}}}); err != nil {
			t.Fatal(err)
		}
		if r := c.room(m, "shop"); r.Parked+r.Queued != 1 || (r.Parked == 1) != parked {
			t.Fatalf("parked %v: %d are parked and %d wait", parked, r.Parked, r.Queued)
		}
		behind := c.join(m, "shop").Ticket
		a, err := m.CheckIn(c.at(m), node.Ticket{Room: "shop", ID: place.ID, Stamp: place.Stamp, Home: gives.cfg.Self.Member, Issued: m.Status().Clock})
		if err != nil || a.State != node.Waiting {
			t.Fatalf("parked %v: %+v, %v; want to wait", parked, a, err)
		}
		if ahead := int64(a.Ticket.Stamp) - m.Status().Clock; a.Ticket.Stamp <= behind.Stamp || ahead > 1e6 {
			t.Errorf("parked %v: stamped %d µs ahead, want now, after who joined before", parked, ahead)
		}
		if r := c.room(m, "shop"); r.Parked != 0 || r.Queued != 2 {
			t.Errorf("parked %v: %d are parked and %d wait, want 2 who wait", parked, r.Parked, r.Queued)
		}
	}
}
