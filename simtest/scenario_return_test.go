package simtest

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// A node was restarted and is in no wave yet. Its visitors ask it, and it cannot
// take them over so far. It must not send them away for the whole refresh
// interval: they are next in line, and others go on being called.
func TestScenarioVisitorsOfARestartedNodeAreAskedBackSoon(t *testing.T) {
	const soon = 2200 * time.Millisecond // two seconds, and ten percent
	o := short(3)
	o.Rooms[0].QueueAll, o.Rooms[0].Session, o.Rooms[0].Refresh, o.Rooms[0].TicketTTL = true, time.Minute, 20*time.Second, time.Minute
	s := founded(t, o)
	for i := range 12 {
		s.visit(i % 3)
	}
	const x = 2
	b := s.browser()
	b.must(x, opJoin)
	s.run(time.Second)
	b.must(x, opCheckIn)
	s.reboot(x)
	told := 0
	for range 40 {
		s.run(50 * time.Millisecond)
		a, err := b.ask(x, opCheckIn)
		switch {
		case errors.Is(err, ticket.ErrUnavailable), errors.Is(err, errTimeout): // a browser tries another node at once
		case err != nil:
			t.Fatal(err)
		case a.State == node.Waiting && a.Ticket.Gen == 0:
			told++
			if a.Refresh > soon {
				t.Fatalf("%v after the restart, asked back in %v, want %v or less", time.Duration(told)*50*time.Millisecond, a.Refresh, soon)
			}
		}
	}
	if told == 0 {
		t.Fatal("nobody was told to wait for a take-over")
	}
	if b.ticket.Gen == 0 {
		t.Errorf("the place was not taken over within 2 s: %s", s.statuses())
	}
	s.finish()
}
