package node_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// A crowd at an empty site is told from the beginning what visits of before tell: those
// that were bounded as visits are now, until that changes.
func TestVisitsOfBeforeCountWhileTheirTermsHold(t *testing.T) {
	room := eviction.Room{Name: "shop", Target: 20, Session: time.Minute, TicketTTL: time.Hour}
	c := founded(t, 1, room)
	var last node.Ticket
	for range 40 {
		last = c.join(c.node[0], "shop").Ticket
	}
	told := func() node.Wait {
		c.run(2 * time.Second)
		a, err := c.checkIn(c.node[0], last)
		if err != nil {
			t.Fatal(err)
		}
		return a.Wait
	}
	lasted := []node.Lasted{{Age: 40e6, N: 100}}
	longer := room
	longer.Session = time.Hour
	c.node[0].Before("shop", node.VisitTerms(&longer), lasted)
	if w := told(); w != (node.Wait{}) {
		t.Errorf("of visits of other terms the last is told %v", w)
	}
	c.node[0].Before("shop", node.VisitTerms(&room), lasted)
	if w := told(); w.P50 < 30*time.Second || w.P50 > 40*time.Second {
		t.Errorf("visits lasted 40 s, and a few seconds after the first the last is told %v", w)
	}
	if err := c.node[0].SetRoom(c.at(c.node[0]), longer); err != nil {
		t.Fatal(err)
	}
	c.run(2 * time.Second)
	if told() != (node.Wait{}) {
		t.Errorf("the session is an hour now, and the last is told %v", told())
	}
}
