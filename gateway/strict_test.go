package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/rules"
)

// origins read a path as servers do that stand behind proxies, each in its order.
var origins = map[string]func(raw string) string{
	"Go": func(raw string) string { return path.Clean("/" + once(raw)) },
	"Tomcat": func(raw string) string {
		segments := strings.Split(raw, "/")
		for i, s := range segments {
			segments[i], _, _ = strings.Cut(s, ";")
		}
		return path.Clean("/" + once(strings.Join(segments, "/")))
	},
	"IIS": func(raw string) string {
		segments := strings.Split(path.Clean("/"+strings.ReplaceAll(once(raw), `\`, "/")), "/")
		for i, s := range segments {
			segments[i] = strings.TrimRight(s, ". ")
		}
		return path.Clean(strings.Join(segments, "/"))
	},
	"nginx, no merging": func(raw string) string { return dotless(once(raw)) },
	"decodes twice":     func(raw string) string { return path.Clean("/" + once(once(raw))) },
	"ends at NUL":       func(raw string) string { p, _, _ := strings.Cut(once(raw), "\x00"); return path.Clean(p) },
	"Node's URL": func(raw string) string {
		if strings.HasPrefix(raw, "//") {
			_, rest, _ := strings.Cut(raw[2:], "/")
			raw = "/" + rest
		}
		return path.Clean("/" + once(raw))
	},
	"no dots resolved": once,
	"Express":          func(raw string) string { return strings.ToLower(once(raw)) },
	"in capitals":      func(raw string) string { return strings.ToLower(strings.ToUpper(path.Clean("/" + once(raw)))) },
}

func once(p string) string {
	if d, err := url.PathUnescape(p); err == nil {
		return d
	}
	return p
}

func dotless(p string) string {
	u, err := url.Parse("http://x/")
	if err != nil {
		panic(err)
	}
	return u.ResolveReference(&url.URL{Path: p}).Path
}

// twoRooms are the site, to which everybody may go at once, and its checkout,
// which is full; and an origin that notes what it was asked for.
func twoRooms(t *testing.T, change func(*gateway.Config)) (w *world, seen *[]string) {
	t.Helper()
	seen = new([]string)
	w = newWorld(t, withOrigin(t, func(_ http.ResponseWriter, r *http.Request) { *seen = append(*seen, r.RequestURI) }, func(c *gateway.Config) {
		c.Rooms[1].Origin, c.Rooms[1].Routes = c.Rooms[0].Origin, []gateway.Route{{Path: "/checkout"}}
		if change != nil {
			change(c)
		}
	}), eviction.Room{Name: "site", Target: 1000, Session: time.Hour}, eviction.Room{Name: "checkout", Target: 1, Session: time.Hour})
	if r := w.send("POST", "/_anteroom/v1/rooms/checkout/join", ""); r.StatusCode != 201 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	return w, seen
}

var aroundCheckout = []string{
	"/checkout;x", "/checkout;jsessionid=1/pay", "/x/..;/checkout", "/x/..;a=b/checkout/pay", "/x/..%5ccheckout", "/checkout%20", "/checkout%20/", "/checkout.", "/checkout./pay",
	"//checkout", "//x/checkout", "/x//..//checkout", "/x%2f..%2fcheckout", "/%2fcheckout", "/x/%2e%2e/checkout", "/x/%252e%252e/checkout", "/x%252f..%252fcheckout",
	"/checkout%00.png", "/checkout%3fx", "/checkout%23x", "/check%256fut", "/%5ccheckout", "/x/..%c0%afcheckout", "/x/..%ef%bc%8fcheckout", "/./checkout",
	"/x/../checkout", "/checkout/../x", "/x/..%09/checkout", "/check%0aout",
}

// Nobody gets to the checkout without its pass, however they write it and whatever
// the origin makes of that.
func TestNoSpellingLeadsAroundARoom(t *testing.T) {
	for _, suspended := range []bool{false, true} { // the site asks for a pass that everybody gets, or for none
		w, seen := twoRooms(t, func(c *gateway.Config) { c.Rooms[0].Suspended = suspended })
		for _, raw := range aroundCheckout {
			*seen = nil
			r := w.sendRaw("GET", raw, navigation...)
			if r.StatusCode == 400 { // by Go's own server
				continue
			}
			cookie := ""
			for _, k := range r.Cookies() {
				cookie += k.Name
			}
			if len(*seen) != 0 || !strings.Contains(cookie, "anteroom_checkout") {
				t.Errorf("%s (suspended: %v): %d, cookies %s, the origin saw %q", raw, suspended, r.StatusCode, cookie, *seen)
			}
		}
		*seen = nil
		for _, raw := range []string{"/", "/blog;jsessionid=1", "/a//b", "/a%20b", "/caf%C3%A9", "/100%25", "/x.", "/checkouts"} {
			if r := w.sendRaw("GET", raw, navigation...); r.StatusCode != 200 {
				t.Errorf("%s, which nobody takes for the checkout: %d %s", raw, r.StatusCode, r.body)
			}
		}
		if len(*seen) != 8 {
			t.Errorf("the origin saw %q", *seen)
		}
	}
}

// TestNoOriginIsMisled writes paths of parts that servers read in different ways.
// If any of them takes one for the checkout, it needs the checkout's pass.
func TestNoOriginIsMisled(t *testing.T) {
	w, seen := twoRooms(t, nil)
	parts := []string{"/", "//", "/..", "/.", "/x", "checkout", "/checkout", ";", ";a=b", "%2f", "%5c", "%252f", "%2e", "%252e", "..", ".", "%20", "%00", "%3f", "%3b", "%09", "%ef%bc%8f", "X"}
	names := []string{"checkout", "checkout", "checkout", "Checkout", "CHECKOUT", "chec%e2%84%aaout"}
	misleading := 0
	ask := func(t *rapid.T, raw string) {
		u, err := url.ParseRequestURI(raw)
		if err != nil {
			return
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL, r.RequestURI, r.RemoteAddr = u, raw, "127.0.0.1:1"
		*seen = nil
		w.ServeHTTP(httptest.NewRecorder(), r)
		for server, reads := range origins {
			p := reads(raw)
			if p == "/checkout" || strings.HasPrefix(p, "/checkout/") {
				misleading++
				if len(*seen) != 0 {
					t.Fatalf("%s reached the origin, as %q, and %s reads %s", raw, *seen, server, p)
				}
			}
		}
	}
	around := rapid.SliceOfN(rapid.SampledFrom(parts), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		for range 25 { // -short asks for few rounds, and few spellings mislead anybody
			ask(t, "/"+strings.Join(around.Draw(t, "before"), "")+rapid.SampledFrom(names).Draw(t, "name")+strings.Join(around.Draw(t, "after"), ""))
		}
	})
	if misleading < 100 {
		t.Errorf("only %d paths were taken for the checkout", misleading)
	}
}

// Where an origin does not tell capitals from small letters /CHECKOUT is the checkout, and
// where it does it is not: the checkout's pass is asked for, and the site's as well.
func TestCapitalsLeadAroundNoRoom(t *testing.T) {
	w, seen := twoRooms(t, func(c *gateway.Config) {
		c.TrustedProxies, c.Rooms[1].StrictPaths = loopback, true
	})
	for _, raw := range []string{"/CHECKOUT", "/Checkout/pay", "/%43heckout", "/chec%e2%84%aaout"} {
		r := w.sendRaw("GET", raw, navigation...)
		if cookies := r.Cookies(); len(*seen) != 0 || r.StatusCode != 200 || len(cookies) == 0 || cookies[0].Name != "anteroom_checkout" {
			t.Errorf("%s: %d %v, the origin saw %q", raw, r.StatusCode, cookies, *seen)
		}
		*seen = nil
		for _, proxy := range []string{"nginx", "traefik", "caddy", "haproxy"} {
			if r := w.send("GET", "/_anteroom/v1/rooms/site/auth?proxy="+proxy, "", append([]string{"X-Forwarded-Uri: " + raw, "X-Forwarded-Method: GET"}, navigation...)...); r.StatusCode == 200 {
				t.Errorf("%s: %s lets through", raw, proxy)
			}
		}
	}
	if r := w.sendRaw("GET", "/Checkouts", navigation...); r.StatusCode != 200 || len(*seen) != 1 {
		t.Errorf("/Checkouts: %d, the origin saw %q", r.StatusCode, *seen)
	}
}

func TestStrictPathsAreRefused(t *testing.T) {
	w, seen := twoRooms(t, func(c *gateway.Config) { c.Rooms[1].StrictPaths = true })
	for _, raw := range aroundCheckout {
		if r := w.sendRaw("GET", raw, navigation...); r.StatusCode != 400 {
			t.Errorf("%s: %d", raw, r.StatusCode)
		}
	}
	if len(*seen) != 0 {
		t.Errorf("the origin saw %q", *seen)
	}
	if r := w.send("GET", "/checkout;x", ""); r.code() != "path_ambiguous" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := w.send("GET", "/blog;x", ""); r.StatusCode != 200 {
		t.Errorf("a room that is not strict: %d %s", r.StatusCode, r.body)
	}
}

// Who has the passes goes through, and is sent to wait for the one that is missing.
func TestAnAmbiguousPathNeedsThePassOfEachRoom(t *testing.T) {
	w, seen := twoRooms(t, nil)
	join := func(room string) string {
		var p gateway.Place
		r := w.send("POST", "/_anteroom/v1/rooms/"+room+"/join", "")
		r.json(t, &p)
		return p.Pass
	}
	site := join("site")
	for _, raw := range []string{"/x/..;/checkout", "/checkout;a"} {
		r := w.sendRaw("GET", raw, append([]string{"Cookie: anteroom_site=" + site}, navigation...)...)
		if len(*seen) != 0 || len(r.Cookies()) == 0 || r.Cookies()[0].Name != "anteroom_checkout" {
			t.Errorf("%s: %d %v, the origin saw %q", raw, r.StatusCode, r.Cookies(), *seen)
		}
	}
}

// TestForwardAuthReadsPathsInAllWays asks as other proxies do, about the room whose
// location they found.
func TestForwardAuthReadsPathsInAllWays(t *testing.T) {
	w, _ := twoRooms(t, func(c *gateway.Config) { c.TrustedProxies = loopback })
	for _, raw := range aroundCheckout {
		for _, proxy := range []string{"nginx", "traefik", "caddy", "haproxy"} {
			r := w.send("GET", "/_anteroom/v1/rooms/site/auth?proxy="+proxy, "", append([]string{"X-Forwarded-Uri: " + raw, "X-Forwarded-Method: GET"}, navigation...)...)
			if r.StatusCode == 200 {
				t.Errorf("%s: %s lets through", raw, proxy)
			}
		}
		if u, err := url.ParseRequestURI(raw); err != nil || rules.Plain(u) {
			continue
		} else if got := w.RoomAt("shop.example.com", u); got != "checkout" {
			t.Errorf("%s is in %q to an Envoy", raw, got)
		}
		if r := w.sendRaw("GET", "/_anteroom/v1/rooms/site/auth"+raw, navigation...); r.StatusCode == 200 {
			t.Errorf("%s: Envoy lets through", raw)
		}
	}
	if r := w.send("GET", "/_anteroom/v1/rooms/site/auth?proxy=nginx", "", append([]string{"X-Forwarded-Uri: /blog;x"}, navigation...)...); r.StatusCode != 200 {
		t.Errorf("the site: %d", r.StatusCode)
	}
	strict, _ := twoRooms(t, func(c *gateway.Config) { c.TrustedProxies, c.Rooms[0].StrictPaths = loopback, true })
	for proxy, want := range map[string]int{"nginx": 403, "traefik": 400} {
		if r := strict.send("GET", "/_anteroom/v1/rooms/site/auth?proxy="+proxy, "", "X-Forwarded-Uri: /blog;x"); r.StatusCode != want || r.code() != "path_ambiguous" {
			t.Errorf("strict, %s: %d %s", proxy, r.StatusCode, r.body)
		}
	}
}
