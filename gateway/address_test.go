package gateway_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/ticket"
)

// bounded is a world with bounds of what one address may have, whose visitors
// come through a proxy.
func bounded(t *testing.T, l peraddress.Limits, room eviction.Room, more ...func(*gateway.Config)) *world {
	t.Helper()
	var w *world
	w = newWorld(t, func(c *gateway.Config) {
		c.TrustedProxies = loopback
		c.Addresses = peraddress.New(peraddress.Config{Clock: func() int64 { return w.Clock() }, Proxies: loopback})
		c.Addresses.SetRooms(map[string]peraddress.Limits{"shop": l})
		for _, f := range more {
			f(c)
		}
	}, room)
	return w
}

func from(addr string) string { return "X-Forwarded-For: " + addr }

// wantFull fails unless r is a refusal that names the bound.
func wantFull(t *testing.T, r reply, bound peraddress.Bound) {
	t.Helper()
	if r.StatusCode != 429 || r.code() != "too_many_requests" || r.Header.Get("Retry-After") == "" || !strings.Contains(r.body, string(bound)) {
		t.Errorf("%d %s %v, want a refusal by %s", r.StatusCode, r.body, r.Header, bound)
	}
}

func TestOneAddressCannotFillTheQueue(t *testing.T) {
	w := bounded(t, peraddress.Limits{Joins: 2}, shop()) // one in 30 s, those of 100 s at once
	for i := range 5 {
		r := w.api("join", "", from("2001:db8::"+fmt.Sprint(i))) // one household
		if i < 3 && r.StatusCode != 201 {
			t.Fatalf("join %d: %d %s", i, r.StatusCode, r.body)
		}
		if i >= 3 {
			if wantFull(t, r, peraddress.Joins); r.Header.Get("Retry-After") != "20" {
				t.Fatalf("join %d: %v", i, r.Header)
			}
		}
	}
	if r := w.api("join", "", from("2001:db8:0:1::")); r.StatusCode != 201 {
		t.Fatalf("the neighbours: %d %s", r.StatusCode, r.body)
	}
	w.pass(20 * time.Second)
	if r := w.api("join", "", from("2001:db8::9")); r.StatusCode != 201 {
		t.Fatalf("20 s later: %d %s", r.StatusCode, r.body)
	}
	for _, exempt := range []string{"127.0.0.1", "10.1.2.3", "fd00::7"} {
		for range 5 {
			if r := w.api("join", "", from(exempt)); r.StatusCode != 201 {
				t.Fatalf("from %s: %d %s", exempt, r.StatusCode, r.body)
			}
		}
	}
}

// A quarter of the limit is one address's, and the rest is for others.
func TestOneAddressCannotTakeEverySlot(t *testing.T) {
	room := shop()
	room.Target = 48
	w := bounded(t, peraddress.Limits{Active: peraddress.Auto}, room)
	var in []gateway.Place
	for i := range 20 {
		r := w.api("join", "", from("192.0.2.7"))
		if i >= 12 {
			wantFull(t, r, peraddress.Active)
			continue
		}
		var p gateway.Place
		if r.json(t, &p); p.State != "admitted" {
			t.Fatalf("join %d: %s", i, r.body)
		}
		in = append(in, p)
	}
	if p := w.place(201, "join", "", from("198.51.100.1")); p.State != "admitted" {
		t.Errorf("another address: %+v", p)
	}
	w.api("end", with("pass", in[0].Pass), from("192.0.2.7"))
	if p := w.place(201, "join", "", from("192.0.2.7")); p.State != "admitted" {
		t.Errorf("after one has left: %+v", p)
	}
	for range 4 { // those who go on are counted for as long as they do
		w.pass(20 * time.Second)
		for i := range in[1:] {
			var p gateway.Place
			w.api("refresh", with("pass", in[i+1].Pass), from("203.0.113.9")).json(t, &p)
			in[i+1].Pass = p.Pass
		}
	}
	if p := w.place(201, "join", "", from("192.0.2.7")); p.State != "admitted" {
		t.Errorf("after one has gone away: %+v", p)
	}
	wantFull(t, w.api("join", "", from("192.0.2.7")), peraddress.Active)
}

