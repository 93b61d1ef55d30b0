package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// shop lets one person in at a time.
func shop() eviction.Room { return eviction.Room{Name: "shop", Target: 1, Session: time.Minute} }

// TestAVisit is the contract from the first request to the last.
func TestAVisit(t *testing.T) {
	w := newWorld(t, nil, shop())
	first := w.join()
	if first.State != "admitted" || first.Pass == "" || first.PassJWT == "" || first.Ticket != "" || first.Position != nil {
		t.Fatalf("the first to join got %+v", first)
	}
	second, third := w.join(), w.join()
	if second.State != "waiting" || second.Ticket == "" || second.Pass != "" || *second.Position != 1 || *second.PeopleAhead != 0 || *third.Position != 2 {
		t.Fatalf("the second got %+v, the third position %d", second, *third.Position)
	}
	w.pass(time.Second)
	if r := w.api("leave", with("ticket", second.Ticket)); r.StatusCode != 409 || r.code() != "not_called_yet" {
		t.Fatalf("leave before the call: %d %s", r.StatusCode, r.body)
	}
	checked := w.place(200, "checkin", with("ticket", second.Ticket))
	if checked.State != "waiting" || checked.Ticket == second.Ticket || !checked.JoinedAt.Equal(second.JoinedAt) || checked.Queued != 2 {
		t.Fatalf("a check-in answered %+v", checked)
	}
	if r := w.api("end", with("pass", first.Pass)); r.StatusCode != 204 || r.body != "" {
		t.Fatalf("end: %d %s", r.StatusCode, r.body)
	}
	w.pass(time.Second)
	called := w.place(200, "checkin", with("ticket", checked.Ticket))
	if called.State != "called" || called.Pass != "" || called.CalledInWave == 0 || checked.CalledInWave != 0 {
		t.Fatalf("after a slot came free: %+v", called)
	}
	in := w.place(200, "leave", with("ticket", checked.Ticket))
	again := w.place(200, "leave", with("ticket", second.Ticket))
	if in.State != "admitted" || in.CalledInWave != called.CalledInWave || !sameSession(t, w, in.Pass, again.Pass) {
		t.Fatalf("leave answered %+v, and then %+v", in, again)
	}
	if p := w.place(200, "checkin", with("ticket", third.Ticket)); *p.Position != 1 || p.State != "waiting" {
		t.Fatalf("the third is at %d, %s", *p.Position, p.State)
	}
	w.pass(30 * time.Second)
	var renewed struct {
		Pass    string
		Expires time.Time `json:"pass_expires_at"`
	}
	w.api("refresh", with("pass", in.Pass)).json(t, &renewed)
	if got := renewed.Expires.Sub(*in.PassExpires); got < 29*time.Second {
		t.Fatalf("renewed by %v", got)
	}
	if r := w.api("abandon", with("ticket", third.Ticket)); r.StatusCode != 204 {
		t.Fatalf("abandon: %d %s", r.StatusCode, r.body)
	}
	w.pass(2 * time.Minute)
	for op, want := range map[string]string{"refresh": "pass_expired", "leave": "ticket_used", "checkin": "ticket_used"} {
		body := with("ticket", second.Ticket)
		if op == "refresh" {
			body = with("pass", renewed.Pass)
		}
		if r := w.api(op, body); r.StatusCode != 410 || r.code() != want {
			t.Errorf("%s after the session: %d %s, want 410 %s", op, r.StatusCode, r.body, want)
		}
	}
	if r := w.api("checkin", with("ticket", third.Ticket)); r.StatusCode != 410 || r.code() != "ticket_expired" {
		t.Errorf("check-in with an abandoned ticket: %d %s", r.StatusCode, r.body)
	}
	for op, body := range map[string]string{"end": with("pass", renewed.Pass), "abandon": with("ticket", third.Ticket)} {
		if r := w.api(op, body); r.StatusCode != 204 {
			t.Errorf("%s once more: %d %s", op, r.StatusCode, r.body)
		}
	}
}

func sameSession(t *testing.T, w *world, a, b string) bool {
	t.Helper()
	x, errX := w.ring.OpenPass("shop", a)
	y, errY := w.ring.OpenPass("shop", b)
	if err := errors.Join(errX, errY); err != nil {
		t.Fatal(err)
	}
	return x == y
}

// told is a queue that always says the same.
type told struct {
	answer ticket.Answer
	room   eviction.Room
}

func (q told) Do(context.Context, ticket.Request) (ticket.Answer, error) { return q.answer, nil }
func (q told) Room(string) (gateway.RoomState, bool)                     { return gateway.RoomState{Room: q.room}, true }
func (q told) Called(string, qpid.ItemID) (<-chan struct{}, func())      { return nil, func() {} }
func (q told) Clock() int64                                              { return morning.UnixMicro() }

