package node_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// TestThreeNodesCallInOrder is the smallest whole story: three nodes found a
// cluster, ten people come for two places, and everyone gets in in turn.
func TestThreeNodesCallInOrder(t *testing.T) {
	room := eviction.Room{Name: "shop", Target: 2, Session: time.Second, QueueAll: true}
	var nodes []*node.Node
	var peers []eviction.Peer
	for i, name := range []qpid.NodeID{"a", "b", "c"} {
		peers = append(peers, eviction.Peer{Member: eviction.Member{Name: name, Boot: 1}, Start: int64(1e15) + int64(i)})
	}
	at := func(ms int64) eviction.Time { return eviction.Time{Boot: 1e9 + ms*1000, Wall: 1e15 + ms*1000} }
	for _, p := range peers {
		n, err := node.New(node.Config{Self: p, Expect: 3, Joins: true, Rooms: []eviction.Room{room}}, at(0))
		if err != nil {
			t.Fatal(err)
		}
		n.SetView(at(0), eviction.NewView(peers))
		nodes = append(nodes, n)
	}
	var tickets []node.Ticket
	var entitled []qpid.Weight
	inside := 0
	for ms := int64(1); ms < 8000; ms++ {
		var messages []eviction.Message
		for i, n := range nodes {
			n.Tick(at(ms))
			if ms == 2000+int64(i) {
				for j := range 4 {
					a, err := n.Join(at(ms), "shop", qpid.ItemID{byte(i), byte(j)})
					if err != nil {
						t.Fatal(err)
					}
					tickets = append(tickets, a.Ticket)
				}
			}
			r := n.Ready(at(ms))
			for _, l := range r.Log {
				if l.Event == node.Entitled {
					entitled = append(entitled, l.Weight)
				}
			}
			messages = append(messages, r.Messages...)
		}
		for len(messages) > 0 {
			m := messages[0]
			messages = messages[1:]
			for i, p := range peers {
				if p.Member == m.To {
					if err := nodes[i].Step(at(ms), m); err != nil {
						t.Fatal(err)
					}
					messages = append(messages, nodes[i].Ready(at(ms)).Messages...)
				}
			}
		}
		for k, ticket := range tickets {
			n := nodes[ticket.ID[0]]
			if a, err := n.Leave(at(ms), ticket); err == nil && a.State == node.Admitted {
				inside++
				tickets = append(tickets[:k], tickets[k+1:]...)
				if _, err := n.End(at(ms), a.Pass); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	}
	if inside != 12 {
		for _, n := range nodes {
			s, _ := n.Room("shop", at(8000))
			t.Logf("%+v\n%+v", n.Status(), s)
		}
		t.Fatalf("%d of 12 got in", inside)
	}
}
