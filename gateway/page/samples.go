package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// sampleTime is when the people of the samples look.
func sampleTime() time.Time { return time.Date(2026, 11, 21, 14, 3, 22, 0, time.UTC) }

// sample is a View in a state that a preview can show.
type sample struct {
	name string
	set  func(v *gateway.View)
}

// nowhere is a page of somebody without a place in line.
func nowhere(kind gateway.PageKind) func(v *gateway.View) {
	return func(v *gateway.View) {
		*v = gateway.View{
			Kind: kind, Nonce: v.Nonce, Room: v.Room, LastUpdated: v.LastUpdated, HereURL: v.HereURL, RefreshURL: v.HereURL,
			Method: v.Method, RefreshSeconds: 30,
			Cloudflare: gateway.Cloudflare{
				InWaitingRoom: true, WaitTimeFormatted: "unavailable", LastUpdated: v.Cloudflare.LastUpdated,
				QueueingMethod: v.Method, IsFIFOQueue: true, RefreshIntervalSeconds: 30,
				TimeUntilEventStartFormatted: "unavailable", TimeUntilEventEndFormatted: "unavailable",
			},
		}
		f := &v.Cloudflare
		switch kind {
		case gateway.PageFull:
			f.QueueIsFull = true
		case gateway.PageClosed:
			v.Method, f.QueueingMethod, f.IsFIFOQueue, f.IsRejectQueue = "reject", "reject", false, true
			v.RefreshSeconds, f.RefreshIntervalSeconds = 0, 0
		default:
		}
	}
}

func sampleList() []sample {
	return append([]sample{
		{"waiting", func(*gateway.View) {}},
		{"called", func(v *gateway.View) { v.Kind, v.Position, v.PeopleAhead = gateway.PageCalled, 1, 0 }},
		{"paused", func(v *gateway.View) {
			v.Paused, v.Wait, v.Cloudflare.WaitTimeKnown, v.Cloudflare.WaitTime = ticket.PausedHeld, gateway.Estimate{}, false, 0
			v.Cloudflare.WaitTimeFormatted = "unavailable"
		}},
		{"queue_all", func(v *gateway.View) {
			f := &v.Cloudflare
			v.Wait, f.QueueAll, f.WaitTimeKnown, f.WaitTime, f.WaitTimeFormatted = gateway.Estimate{}, true, false, 0, "unavailable"
		}},
		{"event", func(v *gateway.View) {
			f := &v.Cloudflare
			v.StartsAt, v.Wait, f.WaitTimeKnown, f.WaitTime, f.WaitTimeFormatted = v.LastUpdated.Add(14*time.Minute), gateway.Estimate{}, false, 0, "unavailable"
			f.IsEventActive, f.IsEventPrequeueing, f.ShuffleAtEventStart = true, true, true
			v.Position, v.PeopleAhead = 0, 0
			v.Draw = &gateway.Draw{
				Event: "sale", StartsAt: v.StartsAt, Start: uint64(v.StartsAt.UnixMicro()), Ticket: "00112233445566778899aabbccddeeff",
				Commitment: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
			}
			f.TimeUntilEventStart, f.TimeUntilEventStartFormatted = 14, "14 minutes"
		}},
		{"random", func(v *gateway.View) {
			f := &v.Cloudflare
			v.Method, v.Position, v.PeopleAhead = random, 0, 0
			f.QueueingMethod, f.IsFIFOQueue, f.IsRandomQueue = random, false, true
			f.WaitTime25Percentile, f.WaitTime50Percentile, f.WaitTime75Percentile, f.WaitTimeFormatted = 65, 75, 95, "65 minutes to 95 minutes"
		}},
		{"full", nowhere(gateway.PageFull)},
		{"closed", nowhere(gateway.PageClosed)},
		{"cookies", nowhere(gateway.PageCookies)},
		{"linked", func(v *gateway.View) {
			nowhere(gateway.PageLinked)(v)
			v.RefreshSeconds, v.TakeURL = 0, "/_anteroom/v1/rooms/shop/take?to=%2F"
		}},
		{"busy", nowhere(gateway.PageBusy)},
		{"network", nowhere(gateway.PageNetwork)},
		{"unavailable", nowhere(gateway.PageUnavailable)},
		{"origin_down", nowhere(gateway.PageOriginDown)},
		{"left", nowhere(gateway.PageLeft)},
	}, linkSamples()...)
}

