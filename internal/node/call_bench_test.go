package node_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// BenchmarkCallAll opens a room for 100,000 people who wait at 16 nodes, all at
// once. All nodes are in this process and take turns, so the time is that of
// their processors together; in processes of their own they share it.
//
//	go test ./internal/node -run '^$' -bench CallAll -benchtime=5x
func BenchmarkCallAll(b *testing.B) {
	const nodes, waiting = 16, 100_000
	for b.Loop() {
		b.StopTimer()
		room := eviction.Room{
			Name: "shop", Target: 0, Session: time.Minute, QueueAll: true, ClaimWindow: time.Hour,
			Refresh: 12 * time.Hour, TicketTTL: 24 * time.Hour,
		}
		c := founded(b, nodes, room)
		for i := range waiting {
			m := c.node[i%nodes]
			id := qpid.ItemID{byte(i * 151), byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24)}
			if _, err := m.Join(c.at(m), "shop", id, false); err != nil {
				b.Fatal(err)
			}
			c.now++
		}
		c.deliver()
		c.run(2 * time.Second)
		c.log = c.log[:0]
		room.Target, room.Version.Stamp = waiting, uint64(wallStart)
		if err := c.node[0].SetRoom(c.at(c.node[0]), room); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		began, called := c.now, 0
		for c.now-began < 30e6 && called < waiting {
			c.run(10 * time.Millisecond)
			called = 0
			for _, m := range c.node {
				s, _ := m.Room("shop", c.at(m))
				called += s.Called
			}
		}
		if called < waiting {
			b.Fatalf("%d of %d were called", called, waiting)
		}
		b.ReportMetric(float64(c.now-began)/1e3, "virtual-ms")
	}
}

// BenchmarkDraw is the wave in which a draw orders 200,000 people who wait at
// one node.
//
//	go test ./internal/node -run '^$' -bench Draw -benchtime=5x
func BenchmarkDraw(b *testing.B) {
	const waiting = 200_000
	for b.Loop() {
		b.StopTimer()
		room := eviction.Room{
			Name: "shop", Target: 1, Session: time.Minute, QueueAll: true, ClaimWindow: time.Hour,
			Refresh: 12 * time.Hour, TicketTTL: 24 * time.Hour,
			Events: []eviction.Event{{Name: "sale", Prequeue: wallStart + 4e6, Start: wallStart + 12e6, End: wallStart + 900e6, Shuffle: true}},
		}
		c := founded(b, 1, room)
		c.run(time.Duration(115e5-c.now) * time.Microsecond)
		for i := range waiting {
			id := qpid.ItemID{byte(i * 151), byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24)}
			if _, err := c.node[0].Join(c.at(c.node[0]), "shop", id, false); err != nil {
				b.Fatal(err)
			}
			c.now++
		}
		c.run(100 * time.Millisecond)
		b.StartTimer()
		c.run(400 * time.Millisecond)
		b.StopTimer()
		if rs, ok := c.node[0].Room("shop", c.at(c.node[0])); !ok || !rs.Draw.Over() || rs.Queued < waiting*9/10 {
			b.Fatalf("no draw of all, but %+v", rs.Draw)
		}
		b.StartTimer()
	}
}
