package qpid_test

import (
	"fmt"

	"github.com/anteroom/anteroom/qpid"
)

// Three nodes in a row, a–b–c. A wave would make the snapshots; here they are
// written down. Messages are delivered in the order in which they are sent.
func Example() {
	weight := func(stamp uint64) qpid.Weight { return qpid.Weight{Stamp: stamp} }
	epoch := qpid.Epoch{Num: 1, Coordinator: "a"}
	nodes := map[qpid.NodeID]*qpid.Node{}
	for _, s := range []struct {
		id        qpid.NodeID
		own       uint64
		neighbors []qpid.Neighbor
	}{
		{"a", 10, []qpid.Neighbor{{ID: "b", Weight: weight(20)}}},
		{"b", 20, []qpid.Neighbor{{ID: "a", Weight: weight(10)}, {ID: "c", Weight: weight(30)}}},
		{"c", 30, []qpid.Neighbor{{ID: "b", Weight: weight(10)}}},
	} {
		n, err := qpid.New(qpid.Config{Self: s.id})
		if err != nil {
			panic(err)
		}
		n.Insert(weight(s.own))
		if err := n.Install(qpid.Snapshot{Epoch: epoch, Own: weight(s.own), Neighbors: s.neighbors}); err != nil {
			panic(err)
		}
		nodes[s.id] = n
	}

	var network []qpid.Message
	work := func(id qpid.NodeID) {
		r := nodes[id].Ready()
		network = append(network, r.Messages...)
		for _, x := range r.Removed {
			fmt.Printf("%s lets %d in\n", id, x.Weight.Stamp)
		}
		for _, a := range r.Answers {
			fmt.Printf("%s hears: %d was taken at %s\n", id, a.Weight.Stamp, a.Home)
		}
	}
	deliver := func() {
		for len(network) > 0 {
			m := network[0]
			network = network[1:]
			fmt.Printf("%s→%s %v\n", m.From, m.To, m.Kind)
			if err := nodes[m.To].Step(m); err != nil {
				panic(err)
			}
			work(m.To)
		}
	}

	nodes["c"].Insert(weight(5))
	work("c")
	deliver()
	fmt.Println("c is root:", nodes["c"].IsRoot())

	nodes["a"].DeleteMin(qpid.OpID{Caller: "a", Seq: 1})
	work("a")
	deliver()
	fmt.Println("a is root:", nodes["a"].IsRoot())

	// Output:
	// c→b update
	// b→a update
	// a→b findRoot
	// b→c findRoot
	// c is root: true
	// a→b deleteMin
	// b→c deleteMin
	// c lets 5 in
	// c→a taken
	// a hears: 5 was taken at c
	// c→b findRoot
	// b→a findRoot
	// a is root: true
}
