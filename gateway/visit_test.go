package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// site says what it was asked for.
func site(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, b)
}

// TestAPersonGetsIn opens the site while it is full, waits, gets in, and browses.
func TestAPersonGetsIn(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	lucky, late := w.browser(), w.browser()
	if r := lucky.open("/list?page=2"); r.body != "GET /list?page=2 " || len(r.Cookies()) != 1 || r.Header.Get("Cache-Control") != "private" {
		t.Fatalf("the first visitor got %s, %v", r.body, r.Header)
	}
	if r := lucky.open("/"); r.body != "GET / " || r.Header["Set-Cookie"] != nil || r.Header["Cache-Control"] != nil {
		t.Fatalf("the next page: %s, %v", r.body, r.Header)
	}
	r := late.open("/list?page=2")
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Robots-Tag": "noindex", "Referrer-Policy": "same-origin",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	var v gateway.View
	r.json(t, &v)
	if r.StatusCode != 200 || v.Kind != gateway.PageWaiting || v.Position != 1 || v.AcceptLanguage != "nl" || v.HereURL != "/list?page=2" ||
		v.StreamURL != "/_anteroom/v1/rooms/shop/stream" || v.Rejoined {
		t.Fatalf("%d %+v", r.StatusCode, v)
	}
	if csp := r.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "script-src 'nonce-"+v.Nonce+"'") || len(v.Nonce) < 16 {
		t.Errorf("Content-Security-Policy: %s", csp)
	}
	if got, want := r.Header.Get("Refresh"), fmt.Sprintf("%d; url=/_anteroom/v1/rooms/shop/return?to=%%2Flist%%3Fpage%%3D2", v.RefreshSeconds); got != want {
		t.Errorf("Refresh: %q, want %q", got, want)
	}
	back := late.open(v.RefreshURL)
	if back.StatusCode != 303 || back.Header.Get("Location") != "/list?page=2" {
		t.Fatalf("the refresh went to %d %v", back.StatusCode, back.Header)
	}
	if again := late.view("/list?page=2"); again.Position != 1 || !again.JoinedAt.Equal(v.JoinedAt) || again.Nonce == v.Nonce {
		t.Fatalf("after a refresh: %+v", again)
	}
	lucky.send("POST", "/_anteroom/v1/rooms/shop/end", "")
	if len(lucky.jar) != 0 {
		t.Errorf("after the end the browser keeps %v", lucky.jar)
	}
	w.pass(time.Second)
	if r := late.open("/list?page=2"); r.body != "GET /list?page=2 " {
		t.Fatalf("called, and shown %d %s", r.StatusCode, r.body)
	}
	if r := late.send("POST", "/buy", "a=1", navigation...); r.body != "POST /buy a=1" {
		t.Fatalf("on the site: %d %s", r.StatusCode, r.body)
	}
	if v := lucky.view("/"); v.Kind != gateway.PageWaiting {
		t.Fatalf("who ended the session got %+v", v)
	}
}

