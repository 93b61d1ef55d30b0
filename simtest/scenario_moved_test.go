package simtest

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
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

// A place is taken over on two sides, and on one of them they are on the site before the sides meet.
// The other one has not called them yet, and does not any more.
func TestScenarioWhoIsOnTheSiteIsNotCalledElsewhereOnceTheSidesHaveMet(t *testing.T) {
	const w, a = 4, 3
	s, inside, one := waitsAt(t, w)
	other := one.copy()
	s.split(hosts(w), hosts(a), hosts(0, 1, 2))
	s.until(6*time.Second, "take-over on both sides", func() bool {
		s.run(200 * time.Millisecond)
		_, _ = one.ask(a, opCheckIn)
		_, _ = other.ask(0, opCheckIn)
		return one.ticket.Gen == 1 && other.ticket.Gen == 1
	})
	for _, b := range inside[:3] {
		_, _ = b.ask(0, opEnd)
	}
	s.until(6*time.Second, "in there", func() bool {
		s.run(100 * time.Millisecond)
		_, _ = one.ask(a, opCheckIn)
		if ans, err := other.ask(0, opCheckIn); err != nil || ans.State != node.Called {
			return false
		}
		ans, err := other.ask(0, opLeave)
		return err == nil && ans.State == node.Admitted
	})
	s.mend()
	s.until(5*time.Second, "all together", func() bool { return s.together(5) })
	for range 10 {
		s.run(200 * time.Millisecond)
		_, _ = one.ask(a, opCheckIn)
	}
	for _, b := range inside[3:] {
		_, _ = b.ask(a, opEnd)
	}
	for range 20 {
		s.run(200 * time.Millisecond)
		ans, err := one.ask(a, opLeave)
		if err == nil && ans.State == node.Admitted {
			t.Fatalf("in at %v and %v", other.pass.Home, ans.Pass.Home)
		}
		if errors.Is(err, ticket.ErrUsed) {
			return
		}
	}
	t.Errorf("it still waits")
}

// A place is taken over on two sides. The first home is with one side, and then with the other, and so both have told it
// before they meet; or it is lost, and nobody has to be told. On one side the place may have gone on further,
// to generation 2, or do so in between. They settle it when they meet: it is called once.
func TestScenarioTwoSidesThatWentOnWithOnePlaceSettleIt(t *testing.T) {
	for _, when := range []string{"before the first home hears of it", "after it has heard of both", "never, and the first home is lost"} {
		t.Run(when, func(t *testing.T) {
			const w, a = 4, 3
			s, inside, one := waitsAt(t, w)
			other, ask := one.copy(), 0
			both := func(n int) {
				for range n {
					s.run(200 * time.Millisecond)
					_, _ = one.ask(a, opCheckIn)
					_, _ = other.ask(ask, opCheckIn)
				}
			}
			s.split(hosts(w), hosts(a), hosts(0, 1, 2))
			s.until(6*time.Second, "take-over on both sides", func() bool {
				both(1)
				return one.ticket.Gen == 1 && other.ticket.Gen == 1
			})
			x := s.lives[s.lifeOf(other.ticket.Home)].host
			goesOn := func() {
				s.goodbye(&s.hosts[x])
				ask = int(x+1) % 3
				s.until(6*time.Second, "given on", func() bool {
					both(1)
					return other.ticket.Gen == 2
				})
			}
			first := when == "before the first home hears of it"
			if first {
				goesOn()
			}
			sides := func(sides ...[]int32) {
				s.mend()
				s.split(sides...)
				both(10)
			}
			sides(hosts(a), hosts(0, 1, 2, w))
			sides(hosts(a, w), hosts(0, 1, 2))
			if when == "never, and the first home is lost" {
				s.down(w)
			} else if !first {
				goesOn()
				sides(hosts(a), hosts(0, 1, 2, w))
			}
			s.mend()
			s.until(5*time.Second, "all together", func() bool { return s.together(4) })
			both(20)
			if one.ticket.Home != other.ticket.Home || one.ticket.Gen != other.ticket.Gen {
				t.Errorf("one tab has the place at %v, generation %d, the other at %v, %d", one.ticket.Home, one.ticket.Gen, other.ticket.Home, other.ticket.Gen)
			}
			for _, b := range inside {
				_, _ = b.ask(ask, opEnd)
				_, _ = b.ask(a, opEnd)
			}
			passes := make(map[eviction.Account]bool)
			for range 40 {
				s.run(100 * time.Millisecond)
				for _, b := range []*browser{one, other} {
					h := map[bool]int{true: a, false: ask}[b == one]
					if ans, err := b.ask(h, opCheckIn); err != nil || ans.State != node.Called {
						continue
					}
					if ans, err := b.ask(h, opLeave); err == nil && ans.State == node.Admitted {
						passes[ans.Pass.Home] = true
					}
				}
			}
			if len(passes) != 1 {
				t.Errorf("one ticket was called and let in at %d nodes: %v", len(passes), passes)
			}
		})
	}
}

// waitsAt are five nodes whose room shares its slots, with somebody on each, and one more who waits at node w.
func waitsAt(t *testing.T, w int) (s *script, inside []*browser, one *browser) {
	t.Helper()
	o := short(5)
	r := &o.Rooms[0]
	r.OnPartition, r.Target, r.QueueAll, r.Session, r.TicketTTL = eviction.Share, 5, true, time.Hour, 2*time.Minute
	s = founded(t, o)
	for i := range 5 {
		inside = append(inside, s.visit(i))
	}
	one = s.browser()
	one.must(w, opJoin)
	s.run(300 * time.Millisecond)
	one.must(w, opCheckIn)
	return s, inside, one
}
