package eviction

import (
	"slices"
	"testing"

	"github.com/anteroom/anteroom/qpid"
	"pgregory.net/rapid"
)

func names(s string) (ids []qpid.NodeID) {
	for _, r := range s {
		ids = append(ids, qpid.NodeID(r))
	}
	return ids
}

func TestQuorum(t *testing.T) {
	tests := []struct {
		voters, next, know string
		want               bool
	}{
		{"a", "", "a", true},
		{"a", "", "b", false},
		{"ab", "", "a", true}, // the lowest name breaks the tie
		{"ab", "", "b", false},
		{"abc", "", "bc", true},
		{"abc", "", "a", false},
		{"abc", "", "axyz", false},
		{"abcd", "", "ad", true},
		{"abcd", "", "bcd", true},
		{"abcd", "", "bd", false},
		{"abc", "abcd", "bc", false},
		{"abc", "abcd", "bcd", true},
		{"abc", "abcd", "ab", true},
		{"abcd", "abc", "bcd", true},
		{"abcd", "abd", "ac", false},
		{"", "", "a", false},
	}
	for _, test := range tests {
		v := Voters{Version: 1, Names: names(test.voters)}
		if test.next != "" {
			v.Next = names(test.next)
		}
		if got := v.quorum(names(test.know)); got != test.want {
			t.Errorf("%q with %q of %q and %q: quorum = %v, want %v", test.know, test.voters, test.voters, test.next, got, test.want)
		}
	}
	if (Voters{Names: names("a")}).quorum(names("a")) {
		t.Error("voters that nobody decided have a quorum")
	}
}

// Two quorums of the same voters have a node in common.
func TestQuorumsMeet(t *testing.T) {
	all := names("abcdefg")
	some := func(t *rapid.T, label string) []qpid.NodeID {
		return slices.DeleteFunc(slices.Clone(all), func(qpid.NodeID) bool { return rapid.Bool().Draw(t, label) })
	}
	rapid.Check(t, func(t *rapid.T) {
		v := Voters{Version: 1, Names: all[:rapid.IntRange(1, 7).Draw(t, "voters")]}
		a, b := some(t, "one"), some(t, "other")
		if !v.quorum(a) || !v.quorum(b) {
			return
		}
		if !slices.ContainsFunc(a, func(n qpid.NodeID) bool { return slices.Contains(b, n) && slices.Contains(v.Names, n) }) {
			t.Fatalf("quorums %v and %v of %v do not meet", a, b, v.Names)
		}
	})
}

// The voters as single decrees: any number of waves, each seen by whom it
// reaches, each commit lost to some. A quorum never forms that could not know
// of the waves of an earlier one.
func TestVotersChangeOneNameAtATime(t *testing.T) {
	all := names("abcde")
	rapid.Check(t, func(t *rapid.T) {
		line := Line{1, "a"}
		type state struct {
			knows  bool
			voters Voters
			seen   map[int]bool // primary waves that this node took part in or heard of
		}
		nodes := make([]state, len(all))
		start := rapid.IntRange(1, 5).Draw(t, "founders")
		for i := range start {
			nodes[i] = state{true, Voters{Version: 1, Names: all[:start]}, map[int]bool{}}
		}
		for i := start; i < len(all); i++ {
			nodes[i].seen = map[int]bool{}
		}
		n := &Node{}
		lastPrimary := map[int]bool{}
		for num := 1; num <= 40; num++ {
			w := &wave{Gather: Gather{}, epoch: qpid.Epoch{Num: uint64(num)}}
			var in []int
			for i := range all {
				if rapid.IntRange(0, 3).Draw(t, "listed") > 0 {
					in = append(in, i)
				}
			}
			heard := map[int]bool{}
			for j, i := range in {
				w.list = append(w.list, Member{all[i], 1})
				r := NodeReply{Index: j, Knows: nodes[i].knows, Voters: nodes[i].voters}
				if r.Knows {
					r.Line = line
					for e := range nodes[i].seen {
						heard[e] = true
					}
				}
				w.sum.Nodes = append(w.sum.Nodes, r)
			}
			for _, i := range in {
				nodes[i].seen[num] = true // before it is known whether the wave counts
			}
			v := voiceOf(w, line)
			if !v.voters.quorum(v.know) {
				continue
			}
			c := n.change(w, line, v)
			c.At = w.epoch
			if !slices.IsSorted(c.Names) || len(c.Names) == 0 || len(c.Names) != len(slices.Compact(slices.Clone(c.Names))) {
				t.Fatalf("voters %v", c)
			}
			if d := len(c.Next) - len(c.Names); c.Next != nil && d != 1 && d != -1 {
				t.Fatalf("voters %v move by more than a name", c)
			}
			lastPrimary[num] = true
			for e := range lastPrimary {
				if e < num && e != 0 && !heard[e] {
					t.Fatalf("wave %d is primary by %v of %v and knows nothing of primary wave %d", num, v.know, v.voters, e)
				}
			}
			for _, i := range in {
				if rapid.IntRange(0, 2).Draw(t, "commit arrives") > 0 {
					nodes[i].knows, nodes[i].voters = true, c
					for e := range heard {
						nodes[i].seen[e] = true
					}
				}
			}
		}
	})
}
