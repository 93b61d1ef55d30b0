package eviction

import (
	"testing"

	"github.com/anteroom/anteroom/qpid"
)

// A coordinator, x, has proposed b, and all have heard of the room since; but not of another one yet. It stands still, and y has b
// in force. When x goes on, in the same lead, it proposes c. That nobody has heard of a room since: what was heard since the
// proposal of b counts for nothing. In the first case few have heard of y's last wave, which proposed c already.
func TestWhatWasHeardOfAProposalIsNotHeardOfTheNext(t *testing.T) {
	for _, proposed := range []bool{true, false} {
		n := &Node{gates: []*Gate{newGate(newClusterSettings(Config{}.WithDefaults()), Room{Name: "library"}), newGate(newClusterSettings(Config{}.WithDefaults()), Room{Name: "shop"})}}
		line := Line{1, "a"}
		num := uint64(0)
		// decide is a wave of x, in which those hold voters; rooms is what it asks about.
		decide := func(rooms string, held ...Voters) Voters {
			num++
			w := &wave{epoch: qpid.Epoch{Num: num, Coordinator: "x"}}
			for _, r := range rooms {
				w.Rooms = append(w.Rooms, RoomGather{Room: map[rune]string{'l': "library", 's': "shop"}[r]})
			}
			for i, v := range held {
				w.list = append(w.list, Member{names("abc")[i], 1})
				w.sum.Nodes = append(w.sum.Nodes, NodeReply{Index: i, Knows: true, Line: line, Voters: v})
			}
			v := n.change(w, line, voiceOf(w, line))
			v.At = w.epoch
			n.lead.heard.speak(w, v)
			return v
		}
		v := Voters{Version: 1, Names: names("a"), At: qpid.Epoch{Num: 0, Coordinator: "x"}}
		v = decide("", v, v)  // proposes b
		v = decide("l", v, v) // speaks of the library,
		v = decide("", v, v)  // of which all have heard
		if v.Next == nil || v.Version != 1 {
			t.Fatalf("voters %+v", v)
		}
		num += 10 // waves of y
		v = Voters{Version: 2, Names: names("ab"), At: qpid.Epoch{Num: num, Coordinator: "y"}}
		if proposed {
			before := v
			v.Next, v.At.Num = names("abc"), num+1
			num++
			v = decide("s", v, before, before) // only a has heard of the last wave
		} else {
			v = decide("", v, v, v) // proposes c
		}
		if v.Version != 2 || len(v.Next) != 3 {
			t.Fatalf("voters %+v", v)
		}
		v = decide("s", v, v, v)
		v = decide("s", v, v, v)
		if v.Version != 2 {
			t.Errorf("proposed by y %t: voters %v are in force, and nobody has heard of the library since they were proposed", proposed, v.Names)
		}
	}
}
