package simtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// A node that says goodbye lets go of its calls: the slots go along with the free
// ones, and whoever was called there is called at another node, not D later.
func TestScenarioWhoWasCalledByANodeThatLeavesIsCalledElsewhere(t *testing.T) {
	for _, leaver := range []int{0, 3} {
		t.Run(fmt.Sprintf("n%02d", leaver), func(t *testing.T) {
			o := short(4)
			o.Rooms[0].QueueAll, o.Rooms[0].Session, o.Rooms[0].ClaimWindow, o.Rooms[0].TicketTTL = true, time.Minute, 20*time.Second, time.Minute
			s := founded(t, o)
			called := make([]*browser, 12)
			for i := range called {
				called[i] = s.browser()
				called[i].must(leaver, opJoin)
			}
			for _, b := range called {
				s.until(5*time.Second, "call", func() bool {
					s.run(50 * time.Millisecond)
					return b.must(leaver, opCheckIn).State == node.Called
				})
			}
			s.goodbye(&s.hosts[leaver])
			in := make([]bool, len(called))
			s.until(4*time.Second, "everybody on the site", func() bool {
				s.run(100 * time.Millisecond)
				all := true
				for i, b := range called {
					if in[i] {
						continue
					}
					a, err := b.ask(1+i%2, opLeave)
					if in[i] = err == nil && a.State == node.Admitted; !in[i] {
						_, err = b.ask(1+i%2, opCheckIn)
					}
					if err != nil && !errors.Is(err, ticket.ErrUnavailable) && !errors.Is(err, errTimeout) && !errors.Is(err, errRefused) {
						t.Fatal(err)
					}
					all = all && in[i]
				}
				return all
			})
			if owned, used := s.ownedNow(); owned != 12 || used != 12 {
				t.Errorf("%d slots of which %d are used, want 12: %s", owned, used, s.ledgers(0))
			}
		})
	}
}

// The coordinator says goodbye. The next one does not wait to find out that there
// is none: waves go on at once.
func TestScenarioWavesGoOnWhenTheCoordinatorLeaves(t *testing.T) {
	o := short(4)
	o.Cluster.ExcludeAfter, o.Cluster.Lease = 2*time.Second, 4*time.Second
	s := founded(t, o)
	s.goodbye(&s.hosts[0])
	last, longest := s.now, int64(0)
	before := s.hosts[2].seen.status.Installed
	for end := s.now + 5_000_000; s.now < end; {
		s.run(10 * time.Millisecond)
		if now := s.hosts[2].seen.status.Installed; now != before {
			before, last, longest = now, s.now, max(longest, s.now-last)
		}
	}
	if two := 2 * o.Cluster.Period; time.Duration(max(longest, s.now-last))*time.Microsecond > two {
		t.Errorf("%v without a wave, want at most two periods, %v", micros(max(longest, s.now-last)), two)
	}
	s.finish()
}
