package live

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// crowdedBy has so many people wait for a room in which one is.
func (c *cluster) crowdedBy(people int) {
	c.t.Helper()
	for i := range people + 1 {
		if a := c.nodes[i%len(c.nodes)].visit("join", nil); a.Status != http.StatusCreated {
			c.t.Fatalf("visitor %d: %+v", i, a)
		}
	}
}

// dashboard listens as an open page does, and asks now and then what that asks, until
// the test is over.
func (p *process) dashboard(over <-chan struct{}, heard func()) {
	a, err := p.look("/v1/stream", time.Hour)
	if err != nil {
		p.c.t.Errorf("%s: %v", p.id, err)
		return
	}
	defer func() { _ = a.Body.Close() }()
	go func() { <-over; _ = a.Body.Close() }()
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 1<<20)
	for n := 0; lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "data: ") {
			continue
		}
		heard()
		if n++; n%5 == 0 { // as the page of a room
			for _, path := range []string{"/v1/slots?room=shop", "/v1/health"} {
				if b, err := p.look(path, 5*time.Second); err == nil {
					_, _ = io.Copy(io.Discard, b.Body) // what is in it is another test's
					_ = b.Body.Close()
				}
			}
		}
	}
}

// BenchmarkTenDashboards measures what ten open dashboards cost the node at which they
// look, one of three with 300 people in line: its processor with and without them, in
// hundredths of a core.
func BenchmarkTenDashboards(b *testing.B) {
	const watched = 20 * time.Second
	c := newCluster(b, 1)
	c.session = 10 * time.Minute
	c.run(3)
	c.crowdedBy(300)
	p := c.nodes[0]
	spent := func() float64 {
		before, began := p.metric("process_cpu_seconds_total"), time.Now()
		time.Sleep(watched) // there is nothing to wait for: this is the time that is measured
		return 100 * (p.metric("process_cpu_seconds_total") - before) / time.Since(began).Seconds()
	}
	for b.Loop() {
		alone := spent()
		over, heard := make(chan struct{}), make(chan struct{}, 1000)
		for range 10 {
			go p.dashboard(over, func() { heard <- struct{}{} })
		}
		for range 10 {
			<-heard
		}
		with := spent()
		close(over)
		if n := len(heard); n < 10*int(watched.Seconds())/2 {
			b.Errorf("the ten heard %d times of the node in %v", n, watched)
		}
		b.ReportMetric(alone, "%core-alone")
		b.ReportMetric(with, "%core-with-ten")
	}
}

// BenchmarkAHundredRooms measures the memory of a node with a hundred rooms, of which ten
// have a hundred people in line each, beside one with one room: MiB that the system gave
// it, and MiB of its heap.
func BenchmarkAHundredRooms(b *testing.B) {
	for _, rooms := range []int{1, 100} {
		b.Run(fmt.Sprintf("rooms=%d", rooms), func(b *testing.B) {
			c := newCluster(b, 1)
			c.session = 10 * time.Minute
			for i := range rooms - 1 {
				c.rooms += fmt.Sprintf("  - {name: r%d, routes: [{host: r%d.example.com, path: /}], origin: %q, total_active_users: 1, session_duration: 10m}\n", i, i, c.origin.URL)
			}
			c.run(3)
			names := []string{"shop"}
			for i := range min(rooms-1, 9) {
				names = append(names, fmt.Sprintf("r%d", i))
			}
			for _, name := range names {
				for i := range 100 {
					a, err := http.Post(c.nodes[i%3].gateway()+"/_anteroom/v1/rooms/"+name+"/join", "application/json", strings.NewReader("{}"))
					if err != nil || a.StatusCode != http.StatusCreated {
						b.Fatalf("%s: %v, %v", name, a, err)
					}
					_ = a.Body.Close()
				}
			}
			for b.Loop() {
				time.Sleep(30 * time.Second) // rows of every second are kept; so long it is looked at
			}
			of := func(metric string) (mib []float64) {
				for _, p := range c.nodes {
					mib = append(mib, p.metric(metric)/(1<<20))
				}
				return mib
			}
			b.ReportMetric(slices.Max(of("process_resident_memory_bytes")), "MiB-resident")
			b.ReportMetric(slices.Max(of("go_memstats_heap_inuse_bytes")), "MiB-heap")
			b.ReportMetric(0, "ns/op") // says nothing
		})
	}
}
