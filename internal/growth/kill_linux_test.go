package growth

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/history"
)

// absent is a room with a line of people who never come when they are called: somebody
// else is called a second later.
const absent = "  - {name: shop, routes: [{host: \"*\", path: /}], total_active_users: 60, queue_all: true, queue_max: 2000000, claim_window: 1s, ticket_ttl: 4h, refresh_interval: 2h}\n"

// BenchmarkKilled is how long nobody is called when one of three nodes is killed, of as many
// people as wait: the longest time between two calls in ten seconds before, and in twenty
// from then on; and how long it takes until each place of the lost node is in line at
// another and kept by a third.
func BenchmarkKilled(b *testing.B) {
	for _, people := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("waiting=%d", people), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				killed(b, people)
				b.StartTimer()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func killed(b *testing.B, people int) {
	f := launch(b, 3, absent, true)
	var urls []string
	for _, p := range f.nodes[:3] {
		urls = append(urls, p.room("join"))
	}
	if _, err := fill(urls, people); err != nil {
		b.Fatal(err)
	}
	rest := f.nodes[:2]
	everybody := func() bool {
		time.Sleep(100 * time.Millisecond)
		n := 0.0
		for _, p := range rest {
			if p.metric("anteroom_room_bare_here") != 0 {
				return false
			}
			n += p.metric("anteroom_room_kept_here")
		}
		return n >= float64(people)/2
	}
	f.until("places that are kept twice", everybody)
	const calm, after = 10 * time.Second, 20 * time.Second
	time.Sleep(calm)
	at := time.Now()
	f.nodes[2].signal(syscall.SIGKILL)
	whole := f.stopwatch("place in line of each at another node", func() bool {
		return everybody() && rest[0].metric("anteroom_room_kept_here")+rest[1].metric("anteroom_room_kept_here") > 0.99*float64(people)
	})
	time.Sleep(time.Until(at.Add(after)))
	calls := f.admissions(history.Called)
	b.ReportMetric(gap(calls, at.Add(-calm), at).Seconds()*1e3, "ms-gap-before")
	b.ReportMetric(gap(calls, at, at.Add(after)).Seconds()*1e3, "ms-gap")
	b.ReportMetric(whole.Seconds()*1e3, "ms-until-kept-twice")
	for _, p := range f.nodes {
		p.end(syscall.SIGKILL)
	}
}

func (f *fleet) stopwatch(what string, holds func() bool) time.Duration {
	f.b.Helper()
	began := time.Now()
	f.until(what, holds)
	return time.Since(began)
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
