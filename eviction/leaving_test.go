package eviction

import (
	"slices"
	"testing"

	"github.com/anteroom/anteroom/qpid"
)

// votersOf is what a node says of voters as of wave 5.
func votersOf(names ...qpid.NodeID) Voters {
	return Voters{Version: 1, Names: names, At: qpid.Epoch{Num: 5}}
}

// A room came from a line if that left by this wave, or if the node had voted for where it is. Whoever finds it on a third line does not know
// by way of which others it came there.
func TestARoomSaysWhereItCameFrom(t *testing.T) {
	old, to, other := Line{1, "a"}, Line{2, "a"}, Line{3, "a"}
	tests := []struct {
		name string
		goes Line
		from Line
		want Line
	}{
		{"by the wave that left, with a vote", to, old, old},
		{"by the wave that left, without", Line{}, old, old},
		{"later, with a vote", to, Line{}, old},
		{"later, without", Line{}, Line{}, Line{}},
		{"later, with a vote for another line", other, Line{}, Line{}},
		{"from a line farther on", other, Line{4, "a"}, Line{}},
	}
	for _, test := range tests {
		e := escrow{line: old, voters: votersOf("a"), goes: Vote{test.goes}}
		e.follow(to, &RoomCommit{Line: to, From: test.from})
		if e.line != to || e.goes != (Vote{}) || e.came.Line != test.want {
			t.Errorf("%s: on %v, came from %v, want %v", test.name, e.line, e.came.Line, test.want)
		}
	}
}

// Who came from a line goes back when it is asked there, if it has said that it left where the room is.
func TestWhoCameFromALineGoesBackIfAsked(t *testing.T) {
	old, to, next := Line{1, "a"}, Line{2, "a"}, Line{3, "a"}
	for _, said := range []bool{false, true} {
		e := escrow{line: to, came: Stay{old, votersOf("a", "b")}, voters: votersOf("a"), behind: said}
		e.follow(next, &RoomCommit{Line: to, From: to})
		if e.line != to || e.goes.To != next {
			t.Fatalf("asked where the room is: on %v, votes for %v", e.line, e.goes.To)
		}
		e.goes = Vote{}
		if e.follow(next, &RoomCommit{Line: old, From: old}); (e.line == old && e.goes.To == next && len(e.voters.Names) == 2) != said {
			t.Errorf("said %t: on %v, votes for %v among %v", said, e.line, e.goes.To, e.voters.Names)
		}
	}
}

// Lines that a node left without the room are told of while it stays behind, but for the one that the node is on again; where it has been
// with the room since is none of them.
func TestLinesThatWereLeftWithoutTheRoom(t *testing.T) {
	line := func(i int) Line { return Line{uint64(i), "a"} }
	e := escrow{line: line(1)}
	told := func(on int) (stamps []int) {
		var n RoomNode
		e.tell(&n, line(on))
		for _, s := range n.Without {
			stamps = append(stamps, int(s.Line.Stamp))
		}
		return stamps
	}
	e.part(Stay{line(1), votersOf("a")}, nil)
	if got := told(2); got != nil || e.voters.Version == 0 {
		t.Errorf("left with the room: %v, voters %v", got, e.voters)
	}
	for i := 2; i < 2+withoutMax+3; i++ {
		e.part(Stay{line(i), votersOf("a")}, []Rival{{Line: line(i), Member: memberB}})
	}
	e.part(Stay{line(10), votersOf("a")}, []Rival{{Line: line(10), Member: memberB}})
	if got := told(11); len(got) != withoutMax-1 || got[0] != 5 || got[len(got)-1] != 10 || slices.Contains(got, 11) {
		t.Errorf("on 11 again: %v", got)
	}
	if len(e.rivals) != withoutMax {
		t.Errorf("%d lives of voters for %d lines", len(e.rivals), withoutMax)
	}
	e.line = line(12)
	if e.part(Stay{line(12), votersOf("a")}, nil); slices.Contains(told(20), 12) {
		t.Errorf("left with the room at last: %v", told(20))
	}
	if got := told(12); got != nil {
		t.Errorf("on the room's line: %v", got)
	}
}

// Three voters of an old line are asked for their votes for another one: two of them, where no two can have had the room leave for a line that has not ended.
func TestWhoIsAskedForAVote(t *testing.T) {
	old, to, next := Line{1, "a"}, Line{2, "a"}, Line{3, "a"}
	all := votersOf("a", "b", "c")
	stays := RoomNode{Line: old, Voters: all}
	votes := RoomNode{Line: old, Voters: all, Goes: Vote{to}}
	two := votersOf("a", "b")
	two.Next, two.At = all.Names, qpid.Epoch{Num: 4}
	before := stays // one who missed it that "c" votes there, too
	before.Without = []Stay{{to, two}}
	gone := RoomNode{Line: to, Voters: votersOf("a", "b"), Came: Stay{old, all}}
	without := func(n RoomNode, of ...qpid.NodeID) RoomNode {
		n.Without = []Stay{{to, votersOf(of...)}}
		return n
	}
	tests := []struct {
		name  string
		nodes []RoomNode
		want  bool
	}{
		{"one", []RoomNode{stays}, false},
		{"two", []RoomNode{stays, stays}, true},
		{"one of two has voted", []RoomNode{votes, stays}, false},
		{"one of three has voted", []RoomNode{votes, stays, stays}, true},
		{"two of three have voted", []RoomNode{votes, votes, stays}, false},
		{"and that has ended", []RoomNode{without(votes, "a", "b"), without(votes, "a", "b"), stays}, true},
		{"and one was there without the room", []RoomNode{without(votes, "a", "b", "c"), votes, stays}, false},
		{"it ended, as those say who do not vote on it", []RoomNode{votes, without(stays, "b", "c"), without(stays, "b", "c")}, true},
		{"one has gone", []RoomNode{gone, stays}, false},
		{"one has gone where it has ended", []RoomNode{gone, without(stays, "b")}, true},
		{"one has gone, of three", []RoomNode{gone, stays, stays}, false},
		{"two of three missed who votes there", []RoomNode{stays, before, before}, true},
		{"two of three missed who votes there, and one has gone", []RoomNode{{Line: to, Voters: Voters{Version: 2, Names: all.Names, At: all.At}, Came: Stay{old, all}}, before, before}, true},
		{"and their voters were changing when it left", []RoomNode{{Line: to, Voters: Voters{Version: 1, Names: two.Names, Next: all.Names, At: all.At}, Came: Stay{old, all}}, before, before}, false},
		{"and they were changing since", []RoomNode{{Line: to, Voters: Voters{Version: 1, Names: all.Names[1:], Next: all.Names, At: qpid.Epoch{Num: 6}}, Came: Stay{old, all}}, without(stays, "b", "c"), stays}, true},
		{"who has gone was once there without the room", []RoomNode{without(gone, "a"), stays}, false},
		{"one has gone, and does not say from where", []RoomNode{{Line: to, Voters: votersOf("a")}, without(stays, "b")}, false},
	}
	for _, test := range tests {
		d := &decision{line: next}
		for i := range test.nodes {
			d.list = append(d.list, Member{[]qpid.NodeID{"a", "b", "c"}[i], 1})
		}
		d.lives = make([][]uint64, len(test.nodes))
		rs := &roomSums{nodes: test.nodes}
		if leaves, may := rs.quorumOf(old, d); leaves || may != test.want {
			t.Errorf("%s: leaves %t, asked %t, want %t", test.name, leaves, may, test.want)
		}
	}
}
