package gateway_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
)

// ask is a preflight of a script at an origin.
func ask(origin string, more ...string) []string {
	return append([]string{"Origin: " + origin, "Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: x-a,content-type"}, more...)
}

var appCORS = gateway.CORS{
	Origins: []string{"https://app.example", "https://*.shop.example"}, Methods: []string{"GET", "PUT"}, Headers: []string{"X-A"}, Credentials: true, MaxAge: 10 * time.Minute,
}

// TestAPreflightDoesNotReachTheOrigin sends what looks like one to a full room, with a
// body and an upgrade: nothing reaches the origin.
func TestAPreflightDoesNotReachTheOrigin(t *testing.T) {
	var seen []string
	var log bytes.Buffer
	w := newWorld(t, withOrigin(t, func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, r.Method+" "+r.RequestURI) }, func(c *gateway.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	}), shop())
	w.join()
	for range 3 {
		r := w.send("OPTIONS", "/order", `{"buy":"all"}`, ask("https://evil.example", "Connection: Upgrade", "Upgrade: websocket")...)
		if r.StatusCode != 204 || r.Header.Get("Access-Control-Allow-Origin") != "" || r.body != "" {
			t.Errorf("%d %v %s", r.StatusCode, r.Header, r.body)
		}
	}
	if len(seen) != 0 {
		t.Errorf("the origin saw %q", seen)
	}
	if said := log.String(); strings.Count(said, "https://evil.example") != 1 || !strings.Contains(said, "cors.origins") || !strings.Contains(said, "preflight: origin") {
		t.Errorf("the log says %q, want one line with both ways out", said)
	}
	for range 3000 { // a stranger makes up origins: the log is not filled by them
		w.send("OPTIONS", "/", "", ask("https://"+strings.Repeat("x", 900)+".example")...)
	}
	for i := range 100 {
		w.send("OPTIONS", "/", "", ask("https://"+string(rune('a'+i%26))+string(rune('a'+i/26))+".example")...)
	}
	if n := strings.Count(log.String(), "\n"); n > 30 || log.Len() > 30_000 {
		t.Errorf("%d lines, %d bytes of log", n, log.Len())
	}
}

func TestPreflightsAreAnsweredFromTheRoomsCORS(t *testing.T) {
	for _, c := range []struct {
		what, origin string
		cors         gateway.CORS
		want         string // Access-Control-Allow-Origin
		headers      string
		credentials  string
	}{
		{"listed", "https://app.example", appCORS, "https://app.example", "X-A, X-Anteroom-Ticket", "true"},
		{"below a domain", "https://a.b.shop.example", appCORS, "https://a.b.shop.example", "X-A, X-Anteroom-Ticket", "true"},
		{"the domain itself", "https://shop.example", appCORS, "", "", ""},
		{"another scheme", "http://a.shop.example", appCORS, "", "", ""},
		{"an end that is the same", "https://evilshop.example", appCORS, "", "", ""},
		{"a beginning that is the same", "https://app.example.evil.example", appCORS, "", "", ""},
		{"no page", "null", appCORS, "", "", ""},
		{"any", "https://evil.example", gateway.CORS{Origins: []string{"*"}, Headers: []string{"*"}}, "*", "X-Anteroom-Ticket, x-a, content-type", ""},
	} {
		w := newWorld(t, withOrigin(t, site, func(g *gateway.Config) { g.Rooms[0].CORS = c.cors }), shop())
		r := w.send("OPTIONS", "/api", "", ask(c.origin)...)
		h := r.Header
		if r.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != c.want || h.Get("Access-Control-Allow-Headers") != c.headers ||
			h.Get("Access-Control-Allow-Credentials") != c.credentials || !strings.Contains(h.Get("Vary"), "Origin") {
			t.Errorf("%s: %d %v", c.what, r.StatusCode, h)
		}
		if c.want == "https://app.example" && (h.Get("Access-Control-Allow-Methods") != "GET, PUT" || h.Get("Access-Control-Max-Age") != "600") {
			t.Errorf("%s: %v", c.what, h)
		}
	}
}

