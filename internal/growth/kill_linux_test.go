package growth

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/history"
)

// absent is a room with a line of people who never come when they are called, fifty a second.
const absent = "  - {name: shop, routes: [{host: \"*\", path: /}], total_active_users: 1000, new_users_per_minute: 3000, queue_all: true, queue_max: 2000000, claim_window: 1s, ticket_ttl: 4h, refresh_interval: 2h}\n"

// BenchmarkKilled is how long nobody is called when one of three nodes is killed, of as many
// people as wait: the longest time between two calls in ten seconds before, and in twenty
// from then on; and how long it takes until all places of the lost node are in line at others.
func BenchmarkKilled(b *testing.B) {
	for _, people := range []int{10_000, 1_000_000} {
		for _, which := range []string{"coordinator", "other"} {
			b.Run(fmt.Sprintf("waiting=%d/%s", people, which), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					killed(b, people, which == "coordinator")
					b.StartTimer()
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func killed(b *testing.B, people int, coordinator bool) {
	f := launch(b, 3, absent, true)
	var urls []string
	for _, p := range f.nodes[:3] {
		urls = append(urls, p.room("join"))
	}
	if _, err := fill(urls, people); err != nil {
		b.Fatal(err)
	}
	isIt := func(p *process) bool { return (p.id == p.cluster().Coordinator) == coordinator }
	lost := f.nodes[slices.IndexFunc(f.nodes[:3], isIt)]
	rest := slices.DeleteFunc(slices.Clone(f.nodes[:3]), func(p *process) bool { return p == lost })
	f.until("places that are kept twice", func() bool {
		time.Sleep(100 * time.Millisecond)
		return rest[0].metric(`anteroom_room_bare_here{room="shop"}`)+rest[1].metric(`anteroom_room_bare_here{room="shop"}`) == 0
	})
	const calm, after = 10 * time.Second, 20 * time.Second
	time.Sleep(calm + 2*time.Second) // the first calls
	at := time.Now()
	lost.signal(syscall.SIGKILL)
	f.until("all places in line", func() bool {
		time.Sleep(50 * time.Millisecond)
		in := 0
		for _, p := range rest {
			var room struct{ Here struct{ Queued, Parked int } }
			_ = p.ask("/v1/rooms/shop", &room) // it is asked again
			in += room.Here.Queued + room.Here.Parked
		}
		return in > people*99/100
	})
	inLine := time.Since(at)
	time.Sleep(time.Until(at.Add(after)))
	calls := f.admissions(history.Called)
	b.ReportMetric(gap(calls, at.Add(-calm), at).Seconds()*1e3, "ms-gap-before")
	b.ReportMetric(gap(calls, at, at.Add(after)).Seconds()*1e3, "ms-gap")
	b.ReportMetric(inLine.Seconds()*1e3, "ms-until-in-line")
	for _, p := range f.nodes {
		p.end(syscall.SIGKILL)
	}
}

// gap is the longest time between two calls.
func gap(calls []history.Entry, from, to time.Time) (longest time.Duration) {
	at := []int64{from.UnixMicro(), to.UnixMicro()}
	for _, e := range calls {
		if e.At > at[0] && e.At < at[1] {
			at = append(at, e.At)
		}
	}
	slices.Sort(at)
	for i := 1; i < len(at); i++ {
		longest = max(longest, time.Duration(at[i]-at[i-1])*time.Microsecond)
	}
	return longest
}
