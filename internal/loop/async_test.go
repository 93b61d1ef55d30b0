package loop_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

func TestWhoWantsAnAnswerAtOnceDoesNotWaitForAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := start(t, 3, func(c *loop.Config) { c.Node.Rooms[0].QueueAll = true })
		for !mayAdmit(l[0]) || !mayAdmit(l[1]) { // before, nobody counts, and there are no positions
			time.Sleep(50 * time.Millisecond)
		}
		began := time.Now()
		a, err := l[0].Do(t.Context(), ticket.Request{Op: ticket.Join, Room: "shop", ID: qpid.ItemID{1}, Async: true})
		if err != nil || a.State != ticket.Waiting || a.Ticket.ID != (qpid.ItemID{1}) || time.Since(began) != 0 {
			t.Errorf("after %v: %v with ticket %v, %v; want a ticket at once", time.Since(began), a.State, a.Ticket.ID, err)
		}
		if a := join(t, l[1], 2); a.State == ticket.Waiting && a.Position == 0 {
			t.Error("who has time was not told a position")
		}
	})
}

func mayAdmit(l *loop.Loop) bool {
	r, ok := l.Snapshot().Room("shop")
	return ok && r.MayAdmit
}
