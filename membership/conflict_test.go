package membership_test

import (
	"errors"
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
