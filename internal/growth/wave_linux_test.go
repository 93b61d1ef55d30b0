package growth

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// work is what there is to do for a cluster.
type work struct{ nodes, rooms, waiting, calls int }

func (w work) String() string {
	return fmt.Sprintf("nodes=%d/rooms=%d/waiting=%d/calls=%d", w.nodes, w.rooms, w.waiting, w.calls)
}

// usual is where the others of works begin: one number grows at a time.
var usual = work{nodes: 4, rooms: 10, waiting: 100_000}

const callsPerWave = 200 // at most

// works are what Wave measures, each idle and with calls.
func works() (all []work) {
	add := func(w work) {
		all = append(all, w)
		w.calls = callsPerWave
		all = append(all, w)
	}
	add(usual)
	for _, n := range []int{1, 2, 8, 16} {
		w := usual
		w.nodes = n
		add(w)
	}
	for _, n := range []int{1, 100} {
		w := usual
		w.rooms = n
		add(w)
	}
	for _, n := range []int{1000, 10_000, 1_000_000} {
		w := usual
		w.waiting = n
		add(w)
	}
	return all
}

// BenchmarkWave is the processor time that waves take, of all nodes together,
// with the encoding and decoding of their messages and what follows from them;
// the messages of a wave, and the bytes of those. People wait in all rooms
// alike. With calls, rooms have room for so many in all. Nobody who is called
// comes, so most of these places are free again by the next wave, and as many
// join as were called.
//
// It fails unless a wave is 3(n-1) messages.
func BenchmarkWave(b *testing.B) {
	for _, w := range works() {
		b.Run(w.String(), func(b *testing.B) { wave(b, w) })
	}
}

func wave(b *testing.B, w work) {
	rooms := make([]eviction.Room, w.rooms)
	for i := range rooms {
		rooms[i] = eviction.Room{
			Name: fmt.Sprintf("room-%03d", i), Target: w.calls / w.rooms, Session: time.Minute, QueueAll: true,
			ClaimWindow: 100 * time.Millisecond, Refresh: 12 * time.Hour, TicketTTL: 24 * time.Hour, QueueMax: 2_000_000,
		}
	}
	c := founded(b, w.nodes, rooms)
	join := func(people int) {
		for i, r := range rooms {
			c.join((people*(i+1))/len(rooms)-(people*i)/len(rooms), r.Name)
		}
	}
	const period = 200 * time.Millisecond
	came := 0
	round := func() { // as many wait after it as before
		join(c.calls - came)
		came += c.calls - came
		c.run(period)
	}
	for range 20 {
		join(w.waiting / 20)
		round()
	}
	for range 10 {
		round()
	}
	runtime.GC()
	c.sent = traffic{}
	called := c.calls
	first, began := c.nodes[0].Status().Installed.Num, processorTime()
	for b.Loop() {
		for range 5 { // a second, in which each room has its wave
			round()
		}
	}
	used := processorTime() - began
	waves := float64(c.nodes[0].Status().Installed.Num - first)
	if want := 3 * (w.nodes - 1) * int(waves); c.sent.waves != want || waves == 0 {
		b.Fatalf("%d messages in %v waves of %d nodes, want %d", c.sent.waves, waves, w.nodes, want)
	}
	b.ReportMetric(0, "ns/op")
	report(b, w, map[string]float64{
		"cpu-ms/wave":   used.Seconds() * 1e3 / waves,
		"msgs/wave":     float64(c.sent.waves) / waves,
		"B/wave":        float64(c.sent.waveBytes) / waves,
		"B/wave-beside": float64(c.sent.otherBytes) / waves,
		"calls/wave":    float64(c.calls-called) / waves,
	})
}
