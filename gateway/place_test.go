package gateway

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// As the reference of Cloudflare's API has it: quartiles only where a draw
// decides, and no estimate while nobody is let in.
func TestWaitAsCloudflareTellsIt(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	wait := ticket.Wait{P25: 5 * time.Minute, P50: 10 * time.Minute, P75: 15 * time.Minute}
	for _, c := range []struct {
		name   string
		room   eviction.Room
		paused string
		want   cloudflare
	}{
		{"fifo", eviction.Room{}, "", cloudflare{WaitTimeKnown: true, WaitTime: 10, WaitTimeFormatted: "10 minutes", RefreshIntervalSeconds: 20}},
		{"random", eviction.Room{Method: eviction.Random}, "", cloudflare{
			WaitTimeKnown: true, WaitTime: 10, WaitTime25Percentile: 5, WaitTime50Percentile: 10, WaitTime75Percentile: 15,
			WaitTimeFormatted: "5 minutes to 15 minutes", RefreshIntervalSeconds: 20,
		}},
		{"everyone queues", eviction.Room{QueueAll: true}, "", cloudflare{WaitTimeFormatted: "unavailable", RefreshIntervalSeconds: 20}},
		{"paused", eviction.Room{}, "a node is being replaced", cloudflare{WaitTimeFormatted: "unavailable", RefreshIntervalSeconds: 20}},
		{"reject", eviction.Room{Method: eviction.Reject}, "", cloudflare{WaitTimeKnown: true, WaitTime: 10, WaitTimeFormatted: "10 minutes"}},
		{"before the doors open", eviction.Room{Event: eviction.Event{Start: now.Add(time.Hour).UnixMicro()}}, "", cloudflare{
			WaitTimeFormatted: "unavailable", RefreshIntervalSeconds: 20, IsEventActive: true, IsEventPrequeueing: true, TimeUntilEventStart: 60,
		}},
		{"after that", eviction.Room{Event: eviction.Event{Start: now.Add(-time.Hour).UnixMicro()}}, "", cloudflare{
			WaitTimeKnown: true, WaitTime: 10, WaitTimeFormatted: "10 minutes", RefreshIntervalSeconds: 20, IsEventActive: true,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Place{EstimatedWaitSeconds: new(secondsOf(wait)), RefreshIntervalSeconds: 20, Paused: c.paused, StartsAt: moment(c.room.Event.Start)}
			(&call{g: &Gateway{}}).likeCloudflare(&p, &ticket.Answer{Wait: wait}, &c.room, now)
			f := p.Cloudflare
			got := cloudflare{
				WaitTimeKnown: f.WaitTimeKnown, WaitTime: f.WaitTime, WaitTime25Percentile: f.WaitTime25Percentile,
				WaitTime50Percentile: f.WaitTime50Percentile, WaitTime75Percentile: f.WaitTime75Percentile, WaitTimeFormatted: f.WaitTimeFormatted,
				RefreshIntervalSeconds: f.RefreshIntervalSeconds, IsEventActive: f.IsEventActive, IsEventPrequeueing: f.IsEventPrequeueing,
				TimeUntilEventStart: f.TimeUntilEventStart,
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTextsAreMadeOnce(t *testing.T) {
	var s texts
	at := time.Date(2026, 11, 21, 9, 0, 0, 999e6, time.UTC)
	for range 2 {
		if got := s.second(at); got != "2026-11-21T09:00:00.000Z" {
			t.Errorf("second: %s", got)
		}
		if got := s.minutes(1) + s.minutes(2) + s.minutes(100_000); got != "1 minute2 minutes100000 minutes" {
			t.Errorf("minutes: %s", got)
		}
	}
	if got := s.second(at.Add(time.Second)); got != "2026-11-21T09:00:01.000Z" {
		t.Errorf("a second later: %s", got)
	}
	if n := testing.AllocsPerRun(100, func() { s.second(at.Add(time.Second)); s.minutes(2) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