// An app of another site can read that it has to wait, and what the API says; and
// the origin's own answers are left to it.
func TestAnAppOfAnotherSiteReadsOurAnswers(t *testing.T) {
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "https://other.example")
		w.Header().Set("Vary", "X-A")
	}, func(c *gateway.Config) { c.Rooms[0].CORS = appCORS }), shop())
	pass := w.join().Pass
	fetch := []string{"Origin: https://app.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty", "Accept: application/json"}
	readable := func(what string, r reply, status int) {
		t.Helper()
		h := r.Header
		if r.StatusCode != status || h.Get("Access-Control-Allow-Origin") != "https://app.example" || h.Get("Access-Control-Allow-Credentials") != "true" ||
			h.Get("Access-Control-Expose-Headers") != "Retry-After" || !strings.Contains(strings.Join(h["Vary"], ","), "Origin") {
			t.Errorf("%s: %d %v %s", what, r.StatusCode, h, r.body)
		}
	}
	readable("waiting", w.send("GET", "/api", "", fetch...), 429)
	readable("a join", w.api("join", "", fetch...), 201)
	readable("a bad ticket", w.api("checkin", with("ticket", "x"), fetch...), 401)
	readable("the status", w.send("GET", "/_anteroom/v1/rooms/shop/status", "", fetch...), 200)
	r := w.send("GET", "/api", "", append(fetch, "Authorization: Bearer "+pass)...)
	if r.StatusCode != 200 || strings.Join(r.Header["Access-Control-Allow-Origin"], "") != "https://other.example" || strings.Join(r.Header["Vary"], "") != "X-A" || r.Header.Get("Access-Control-Expose-Headers") != "" {
		t.Errorf("the origin's answer: %d %v", r.StatusCode, r.Header)
	}
	r = w.send("OPTIONS", "/_anteroom/v1/rooms/shop/join", "", ask("https://app.example")...)
	if r.StatusCode != 204 || r.Header.Get("Access-Control-Allow-Methods") != "POST" || r.Header.Get("Access-Control-Allow-Headers") != "Authorization, Content-Type, X-Anteroom-Ticket" {
		t.Errorf("a preflight of the API: %d %v", r.StatusCode, r.Header)
	}
	stranger := []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"}
	if r := w.api("end", "", append(stranger, "Cookie: anteroom_shop="+pass)...); r.code() != "cross_origin" || r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another site's page: %d %v", r.StatusCode, r.Header)
	}
}

// Without cookies an app of another site keeps its ticket itself; with any origin
// let in, a page of another site still cannot act with a visitor's cookie.
func TestAnAppWithoutCookiesKeepsItsTicket(t *testing.T) {
	w := newWorld(t, withOrigin(t, site, func(c *gateway.Config) { c.Rooms[0].CORS = gateway.CORS{Origins: []string{"*"}} }), shop())
	pass := w.join().Pass
	fetch := []string{"Origin: https://app.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty", "Accept: application/json"}
	var p gateway.Place
	r := w.send("GET", "/api", "", fetch...)
	r.json(t, &p)
	if p.Ticket == "" || r.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Fatalf("%v %s", r.Header, r.body)
	}
	if again := w.place(200, "checkin", with("ticket", p.Ticket), fetch...); again.State != "waiting" {
		t.Errorf("%+v", again)
	}
	if r := w.api("end", "", append(fetch, "Cookie: anteroom_shop="+pass)...); r.code() != "cross_origin" {
		t.Errorf("a page of any site ended a visit: %d %s", r.StatusCode, r.body)
	}
}