func TestWhatIsNotForEyesGetsNoPage(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	w.join()
	fetch := []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty", "Accept: */*"}
	for _, c := range []struct {
		what, method string
		headers      []string
		status       int
		kind         string
		joins        int
	}{
		{"a script's request", "GET", fetch, 429, "application/json", 1},
		{"a script's POST", "POST", fetch, 429, "application/json", 1},
		{"a program", "GET", nil, 429, "application/json", 1},
		{"a program that asks for JSON", "GET", []string{"Accept: application/json, text/html;q=0.5"}, 429, "application/json", 1},
		{"an old browser", "GET", []string{"Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}, 200, "text/html; charset=utf-8", 1},
		{"a browser that asks for the head", "HEAD", navigation, 200, "text/html; charset=utf-8", 1},
		{"a picture", "GET", []string{"Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image", "Sec-Fetch-Site: cross-site"}, 429, "", 0},
		{"a prefetch", "GET", append([]string{"Sec-Purpose: prefetch;prerender"}, navigation...), 429, "", 0},
		{"a WebSocket", "GET", []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-Fetch-Mode: websocket", "Sec-Fetch-Dest: websocket"}, 429, "", 0},
	} {
		before := w.count(ticket.Join)
		r := w.send(c.method, "/", "", c.headers...)
		if r.StatusCode != c.status || r.Header.Get("Content-Type") != c.kind || w.count(ticket.Join)-before != c.joins {
			t.Errorf("%s: %d %s, %d joins", c.what, r.StatusCode, r.Header.Get("Content-Type"), w.count(ticket.Join)-before)
		}
		if c.status == 429 && (r.Header.Get("Retry-After") == "" || r.Header.Get("Cache-Control") != "no-store") {
			t.Errorf("%s: %v", c.what, r.Header)
		}
	}
	var p gateway.Place
	w.send("GET", "/", "").json(t, &p)
	if p.Ticket == "" || !p.Cloudflare.InWaitingRoom {
		t.Errorf("a program without cookies cannot go on from %+v", p)
	}
	w.send("GET", "/", "", fetch...).json(t, &p)
	if p = (gateway.Place{}); p.Ticket != "" {
		t.Errorf("a script can read the ticket in %+v", p)
	}
}

func TestAFormIsNeverSwallowed(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	w.join()
	for referer, want := range map[string]string{
		w.url + "/cart?x=1":              w.url + "/cart?x=1",
		"https://elsewhere.example/cart": w.url + "/buy",
		"":                               w.url + "/buy",
		w.url + "//elsewhere.example":    w.url + "/",
	} {
		b := w.browser()
		r := b.send("POST", "/buy", "a=1", append([]string{"Referer: " + referer}, navigation...)...)
		if r.StatusCode != 303 || r.Header.Get("Location") != want || len(b.jar) != 1 {
			t.Errorf("from %q: %d to %q, want %q", referer, r.StatusCode, r.Header.Get("Location"), want)
		}
	}
}

func TestALostPlaceIsExplained(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	keep := w.join()
	b := w.browser()
	old := b.view("/")
	for range 20 { // the first stays on the site, the other tab sleeps
		w.pass(30 * time.Second)
		keep.Pass = w.renew(keep.Pass)
	}
	v := b.view("/")
	if v.Kind != gateway.PageWaiting || !v.Rejoined || v.JoinedAt.Equal(old.JoinedAt) {
		t.Fatalf("after ten minutes of silence: %+v", v)
	}
	if v := b.view("/"); v.Rejoined {
		t.Fatal("it is said twice")
	}
}

// renew refreshes a pass.
func (w *world) renew(pass string) string {
	w.t.Helper()
	var p gateway.Place
	w.api("refresh", with("pass", pass)).json(w.t, &p)
	return p.Pass
}

func TestABrowserWithoutCookiesIsToldSo(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	w.join()
	b := w.browser()
	v := b.view("/list")
	clear(b.jar)
	before := w.count(ticket.Join)
	if v := b.view(v.RefreshURL); v.Kind != gateway.PageCookies || v.HereURL != "/list" || v.RefreshSeconds != 0 {
		t.Fatalf("%+v", v)
	}
	if got := w.count(ticket.Join); got != before {
		t.Errorf("the refresh took %d more places", got-before)
	}
}

func TestAPersonGivesThePlaceUp(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	w.join()
	b := w.browser()
	v := b.view("/list")
	form := append([]string{"Content-Type: application/x-www-form-urlencoded"}, navigation...)
	form[1] = "Sec-Fetch-Site: same-origin"
	r := b.send("POST", v.AbandonURL, "", form...)
	if r.StatusCode != 303 || len(b.jar) != 0 {
		t.Fatalf("%d %s, cookies %v", r.StatusCode, r.body, b.jar)
	}
	if v := b.view(r.Header.Get("Location")); v.Kind != gateway.PageLeft || v.HereURL != "/list" {
		t.Fatalf("%+v", v)
	}
	if r := b.send("POST", v.AbandonURL, "", form...); r.StatusCode != 303 {
		t.Fatalf("once more: %d %s", r.StatusCode, r.body)
	}
}

func TestNobodyIsSentElsewhere(t *testing.T) {
	w := newWorld(t, nil, shop())
	for _, to := range []string{"//evil.example", "https://evil.example/", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)", "evil", "", "/%0d%0aSet-Cookie:x", "/a\x00b"} {
		q := strings.NewReplacer("%", "%25", "\\", "%5C", "\x00", "%00").Replace(to)
		r := w.send("GET", "/_anteroom/v1/rooms/shop/return?to="+q, "", "Cookie: anteroom_shop=x")
		if got := r.Header.Get("Location"); r.StatusCode != 303 || got != "/" && got != to {
			t.Errorf("to %q: %d %q", to, r.StatusCode, got)
		}
		if got := r.Header.Get("Location"); strings.Contains(got, "evil") {
			t.Errorf("to %q: sent to %q", to, got)
		}
	}
}

func TestPagesForWhenThereIsNoQueue(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	for _, c := range []struct {
		err    error
		kind   gateway.PageKind
		status int
	}{
		{ticket.ErrQueueFull, gateway.PageFull, 503},
		{ticket.ErrRejected, gateway.PageClosed, 200},
		{ticket.ErrBusy, gateway.PageBusy, 429},
		{ticket.ErrUnavailable, gateway.PageUnavailable, 503},
	} {
		w.breakWith(func(ticket.Request) error { return c.err })
		r := w.browser().open("/x")
		var v gateway.View
		r.json(t, &v)
		if r.StatusCode != c.status || v.Kind != c.kind || v.HereURL != "/x" || v.RefreshSeconds > 0 && v.RefreshURL != "/x" {
			t.Errorf("%v: %d %+v", c.err, r.StatusCode, v)
		}
		if r := w.send("GET", "/x", ""); r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v: a program got %d %s", c.err, r.StatusCode, r.body)
		}
	}
}

func TestThePageTakesTheRoomsStatus(t *testing.T) {
	w := newWorld(t, withOrigin(t, site, func(c *gateway.Config) { c.Rooms[0].StatusCode = 503 }), shop())
	w.join()
	if r := w.browser().open("/"); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if r := w.send("GET", "/", ""); r.StatusCode != 503 {
		t.Errorf("a program: %d", r.StatusCode)
	}
}

func TestPreflightsAndSuspendedRoomsGoThrough(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	w.join()
	ask := []string{"Origin: https://app.example", "Access-Control-Request-Method: PUT"}
	if r := w.send("OPTIONS", "/api", "", ask...); r.StatusCode != 204 || r.body != "" {
		t.Errorf("preflight: %d %s", r.StatusCode, r.body)
	}
	w1 := newWorld(t, withOrigin(t, site, func(c *gateway.Config) { c.Rooms[0].PreflightToOrigin = true }), shop())
	w1.join()
	if r := w1.send("OPTIONS", "/api", "", ask...); r.body != "OPTIONS /api " {
		t.Errorf("preflight for the origin: %d %s", r.StatusCode, r.body)
	}
	w2 := newWorld(t, withOrigin(t, site, func(c *gateway.Config) { c.Rooms[0].Suspended = true }), shop())
	w2.join()
	if r := w2.browser().open("/"); r.body != "GET / " || len(r.Cookies()) != 0 {
		t.Errorf("suspended: %d %s", r.StatusCode, r.body)
	}
}

func TestRoutes(t *testing.T) {
	one := func(name string) eviction.Room { return eviction.Room{Name: name, Target: 100, Session: time.Minute} }
	var asked string
	origin := withOrigin(t, func(_ http.ResponseWriter, r *http.Request) { asked = r.RequestURI })
	w := newWorld(t, func(c *gateway.Config) {
		origin(c)
		c.Rooms[1].Origin, c.Rooms[2].Origin = c.Rooms[0].Origin, c.Rooms[0].Origin
		c.Rooms[0].Routes = []gateway.Route{{Host: "shop.example.com", Path: "/"}}
		c.Rooms[1].Routes = []gateway.Route{{Host: "*", Path: "/sale"}, {Host: "shop.example.com", Path: "/sale/"}}
		c.Rooms[2].Routes = []gateway.Route{{Host: "Shop.Example.com", Path: "/sale/shoes"}}
	}, one("a"), one("b"), one("c"))
	for _, c := range []struct{ host, path, room string }{
		{"shop.example.com", "/", "a"},
		{"SHOP.example.com:8080", "/x", "a"},
		{"shop.example.com.", "/", "a"},
		{"shop.example.com", "/sale", "b"},
		{"shop.example.com", "/sales", "a"},
		{"shop.example.com", "/sale/shoes/red", "c"},
		{"shop.example.com", "/x/../sale/shoes", "c"},
		{"shop.example.com", "//sale//shoes", "c"},
		{"shop.example.com", "/%73ale", "b"},
		{"shop.example.com", "/x%2f..%2fsale", "b"},
		{"other.example.com", "/sale", "b"},
		{"other.example.com", "/", ""},
		{"[::1]:80", "/sale/1", "b"},
	} {
		r := w.send("GET", c.path, "", append([]string{"Host: " + c.host}, navigation...)...)
		room := ""
		for _, k := range r.Cookies() {
			room = strings.TrimPrefix(k.Name, "anteroom_")
		}
		if room != c.room || c.room == "" && r.code() != "not_found" || c.room != "" && asked != c.path {
			t.Errorf("%s%s: room %q, want %q; %d %s; origin saw %s", c.host, c.path, room, c.room, r.StatusCode, r.body, asked)
		}
	}
}

func TestCookiesOnHTTPS(t *testing.T) {
	w := newWorld(t, withOrigin(t, site, func(c *gateway.Config) {
		c.TrustedProxies = loopback
		c.Rooms[0].CookieSuffix = "über shop"
	}), shop())
	const name = "__Host-anteroom_.c3.bcber.20shop"
	k := w.send("GET", "/", "", append([]string{"X-Forwarded-Proto: https"}, navigation...)...).Cookies()
	if len(k) != 1 || k[0].Name != name || !k[0].Secure || k[0].Domain != "" || k[0].Path != "/" || !k[0].HttpOnly {
		t.Fatalf("%v", k)
	}
	if r := w.send("GET", "/", "", append([]string{"X-Forwarded-Proto: https", "Cookie: " + name + "=" + k[0].Value}, navigation...)...); r.body != "GET / " {
		t.Errorf("with the cookie: %s", r.body)
	}
	// A page on http, or on another host of the domain, can set the plain name only.
	if r := w.send("GET", "/", "", append([]string{"X-Forwarded-Proto: https", "Cookie: anteroom_.c3.bcber.20shop=" + k[0].Value}, navigation...)...); r.body == "GET / " {
		t.Errorf("the plain cookie was taken on https")
	}
}

func TestBadConfigurationIsRefusedWithEveryError(t *testing.T) {
	_, err := gateway.New(gateway.Config{Prefix: "anteroom/"})
	if err == nil || !strings.Contains(err.Error(), "prefix") {
		t.Errorf("%v", err)
	}
	_, err = gateway.New(gateway.Config{Rooms: []gateway.Room{
		{Name: "a", StatusCode: 304}, {Name: "a"}, {Name: "b", Routes: []gateway.Route{{Path: "x"}}},
	}})
	for _, want := range []string{"queueing_status_code", "name of its own", `path "x"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want something of %s", err, want)
		}
	}
}
