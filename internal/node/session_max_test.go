package node_test

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// brief is a room whose passes are good for 10 s and whose visits for 25.
func brief() eviction.Room {
	return eviction.Room{Name: "shop", Target: 1, Session: 10 * time.Second, SessionMax: 25 * time.Second}
}

// ends refreshes a pass every second at the nodes in turn, until none honours it,
// and returns when the last pass ran out, since the beginning of the visit.
func (c *cluster) ends(at []*member, p node.Pass, began int64, limit time.Duration) time.Duration {
	c.t.Helper()
	for i := range int(limit / time.Second) {
		a, err := c.refresh(at[i%len(at)], p)
		if errors.Is(err, ticket.ErrPassExpired) {
			return (time.Duration(p.Expires-began) * time.Microsecond).Round(time.Second)
		}
		if err != nil {
			c.t.Fatalf("refresh after %d s: %v", i, err)
		}
		p = a.Pass
		c.run(time.Second)
	}
	c.t.Fatalf("still on the site after %v, with a pass until %v", limit, time.Duration(p.Expires-began)*time.Microsecond)
	return 0
}

func TestAVisitEndsAtSessionMaxHoweverOftenItIsExtended(t *testing.T) {
	c := founded(t, 3, brief())
	began := wallStart + c.now
	if got := c.ends(c.node, c.admitted(c.node[0], "shop"), began, time.Minute); got != 25*time.Second {
		t.Errorf("the last pass was good for %v, want 25s", got)
	}
	c.run(1500 * time.Millisecond)
	c.wantUsed("shop", 0)
}

// The node that took the visitor in dies: whoever goes on with the visit knows
// from the pass when it began.
func TestSessionMaxOutlivesTheNode(t *testing.T) {
	room := brief()
	room.Target, room.Session, room.SessionMax = 9, 40*time.Second, 55*time.Second
	c := founded(t, 3, room)
	began := wallStart + c.now
	p := c.admitted(c.node[1], "shop")
	c.run(4 * time.Second)
	a, err := c.refresh(c.node[1], p)
	if err != nil {
		t.Fatal(err)
	}
	c.node[1].up = false
	c.gossip()
	c.run(4 * time.Second)
	if got := c.ends([]*member{c.node[0], c.node[2]}, a.Pass, began, 2*time.Minute); got != 55*time.Second {
		t.Errorf("the last pass was good for %v, want 55s", got)
	}
}

// Raised at run time it counts for the visits of that moment as well: from their
// beginning at this node.
func TestSessionMaxOfARunningVisit(t *testing.T) {
	room := brief()
	room.SessionMax = 0
	c := founded(t, 1, room)
	a, began := c.node[0], wallStart+c.now
	p := c.admitted(a, "shop")
	for range 5 {
		c.run(4 * time.Second)
		in, err := c.refresh(a, p)
		if err != nil || in.Pass.Started != 0 {
			t.Fatalf("refresh: %+v, %v", in.Pass, err)
		}
		p = in.Pass
	}
	room.SessionMax = 40 * time.Second
	if err := a.SetRoom(c.at(a), room); err != nil {
		t.Fatal(err)
	}
	c.run(time.Second)
	if got := c.ends(c.node, p, began, time.Minute); got != 40*time.Second {
		t.Errorf("the last pass was good for %v, want 40s", got)
	}
}

// A pass from before there was a session_max does not say when its visit began:
// it is taken to be as old as the pass.
func TestSessionMaxOfAPassThatDoesNotTell(t *testing.T) {
	room := brief()
	room.Method = eviction.Passthrough
	c := founded(t, 1, room)
	began := wallStart + c.now
	p := c.admitted(c.node[0], "shop")
	if p.Started == 0 || p.Home != (eviction.Account{}) {
		t.Fatalf("pass %+v", p)
	}
	p.Started = 0
	if got := c.ends(c.node, p, began, time.Minute); got != 25*time.Second {
		t.Errorf("the last pass was good for %v, want 25s", got)
	}
}

func TestSessionMaxIsNoShorterThanAPass(t *testing.T) {
	room := brief()
	room.SessionMax = 9 * time.Second
	if err := room.Validate(); err == nil {
		t.Error("a session_max of 9s with a session_duration of 10s is taken")
	}
}