// Whose turn comes while their address is full waits on, in front, without a
// slot: the next one is called, and nobody loses the place.
func TestWhoseAddressIsFullWaitsInFront(t *testing.T) {
	room := shop()
	room.Target, room.QueueAll = 2, true
	w := bounded(t, peraddress.Limits{Active: 1}, room)
	mine, next := from("192.0.2.7"), from("198.51.100.1")
	first := w.place(201, "join", "", mine)
	second := w.place(201, "join", "", mine)
	w.pass(time.Second)
	if second = w.place(200, "checkin", with("ticket", second.Ticket), mine); second.State != "called" {
		t.Fatalf("while nobody is in: %+v", second)
	}
	pass := w.place(200, "leave", with("ticket", first.Ticket), mine).Pass
	wantFull(t, w.api("leave", with("ticket", second.Ticket), mine), peraddress.Active)
	other := w.place(201, "join", "", next)
	w.pass(time.Second)
	if p := w.place(200, "leave", with("ticket", other.Ticket), next); p.State != "admitted" {
		t.Errorf("the next one: %+v", p)
	}
	for range 20 {
		w.pass(2 * time.Second)
		second = w.place(200, "checkin", with("ticket", second.Ticket), mine)
		if second.State != "waiting" || second.PausedCode != string(ticket.PausedAddress) || *second.Position != 1 {
			t.Fatalf("while the address is full: %+v", second)
		}
	}
	if s, _ := w.Room("shop"); s.Called != 0 {
		t.Errorf("%d slots are set aside", s.Called)
	}
	w.api("end", with("pass", pass), mine)
	second = w.place(200, "checkin", with("ticket", second.Ticket), mine)
	if p := w.place(200, "leave", with("ticket", second.Ticket), mine); p.State != "admitted" || p.JoinedAt != second.JoinedAt {
		t.Errorf("after the first has left: %+v", p)
	}
}

// The bound is one of the address that comes in: whoever is held back at home may
// go in from elsewhere.
func TestWhoIsHeldBackMayComeInFromElsewhere(t *testing.T) {
	room := shop()
	room.Target, room.QueueAll = 2, true
	w := bounded(t, peraddress.Limits{Active: 1}, room)
	first, second := w.place(201, "join", "", from("192.0.2.7")), w.place(201, "join", "", from("192.0.2.7"))
	w.pass(time.Second)
	w.place(200, "leave", with("ticket", first.Ticket), from("192.0.2.7"))
	wantFull(t, w.api("leave", with("ticket", second.Ticket), from("192.0.2.7")), peraddress.Active)
	second = w.place(200, "checkin", with("ticket", second.Ticket), from("192.0.2.8"))
	if p := w.place(200, "leave", with("ticket", second.Ticket), from("192.0.2.8")); p.State != "admitted" {
		t.Errorf("from another address: %+v", p)
	}
}

func TestAPlaceIsCountedUntilItIsGone(t *testing.T) {
	room := shop()
	room.TicketTTL = time.Minute
	w := bounded(t, peraddress.Limits{Places: 2}, room)
	mine := from("192.0.2.7")
	if p := w.place(201, "join", "", mine); p.State != "admitted" { // which is no place
		t.Fatalf("%+v", p)
	}
	first, second := w.place(201, "join", "", mine), w.place(201, "join", "", mine)
	wantFull(t, w.api("join", "", mine), peraddress.Places)
	w.api("abandon", with("ticket", first.Ticket), mine)
	third := w.place(201, "join", "", mine)
	wantFull(t, w.api("join", "", mine), peraddress.Places)
	for range 4 {
		w.pass(15 * time.Second) // the third is silent
		w.place(200, "checkin", with("ticket", second.Ticket), from("203.0.113.9"))
	}
	w.pass(time.Second)
	w.place(201, "join", "", mine)
	if r := w.api("join", "", mine); r.StatusCode != 429 {
		t.Errorf("a fourth: %d %s; third %s", r.StatusCode, r.body, third.State)
	}
}