func TestAPreflightForTheOriginIsBareAndBounded(t *testing.T) {
	var got http.Header
	var body string
	n := 0
	w := newWorld(t, withOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		b := make([]byte, 10)
		k, _ := r.Body.Read(b)
		got, body = r.Header.Clone(), string(b[:k])
		n++
	}, func(c *gateway.Config) { c.Rooms[0].PreflightToOrigin = true }), shop())
	w.join()
	r := w.send("OPTIONS", "/order", `{"buy":"all"}`, ask("https://app.example", "Cookie: a=1", "Authorization: Basic eDp5", "X-Api-Key: 1", "Connection: Upgrade",
		"Upgrade: websocket", "X-Http-Method-Override: POST")...)
	if r.StatusCode != 200 || body != "" || n != 1 {
		t.Fatalf("%d, the origin got %q, %d requests", r.StatusCode, body, n)
	}
	for _, name := range []string{"Cookie", "Authorization", "X-Api-Key", "Upgrade", "Connection", "Content-Length", "X-Anteroom-Pass", "X-Http-Method-Override"} {
		if got[name] != nil {
			t.Errorf("the origin got %s: %q", name, got[name])
		}
	}
	if got.Get("Origin") != "https://app.example" || got.Get("Access-Control-Request-Headers") != "x-a,content-type" {
		t.Errorf("%v", got)
	}
	for range 600 { // the clock stands still: what is let through is the burst of the room
		r = w.send("OPTIONS", "/order", "", ask("https://app.example")...)
	}
	if r.StatusCode != 429 || r.Header.Get("Retry-After") == "" || n > 510 {
		t.Errorf("%d %v after %d", r.StatusCode, r.Header, n)
	}
	w.pass(time.Second)
	if r := w.send("OPTIONS", "/order", "", ask("https://app.example")...); r.StatusCode != 200 {
		t.Errorf("a second later: %d", r.StatusCode)
	}
}

func TestWhatOtherProxiesCarryOfAPreflight(t *testing.T) {
	for _, c := range []struct {
		what, path string
		toOrigin   bool
		headers    []string
		status     int
		allow      string
	}{
		{"envoy", "auth/api", false, nil, 204, "https://app.example"},
		{"traefik", "auth?proxy=traefik", false, []string{"X-Forwarded-Method: OPTIONS", "X-Forwarded-Uri: /api"}, 403, ""},
		{"caddy", "auth?proxy=caddy", false, []string{"X-Forwarded-Method: OPTIONS", "X-Forwarded-Uri: /api"}, 403, ""},
		{"nginx", "auth?proxy=nginx", false, []string{"X-Forwarded-Method: OPTIONS", "X-Forwarded-Uri: /api"}, 403, ""},
		{"haproxy", "auth?proxy=haproxy", false, []string{"X-Forwarded-Method: OPTIONS", "X-Forwarded-Uri: /api"}, 403, ""},
		{"envoy, for the origin", "auth/api", true, nil, 200, ""},
		{"nginx, for the origin", "auth?proxy=nginx", true, []string{"X-Forwarded-Method: OPTIONS", "X-Forwarded-Uri: /api"}, 200, ""},
	} {
		w := newWorld(t, func(g *gateway.Config) {
			g.TrustedProxies, g.Rooms[0].CORS, g.Rooms[0].PreflightToOrigin = loopback, appCORS, c.toOrigin
		}, shop())
		w.join()
		method := "GET"
		if c.headers == nil {
			method = "OPTIONS"
		}
		r := w.send(method, "/_anteroom/v1/rooms/shop/"+c.path, "", append(c.headers, ask("https://app.example")...)...)
		if r.StatusCode != c.status || r.Header.Get("Access-Control-Allow-Origin") != c.allow || r.Header.Get("X-Anteroom-Pass") != "" {
			t.Errorf("%s: %d %v %s", c.what, r.StatusCode, r.Header, r.body)
		}
		if remove := r.Header.Get("X-Envoy-Auth-Headers-To-Remove"); c.toOrigin && method == "OPTIONS" && remove != "x-anteroom-pass,cookie,authorization,upgrade" {
			t.Errorf("%s: removes %q", c.what, remove)
		}
	}
}
