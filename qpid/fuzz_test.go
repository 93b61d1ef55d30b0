package qpid

import "testing"

// script reads choices from fuzzed bytes; when they run out, all are 0.
type script struct{ bytes []byte }

func (s *script) next(n int) int {
	if len(s.bytes) == 0 {
		return 0
	}
	b := s.bytes[0]
	s.bytes = s.bytes[1:]
	return int(b) % n
}

func (s *script) weight() Weight {
	if s.next(4) == 0 {
		return Empty(s.next(4))
	}
	return item(uint64(s.next(16)), 0)
}

func (s *script) epoch() Epoch {
	return Epoch{Num: uint64(s.next(6)), Coordinator: []NodeID{"a", "b"}[s.next(2)]}
}

func (s *script) message() Message {
	names := []NodeID{"a", "c", "b", "z", ""}
	m := Message{
		Kind: Kind(s.next(6)), From: names[s.next(5)], To: "b",
		Epoch: s.epoch(), Seq: uint64(s.next(5)), Weight: s.weight(),
		Op:   OpID{Caller: names[s.next(5)], Seq: uint64(s.next(4))},
		Hops: uint32(s.next(8)), Outcome: Outcome(s.next(5)),
	}
	if s.next(16) == 1 {
		m.To = "a"
	}
	return m
}

// FuzzNode feeds a node anything at all. It must not panic, must stay within
// its bounds, and must keep the invariants that need no other node.
func FuzzNode(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{5, 1, 1, 0, 1, 1, 1, 1, 1, 2, 0, 5, 4, 2, 0, 1, 0, 1, 1, 3, 1, 0, 1, 0, 0})
	f.Add([]byte{0, 5, 0, 3, 5, 2, 0, 1, 7, 1, 1, 1, 2, 2, 3, 1, 4, 6, 2, 0, 2, 0, 1, 1, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &script{data}
		n, err := New(Config{Self: "b", PendingMax: 3, EarlyMax: 3, AnsweredMax: 2, HopsMax: 5})
		if err != nil {
			t.Fatal(err)
		}
		for seq := uint64(1); len(s.bytes) > 0; seq++ {
			before := n.Epoch()
			switch s.next(7) {
			case 0:
				n.Insert(item(uint64(s.next(16)), 0))
			case 1:
				n.Remove(item(uint64(s.next(16)), 0))
			case 2:
				n.DeleteMin(OpID{"b", seq})
			case 3:
				n.Freeze()
			case 4, 5:
				_ = n.Step(s.message())
			case 6:
				_ = n.Install(Snapshot{Epoch: s.epoch(), Position: s.next(4), Own: s.weight(), Neighbors: []Neighbor{
					{ID: "a", Weight: s.weight()}, {ID: "c", Weight: s.weight()},
				}})
			}
			checkFuzzed(t, n, before)
		}
	})
}

func checkFuzzed(t *testing.T, n *Node, before Epoch) {
	t.Helper()
	if err := checkAlways(n); err != nil {
		t.Fatal(err)
	}
	if n.Epoch().Compare(before) < 0 {
		t.Fatalf("epoch went from %v to %v", before, n.Epoch())
	}
	if len(n.pending) > 3 || len(n.early) > 3 || len(n.answered.at) > 2 || len(n.answered.ring) > 2 {
		t.Fatalf("bounds: %d pending, %d early, %d answered", len(n.pending), len(n.early), len(n.answered.at))
	}
	for _, m := range n.Ready().Messages {
		if m.From != n.self || m.To == n.self || m.Hops > 5 {
			t.Fatalf("sends %v", m)
		}
	}
}
