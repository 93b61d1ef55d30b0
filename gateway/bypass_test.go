package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/rules"
	"github.com/anteroom/anteroom/internal/ticket"
)

// bypassing gives the first room rules, and lets country and address come from
// a proxy.
func bypassing(t testing.TB, expressions ...string) func(*gateway.Config) {
	t.Helper()
	office, err := rules.NewList([]string{"192.0.2.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	var all []rules.Rule
	for _, e := range expressions {
		all = append(all, rules.Rule{Expression: e})
	}
	set, err := rules.NewSet(all, rules.Lists{"office": office})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *gateway.Config) {
		c.Rooms[0].Bypass, c.TrustedProxies, c.CountryHeader = set, loopback, "CF-IPCountry"
	}
}

// ops counts all that the queue was asked.
func (w *world) ops() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.asked {
		n += c
	}
	return n
}

func TestWhoMeetsARuleGoesToTheOriginAsIfThereWereNoRoom(t *testing.T) {
	var seen http.Header
	w := newWorld(t, withOrigin(t, func(rw http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		rw.Header().Set("Cache-Control", "public, max-age=60")
		site(rw, r)
	}, bypassing(t, `starts_with(http.request.uri.path, "/assets/")`, `ip.src in $office`, `ip.src.country eq "NL" and http.request.method eq "POST"`)), shop())
	in := w.browser()
	in.open("/") // the room is full
	before := w.ops()
	for _, c := range []struct {
		method, path string
		headers      []string
	}{
		{"GET", "/assets/a.css", nil},
		{"GET", "/assets/a.css?v=1", navigation},
		{"GET", "/x/../assets/a.css", nil},
		{"POST", "/pay", []string{"X-Forwarded-For: 203.0.113.1, 192.0.2.9"}},
		{"POST", "/pay", []string{"Cf-Ipcountry: nl"}},
	} {
		r := in.send(c.method, c.path, "", c.headers...)
		if r.StatusCode != 200 || !strings.HasPrefix(r.body, c.method+" ") || r.Header["Set-Cookie"] != nil || r.Header.Get("Cache-Control") != "public, max-age=60" {
			t.Errorf("%s %s: %d %s %v", c.method, c.path, r.StatusCode, r.body, r.Header)
		}
		if seen["X-Anteroom-Pass"] != nil || strings.Contains(fmt.Sprint(seen["Cookie"]), "anteroom_") {
			t.Errorf("%s %s: the origin sees %v", c.method, c.path, seen)
		}
	}
	if after := w.ops(); after != before {
		t.Errorf("the queue was asked %d times", after-before)
	}
	for _, path := range []string{"/Assets/a.css", "/assets", "/assets/../pay", "/assets/..%2fpay", "/assets/%2e%2e/pay", "/assets/..;/pay", "/assets/..%5cpay", "/%61ssets%2f"} {
		joins := w.count(ticket.Join)
		if r := w.send("GET", path, ""); r.StatusCode != 429 || w.count(ticket.Join) != joins+1 {
			t.Errorf("%s: %d %s, %d joins", path, r.StatusCode, r.body, w.count(ticket.Join)-joins)
		}
	}
}

func TestBypassedRequestsAreCountedByRoom(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	w := newWorld(t, withOrigin(t, site, bypassing(t, `http.request.uri.path eq "/healthz"`), func(c *gateway.Config) { c.Metrics = registry }), shop())
	w.send("GET", "/healthz", "")
	w.send("GET", "/healthz", "")
	w.send("GET", "/", "")
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	if want := `anteroom_bypassed_requests_total{room="shop"} 2`; !strings.Contains(page.Body.String(), want+"\n") {
		t.Errorf("no %s in\n%s", want, page.Body)
	}
}

