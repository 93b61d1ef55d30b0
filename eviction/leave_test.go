package eviction

import "testing"

func TestGivenIsWhatTheLastWaveKnows(t *testing.T) {
	a, b := Member{Name: "a", Boot: 1}, Member{Name: "b", Boot: 1}
	n := NewNode(Config{}, Start{Self: Peer{Member: a}}, []Room{{Name: "shop", Target: 1, Session: 1_000_000_000}}, Time{Boot: 1e12, Wall: 1e15})
	g := n.Gate("shop")
	for _, tt := range []struct {
		name    string
		members []Member
		waiting []int
		want    bool
	}{
		{"it is in no list", []Member{b}, []int{3}, true},
		{"nobody is counted yet", []Member{b, a}, nil, true},
		{"nobody waits here", []Member{b, a}, []int{3, 0}, true},
		{"somebody waits here", []Member{b, a}, []int{0, 3}, false},
	} {
		if g.members, g.waiting = tt.members, tt.waiting; n.Given(g) != tt.want {
			t.Errorf("%s: given: %v, want %v", tt.name, !tt.want, tt.want)
		}
	}
}

// Who follows nobody, or itself, asks nobody for a wave.
func TestAWaveIsAskedOfTheCoordinatorAlone(t *testing.T) {
	a, b := Member{Name: "a", Boot: 1}, Member{Name: "b", Boot: 1}
	n := NewNode(Config{}, Start{Self: Peer{Member: a}}, []Room{{Name: "shop", Target: 1, Session: 1_000_000_000}}, Time{Boot: 1e12, Wall: 1e15})
	for _, tt := range []struct {
		follow Member
		want   int
	}{{Member{}, 0}, {a, 0}, {b, 1}} {
		n.follow.Member, n.lead.active = tt.follow, false
		n.Urge(n.Gate("shop"))
		if out, _ := n.Take(); len(out) != tt.want || tt.want > 0 && out[0].To != b {
			t.Errorf("following %v it sends %v, want %d messages", tt.follow, out, tt.want)
		}
	}
}
