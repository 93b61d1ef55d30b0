package membership_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/membership"
)

func TestAloneIsAViewOfOne(t *testing.T) {
	bubble(t, func(c *cluster) {
		p := c.start("a")
		want := membership.View{
			Members: eviction.View{p.self},
			Addr:    map[eviction.Member]string{p.self.Member: "10.0.0.1:7001"},
		}
		if diff := cmp.Diff(want, p.view()); diff != "" {
			t.Errorf("first view (-want +got):\n%s", diff)
		}
		if p.Addr() != "10.0.0.1:7946" || p.NumMembers() != 1 {
			t.Errorf("Addr() = %s, NumMembers() = %d", p.Addr(), p.NumMembers())
		}
		time.Sleep(time.Minute)
		if n := p.handedOut(); n != 1 {
			t.Errorf("%d views while nothing changed", n)
		}
	})
}

func TestJoinersAreInAllViewsBySeniority(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(5)
		for _, p := range nodes {
			if got := names(p.view()); got != "a b c d e" {
				t.Errorf("%s sees %s", p.name, got)
			}
			for _, o := range nodes {
				if got, want := p.view().Addr[o.self.Member], o.port.at.Addr().String()+":7001"; got != want {
					t.Errorf("%s would call %s at %s, want %s", p.name, o.name, got, want)
				}
			}
		}
	})
}

// A member says where its peer service is; only a wildcard is replaced by where
// gossip knows it.
func TestPeerAddressesAreThoseThatMembersName(t *testing.T) {
	for _, test := range []struct{ gossip, peer, want string }{
		{"10.0.0.9:7946", "0.0.0.0:7001", "10.0.0.9:7001"},
		{"10.0.0.9:7946", ":7001", "10.0.0.9:7001"},
		{"10.0.0.9:7946", "[::]:7001", "10.0.0.9:7001"},
		{"10.0.0.9:7946", "192.168.1.1:7001", "192.168.1.1:7001"},
		{"10.0.0.9:7946", "node-2.example.com:7001", "node-2.example.com:7001"},
		{"[fd00::9]:7946", "[::]:7001", "[fd00::9]:7001"},
		{"[fd00::9]:7946", "[fd00::1:9]:7001", "[fd00::1:9]:7001"},
	} {
		t.Run(test.gossip+" "+test.peer, func(t *testing.T) {
			bubble(t, func(c *cluster) {
				a := c.start("a")
				b := c.start("b", joining(a), at(c.wire.open(test.gossip)), func(c *membership.Config) { c.PeerAddr = test.peer })
				c.within(time.Second, "a view of both", func() bool { return agree(a, b) })
				for _, p := range []*process{a, b} {
					if got := p.view().Addr[b.self.Member]; got != test.want {
						t.Errorf("%s would call b at %s, want %s", p.name, got, test.want)
					}
				}
			})
		})
	}
}

func TestGoodbyeIsHeardAtOnce(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(4)
		from := time.Now()
		nodes[0].cancel()
		<-nodes[0].done
		if nodes[0].err != nil {
			t.Errorf("Run = %v", nodes[0].err)
		}
		if took := time.Since(from); took > 2*time.Second {
			t.Errorf("it took %v to leave", took)
		}
		c.within(300*time.Millisecond, "a view without it", func() bool { return agree(nodes[1:]...) })
	})
}

// Nobody is left to hear the goodbye, or to answer the call under way.
func TestLeavingNeverHangs(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(3)
		c.wire.partition(side(nodes[0]))
		time.Sleep(3 * time.Second) // it calls those it has lost
		from := time.Now()
		nodes[0].cancel()
		<-nodes[0].done
		if took := time.Since(from); took > 5*time.Second {
			t.Errorf("it took %v to leave", took)
		}
	})
}

