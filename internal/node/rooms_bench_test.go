package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// BenchmarkJoinAmongManyRooms is a join of somebody who has to wait, with all that
// follows from it at once, at a node with that many rooms, in each of which
// somebody waits.
func BenchmarkJoinAmongManyRooms(b *testing.B) {
	for _, rooms := range []int{1, 1000} {
		b.Run(fmt.Sprintf("rooms=%d", rooms), func(b *testing.B) {
			c := manyRooms(b, 1, rooms)
			c.ids = 0
			for i := range rooms {
				joinRoom(c, 0, i)
			}
			c.run(2 * time.Second)
			b.ReportAllocs()
			for b.Loop() {
				joinRoom(c, 0, 0)
			}
		})
	}
}

// BenchmarkWaveOfManyRooms is a wave of three nodes with that many rooms; between
// two waves something happens in ten of them.
func BenchmarkWaveOfManyRooms(b *testing.B) {
	const busy = 10
	for _, rooms := range []int{busy, 1000} {
		b.Run(fmt.Sprintf("rooms=%d", rooms), func(b *testing.B) {
			c := manyRooms(b, 3, rooms)
			c.step = 200_000
			c.run(2 * time.Second)
			before := c.node[0].Status().Installed.Num
			clear(c.sent)
			b.ReportAllocs()
			for b.Loop() {
				for i := range busy {
					joinRoom(c, i%len(c.node), i)
				}
				c.run(200 * time.Millisecond)
				c.log = c.log[:0]
			}
			waves := int(c.node[0].Status().Installed.Num - before)
			if waves == 0 {
				b.Fatal("no wave")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(waves), "ns/wave")
		})
	}
}

// manyRooms are nodes with that many rooms in which nobody is called.
func manyRooms(b *testing.B, nodes, rooms int) *cluster {
	all := make([]eviction.Room, rooms)
	for i := range all {
		all[i] = eviction.Room{
			Name: fmt.Sprintf("room%04d", i), Session: time.Minute, QueueAll: true,
			Refresh: 12 * time.Hour, TicketTTL: 24 * time.Hour, QueueMax: 10_000_000,
		}
	}
	return founded(b, nodes, all...)
}

// joinRoom brings somebody to a room, and does what the node wants done.
func joinRoom(c *cluster, at, room int) {
	c.ids++
	c.now++
	m := c.node[at]
	id := qpid.ItemID{byte(c.ids * 151), byte(c.ids), byte(c.ids >> 8), byte(c.ids >> 16), byte(c.ids >> 24)}
	if _, err := m.Join(c.at(m), fmt.Sprintf("room%04d", room), id, false); err != nil {
		c.t.Fatal(err)
	}
	c.collect(m)
}