// TestForwardAuthBypasses: a proxy's own address and method, and what a visitor
// smuggles through it, meet no rule.
func TestForwardAuthBypasses(t *testing.T) {
	w := newWorld(t, bypassing(t, `starts_with(http.request.uri.path, "/assets/") and http.request.method eq "GET"`, `ip.src in $office or ip.src eq 127.0.0.1`), shop())
	w.join()
	const uri, get = "X-Forwarded-Uri: /assets/a.css", "X-Forwarded-Method: GET"
	for _, c := range []struct {
		what, path string
		headers    []string
		bypassed   bool
	}{
		{"traefik", "auth?proxy=traefik", []string{uri, get}, true},
		{"nginx", "auth?proxy=nginx", []string{"X-Original-Uri: /assets/a.css?v=1", "X-Original-Method: GET"}, true},
		{"an ingress that gives the whole URL", "auth?proxy=nginx", []string{"X-Original-Url: https://x/assets/a.css", "X-Original-Method: GET"}, true},
		{"envoy", "auth/assets/a.css", nil, true},
		{"the office", "auth?proxy=nginx", []string{"X-Original-Uri: /", "X-Forwarded-For: 192.0.2.1"}, true},
		{"another page", "auth?proxy=traefik", []string{"X-Forwarded-Uri: /pay", get}, false},
		{"another method", "auth?proxy=traefik", []string{uri, "X-Forwarded-Method: POST"}, false},
		{"no method", "auth?proxy=traefik", []string{uri}, false},
		{"no address", "auth?proxy=traefik", []string{get}, false},
		{"two addresses", "auth?proxy=nginx", []string{uri, "X-Original-Uri: /pay", get}, false},
		{"two of one kind", "auth?proxy=nginx", []string{uri, "X-Forwarded-Uri: /pay", get}, false},
		{"two methods", "auth?proxy=nginx", []string{uri, get, "X-Original-Method: POST"}, false},
		{"dots", "auth?proxy=traefik", []string{"X-Forwarded-Uri: /assets/../pay", get}, false},
		{"envoy with dots", "auth/assets/%2e%2e/pay", nil, false},
		{"envoy with a slash of its own", "auth/assets/..%2fpay", nil, false},
	} {
		before := w.ops()
		r := w.send("GET", "/_anteroom/v1/rooms/shop/"+c.path, "", c.headers...)
		if (r.StatusCode == 200) != c.bypassed {
			t.Errorf("%s: %d %s", c.what, r.StatusCode, r.body)
		}
		if c.bypassed && (r.body != "" || r.Header["Set-Cookie"] != nil || r.Header["X-Anteroom-Pass"] != nil || w.ops() != before) {
			t.Errorf("%s: %s %v, %d requests to the queue", c.what, r.body, r.Header, w.ops()-before)
		}
	}
	strange := newWorld(t, func(c *gateway.Config) {
		bypassing(t, `starts_with(http.request.uri.path, "/assets/")`)(c)
		c.TrustedProxies = nil
	}, shop())
	strange.join()
	if r := strange.send("GET", "/_anteroom/v1/rooms/shop/auth?proxy=traefik", "", uri, get); r.StatusCode != 429 {
		t.Errorf("a proxy that is not trusted: %d", r.StatusCode)
	}
}