// The sockets do not close, whatever the reason: the process can still end.
func TestStoppingNeverHangs(t *testing.T) {
	bubble(t, func(c *cluster) {
		release := make(chan struct{})
		defer close(release)
		ctx, cancel := context.WithCancel(c.Context())
		m, err := membership.New(membership.Config{
			Self: eviction.Peer{Member: eviction.Member{Name: "a", Boot: 1}, Start: 1}, PeerAddr: ":1",
			OnView: func(membership.View) {}, Ask: nobody, Transport: stuck{c.wire.open(""), release},
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		<-m.Ready()
		cancel()
		from := time.Now()
		if err := <-done; err != nil || time.Since(from) > 5*time.Second {
			t.Errorf("Run = %v after %v", err, time.Since(from))
		}
	})
}

func TestRunRunsOnce(t *testing.T) {
	bubble(t, func(c *cluster) {
		if err := c.start("a").Run(c.Context()); err == nil {
			t.Error("a second Run did not fail")
		}
	})
}

// Whatever happens within the debounce is one view; a member that comes and
// goes within it is none.
func TestChangesGatherBeforeTheyBecomeAView(t *testing.T) {
	bubble(t, func(c *cluster) {
		const debounce = time.Second
		a := c.start("a", func(c *membership.Config) { c.Debounce = debounce })
		for i := range 8 {
			c.start(fmt.Sprintf("n%d", i), joining(a))
		}
		c.within(3*time.Second, "all in one view", func() bool { return len(a.view().Members) == 9 })
		if n := a.handedOut(); n > 3 { // alone, then those in one or two batches
			t.Errorf("8 joins became %d views", n)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		for i := 2; i < len(a.times); i++ {
			if gap := a.times[i].Sub(a.times[i-1]); gap < debounce {
				t.Errorf("views %d and %d are %v apart", i-1, i, gap)
			}
		}
	})
}

// A slow OnView delays views, and neither gossip nor others.
func TestSlowOnViewHoldsUpNothingElse(t *testing.T) {
	bubble(t, func(c *cluster) {
		hold := make(chan struct{})
		calls := 0
		var last membership.View
		slow := c.start("slow", func(cfg *membership.Config) {
			cfg.OnView = func(v membership.View) {
				calls++
				if calls == 2 {
					<-hold
				}
				last = v
			}
		})
		others := []*process{c.start("b", joining(slow)), c.start("c", joining(slow))}
		time.Sleep(time.Minute)
		others = append(others, c.start("d", joining(slow)))
		c.within(3*time.Second, "all in the others' views", func() bool {
			return !slices.ContainsFunc(others, func(p *process) bool { return len(p.view().Members) != 4 })
		})
		if got := slow.NumMembers(); got != 4 {
			t.Errorf("NumMembers() = %d meanwhile, want 4", got)
		}
		close(hold)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(last.Members) != 4 || calls != 3 {
			t.Errorf("%d members in the last of %d views, want 4 in the third", len(last.Members), calls)
		}
	})
}

func TestMembersForAnOperator(t *testing.T) {
	bubble(t, func(c *cluster) {
		a := c.start("a")
		time.Sleep(time.Hour)
		b := c.start("b", joining(a))
		c.within(time.Second, "a view of both", func() bool { return agree(a, b) })
		got := a.Members()
		if len(got) != 2 || got[0].Peer != a.self || got[1].Peer != b.self {
			t.Fatalf("Members() = %v", got)
		}
		if got[1].Gossip != b.port.at || got[1].Addr != "10.0.0.2:7001" || time.Since(got[1].Since) > 2*time.Second || time.Since(got[0].Since) < time.Hour {
			t.Errorf("Members() = %+v", got)
		}
	})
}

func TestTransportThatFailsIsAnError(t *testing.T) {
	m, err := membership.New(membership.Config{
		Self: eviction.Peer{Member: eviction.Member{Name: "a", Boot: 1}, Start: 1}, PeerAddr: ":1",
		OnView: func(membership.View) { t.Error("a view without gossip") }, Ask: nobody, Transport: broken{newWire().open("")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("Run = %v, want %v", err, errBroken)
	}
	select {
	case <-m.Ready():
		t.Error("ready")
	default:
	}
}