func TestTheWaitingObject(t *testing.T) {
	q := told{room: shop(), answer: ticket.Answer{
		Ticket: ticket.Ticket{Room: "shop", Stamp: uint64(morning.Add(-time.Minute).UnixMicro()) + 250_000}, Position: 417, Queued: 1204,
		Wait: ticket.Wait{P25: 100 * time.Second, P50: 120 * time.Second, P75: 140500 * time.Millisecond}, Refresh: 19300 * time.Millisecond,
	}}
	w := newWorld(t, func(c *gateway.Config) { c.Queue = q }, shop())
	r := w.api("join", "{}")
	if got := r.Header.Get("Cache-Control"); got != "no-store" || r.Header.Get("Content-Type") != "application/json" || r.Header["Set-Cookie"] != nil {
		t.Errorf("headers %v", r.Header)
	}
	var p map[string]any
	r.json(t, &p)
	if _, err := w.ring.OpenTicket("shop", p["ticket"].(string)); err != nil {
		t.Error(err)
	}
	delete(p, "ticket")
	want := map[string]any{
		"room": "shop", "state": "waiting", "position": 417.0, "people_ahead": 416.0, "queued": 1204.0,
		"estimated_wait_seconds":   map[string]any{"p25": 100.0, "p50": 120.0, "p75": 141.0},
		"refresh_interval_seconds": 20.0, "joined_at": "2026-11-21T08:59:00.25Z", "last_updated": "2026-11-21T09:00:00Z",
		"queueing_method": "fifo", "why": "calling",
		"cfWaitingRoom": map[string]any{
			"inWaitingRoom": true, "waitTimeKnown": true, "waitTime": 2.0, "waitTime25Percentile": 0.0, "waitTime50Percentile": 0.0,
			"waitTime75Percentile": 0.0, "waitTimeFormatted": "2 minutes", "queueIsFull": false, "queueAll": false,
			"lastUpdated": "2026-11-21T09:00:00.000Z", "refreshIntervalSeconds": 20.0, "queueingMethod": "fifo",
			"isFIFOQueue": true, "isRandomQueue": false, "isPassthroughQueue": false, "isRejectQueue": false,
			"isEventActive": false, "isEventPrequeueing": false, "timeUntilEventStart": 0.0, "timeUntilEventStartFormatted": "unavailable",
			"timeUntilEventEnd": 0.0, "timeUntilEventEndFormatted": "unavailable", "shuffleAtEventStart": false,
			"turnstile": "", "infiniteQueue": false,
		},
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// sided is a queue on a side without a majority.
type sided struct{ told }

func (q sided) Room(string) (gateway.RoomState, bool) {
	return gateway.RoomState{Room: q.room, Queued: 1204, Counted: morning.Add(-time.Minute).UnixMicro()}, true
}

// What a side without a majority tells is of the moment in which all were last counted.
func TestASideSaysWhenAllWereCounted(t *testing.T) {
	q := sided{told{room: shop(), answer: ticket.Answer{Ticket: ticket.Ticket{Room: "shop"}, Position: 417, Queued: 1204, Paused: ticket.PausedSplit}}}
	w := newWorld(t, func(c *gateway.Config) { c.Queue = q }, shop())
	if p := w.join(); p.CountedAt == nil || !p.CountedAt.Equal(morning.Add(-time.Minute)) || !p.LastUpdated.Equal(morning) {
		t.Errorf("a place is as of %v and counted at %v", p.LastUpdated, p.CountedAt)
	}
	var s gateway.Status
	w.send("GET", "/_anteroom/v1/rooms/shop/status", "").json(t, &s)
	if s.CountedAt == nil || !s.CountedAt.Equal(morning.Add(-time.Minute)) || !s.LastUpdated.Equal(morning) {
		t.Errorf("the room is as of %v and counted at %v", s.LastUpdated, s.CountedAt)
	}
}

func TestADrawHasNoPositions(t *testing.T) {
	room := eviction.Room{Name: "shop", Method: eviction.Random, Event: eviction.Event{Start: morning.Add(90 * time.Second).UnixMicro(), Shuffle: true}}
	q := told{room: room, answer: ticket.Answer{Ticket: ticket.Ticket{Room: "shop"}, Queued: 7, Paused: "the doors are closed"}}
	w := newWorld(t, func(c *gateway.Config) { c.Queue = q }, shop())
	p := w.join()
	f := p.Cloudflare
	if p.Position != nil || p.PeopleAhead != nil || p.EstimatedWaitSeconds != nil || p.QueueingMethod != "random" || p.Paused == "" ||
		!p.StartsAt.Equal(morning.Add(90*time.Second)) || p.RefreshIntervalSeconds != 1 {
		t.Errorf("%+v", p)
	}
	if !f.IsEventPrequeueing || f.TimeUntilEventStart != 2 || f.TimeUntilEventStartFormatted != "2 minutes" || !f.ShuffleAtEventStart || f.WaitTimeFormatted != "unavailable" {
		t.Errorf("%+v", f)
	}
}

func TestProblems(t *testing.T) {
	w := newWorld(t, nil, shop(), eviction.Room{Name: "other", Target: 1, Session: time.Minute}, eviction.Room{Name: "shut", Target: 1, Session: time.Minute, Method: eviction.Reject})
	pass := w.join().Pass
	place := w.join().Ticket
	const room = "/_anteroom/v1/rooms/shop/"
	for _, c := range []struct {
		what, method, path, body string
		status                   int
		code                     string
	}{
		{"an unknown room", "POST", "/_anteroom/v1/rooms/nope/join", "", 404, "room_unknown"},
		{"an unknown request", "POST", room + "jion", "", 404, "not_found"},
		{"the wrong method", "GET", room + "join", "", 405, "method_not_allowed"},
		{"no ticket", "POST", room + "checkin", "", 401, "ticket_invalid"},
		{"a ticket that is none", "POST", room + "checkin", with("ticket", "hello"), 401, "ticket_invalid"},
		{"a pass for a ticket", "POST", room + "checkin", with("ticket", pass), 401, "ticket_invalid"},
		{"a ticket for a pass", "POST", room + "refresh", with("pass", place), 401, "pass_invalid"},
		{"no pass", "POST", room + "end", "{}", 401, "pass_invalid"},
		{"another room's ticket", "POST", "/_anteroom/v1/rooms/other/checkin", with("ticket", place), 401, "ticket_invalid"},
		{"another room's pass", "POST", "/_anteroom/v1/rooms/other/end", with("pass", pass), 401, "pass_invalid"},
		{"a room that is shut", "POST", "/_anteroom/v1/rooms/shut/join", "", 403, "room_closed"},
		{"text", "POST", room + "checkin", "ticket", 400, "request_invalid"},
		{"an array", "POST", room + "checkin", `["x"]`, 400, "request_invalid"},
		{"a number", "POST", room + "checkin", `{"ticket": 4}`, 400, "request_invalid"},
		{"an unknown field", "POST", room + "checkin", `{"tickets": "x"}`, 400, "request_invalid"},
		{"two objects", "POST", room + "checkin", `{} {}`, 400, "request_invalid"},
		{"half an object", "POST", room + "checkin", `{"ticket": "`, 400, "request_invalid"},
		{"a huge body", "POST", room + "checkin", with("ticket", strings.Repeat("x", 4097)), 400, "request_invalid"},
		{"a join with a ticket", "POST", room + "join", with("ticket", place), 400, "request_invalid"},
		{"a stream without a ticket", "GET", room + "stream", "", 401, "ticket_invalid"},
		{"an unknown proxy", "GET", room + "auth?proxy=squid", "", 400, "request_invalid"},
	} {
		r := w.send(c.method, c.path, c.body)
		if r.StatusCode != c.status || r.code() != c.code || r.Header.Get("Content-Type") != "application/problem+json" || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s %v, want %d %s", c.what, r.StatusCode, r.body, r.Header, c.status, c.code)
		}
	}
	r := w.send("GET", room+"join", "")
	if got := r.Header.Get("Allow"); got != "POST" {
		t.Errorf("Allow: %q", got)
	}
	r = w.api("checkin", "")
	want := `{"type":"urn:anteroom:problem:ticket_invalid","title":"The ticket is not valid here","status":401,` +
		`"detail":"No ticket came with the request: put it in the body, in an Authorization header or in the room's cookie.","code":"ticket_invalid"}` + "\n"
	if r.body != want || r.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("got %s, want %s", r.body, want)
	}
}

