package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/origin"
	"github.com/anteroom/anteroom/internal/ticket"
)

// done is a site that says so with these headers, "Name: value", at /done.
func done(headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/done" {
			for _, line := range headers {
				name, value, _ := strings.Cut(line, ": ")
				w.Header().Add(name, value)
			}
		}
		_, _ = io.WriteString(w, "thanks")
	}
}

func TestTheOriginsCommands(t *testing.T) {
	for _, c := range []struct {
		what    string
		headers []string
		ignored bool // enabled_origin_commands: []
		ends    bool
		left    string // Cf-Waiting-Room-Command, as the visitor sees it
	}{
		{"ours", []string{"Anteroom-Command: revoke"}, false, true, ""},
		{"Cloudflare's", []string{"Cf-Waiting-Room-Command: revoke"}, false, true, ""},
		{"both", []string{"Anteroom-Command: revoke", "Cf-Waiting-Room-Command: revoke"}, false, true, ""},
		{"among others", []string{"Anteroom-Command: dance", "Anteroom-Command: sing, Revoke "}, false, true, ""},
		{"one that there is not", []string{"Anteroom-Command: revoked", "Cf-Waiting-Room-Command: dance"}, false, false, "dance"},
		{"none", nil, false, false, ""},
		{"where they mean nothing", []string{"Anteroom-Command: revoke", "Cf-Waiting-Room-Command: revoke"}, true, false, "revoke"},
	} {
		w := newWorld(t, withOrigin(t, done(c.headers...), func(g *gateway.Config) { g.Rooms[0].IgnoreOrigin = c.ignored }), shop())
		b := w.browser()
		b.open("/")
		r := b.open("/done")
		if r.body != "thanks" || r.Header.Get("Anteroom-Command") != "" || r.Header.Get("Cf-Waiting-Room-Command") != c.left {
			t.Errorf("%s: %d %s %v", c.what, r.StatusCode, r.body, r.Header)
		}
		if ended := len(b.jar) == 0 && w.count(ticket.End) == 1; ended != c.ends {
			t.Errorf("%s: ended %v, want %v; cookies %v", c.what, ended, c.ends, b.jar)
		}
		if p := w.join(); (p.State == "admitted") != c.ends {
			t.Errorf("%s: the next is %s", c.what, p.State)
		}
	}
}

// beacon is what a browser sends for navigator.sendBeacon(url): a POST with the
// cookies and no way to see the answer.
func beacon(site string) []string {
	return []string{"Sec-Fetch-Site: " + site, "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: empty", "Content-Type: text/plain;charset=UTF-8"}
}

func TestAPagesBeaconEndsTheVisit(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	b := w.browser()
	b.open("/")
	if r := b.send("POST", "/_anteroom/v1/rooms/shop/end", "", append(beacon("cross-site"), "Origin: https://evil.example")...); r.StatusCode != 403 || len(b.jar) != 1 {
		t.Fatalf("another site's page: %d %s, cookies %v", r.StatusCode, r.body, b.jar)
	}
	if r := b.send("POST", "/_anteroom/v1/rooms/shop/end", "", beacon("same-origin")...); r.StatusCode != 204 || len(b.jar) != 0 {
		t.Fatalf("%d %s, cookies %v", r.StatusCode, r.body, b.jar)
	}
	if p := w.join(); p.State != "admitted" {
		t.Errorf("the slot is not free: %+v", p)
	}
	if r := b.send("POST", "/_anteroom/v1/rooms/shop/end", "", beacon("same-origin")...); r.StatusCode != 401 || r.code() != "pass_invalid" {
		t.Errorf("once more, without a cookie: %d %s", r.StatusCode, r.body)
	}
}

func TestABeaconMayCarryThePass(t *testing.T) {
	for kind, body := range map[string]func(string) string{
		"text/plain;charset=UTF-8":                        func(p string) string { return with("pass", p) },
		"application/x-www-form-urlencoded;charset=UTF-8": func(p string) string { return "pass=" + p },
	} {
		w := newWorld(t, nil, shop())
		p := w.join()
		r := w.api("end", body(p.Pass), "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: no-cors", "Content-Type: "+kind)
		if r.StatusCode != 204 || w.count(ticket.End) != 1 {
			t.Errorf("%s: %d %s", kind, r.StatusCode, r.body)
		}
	}
}

// Who waits does not lose the place by a beacon that was meant for the site.
func TestABeaconOfSomebodyWhoWaitsEndsNothing(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	w.join()
	b := w.browser()
	b.open("/")
	if r := b.send("POST", "/_anteroom/v1/rooms/shop/end", "", beacon("same-origin")...); r.StatusCode != 401 || len(b.jar) != 1 {
		t.Errorf("%d %s, cookies %v", r.StatusCode, r.body, b.jar)
	}
	w.pass(70 * time.Second) // the first one's pass is over, and this one has been silent
	b.open("/")
	w.pass(time.Second)
	if r := b.open("/"); r.body != "GET / " {
		t.Errorf("the place is lost: %d %s", r.StatusCode, r.body)
	}
}

// An origin with package origin, behind a gateway that it takes the keys from.
func TestAnOriginChecksPasses(t *testing.T) {
	var passes *origin.Passes
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c, _ := origin.FromContext(r.Context())
		_, _ = io.WriteString(w, c.Room+" "+c.Visitor)
	})
	mux.HandleFunc("/done", func(w http.ResponseWriter, _ *http.Request) {
		origin.End(w)
		_, _ = io.WriteString(w, "thanks")
	})
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, r *http.Request) { passes.Require(mux).ServeHTTP(w, r) }), shop())
	var err error
	passes, err = origin.New(origin.Config{
		Room: "shop", JWKS: w.url + "/_anteroom/.well-known/jwks.json", Issuer: "https://shop.example.com",
		Now: func() time.Time { return time.UnixMicro(w.Clock()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	b := w.browser()
	r := b.open("/")
	p, err := w.ring.OpenPass("shop", b.jar["anteroom_shop"])
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("shop %x", p.ID); r.StatusCode != 200 || r.body != want {
		t.Errorf("%d %s, want %s", r.StatusCode, r.body, want)
	}
	if r := b.open("/done"); r.body != "thanks" || len(b.jar) != 0 || w.count(ticket.End) != 1 {
		t.Errorf("at the end: %d %s, cookies %v", r.StatusCode, r.body, b.jar)
	}
}

// session_renewal: false, Cloudflare's disable_session_renewal.
func TestWithoutRenewalAVisitEndsInItsTime(t *testing.T) {
	room := shop()
	room.NoRenewal = true
	w := newWorld(t, withOrigin(t, site), room)
	b := w.browser()
	b.open("/")
	held := b.jar["anteroom_shop"]
	for range 3 {
		w.pass(18 * time.Second)
		if r := b.open("/"); r.body != "GET / " || b.jar["anteroom_shop"] != held {
			t.Fatalf("within the minute: %d %s", r.StatusCode, r.body)
		}
	}
	waiting := w.join()
	w.pass(10 * time.Second)
	if p := w.place(200, "checkin", with("ticket", waiting.Ticket)); p.State != "called" {
		t.Errorf("a minute after the first came in, the next is %s", p.State)
	}
	if v := b.view("/"); v.Kind != gateway.PageWaiting || w.count(ticket.Refresh) != 0 {
		t.Errorf("who was active all the time is at %q; %v", v.Kind, w.asked)
	}
}