// linkSamples are about links to a place.
func linkSamples() []sample {
	return []sample{
		{"transfer", func(v *gateway.View) {
			nowhere(gateway.PageTransfer)(v)
			v.LinkURL, v.LinkUntil = "https://shop.example.com/_anteroom/m/shop/ABCDEFGHJKLMNPQR", v.LastUpdated.Add(5*time.Minute)
		}},
		{"bookmark", func(v *gateway.View) {
			nowhere(gateway.PageBookmark)(v)
			v.LinkURL = "https://shop.example.com/_anteroom/v1/rooms/shop/page?to=%2F&ticket=IcWmGOCt"
		}},
		{"take", func(v *gateway.View) {
			nowhere(gateway.PageTake)(v)
			v.RefreshSeconds, v.TakeURL = 0, "/_anteroom/m/shop/ABCDEFGHJKLMNPQR"
		}},
		{"link_over", nowhere(gateway.PageLinkOver)},
		{"moved", nowhere(gateway.PageMoved)},
	}
}

// States names the states that Sample knows, for people.
func States() []string {
	var names []string
	for _, s := range sampleList() {
		names = append(names, s.name)
	}
	return names
}

// Sample is what the gateway would show somebody in that state, made up.
func Sample(state string) (gateway.View, error) {
	at := sampleTime()
	const api = "/_anteroom/v1/rooms/shop/"
	v := gateway.View{
		Kind: gateway.PageWaiting, Nonce: "bm9uY2U", Room: "shop", RefreshSeconds: 20, LastUpdated: at,
		Method: "fifo", Why: gateway.WhyFull, Position: 1042, PeopleAhead: 1041, Queued: 2000, JoinedAt: at.Add(-time.Minute),
		Wait:        gateway.Estimate{Known: true, P25: 65 * 60, P50: 75 * 60, P75: 95 * 60},
		TransferURL: api + "transfer?to=%2F", StreamURL: api + "stream", CheckInURL: api + "checkin", LeaveURL: api + "leave", AbandonURL: api + "abandon?to=%2F",
		RefreshURL: api + "return?to=%2F", HereURL: "/",
		Cloudflare: gateway.Cloudflare{
			InWaitingRoom: true, WaitTimeKnown: true, WaitTime: 75, WaitTimeFormatted: "75 minutes",
			LastUpdated: at.Format("2006-01-02T15:04:05.000Z07:00"), RefreshIntervalSeconds: 20, QueueingMethod: "fifo", IsFIFOQueue: true,
			TimeUntilEventStartFormatted: "unavailable", TimeUntilEventEndFormatted: "unavailable",
		},
	}
	for _, s := range sampleList() {
		if s.name == state {
			s.set(&v)
			return v, nil
		}
	}
	return v, fmt.Errorf("%q is no state; give one of %s", state, strings.Join(States(), ", "))
}

// samples are those that a custom page is shown for.
func samples() []gateway.View {
	var all []gateway.View
	for _, name := range []string{"waiting", "called", "paused", "queue_all", "event", "random", "full", "closed"} {
		v, err := Sample(name)
		if err != nil {
			panic("page: " + err.Error()) // the names are those above
		}
		v.Message = strings.Repeat(`"`, messageMax) // the longest that it can come to
		v.Messages = []gateway.Message{{Text: v.Message}, {At: &v.LastUpdated, Text: v.Message}}
		all = append(all, v)
	}
	return all
}

// messageMax is how long the configuration lets a message be, in bytes.
const messageMax = 1000