func TestOneAddressCannotOpenEveryStream(t *testing.T) {
	w := bounded(t, peraddress.Limits{Streams: 2}, shop())
	w.join()
	p := w.place(201, "join", "", from("192.0.2.7"))
	open := func(addr string) *http.Response {
		t.Helper()
		r, err := http.DefaultTransport.RoundTrip(w.request("GET", "/_anteroom/v1/rooms/shop/stream?ticket="+p.Ticket, "", from(addr)))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var streams []*http.Response
	for range 2 {
		streams = append(streams, open("192.0.2.7"))
	}
	third := open("192.0.2.7")
	if third.StatusCode != 429 || third.Header.Get("Retry-After") == "" {
		t.Errorf("a third: %d %v", third.StatusCode, third.Header)
	} else if b, err := io.ReadAll(third.Body); err != nil || !strings.Contains(string(b), string(peraddress.Streams)) {
		t.Errorf("a third: %s, %v, want a refusal by %s", b, err, peraddress.Streams)
	}
	_ = third.Body.Close()
	if r := open("192.0.2.8"); r.StatusCode != 200 {
		t.Errorf("another address: %d", r.StatusCode)
	} else {
		_ = r.Body.Close()
	}
	for _, r := range streams {
		_ = r.Body.Close()
	}
	for range 1000 { // the server notices that they are gone
		r := open("192.0.2.7")
		_ = r.Body.Close()
		if r.StatusCode == 200 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("streams that were closed are counted for ever")
}

// People are told the truth: it is the network that is full, and nothing is lost.
func TestThePageOfAFullNetwork(t *testing.T) {
	room := shop()
	room.Target = 2
	w := bounded(t, peraddress.Limits{Active: 1}, room, withOrigin(t, site))
	mine := append([]string{from("192.0.2.7")}, navigation...)
	if r := w.browser().send("GET", "/", "", mine...); r.body != "GET / " {
		t.Fatalf("the first: %d %s", r.StatusCode, r.body)
	}
	var v gateway.View
	r := w.browser().send("GET", "/x", "", mine...)
	if r.json(t, &v); r.StatusCode != 429 || v.Kind != gateway.PageNetwork || v.RefreshSeconds == 0 || v.RefreshURL != "/x" || len(r.Cookies()) > 0 {
		t.Errorf("%d %+v", r.StatusCode, v)
	}
	if r := w.send("GET", "/_anteroom/v1/rooms/shop/auth?proxy=caddy", "", mine...); r.StatusCode != 429 {
		t.Errorf("by forward-auth: %d %s", r.StatusCode, r.body)
	}
	if r := w.send("GET", "/", "", from("192.0.2.7")); r.StatusCode != 429 || r.code() != "too_many_requests" {
		t.Errorf("a program: %d %s", r.StatusCode, r.body)
	}
}

// A proxy that nobody listed is told of once, and never held against the visitors.
func TestAProxyThatIsNotListedIsToldOfOnce(t *testing.T) {
	var log strings.Builder
	w := newWorld(t, func(c *gateway.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }, shop())
	w.api("join", "")
	if w.Warning() != "" || log.Len() > 0 {
		t.Fatalf("without a proxy: %q, log %s", w.Warning(), log.String())
	}
	for range 3 {
		if r := w.api("join", "", from("192.0.2.7")); r.StatusCode != 201 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
	}
	if !strings.Contains(w.Warning(), "127.0.0.1, a proxy that trusted_proxies does not list") || strings.Count(log.String(), "trusted_proxies does not list") != 1 {
		t.Errorf("warning %q, log %s", w.Warning(), log.String())
	}
	listed := bounded(t, peraddress.Limits{}, shop())
	listed.api("join", "", from("192.0.2.7"))
	if listed.Warning() != "" {
		t.Errorf("of one that is listed: %s", listed.Warning())
	}
}
