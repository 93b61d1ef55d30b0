package membership_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/membership"
)

// Of two processes of one name the later one stops, before it has handed out a
// view with anybody else in it and without a goodbye in the other's name.
func TestLaterOfTwoProcessesOfOneNameStops(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(3)
		handedOut := func() (n int) {
			for _, p := range nodes {
				n += p.handedOut()
			}
			return n
		}
		views := handedOut()
		second := c.start("b", joining(nodes[0]))
		c.within(5*time.Second, "the later one's end", second.ended)
		if !errors.Is(second.err, membership.ErrNameTaken) {
			t.Errorf("Run = %v, want %v", second.err, membership.ErrNameTaken)
		}
		t.Log(second.err)
		if n := second.handedOut(); n != 1 {
			t.Errorf("the later one handed out %d views, want the one of itself", n)
		}
		time.Sleep(30 * time.Second)
		if n := handedOut(); !agree(nodes...) || n != views {
			t.Errorf("%d views changed", n-views)
		}
		if lines := nodes[1].log.lines("level=ERROR", "node.id of its own"); len(lines) != 1 {
			t.Errorf("the first one logged %q", lines)
		}
	})
}

// The cluster knows the later one only, because the two met when a split
// healed. The earlier one is what stays.
func TestProcessesOfOneNameMeetAfterASplit(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(4)
		first, rest := nodes[3], nodes[:3]
		c.wire.partition(side(first))
		c.within(8*time.Second, "a view without it", func() bool { return agree(rest...) })
		second := c.start("d", joining(nodes[0]))
		all := append([]*process{second}, rest...)
		c.within(20*time.Second, "the later one in all views", func() bool { return agree(all...) })
		c.wire.partition(nil)
		c.within(20*time.Second, "the later one's end", second.ended)
		if !errors.Is(second.err, membership.ErrNameTaken) {
			t.Errorf("Run = %v, want %v", second.err, membership.ErrNameTaken)
		}
		c.within(30*time.Second, "the first one back in all views", func() bool { return agree(nodes...) })
		if first.ended() {
			t.Errorf("the first one ended: %v", first.err)
		}
	})
}

// ended reports whether Run has returned.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// A stranger that gossips under a node's name, of an earlier life or a later
// one, and answers gossip's pings, ends nobody: what counts is who answers at the
// peer service. Nobody leaves a view, and a view that is due is handed out.
func TestWordOfAnotherLifeEndsNobody(t *testing.T) {
	for what, begun := range map[string]uint64{"earlier": 1, "later": 1 << 60} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(c *cluster) {
				nodes := c.startAll(3)
				time.Sleep(time.Minute)
				for _, name := range []string{"a", "b"} {
					s := c.stranger(name, c.wire.open(""), meta(begun, ":7001"))
					for _, p := range nodes {
						if _, err := s.Join([]string{p.Addr()}); err != nil {
							c.Errorf("%s takes in no gossip any more: %v", p.name, err)
						}
					}
				}
				time.Sleep(time.Minute)
				d := c.start("d", joining(nodes[1]))
				c.within(2*time.Second, "a view with another one", func() bool { return agree(append(nodes, d)...) })
				time.Sleep(time.Minute)
				for _, p := range nodes {
					if p.ended() || !p.Settled() {
						t.Errorf("%s ended: %v, or its name is in doubt", p.name, p.err)
					}
				}
				if !agree(append(nodes, d)...) {
					t.Errorf("a sees %s", names(nodes[0].view()))
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				if n := len(c.asked); n == 0 || n > 400 {
					t.Errorf("peers were asked %d times in 2 minutes", n)
				}
			})
		})
	}
}

// A newcomer's clock may say that it started first. That is its word only: who
// has the name already stays.
func TestNewcomerWithAnEarlierClockIsRefused(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(3)
		time.Sleep(time.Minute)
		second := c.start("b", joining(nodes[0]), startedEarlier)
		c.within(5*time.Second, "the newcomer's end", second.ended)
		if !errors.Is(second.err, membership.ErrNameTaken) {
			t.Errorf("Run = %v, want %v", second.err, membership.ErrNameTaken)
		}
		time.Sleep(time.Minute)
		if !agree(nodes...) || nodes[1].ended() {
			t.Errorf("a sees %s, b ended: %v", names(nodes[0].view()), nodes[1].err)
		}
	})
}