// TestNoRequestIsBothQueuedAndPassed draws rules and requests. Either the queue
// hears nothing of a request and the origin gets it once, bare; or no rule says
// yes, and it gets it only with a pass.
func TestNoRequestIsBothQueuedAndPassed(t *testing.T) {
	var reached atomic.Int64
	var pass atomic.Bool
	origin := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		pass.Store(r.Header.Get("X-Anteroom-Pass") != "")
	}))
	defer origin.Close()
	to, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, bypassing(t), shop())
	parts := []string{
		`starts_with(path, "/a/")`, `path eq "/a/b"`, `not path contains "b"`, `method eq "GET"`, `method ne "POST"`, `ip.src in $office`, `not ip.src in $office`,
		`country eq "NL"`, `country ne "NL"`, `cookie("x") == "1"`, `header("x-y") ne ""`, `host eq "a.example.com"`, `ssl`, `extension in {"css" "js"}`, `query eq ""`,
	}
	office, err := rules.NewList([]string{"192.0.2.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var all []rules.Rule
		for range rapid.IntRange(0, 5).Draw(t, "rules") {
			a, b := rapid.SampledFrom(parts).Draw(t, "a"), rapid.SampledFrom(parts).Draw(t, "b")
			op := rapid.SampledFrom([]string{"(%s) and (%s)", "%s or %s", "not (%s and %s)"}).Draw(t, "op")
			all = append(all, rules.Rule{Expression: fmt.Sprintf(op, a, b), Disabled: rapid.IntRange(0, 4).Draw(t, "off") == 0})
		}
		set, err := rules.NewSet(all, rules.Lists{"office": office})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.SetRooms([]gateway.Room{{Name: "shop", Routes: []gateway.Route{{}}, Origin: to, Bypass: set}}); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(rapid.SampledFrom([]string{"GET", "POST", "HEAD"}).Draw(t, "method"),
			rapid.SampledFrom([]string{"/", "/a/b", "/a/../b", "/a/..%2fb", "/a/x.css?q", "/A/b", "/b;x.js"}).Draw(t, "path"), nil)
		r.RemoteAddr = rapid.SampledFrom([]string{"127.0.0.1:1", "192.0.2.1:1", "nowhere"}).Draw(t, "peer")
		r.Host = rapid.SampledFrom([]string{"a.example.com", "b.example.com:80"}).Draw(t, "host")
		for name, values := range map[string][]string{
			"X-Forwarded-For": {"", "192.0.2.4", "203.0.113.1", "x"}, "X-Forwarded-Proto": {"", "https"}, "Cf-Ipcountry": {"", "NL", "DE", "XX"}, "X-Y": {"", "1"},
			"Cookie": {"", "x=1", "anteroom_shop=x; x=2"}, "Sec-Fetch-Dest": {"", "document", "image"},
		} {
			if v := rapid.SampledFrom(values).Draw(t, name); v != "" {
				r.Header.Set(name, v)
			}
		}
		reached.Store(0)
		pass.Store(false)
		before, res := w.ops(), httptest.NewRecorder()
		w.ServeHTTP(res, r)
		queued, passed := w.ops() > before, reached.Load() > 0
		switch {
		case passed && !pass.Load() && (queued || res.Header()["Set-Cookie"] != nil || reached.Load() != 1):
			t.Fatalf("it went through without a pass, and the queue was asked %d times; Set-Cookie %v", w.ops()-before, res.Header()["Set-Cookie"])
		case passed && pass.Load() && !queued:
			t.Fatal("it went through with a pass that nobody gave")
		case !passed && res.Code < 400 && res.Header()["Set-Cookie"] == nil && res.Body.Len() == 0:
			t.Fatalf("neither: %d", res.Code)
		}
		bypassed := passed && !pass.Load()
		if bypassed != means(set, r) {
			t.Fatalf("bypassed: %v, and the rules say %v", bypassed, means(set, r))
		}
	})
}

// means asks the rules of a request as they should see it.
func means(s *rules.Set, r *http.Request) bool {
	host, _, _ := strings.Cut(r.Host, ":")
	q := rules.Request{Method: r.Method, Host: host, Path: rules.Path(r.URL), Query: r.URL.RawQuery, Header: r.Header}
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		q.Addr = peer.Addr()
		if peer.Addr().IsLoopback() {
			if a, err := netip.ParseAddr(r.Header.Get("X-Forwarded-For")); err == nil {
				q.Addr = a
			}
			q.HTTPS = r.Header.Get("X-Forwarded-Proto") == "https"
			if c := r.Header.Get("Cf-Ipcountry"); c != "XX" {
				q.Country = c
			}
		}
	}
	met, _ := s.Match(&q)
	return met != nil
}
