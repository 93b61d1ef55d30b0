package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// TestForwardAuth asks as each proxy does, in front of a site that is full and
// of one that is not.
func TestForwardAuth(t *testing.T) {
	asked := []string{"X-Forwarded-Uri: /cart?x=1", "X-Forwarded-Host: shop.example.com", "X-Forwarded-Proto: http", "X-Forwarded-Method: GET"}
	for _, c := range []struct {
		what, method, path string
		headers            []string
		status             int
		kind               string // of the body
		location           string
		cookies, joins     int
	}{
		{"nginx", "GET", "auth?proxy=nginx", nil, 401, "", "", 0, 0},
		{"traefik", "GET", "auth?proxy=traefik", navigation, 429, "text/html; charset=utf-8", "", 1, 1},
		{"caddy", "GET", "auth?proxy=caddy", navigation, 429, "text/html; charset=utf-8", "", 1, 1},
		{"an unnamed one", "GET", "auth", navigation, 429, "text/html; charset=utf-8", "", 1, 1},
		{"envoy", "GET", "auth/cart?x=1", navigation, 429, "text/html; charset=utf-8", "", 1, 1},
		{"envoy with a script's POST", "POST", "auth/cart?x=1", []string{"Sec-Fetch-Mode: cors"}, 429, "application/json", "", 1, 1},
		{"haproxy", "HEAD", "auth?proxy=haproxy", nil, 302, "", "http://shop.example.com/_anteroom/v1/rooms/shop/page?to=%2Fcart%3Fx%3D1", 0, 0},
		{"traefik with a form", "GET", "auth?proxy=traefik", append([]string{"X-Forwarded-Method: POST"}, navigation...), 303, "", "http://shop.example.com/cart?x=1", 1, 1},
	} {
		w := newWorld(t, func(c *gateway.Config) { c.TrustedProxies = loopback }, shop())
		headers := c.headers
		for _, h := range asked {
			if name, _, _ := strings.Cut(h, ":"); !strings.Contains(strings.Join(headers, "\n"), name) {
				headers = append([]string{h}, headers...)
			}
		}
		path := "/_anteroom/v1/rooms/shop/" + c.path
		if r := w.send(c.method, path, "", headers...); r.StatusCode != 200 || r.body != "" || len(r.Cookies()) != 1 || r.Header.Get("X-Anteroom-Pass") == "" {
			t.Errorf("%s, with room: %d %s %v", c.what, r.StatusCode, r.body, r.Header)
		}
		r := w.send(c.method, path, "", headers...)
		if r.StatusCode != c.status || r.Header.Get("Content-Type") != c.kind || r.Header.Get("Location") != c.location ||
			len(r.Header["Set-Cookie"]) != c.cookies || w.count(ticket.Join)-1 != c.joins || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s, full: %d %s %v, %d joins", c.what, r.StatusCode, r.body, r.Header, w.count(ticket.Join)-1)
		}
	}
}

func TestForwardAuthWithAPassIsShort(t *testing.T) {
	w := newWorld(t, func(c *gateway.Config) { c.TrustedProxies = loopback }, shop())
	cookie := "Cookie: anteroom_shop=" + w.join().Pass
	for _, proxy := range []string{"nginx", "traefik", "caddy", "envoy", "haproxy"} {
		r := w.send("GET", "/_anteroom/v1/rooms/shop/auth?proxy="+proxy, "", cookie)
		if r.StatusCode != 200 || r.body != "" || r.Header["Set-Cookie"] != nil || r.Header.Get("X-Anteroom-Pass") == "" {
			t.Errorf("%s: %d %s %v", proxy, r.StatusCode, r.body, r.Header)
		}
	}
	if got := w.count(ticket.Visit); got != 0 {
		t.Errorf("five pictures asked the queue %d times", got)
	}
}

