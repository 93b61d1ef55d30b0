package simtest

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// The coordinator and another node cannot speak with each other for a minute, one way or
// both, under a crowd whose browsers stay where they are. That node is left out. It
// reaches the others, so it asks them for its visitors, who are called in their turn:
// nobody overtakes anybody, and no later than those around them by more than it takes to
// be sure that their node is lost.
func TestScenarioANodeWithOneBadLinkKeepsItsVisitorsMoving(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(s *script, lead, x int32){
		"both ways":         func(s *script, lead, x int32) { s.oneWay(lead, x); s.oneWay(x, lead) },
		"towards the node":  func(s *script, lead, x int32) { s.oneWay(lead, x) },
		"towards the other": func(s *script, lead, x int32) { s.oneWay(x, lead) },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				s := founded(t, Options{
					Seed: seed, Nodes: 5,
					Rooms: []eviction.Room{{
						Name: "shop", Target: 40, Session: 30 * time.Second, Refresh: 3 * time.Second, ClaimWindow: 8 * time.Second, TicketTTL: 2 * time.Minute,
					}},
					Load:   Load{Browse: Range{3 * time.Second, 6 * time.Second}, Timeout: 5 * time.Second, Sticky: true},
					Faults: Faults{Detect: Range{300 * time.Millisecond, 900 * time.Millisecond}, KeepKeys: true},
				})
				s.arriveOver(none, 600, 12*time.Second)
				s.run(15 * time.Second)
				lead := s.coordinator()
				x := (lead + 1 + int(seed)%4) % 5
				at := s.now
				waited := map[int32]bool{} // there, when it happens
				for i := range s.crowd.tickets {
					if p := &s.crowd.tickets[i]; p.home == int32(x) && p.state == queued && p.calledAt == 0 {
						waited[int32(i)] = true
					}
				}
				cut(s, int32(lead), int32(x))
				s.until(6*time.Second, "waves without it", func() bool { return len(s.hosts[lead].seen.status.List) == 4 })
				s.run(time.Minute)
				s.mend()
				s.until(6*time.Second, "all five again", func() bool { return s.together(5) })
				s.run(40 * time.Second)
				if n := s.inOrder(0); n < 400 {
					t.Errorf("seed %d: %d people waited, want a crowd", seed, n)
				}
				late, moved := s.lateBy(at, waited)
				t.Logf("seed %d: %d people waited there; the one who fared worst was called %v after somebody behind them", seed, moved, micros(late))
				if moved < 40 || late > 3_000_000 {
					t.Errorf("seed %d: of %d people one was called %v after somebody behind them", seed, moved, micros(late))
				}
				s.finish()
			}
		})
	}
}

// lateBy returns by how much at most somebody of those, called after true time at, was
// called later than somebody behind them, and how many were called.
func (s *script) lateBy(at int64, of map[int32]bool) (late int64, n int) {
	for i := range of {
		p := &s.crowd.tickets[i]
		if p.calledAt <= at {
			continue
		}
		n++
		for j := range s.crowd.tickets {
			if o := &s.crowd.tickets[j]; o.stamp > p.stamp && o.calledAt > at {
				late = max(late, p.calledAt-o.calledAt)
			}
		}
	}
	return late, n
}
