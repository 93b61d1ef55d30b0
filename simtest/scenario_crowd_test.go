package simtest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// An event opens to a crowd: 20,000 visitors come within one second, half of them
// before the start, to nodes that are 10 to 20 ms apart. A wave calls however
// many there are slots for, so that everybody is called within a second of the
// last one's coming, in order.
func TestScenarioEventOpensToACrowd(t *testing.T) {
	const visitors = 20_000
	for _, nodes := range []int{3, 8, 16} {
		for _, limit := range []int{visitors, 2 * visitors} {
			if limit > visitors && nodes != 8 {
				continue
			}
			t.Run(fmt.Sprintf("%d nodes, limit %d", nodes, limit), func(t *testing.T) {
				s := assemble(t, Options{
					Seed: 1, Nodes: nodes,
					Net: Net{Latency: Range{10 * time.Millisecond, 20 * time.Millisecond}},
					Rooms: []eviction.Room{{
						Name: "shop", Target: limit, Session: 5 * time.Minute, QueueAll: true,
						Event: eviction.Event{Start: wallAt((6 * time.Second).Microseconds())},
					}},
					Load:   Load{Sticky: true, Browse: Range{time.Minute, time.Minute}},
					Faults: Faults{Detect: Range{300 * time.Millisecond, 600 * time.Millisecond}},
				})
				s.launch()
				s.run(5500 * time.Millisecond)
				if !s.together(nodes) {
					t.Fatalf("no wave of all: %s", s.statuses())
				}
				s.arriveOver(none, visitors, time.Second)
				s.run(2 * time.Second)
				last := int64(0)
				for i := range s.crowd.tickets {
					last = max(last, s.crowd.tickets[i].joined)
				}
				if n := s.calls(0); n != visitors {
					t.Errorf("%d of %d are called %v after the last of them came", n, visitors, micros(s.now-last))
				}
				s.inOrder(0)
			})
		}
	}
}

// Positions with a stable view, several nodes and a deep queue: what a visitor
// is told when they check in, against how many are really before them. Exact for
// the first 256 of the room, also where two nodes have stamped in one microsecond,
// within 2 % for 99 of 100 visitors, never off by more than 10 %, and never rising.
func TestScenarioPositionsAreExactAheadAndCloseBehind(t *testing.T) {
	for _, nodes := range []int{3, 8} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			s := assemble(t, Options{
				Seed: 1, Nodes: nodes,
				Rooms: []eviction.Room{{Name: "shop", Target: 40, Session: 5 * time.Minute, QueueAll: true}},
			})
			s.begin()
			var inside, line []*browser
			for range 40 {
				inside = append(inside, s.visit(0))
			}
			for i := range 12_000 {
				b := s.browser()
				b.must(min(s.rngLoad.IntN(nodes), s.rngLoad.IntN(nodes)), opJoin) // the first nodes are the busiest
				if i%20 == 0 {
					s.run(time.Duration(1+s.rngLoad.IntN(8)) * time.Millisecond) // soon enough for nobody to be parked
				}
				line = append(line, b)
			}
			for len(inside) > 0 {
				s.run(1500 * time.Millisecond) // a new digest of everybody is everywhere
				s.checkPositions(line)
				for _, b := range inside[:10] {
					b.must(0, opEnd)
				}
				inside = inside[10:]
			}
		})
	}
}

func (s *script) checkPositions(line []*browser) {
	s.t.Helper()
	var called []qpid.Weight
	var waiting []*browser
	for _, b := range line {
		was := b.ticket.Position
		a := b.must(int(s.lives[s.lifeOf(b.ticket.Home)].host), opCheckIn)
		if a.State == node.Called {
			called = append(called, b.ticket.Weight())
			continue
		}
		if was != 0 && b.ticket.Position > was {
			s.t.Errorf("position %d after %d", b.ticket.Position, was)
		}
		waiting = append(waiting, b)
	}
	slices.SortFunc(waiting, func(a, b *browser) int { return a.ticket.Weight().Compare(b.ticket.Weight()) })
	off := make([]float64, len(waiting))
	for i, b := range waiting {
		want, got := i+1, int(b.ticket.Position)
		off[i] = math.Abs(float64(got-want)) / float64(want)
		if i < 256 && got != want {
			s.t.Errorf("number %d is told %d, and is within the first 256", want, got)
			break // one is enough
		}
	}
	slices.Sort(off)
	if p99, worst := off[len(off)*99/100], off[len(off)-1]; p99 > 0.02 || worst > 0.10 {
		s.t.Errorf("%d visitors: p99 is %.1f %% off, the worst %.1f %%, %d called", len(off), 100*p99, 100*worst, len(called))
	}
}