// A proxy of the Gateway API (GEP-1494) shows a visitor nothing of an answer that lets
// them through, so no cookie may come with one: it would be lost, and with the next
// request another slot.
func TestAYesWithoutHeadersLosesNoCookie(t *testing.T) {
	const own = "/_anteroom/v1/rooms/shop/"
	asked := func(headers ...string) []string {
		return append([]string{"Host: shop.example.com", "X-Forwarded-Proto: http"}, headers...)
	}
	empty := func(t *testing.T) *world {
		return newWorld(t, func(c *gateway.Config) { c.TrustedProxies = loopback }, shop())
	}
	script := []string{"Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty", "Accept: application/json"}
	for _, c := range []struct {
		what, method   string
		headers        []string
		status         int
		location, code string
		joins          int
	}{
		{"a page", "GET", navigation, 303, "http://shop.example.com" + own + "return?to=%2Fcart%3Fx%3D1", "", 1},
		{"a form", "POST", append([]string{"Referer: http://shop.example.com/tea"}, navigation...), 303, "http://shop.example.com/tea", "", 1},
		{"a script", "GET", script, 429, "", "cookie_first", 1},
		{"a script's POST", "POST", script, 429, "", "cookie_first", 1},
		{"a picture", "GET", []string{"Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"}, 429, "", "", 0},
		{"a page ahead of time", "GET", append([]string{"Sec-Purpose: prefetch"}, navigation...), 429, "", "", 0},
	} {
		w := empty(t)
		r := w.send(c.method, own+"auth-only/cart?x=1", "", asked(c.headers...)...)
		if r.StatusCode != c.status || r.Header.Get("Location") != c.location || r.code() != c.code || w.count(ticket.Join) != c.joins ||
			len(r.Cookies()) != c.joins || r.Header.Get("X-Anteroom-Pass") != "" || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s, with room: %d %s %v, %d joins", c.what, r.StatusCode, r.body, r.Header, w.count(ticket.Join))
		}
		if c.joins == 0 {
			continue
		}
		cookie := "Cookie: " + r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
		if c.location == "http://shop.example.com"+own+"return?to=%2Fcart%3Fx%3D1" {
			if r := w.send("GET", own+"return?to=%2Fcart%3Fx%3D1", "", asked(append(c.headers, cookie)...)...); r.StatusCode != 303 || r.Header.Get("Location") != "/cart?x=1" {
				t.Errorf("%s, back: %d %v", c.what, r.StatusCode, r.Header)
			}
			if r := w.send("GET", own+"return?to=%2Fcart%3Fx%3D1", "", asked(c.headers...)...); r.StatusCode != 200 || r.Header.Get("Location") != "" {
				t.Errorf("%s, of a browser that keeps no cookies: %d %v", c.what, r.StatusCode, r.Header)
			}
		}
		r = w.send(c.method, own+"auth-only/cart?x=1", "", asked(append(c.headers, cookie)...)...)
		if r.StatusCode != 200 || r.Header["Set-Cookie"] != nil || r.Header.Get("X-Anteroom-Pass") == "" || w.count(ticket.Join) != 1 {
			t.Errorf("%s, with the cookie: %d %s %v", c.what, r.StatusCode, r.body, r.Header)
		}
		if r := w.send(c.method, own+"auth-only/cart?x=1", "", asked(navigation...)...); r.StatusCode != 429 && r.StatusCode != 303 || len(r.Cookies()) != 1 {
			t.Errorf("the next one: %d %v", r.StatusCode, r.Header)
		}
		w.pass(40 * time.Second) // the cookie is old enough to be a new one, and good for now
		switch r := w.send(c.method, own+"auth-only/cart?x=1", "", asked(append(c.headers, cookie)...)...); {
		case c.what == "a page":
			if r.StatusCode != 303 || len(r.Cookies()) != 1 || "Cookie: "+r.Cookies()[0].Name+"="+r.Cookies()[0].Value == cookie {
				t.Errorf("%s, renewed: %d %v", c.what, r.StatusCode, r.Header)
			}
		case r.StatusCode != 200 || r.Header["Set-Cookie"] != nil || r.Header.Get("X-Anteroom-Pass") == "":
			t.Errorf("%s, renewed: %d %s %v", c.what, r.StatusCode, r.body, r.Header)
		}
	}
}

// What a node knows of the room is as old as the last wave. Who comes right after the last
// slot was taken finds room there, and none at the queue.
func TestAPlaceThatARefusalWouldLoseIsGivenUp(t *testing.T) {
	for _, proxy := range []string{"nginx", "ingress-nginx", "haproxy"} {
		w := newWorld(t, func(c *gateway.Config) { c.TrustedProxies = loopback }, shop())
		w.join()
		w.late = true
		r := w.send("GET", "/_anteroom/v1/rooms/shop/auth?proxy="+proxy, "", append([]string{"X-Forwarded-Uri: /cart"}, navigation...)...)
		if s, _ := w.Room("shop"); r.StatusCode == 200 || len(r.Cookies()) != 0 || w.count(ticket.Join) != 2 || w.count(ticket.Abandon) != 1 || s.Queued != 0 {
			t.Errorf("%s: %d %v; %d joins, %d places given up, %d wait", proxy, r.StatusCode, r.Header, w.count(ticket.Join), w.count(ticket.Abandon), s.Queued)
		}
	}
}

func TestForwardAuthNeverAnswersWithAServerError(t *testing.T) {
	w := newWorld(t, func(c *gateway.Config) { c.TrustedProxies, c.Rooms[0].StatusCode = loopback, 503 }, shop())
	w.join()
	for _, err := range []error{nil, ticket.ErrQueueFull, ticket.ErrUnavailable, ticket.ErrRejected, ticket.ErrBusy} {
		w.breakWith(func(ticket.Request) error { return err })
		for _, headers := range [][]string{navigation, nil} {
			r := w.send("GET", "/_anteroom/v1/rooms/shop/auth?proxy=envoy", "", headers...)
			if r.StatusCode != 429 && r.code() != "room_closed" {
				t.Errorf("%v: %d %s", err, r.StatusCode, r.body)
			}
		}
		if r := w.send("GET", "/_anteroom/v1/rooms/shop/auth?proxy=nginx", ""); r.StatusCode != 401 {
			t.Errorf("nginx, %v: %d", err, r.StatusCode)
		}
	}
}

func TestThePageForOtherProxiesLetsPeopleIn(t *testing.T) {
	w := newWorld(t, func(c *gateway.Config) { c.TrustedProxies = loopback }, shop())
	b := w.browser()
	if r := b.open("/_anteroom/v1/rooms/shop/page?to=%2Fcart"); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/cart" || len(b.jar) != 1 {
		t.Errorf("with room: %d %v", r.StatusCode, r.Header)
	}
	r := w.send("GET", "/_anteroom/v1/rooms/shop/page", "", append([]string{"X-Original-URI: /cart"}, navigation...)...)
	var v gateway.View
	r.json(t, &v)
	if v.Kind != gateway.PageWaiting || v.HereURL != "/cart" {
		t.Errorf("full: %+v", v)
	}
}

func TestAStrangerIsNotBelievedAboutTheAddress(t *testing.T) {
	w := newWorld(t, nil, shop())
	w.join()
	r := w.send("HEAD", "/_anteroom/v1/rooms/shop/auth?proxy=haproxy", "", "X-Forwarded-Uri: /x", "X-Forwarded-Host: evil.example", "Host: shop.example.com")
	if got := r.Header.Get("Location"); got != "http://shop.example.com/_anteroom/v1/rooms/shop/page?to=%2F" {
		t.Errorf("Location: %s", got)
	}
}