// Who has a name and is silent gives way, and not before: while it may still
// answer, the newcomer hands out no view.
func TestSilentOneGivesWayToItsNewcomer(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(3)
		time.Sleep(time.Minute)
		old := nodes[1]
		c.kill(old)
		began := time.Now()
		second := c.start("b", joining(nodes[0]), func(cfg *membership.Config) { cfg.Silent = 4 * time.Second })
		c.within(20*time.Second, "all views", func() bool { return agree(nodes[0], second, nodes[2]) })
		if took := second.times[1].Sub(began); took < 4*time.Second {
			t.Errorf("it handed out a view with others after %v, while the old one might have answered", took)
		}
		if second.ended() {
			t.Error(second.err)
		}
	})
}

// Whoever sees what goes between the nodes records all of it: that one of them is
// suspected, given up, denies it, says goodbye and is back. Sent again to their
// next lives, sealed as it is, it ends nobody. A life is to deny what was said of
// an earlier one; the second time that is nothing to anybody.
func TestRecordedGossipKeepsNobodyOut(t *testing.T) {
	bubble(t, func(c *cluster) {
		sealed := func(cfg *membership.Config) { cfg.Keys = [][]byte{bytes.Repeat([]byte{'k'}, 32)} }
		var mu sync.Mutex
		var recorded [][]byte
		c.wire.tap = func(packet []byte) {
			mu.Lock()
			defer mu.Unlock()
			recorded = append(recorded, packet)
		}
		a := c.start("a", sealed)
		b, x := c.start("b", sealed, joining(a)), c.start("c", sealed, joining(a))
		c.within(3*time.Second, "one view of all", func() bool { return agree(a, b, x) })
		for range 3 {
			c.wire.mute(x.port)
			c.within(20*time.Second, "views without who is silent", func() bool { return agree(a, b) })
			c.wire.partition(nil)
			c.within(30*time.Second, "all views", func() bool { return agree(a, b, x) })
		}
		b.cancel()
		<-b.done
		c.within(5*time.Second, "views without who said goodbye", func() bool { return agree(a, x) })
		b = c.start("b", sealed, joining(a), at(c.wire.open(b.port.at.String())))
		c.within(20*time.Second, "all views again", func() bool { return agree(a, b, x) })
		time.Sleep(time.Minute)
		c.wire.mu.Lock()
		c.wire.tap = nil
		c.wire.mu.Unlock()
		for _, p := range []*process{a, b, x} { // whose next lives count from 1 again
			c.kill(p)
		}
		a = c.start("a", sealed, at(c.wire.open(a.port.at.String())))
		b, x = c.start("b", sealed, joining(a), at(c.wire.open(b.port.at.String()))), c.start("c", sealed, joining(a), at(c.wire.open(x.port.at.String())))
		c.within(10*time.Second, "one view of the next lives", func() bool { return agree(a, b, x) })
		time.Sleep(time.Minute)

		live, attacker := []*process{a, b, x}, c.wire.open("")
		count := func() (views, denials int) {
			for _, p := range live {
				views, denials = views+p.handedOut(), denials+len(p.log.lines("Refuting"))
			}
			return views, denials
		}
		for round := range 3 {
			views, denials := count()
			for _, packet := range recorded {
				for _, p := range live {
					_, _ = attacker.WriteTo(packet, p.port.at.String())
				}
				time.Sleep(5 * time.Millisecond)
			}
			c.within(2*time.Second, "all views after gossip was repeated", func() bool { return agree(live...) })
			time.Sleep(30 * time.Second)
			more, denied := count()
			c.Logf("round %d: %d packets, %d views, %d denials", round, len(recorded), more-views, denied-denials)
			if round == 0 && denied == denials {
				c.Error("nobody had to deny anything: what was recorded is too little")
			}
			more -= views
			if !agree(live...) || round > 0 && (more > 0 || denied > denials) {
				c.Errorf("round %d: %d views changed, %d denials, a sees %s", round, more, denied-denials, names(a.view()))
			}
		}
		for _, p := range live {
			if p.ended() || !p.Settled() {
				c.Errorf("%s ended: %v, or its name is in doubt", p.name, p.err)
			}
		}
	})
}

func startedEarlier(c *membership.Config) { c.Self.Start -= time.Hour.Microseconds() }
