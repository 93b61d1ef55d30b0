package growth

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/proto/wire"
	"github.com/anteroom/anteroom/qpid"
)

// cluster is the state machines of nodes, in virtual time. Messages are encoded
// and decoded as the links do it, and arrive at once and in order.
type cluster struct {
	b     *testing.B
	now   int64 // µs
	nodes []*node.Node
	self  []eviction.Peer
	where map[eviction.Member]int
	sent  traffic
	calls int
	ids   uint32
}

// traffic is the messages of waves, and all others.
type traffic struct{ waves, others, waveBytes, otherBytes, largest int }

const (
	wallStart = int64(1_700_000_000_000_000)
	bootStart = int64(3_600_000_000)
)

func (c *cluster) at() eviction.Time {
	return eviction.Time{Boot: bootStart + c.now, Wall: wallStart + c.now}
}

// founded returns n nodes that have been in waves for a while.
func founded(b *testing.B, n int, rooms []eviction.Room) *cluster {
	b.Helper()
	c := &cluster{b: b, where: map[eviction.Member]int{}}
	for i := range n {
		self := eviction.Peer{Member: eviction.Member{Name: qpid.NodeID(fmt.Sprintf("node-%03d", i)), Boot: 1<<63 + uint64(i)}, Start: wallStart + int64(i)}
		o, err := node.New(node.Config{Self: self, Expect: n, Joins: n > 1, Rooms: rooms}, c.at())
		if err != nil {
			b.Fatal(err)
		}
		c.nodes, c.self = append(c.nodes, o), append(c.self, self)
		c.where[self.Member] = i
	}
	for _, o := range c.nodes {
		o.SetView(c.at(), eviction.NewView(c.self))
	}
	c.run(4 * time.Second)
	if got := len(c.nodes[0].Status().List); got != n {
		b.Fatalf("%d of %d nodes are in the waves", got, n)
	}
	return c
}

// run lets time pass. All nodes look at their clocks every 10 ms.
func (c *cluster) run(d time.Duration) {
	const step = 10_000
	for end := c.now + d.Microseconds(); c.now < end; {
		c.now += step
		for _, o := range c.nodes {
			o.Tick(c.at())
		}
		c.deliver()
	}
}

// deliver carries messages until there are none.
func (c *cluster) deliver() {
	for left := true; left; {
		left = false
		for _, from := range c.nodes {
			r := from.Ready(c.at())
			for _, a := range r.Log {
				if a.Event == node.CalledIn {
					c.calls++
				}
			}
			for _, m := range r.Messages {
				left = true
				c.carry(m)
			}
		}
	}
}

func (c *cluster) carry(m eviction.Message) {
	data, err := wire.Marshal(m.Body)
	if err != nil {
		c.b.Fatal(err)
	}
	switch m.Body.(type) {
	case *eviction.Gather, *eviction.Reply, *eviction.Commit:
		c.sent.waves++
		c.sent.waveBytes += len(data)
		c.sent.largest = max(c.sent.largest, len(data))
	default:
		c.sent.others++
		c.sent.otherBytes += len(data)
	}
	if m.Body, err = wire.Unmarshal(data); err != nil {
		c.b.Fatal(err)
	}
	if err := c.nodes[c.where[m.To]].Step(c.at(), m); err != nil {
		c.b.Fatal(err)
	}
}

// join brings people to a room, the same number to each node.
func (c *cluster) join(people int, room string) {
	for range people {
		i := c.ids
		c.ids++
		c.now++ // else the ids decide who was first
		id := qpid.ItemID{byte(i * 151), byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24)}
		if _, err := c.nodes[int(i)%len(c.nodes)].Join(c.at(), room, id, false); err != nil {
			c.b.Fatal(err)
		}
	}
	c.deliver()
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
