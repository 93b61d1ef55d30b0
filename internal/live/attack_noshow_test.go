package live

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Attack 2: thirty tickets from one address check in, are called, and never go in.
// The room lets ten in at a time. Honest people behind them get in within the bound
// that docs/operating.md derives, and are past them then. (From loopback, which is
// exempt from what is bounded per address: the tickets are as many as they like.)
func TestAttackNoShowsHoldTheLineByABoundOnly(t *testing.T) {
	t.Parallel()
	const limit, tickets, honest, claims = 10, 30, 5, 2
	c := newCluster(t, limit)
	c.claim = 1500 * time.Millisecond
	c.room = "    queue_all: true\n"
	c.run(3)
	each := c.claim + 800*time.Millisecond // and what a wave, and noticing the end, take
	bound := tickets*claims*each/limit + c.claim

	var over atomic.Bool
	var all sync.WaitGroup
	defer all.Wait()
	defer over.Store(true)
	var held []*noShow
	for i := range tickets {
		n := &noShow{at: c.nodes[i%3]}
		a := n.at.lineUp()
		n.ticket, n.joined = a.Ticket, a.Joined
		held = append(held, n)
		all.Go(func() {
			for !over.Load() {
				n.ask(t)
				<-time.After(400 * time.Millisecond)
			}
		})
	}
	c.phase("%d tickets are taken by who will not come", tickets)
	began := time.Now()
	var in sync.WaitGroup
	waits := make([]time.Duration, honest)
	for i := range honest {
		in.Go(func() {
			p := c.nodes[i%3]
			pass := patiently(t, p, began, bound+20*time.Second)
			waits[i] = time.Since(began)
			p.visit("end", map[string]string{"pass": pass})
		})
	}
	in.Wait()
	c.phase("honest people were in after %v; the bound is %v", waits, bound)
	for _, w := range waits {
		if w > bound+5*time.Second { // of a busy machine
			t.Errorf("an honest visitor waited %v, the bound is %v", w, bound)
		}
	}
	n := held[0]
	c.until("a new place for who missed the calls", 20*time.Second, func() bool { return n.anew.Load() })
	if n.reason != "missed_calls" || n.joined <= n.was {
		t.Errorf("told %q; joined at %s, before that at %s", n.reason, n.joined, n.was)
	}
	for _, p := range c.nodes { // with the old ticket, wherever it is sent
		if a := p.visit("checkin", map[string]string{"ticket": n.old}); a.Status != 200 || a.Joined != n.joined {
			t.Errorf("%s answers the old ticket with %+v, want the place of %s", p.id, a, n.joined)
		}
	}
}

// patiently goes in like a browser, within a time since began.
func patiently(t *testing.T, p *process, began time.Time, within time.Duration) (pass string) {
	a := p.lineUp()
	for ticket := a.Ticket; time.Since(began) < within; <-time.After(200 * time.Millisecond) {
		if a = p.visit("checkin", map[string]string{"ticket": ticket}); a.State == "called" {
			a = p.visit("leave", map[string]string{"ticket": ticket})
		}
		if a.State == "admitted" {
			return a.Pass
		}
		if a.Ticket != "" {
			ticket = a.Ticket
		}
	}
	t.Errorf("an honest visitor is not in after %v: %+v", time.Since(began), a)
	return ""
}

// noShow is somebody who goes on asking and never goes in.
type noShow struct {
	at          *process
	ticket, old string
	joined, was string
	reason      string
	anew        atomic.Bool // from then on only the first three are written
}

func (n *noShow) ask(t *testing.T) {
	a := n.at.visit("checkin", map[string]string{"ticket": n.ticket})
	switch {
	case a.Status == 0 || a.Code == "unavailable":
	case a.Status != 200:
		t.Errorf("check-in of a no-show = %+v", a)
	case n.anew.Load():
		n.ticket = a.Ticket
	case a.Joined != n.joined:
		n.old, n.was, n.joined, n.reason = n.ticket, n.joined, a.Joined, a.Reason
		n.ticket = a.Ticket
		n.anew.Store(true)
	default:
		n.ticket = a.Ticket
	}
}
