package qpid

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchNode is a node with eight neighbours, as inside an 8-ary tree, and a
// thousand items. It is the root.
func benchNode(b *testing.B) *Node {
	n, err := New(Config{Self: "m"})
	if err != nil {
		b.Fatal(err)
	}
	for i := range uint64(1000) {
		n.Insert(item(1000+i, i))
	}
	if err := n.Install(benchSnapshot(n, 1)); err != nil {
		b.Fatal(err)
	}
	return n
}

func benchSnapshot(n *Node, epoch uint64) Snapshot {
	s := Snapshot{Epoch: Epoch{Num: epoch, Coordinator: "a"}, Own: n.Min()}
	for i := range 8 {
		s.Neighbors = append(s.Neighbors, Neighbor{ID: NodeID('a' + rune(i)), Weight: item(5000+uint64(i), 0)})
	}
	return s
}

func BenchmarkNodeStepUpdate(b *testing.B) {
	n := benchNode(b)
	b.ReportAllocs()
	m := Message{Kind: MsgUpdate, From: "c", To: "m", Epoch: n.Epoch()}
	for b.Loop() {
		m.Seq++
		m.Weight = item(5000+m.Seq, 0)
		if err := n.Step(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNodeInsertAndRemove(b *testing.B) {
	n := benchNode(b)
	b.ReportAllocs()
	stamp := uint64(10_000)
	for b.Loop() {
		stamp++
		n.Insert(item(stamp, 0))
		n.Remove(n.Min())
	}
}

func BenchmarkNodeInstall(b *testing.B) {
	n := benchNode(b)
	s := benchSnapshot(n, 1)
	b.ReportAllocs()
	for b.Loop() {
		s.Epoch.Num++
		n.Freeze()
		if err := n.Install(s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDeleteMin takes items from a star of nodes, one after another from a
// random node, each replaced by a new item elsewhere: the whole cost, messages
// of all nodes included.
func BenchmarkDeleteMin(b *testing.B) {
	for _, size := range []int{1, 3, 9} {
		b.Run(fmt.Sprintf("nodes=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			r := rand.New(rand.NewPCG(1, 1))
			w := newNetwork(star(size))
			w.quiet = true
			for s := range uint64(1000) {
				w.insert(r.IntN(size), s)
			}
			w.wave()
			clear(w.sent)
			stamp := uint64(1000)
			for b.Loop() {
				w.deleteMin(r.IntN(size))
				w.settle()
				stamp++
				w.insert(r.IntN(size), stamp)
				w.settle()
				w.answers, w.removed = w.answers[:0], w.removed[:0]
			}
			sent := 0
			for _, n := range w.sent {
				sent += n
			}
			b.ReportMetric(float64(sent)/float64(b.N), "messages/op")
		})
	}
}