func TestWhatTheQueueSaysBecomesAnAnswer(t *testing.T) {
	w := newWorld(t, nil, shop())
	w.join()
	place := w.join().Ticket
	for _, c := range []struct {
		err    error
		status int
		code   string
		retry  string
	}{
		{ticket.ErrQueueFull, 503, "queue_full", "30"},
		{ticket.ErrUnavailable, 503, "unavailable", "2"},
		{ticket.ErrBusy, 429, "too_many_requests", "1"},
		{fmt.Errorf("forward: %w", ticket.ErrExpired), 410, "ticket_expired", ""},
		{errors.New("secret detail"), 500, "internal", ""},
	} {
		w.breakWith(func(ticket.Request) error { return c.err })
		r := w.api("checkin", with("ticket", place))
		if r.StatusCode != c.status || r.code() != c.code || r.Header.Get("Retry-After") != c.retry {
			t.Errorf("%v: %d %s, Retry-After %q", c.err, r.StatusCode, r.body, r.Header.Get("Retry-After"))
		}
		if strings.Contains(r.body, "secret") {
			t.Errorf("an inner error came out: %s", r.body)
		}
	}
}

func TestATicketComesInThreeWays(t *testing.T) {
	w := newWorld(t, nil, shop())
	w.join()
	place := w.join().Ticket
	w.pass(time.Second) // the same ticket would be sealed the same
	if p := w.place(200, "checkin", "", "Authorization: Bearer "+place); p.Ticket == "" {
		t.Error("a ticket that came as a bearer token was not replaced in the answer")
	}
	if p := w.place(200, "checkin", "ticket="+place, "Content-Type: application/x-www-form-urlencoded"); p.Ticket == "" {
		t.Error("a ticket that came in a form was not replaced in the answer")
	}
	r := w.api("checkin", "", "Cookie: theirs=1; anteroom_shop="+place)
	var p gateway.Place
	r.json(t, &p)
	k := r.Cookies()
	if p.Ticket != "" || len(k) != 1 || k[0].Value == place || !k[0].HttpOnly || k[0].SameSite != http.SameSiteLaxMode || k[0].Path != "/" || k[0].Secure {
		t.Errorf("a ticket that came as a cookie: %s, %v", r.body, r.Header["Set-Cookie"])
	}
	if other, err := w.ring.OpenTicket("shop", k[0].Value); err != nil || other.Position != 1 {
		t.Errorf("the new cookie has %+v, %v", other, err)
	}
}

