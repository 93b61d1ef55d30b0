package membership_test

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/membership"
)

// Faults of the implementation that came with the thesis, as far as they are
// gossip's; simtest has the list.

// B7: members were probed at random, so nothing bounded the time until a crash
// was noticed.
func TestThesisACrashIsNoticedInBoundedTime(t *testing.T) {
	for _, n := range []int{2, 3, 8, 16} {
		t.Run(string(rune('0'+n/10))+string(rune('0'+n%10)), func(t *testing.T) {
			bubble(t, func(c *cluster) {
				nodes := c.startAll(n)
				rest := slices.Clone(nodes)
				for len(rest) > max(1, n-3) {
					c.kill(rest[0]) // the most senior, whom all others joined
					rest = rest[1:]
					took := c.within(8*time.Second, "a view without it", func() bool { return agree(rest...) })
					t.Logf("%d of %d left, after %v", len(rest), n, took)
				}
			})
		})
	}
}

// B13, gossip's half: a node removed by mistake never learned of it. Here it is
// cut off, or heard by nobody while it hears everyone, until it is given up, and
// is back with everyone soon after.
func TestThesisARemovedNodeIsTakenBack(t *testing.T) {
	for _, mute := range []bool{false, true} {
		bubble(t, func(c *cluster) {
			nodes := c.startAll(5)
			away, rest := nodes[0], nodes[1:]
			if mute {
				c.wire.mute(away.port)
			} else {
				c.wire.partition(side(away))
			}
			c.within(8*time.Second, "a view without it", func() bool { return agree(rest...) })
			time.Sleep(10 * time.Second)
			c.wire.partition(nil)
			took := c.within(10*time.Second, "one view of all", func() bool { return agree(nodes...) })
			t.Logf("after %v", took)
		})
	}
}

// B14, gossip's half: a node that came back under its name before anybody had
// missed it was taken for the one from before. Gossip reports that as an update.
func TestThesisAQuickRestartIsAnotherMember(t *testing.T) {
	for range 50 { // in one of 60 word of the old life came before the new one had entered itself
		bubble(t, func(c *cluster) {
			nodes := c.startAll(4)
			for range 3 {
				old := nodes[3]
				c.kill(old)
				nodes[3] = c.start("d", joining(nodes[0]), at(c.wire.open(old.port.at.String())))
				c.within(time.Second, "the new life in all views", func() bool { return agree(nodes...) })
			}
		})
	}
}

// The same for a restart after it was given up, and after a goodbye.
func TestRestartIsAnotherMember(t *testing.T) {
	for _, kill := range []bool{true, false} {
		bubble(t, func(c *cluster) {
			nodes := c.startAll(3)
			old := nodes[2]
			if kill {
				c.kill(old)
			} else {
				old.cancel()
				<-old.done
			}
			c.within(8*time.Second, "a view without it", func() bool { return agree(nodes[:2]...) })
			nodes[2] = c.start("c", joining(nodes[0]), at(c.wire.open(old.port.at.String())))
			c.within(time.Second, "the new life in all views", func() bool { return agree(nodes...) })
		})
	}
}

// B18, gossip's half: a partition was two clusters for good. Gossip alone does
// not heal one of 50 s; members call those whom they lost.
func TestThesisASplitOf50sHeals(t *testing.T) {
	for _, calls := range []bool{true, false} {
		bubble(t, func(c *cluster) {
			config := func(cfg *membership.Config) {
				if !calls {
					cfg.Rejoin = 100 * time.Hour
				}
			}
			nodes := []*process{c.start("a", config)}
			for _, name := range []string{"b", "c", "d", "e", "f"} {
				nodes = append(nodes, c.start(name, config, joining(nodes[0])))
			}
			c.within(3*time.Second, "one view of all", func() bool { return agree(nodes...) })
			one, other := nodes[:3], nodes[3:]
			c.wire.partition(side(one...))
			c.within(10*time.Second, "two views", func() bool { return agree(one...) && agree(other...) })
			time.Sleep(40 * time.Second)
			c.wire.partition(nil)
			if calls {
				took := c.within(5*time.Second, "one view of all", func() bool { return agree(nodes...) })
				t.Logf("after %v", took)
				return
			}
			time.Sleep(5 * time.Minute)
			if !agree(one...) || !agree(other...) {
				t.Error("gossip alone heals it: the calls are not needed")
			}
		})
	}
}

// After an hour the lost are forgotten, and the addresses of the configuration
// bring the sides together. The node that all others name has none itself.
func TestSplitThatLastedHealsByTheSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("70 minutes take a second or two, and more under the race detector")
	}
	bubble(t, func(c *cluster) {
		nodes := c.startAll(4)
		c.wire.partition(side(nodes[0]))
		time.Sleep(70 * time.Minute)
		c.wire.partition(nil)
		c.within(20*time.Second, "one view of all", func() bool { return agree(nodes...) })
	})
}

// All members of a cluster come back at new addresses, one at a time, with
// nothing but a crash between: names move, after they were given up.
func TestNameMovesToAnotherAddress(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(4)
		for i := 1; i < 4; i++ {
			c.kill(nodes[i])
			nodes[i] = c.start(nodes[i].name, joining(nodes[0]))
			took := c.within(20*time.Second, "the new life in all views", func() bool { return agree(nodes...) })
			t.Logf("%s after %v", nodes[i].name, took)
		}
	})
}

func TestNameMovesAtOnceAfterAGoodbye(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(3)
		nodes[2].cancel()
		<-nodes[2].done
		nodes[2] = c.start("c", joining(nodes[0]))
		c.within(2*time.Second, "the new life in all views", func() bool { return agree(nodes...) })
	})
}

// Members that start before the one they were told of find it when it comes.
func TestJoinIsTriedForEver(t *testing.T) {
	bubble(t, func(c *cluster) {
		late := c.wire.open("")
		named := func(c *membership.Config) { c.Join = []string{late.at.String()} }
		c.wire.kill(late)
		nodes := []*process{c.start("a", named), c.start("b", named)}
		time.Sleep(5 * time.Minute)
		for _, p := range nodes {
			if n := len(p.log.lines("no other member reached", late.at.String())); n < 2 || n > 7 {
				t.Errorf("%s has said %d times in 5 m that it is alone", p.name, n)
			}
		}
		nodes = append(nodes, c.start("c", at(c.wire.open(late.at.String()))))
		c.within(10*time.Second, "one view of all", func() bool { return agree(nodes...) })
	})
}

// Views of all members become equal once nothing happens any more, whatever
// happened before.
func TestViewsAreEqualInTheEnd(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(7)
		c.wire.partition(side(nodes[1], nodes[4]))
		time.Sleep(1200 * time.Millisecond)
		c.kill(nodes[2])
		c.wire.partition(side(nodes[0], nodes[3], nodes[5]))
		time.Sleep(2500 * time.Millisecond)
		back := c.start("c", joining(nodes[6]), at(c.wire.open(nodes[2].port.at.String())))
		c.kill(nodes[0])
		time.Sleep(time.Second)
		c.wire.partition(nil)
		nodes = append(nodes[3:], nodes[1], back)
		c.within(20*time.Second, "one view of all", func() bool { return agree(nodes...) })
	})
}
