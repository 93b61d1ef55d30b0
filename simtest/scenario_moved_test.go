package simtest

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// A place goes on at another node while its home is away. When that is back,
// whoever comes with an older ticket, of that home, finds the place through any
// node: the tab that slept, the stream beside a cookie.
func TestScenarioAnOlderTicketFindsThePlaceThatWasTakenOver(t *testing.T) {
	const x = 1
	pause := func(s *script, d time.Duration) { s.stall(x, d) }
	cut := func(s *script, _ time.Duration) { s.split(hosts(x), hosts(0, 2)) }
	for _, tt := range []struct {
		name string
		ttl  time.Duration
		away func(*script, time.Duration)
		gone time.Duration
	}{
		{"its home was paused", time.Minute, pause, 5 * time.Second},
		{"its home was cut off", time.Minute, cut, 5 * time.Second},
		// Nobody asked at the node that was cut off, which gave the place up.
		{"its home gave it up meanwhile", 6 * time.Second, cut, 8 * time.Second},
		{"its home gave it up meanwhile, and forgot it", 6 * time.Second, cut, 25 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := short(3)
			o.Rooms[0].QueueAll, o.Rooms[0].Session, o.Rooms[0].TicketTTL = true, 2*time.Minute, tt.ttl
			s := founded(t, o)
			for i := range 12 {
				s.visit(i % 3)
			}
			b := s.browser()
			b.must(x, opJoin)
			s.run(300 * time.Millisecond)
			b.must(x, opCheckIn)
			old, end := b.copy(), s.now+tt.gone.Microseconds()
			tt.away(s, tt.gone)
			s.until(4*time.Second, "take-over", func() bool {
				s.run(200 * time.Millisecond)
				_, _ = b.ask(0, opCheckIn) // its home may count as alive still
				return b.ticket.Gen == 1
			})
			for s.now < end {
				s.run(500 * time.Millisecond)
				b.must(0, opCheckIn)
				old.ticket.Issued = b.ticket.Issued // of a tab that was asleep for less than a ticket lives
			}
			s.mend()
			s.until(10*time.Second, "waves of all", func() bool { return s.together(3) })
			for range 20 {
				for h := range 3 {
					// A node that is just back may not know yet: then it does not say.
					if a, err := old.copy().ask(h, opCheckIn); err != nil && !errors.Is(err, ticket.ErrUnavailable) || err == nil && (a.State != node.Waiting || tt.ttl < tt.gone && a.Ticket.Home != b.ticket.Home) {
						t.Errorf("n%02d answers the older ticket with %v at %v, %v", h, a.State, a.Ticket.Home, err)
					}
				}
				b.must(0, opCheckIn)
				s.run(200 * time.Millisecond)
			}
			for h := range 3 {
				if a := old.copy().must(h, opCheckIn); a.Ticket.Home != b.ticket.Home || a.Ticket.Gen != b.ticket.Gen {
					t.Errorf("n%02d answers with the place of %v, generation %d; it is at %v", h, a.Ticket.Home, a.Ticket.Gen, b.ticket.Home)
				}
			}
			old.copy().must(2, opAbandon)
			if _, err := b.ask(0, opCheckIn); !errors.Is(err, ticket.ErrExpired) {
				t.Errorf("the place was given up with the older ticket, and the newer one is answered with %v", err)
			}
		})
	}
}
