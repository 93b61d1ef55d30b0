package eviction

import (
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/qpid"
)

// Each invariant that a part of the gate states is looked at.
func TestAGateThatIsNotAsItMustBeIsBroken(t *testing.T) {
	for says, spoil := range map[string]func(*Gate){
		"owns what was minted":             func(g *Gate) { g.ledger.minted++ },
		"none is acknowledged before":      func(g *Gate) { g.ledger.peers[0].Acked = g.ledger.peers[0].Sent + 1 },
		"uses no less than nothing":        func(g *Gate) { g.ledger.used = -1 },
		"no more than it owns":             func(g *Gate) { g.ledger.used = g.ledger.owned + 1 },
		"a closed account owns nothing":    func(g *Gate) { g.ledger.account.Born, g.heldAt = 0, never },
		"held by a closed account":         func(g *Gate) { g.ledger.reset(Account{}) },
		"born after all that were closed":  func(g *Gate) { g.shutBorn = g.ledger.account.Born },
		"has its account":                  func(g *Gate) { g.born = nil },
		"the cut never falls":              func(g *Gate) { g.cut.Value.Stamp-- },
		"the weights that the queue holds": func(g *Gate) { g.keying++ },
		"joined since the gather":          func(g *Gate) { g.cut.Value = qpid.UpTo(g.at + 1) },
		"epochs never fall":                func(g *Gate) { g.asserted.epoch.Num = 8 },
		"no token is spent twice":          func(g *Gate) { g.tokens = -1 },
		"longer than D reckons with":       func(g *Gate) { g.session = g.ttl + time.Second },
	} {
		g := newGate(newClusterSettings(Config{}.WithDefaults()), Room{Name: "shop", Session: time.Minute})
		a, b := Member{"a", 1}, Member{"b", 1}
		g.members, g.born, g.heldAt, g.at = []Member{a, b}, []uint64{3, 3}, 5, 1000
		g.ledger.reset(Account{a, 3})
		g.ledger.mint(10)
		g.ledger.send(Account{b, 3}, 2)
		g.ledger.Spend()
		g.cut = Cut{Epoch: 7, Value: qpid.UpTo(900)}
		wave := qpid.Epoch{Num: 7, Coordinator: "a.1"}
		if broken := g.Wrong(wave); broken != nil {
			t.Fatalf("as it should be: %v", broken)
		}
		spoil(g)
		if broken := g.Wrong(wave); broken == nil || !strings.Contains(broken.What, says) {
			t.Errorf("want a breach of %q, got %v", says, broken)
		}
	}
}
