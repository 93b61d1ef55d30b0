package eviction

import (
	"testing"

	"github.com/anteroom/anteroom/qpid"
)

// lineOf describes nodes that are on one line and know: n of its voters, whose
// last primary wave was lapsed ago.
type lineOf struct {
	stamp  uint64
	voters string
	here   string
	lapsed int64
}

func meeting(lines ...lineOf) *wave {
	w := &wave{}
	for _, l := range lines {
		for _, r := range l.here {
			w.sum.Nodes = append(w.sum.Nodes, NodeReply{
				Index: len(w.list), Line: Line{l.stamp, "a"}, Knows: true, Lapsed: l.lapsed,
				Voters: Voters{Version: 1, Names: names(l.voters)},
			})
			w.list = append(w.list, Member{qpid.NodeID(r), 1})
		}
	}
	return w
}

// When lines meet, the oldest that has its quorum here goes on. One that lacks
// it here, and had it a moment ago, may have it elsewhere: nobody takes its
// nodes away one by one.
func TestLinesMeet(t *testing.T) {
	tests := []struct {
		name  string
		lines []lineOf
		want  uint64 // 0: none
	}{
		{"one with its quorum", []lineOf{{1, "abc", "ab", 0}}, 1},
		{"one without", []lineOf{{1, "abc", "c", 0}}, 0},
		{"the older of two", []lineOf{{2, "de", "de", 0}, {1, "abc", "ab", 0}}, 1},
		{"the older is long over", []lineOf{{2, "de", "de", 0}, {1, "abc", "c", 60 * second}}, 2},
		{"the older may go on elsewhere", []lineOf{{2, "de", "de", 0}, {1, "abcde", "b", 100_000}}, 0},
		{"the younger may", []lineOf{{2, "cde", "d", 0}, {1, "abc", "ab", 0}}, 1},
	}
	for _, test := range tests {
		w := meeting(test.lines...)
		got, ok := firstQuorate(w, linesOf(w), 10*second)
		if got.Stamp != test.want || ok != (test.want > 0) {
			t.Errorf("%s: line %v, %v; want %d", test.name, got, ok, test.want)
		}
	}
}

func TestEnoughToFound(t *testing.T) {
	tests := []struct {
		name  string
		nodes []NodeReply
		want  bool
	}{
		{"alone and told of nobody", []NodeReply{{}}, true},
		{"told to join", []NodeReply{{Joins: true}}, false},
		{"as many as expected", []NodeReply{{Joins: true, Expect: 2}, {Joins: true, Expect: 2}}, true},
		{"more than expected", []NodeReply{{Joins: true, Expect: 2}, {Joins: true, Expect: 2}, {Joins: true}}, true},
		{"one expects more", []NodeReply{{Joins: true, Expect: 2}, {Joins: true, Expect: 3}}, false},
		{"one is told of nobody, the other expects more", []NodeReply{{}, {Joins: true, Expect: 3}}, false},
	}
	for _, test := range tests {
		w := &wave{Gather: Gather{}}
		for i, r := range test.nodes {
			r.Index = i
			w.sum.Nodes = append(w.sum.Nodes, r)
			w.list = append(w.list, Member{qpid.NodeID(rune('a' + i)), 1})
		}
		if got := enoughToFound(w); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// Who is too few for a quorum goes on alone survivor_after the last primary wave that any of
// them was in, or has heard of.
func TestWhoHasOnlyHeardOfALineGoesByTheLatestWord(t *testing.T) {
	room := Room{Name: "shop", Target: 10, Session: 60_000_000_000, Survivor: 10_000_000_000}
	a := Member{Name: "a", Boot: 1}
	for _, test := range []struct {
		name   string
		lapsed []int64
		alone  bool
	}{
		{"one was there a moment ago", []int64{3600 * second, second}, false},
		{"the other way round", []int64{second, 3600 * second}, false},
		{"one never was", []int64{-1, second}, false},
		{"all were there long ago", []int64{3600 * second, 3500 * second}, true},
	} {
		n := NewNode(Config{}, Start{Self: Peer{Member: a}}, []Room{room}, Time{Boot: 1e12, Wall: 1e15})
		w := &wave{}
		for i, lapsed := range test.lapsed {
			w.list = append(w.list, Member{qpid.NodeID(rune('a' + i)), 1})
			w.sum.Nodes = append(w.sum.Nodes, NodeReply{Index: i, Line: Line{1, "z"}, Lapsed: lapsed, Expect: len(test.lapsed)})
		}
		var c Commit
		n.side(w, &c, linesOf(w))
		if alone := c.Grade == Unanimous; alone != test.alone {
			t.Errorf("%s: %v, they go on alone: %v", test.name, c.Grade, alone)
		}
	}
}

// A side is on the first line that one who is there knows since when it has had no quorum.
func TestASideIsOnTheFirstLineThatAnybodyKnows(t *testing.T) {
	a := Member{Name: "a", Boot: 1}
	for _, test := range []struct {
		name  string
		nodes []NodeReply
		want  Line
	}{
		{"both are known", []NodeReply{{Line: Line{1, "x"}, Knows: true}, {Line: Line{2, "y"}, Knows: true}}, Line{1, "x"}},
		{"the second is known", []NodeReply{{Line: Line{1, "x"}, Lapsed: -1}, {Line: Line{2, "y"}, Knows: true}}, Line{2, "y"}},
		{"neither is known", []NodeReply{{Line: Line{2, "y"}, Lapsed: -1}, {Line: Line{1, "x"}, Lapsed: -1}}, Line{1, "x"}},
	} {
		n := NewNode(Config{}, Start{Self: Peer{Member: a}}, nil, Time{Boot: 1e12, Wall: 1e15})
		w := &wave{}
		for i, r := range test.nodes {
			r.Index = i
			w.list = append(w.list, Member{qpid.NodeID(rune('a' + i)), 1})
			w.sum.Nodes = append(w.sum.Nodes, r)
		}
		var c Commit
		n.side(w, &c, linesOf(w))
		if c.Line != test.want || c.Grade != Side {
			t.Errorf("%s: %v of line %v, want a side of %v", test.name, c.Grade, c.Line, test.want)
		}
	}
}