func TestABrowserHasOnePlace(t *testing.T) {
	w := newWorld(t, nil, shop())
	w.join()
	b := w.browser()
	fetch := []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"}
	path := "/_anteroom/v1/rooms/shop/"
	first := b.send("POST", path+"join", "", fetch...)
	second := b.send("POST", path+"join", "", fetch...)
	if first.StatusCode != 201 || second.StatusCode != 200 {
		t.Fatalf("%d %s, then %d %s", first.StatusCode, first.body, second.StatusCode, second.body)
	}
	var p, q gateway.Place
	first.json(t, &p)
	second.json(t, &q)
	if !p.JoinedAt.Equal(q.JoinedAt) || p.Ticket == "" {
		t.Fatalf("joined at %v and at %v", p.JoinedAt, q.JoinedAt)
	}
	if r := b.send("POST", path+"join", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"); r.StatusCode != 403 || r.code() != "cross_origin" {
		t.Fatalf("another site's form took a place: %d %s", r.StatusCode, r.body)
	}
	if w.count(ticket.Join) != 2 {
		t.Fatalf("%d joins", w.count(ticket.Join))
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t, nil, shop())
	get := func() (s gateway.Status) {
		r := w.send("GET", "/_anteroom/v1/rooms/shop/status", "")
		r.json(t, &s)
		return s
	}
	if s := get(); s.Status != "not_queueing" || s.TotalActiveUsers != 1 || s.Active != 0 {
		t.Errorf("empty: %+v", s)
	}
	w.join()
	w.join()
	w.pass(time.Second)
	if s := get(); s.Status != "queueing" || s.Queued != 1 || s.Active != 1 || s.EstimatedQueuedUsers != 1 {
		t.Errorf("full: %+v", s)
	}
	if err := w.SetRooms([]gateway.Room{{Name: "shop", Suspended: true}}); err != nil {
		t.Fatal(err)
	}
	if s := get(); s.Status != "suspended" {
		t.Errorf("suspended: %+v", s)
	}
}

func TestAnOriginVerifiesThePass(t *testing.T) {
	w := newWorld(t, nil, shop())
	p := w.join()
	set := w.send("GET", "/_anteroom/.well-known/jwks.json", "")
	if set.Header.Get("Content-Type") != "application/jwk-set+json" || !strings.Contains(set.body, `"alg":"ES256"`) {
		t.Errorf("the key set: %v %s", set.Header, set.body)
	}
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(p.PassJWT, claims); err != nil {
		t.Fatal(err)
	}
	if claims["aud"] != "shop" || claims["iss"] != "https://shop.example.com" || claims["exp"] != float64(morning.Unix()+60) {
		t.Errorf("claims %v", claims)
	}
	if r := w.send("POST", "/_anteroom/.well-known/jwks.json", ""); r.StatusCode != 405 {
		t.Errorf("POST: %d", r.StatusCode)
	}
}
