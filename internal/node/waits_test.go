package node_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// A crowd at an empty site: twenty walk in, forty wait, and nobody can know for how
// long until some have left. Then everybody is told, and the last the most.
func TestACrowdAtAnEmptySiteIsToldNothingUntilVisitsEnd(t *testing.T) {
	c := founded(t, 1, eviction.Room{Name: "shop", Target: 20, Session: time.Minute, TicketTTL: time.Hour})
	var inside []node.Pass
	var line []node.Ticket
	for range 60 {
		switch a := c.join(c.node[0], "shop"); a.State {
		case node.Admitted:
			inside = append(inside, a.Pass)
		default:
			line = append(line, a.Ticket)
		}
	}
	told := func(ticket node.Ticket) node.Wait {
		a, err := c.checkIn(c.node[0], ticket)
		if err != nil {
			t.Fatal(err)
		}
		return a.Wait
	}
	c.run(5 * time.Second)
	if len(inside) != 20 || told(line[39]) != (node.Wait{}) {
		t.Errorf("%d walked in, and the last is told %v", len(inside), told(line[39]))
	}
	c.run(35 * time.Second)
	for _, ticket := range line {
		told(ticket) // or it would be taken for one who has gone
	}
	for _, p := range inside[:10] {
		c.end(c.node[0], p)
	}
	c.run(time.Second)
	if told(line[29]) != (node.Wait{}) {
		t.Errorf("ten have left after 40 s, ten stay for nobody knows how long, and the 30th is told %v", told(line[29]))
	}
	for _, p := range inside[10:19] {
		c.end(c.node[0], p)
	}
	c.run(3 * time.Second)
	near, far := told(line[20]), told(line[38])
	if near == (node.Wait{}) || far.P50 <= near.P50 || far.P50 < 20*time.Second || far.P25 > far.P50 || far.P50 > far.P75 {
		t.Errorf("after 19 visits of 40 s the 21st is told %v, the 39th %v", near, far)
	}
}

// Looking at a room is no event: an account whose time is over by then is given up by the
// next one, with all that follows.
func TestLookingAtARoomChangesNothing(t *testing.T) {
	c := founded(t, 2, eviction.Room{Name: "shop", Target: 1, Session: time.Minute, TicketTTL: time.Hour})
	c.admitted(c.node[0], "shop")
	c.join(c.node[0], "shop")
	c.run(time.Second)
	now := c.at(c.node[0])
	now.Boot += time.Hour.Microseconds() // nothing of its account may act any more
	for range 2 {
		if st, _ := c.node[0].Room("shop", now); st.OnSite != 1 || st.Used != 1 {
			t.Errorf("%d on the site, by %d slots", st.OnSite, st.Used)
		}
	}
}

// Whoever is the first in line of a room that was empty a moment ago is told nothing of
// their wait: the figures are those of a wave that knew of room for everybody.
func TestNoWaitIsToldByFiguresOfBeforeTheRush(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		c := founded(t, nodes, eviction.Room{Name: "shop", Target: 6, Session: time.Minute, Refresh: time.Second})
		var waits []node.Ticket
		for i := range 12 {
			if a := c.join(c.node[i%nodes], "shop"); a.State == node.Waiting {
				waits = append(waits, a.Ticket)
				if a.Wait != (node.Wait{}) {
					t.Errorf("%d nodes: the %d. who comes is told %+v", nodes, i+1, a.Wait)
				}
			}
		}
		if len(waits) != 6 {
			t.Fatalf("%d nodes: %d wait, want 6", nodes, len(waits))
		}
		for range 20 {
			c.run(100 * time.Millisecond)
			for i, w := range waits {
				if a, err := c.checkIn(c.node[i%nodes], w); err != nil || a.Wait != (node.Wait{}) {
					t.Fatalf("%d nodes: while nobody has left, the %d. in line is told %+v (%v)", nodes, i+1, a.Wait, err)
				}
			}
		}
	}
}
