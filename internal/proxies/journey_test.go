package proxies

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"
)

// visitor is somebody with a browser of their own.
type visitor struct {
	t      *testing.T
	site   *Site
	client *http.Client
}

func (s *Site) visitor(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &visitor{t, s, &http.Client{Jar: jar, CheckRedirect: stay, Timeout: patience}}
}

type answer struct {
	*http.Response
	body string
}

// send asks as a browser that navigates, unless headers say otherwise.
func (v *visitor) send(method, path, body string, headers ...string) answer {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.site.URL+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,*/*;q=0.8")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.Header.Set("Sec-Fetch-Dest", "document")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer{resp, string(b)}
}

// open follows redirects, as a browser does.
func (v *visitor) open(path string) answer {
	v.t.Helper()
	for range 5 {
		a := v.send(http.MethodGet, path, "")
		to, err := a.Location()
		if err != nil {
			return a
		}
		if !strings.HasPrefix(to.String(), v.site.URL+"/") {
			v.t.Fatalf("sent elsewhere: %v", to)
		}
		path = to.RequestURI()
	}
	v.t.Fatal("sent around in circles")
	return answer{}
}

// cookie returns the visitor's ticket or pass.
func (v *visitor) cookie() string {
	u, _ := url.Parse(v.site.URL) // a test server's
	for _, c := range v.client.Jar.Cookies(u) {
		if c.Name == "anteroom_shop" {
			return c.Value
		}
	}
	return ""
}

// enters opens the shop until it is there: where the slot is at the other node
// just now a newcomer may wait for a moment.
func (v *visitor) enters() (a answer) {
	v.t.Helper()
	eventually(v.t, "a newcomer is in a shop with room", func() bool {
		a = v.open("/")
		return inShop(a)
	})
	return a
}

func inShop(a answer) bool { return a.StatusCode == 200 && strings.Contains(a.body, "new harvest") }

// waiting reports whether it is the waiting page, with its status.
func (v *visitor) waiting(a answer) bool {
	return a.StatusCode == v.site.Status && strings.Contains(a.body, "You are in line") && a.Header.Get("Cache-Control") == "no-store" &&
		a.Header.Get("Refresh") != "" && strings.HasPrefix(v.cookie(), "E")
}

// A journey by plain HTTP: one is on the site, the next waits, and comes in when
// the first has gone.
func TestOneGoesInAndTheNextWaits(t *testing.T) {
	each(t, func(t *testing.T, p Proxy) {
		s := Start(t, p, time.Minute)
		first, second := s.visitor(t), s.visitor(t)
		a := first.enters()
		if !strings.HasPrefix(first.cookie(), "I") || strings.Contains(strings.ToLower(a.Header.Get("Set-Cookie")), "domain") {
			t.Fatalf("the first: %d %v\n%.200s", a.StatusCode, a.Header, a.body)
		}
		if got := s.Shop.Stats(); got.Now != 1 {
			t.Errorf("the shop knows of %+v", got)
		}
		first.buys()

		a = second.open("/basket")
		if !second.waiting(a) || len(a.Header["Set-Cookie"]) > 1 {
			t.Fatalf("the second: %d %v %q\n%.200s", a.StatusCode, a.Header, second.cookie(), a.body)
		}
		second.waitsInAllWays()

		first.ends()
		eventually(t, "the second is called and goes in", func() bool {
			a = second.send(http.MethodGet, "/_anteroom/v1/rooms/shop/return?to=%2F", "")
			if to, err := a.Location(); err != nil || to.Path != "/" {
				t.Fatalf("return: %d %v", a.StatusCode, a.Header)
			}
			return inShop(second.open("/"))
		})
		second.buys()
		if a := second.send(http.MethodPost, "/_anteroom/v1/rooms/shop/end", "", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site"); a.StatusCode != 403 {
			t.Errorf("another site's page ends a visit: %d %v", a.StatusCode, a.Header)
		}
		if a := first.open("/"); !first.waiting(a) {
			t.Errorf("the first, back again: %d %v\n%.200s", a.StatusCode, a.Header, a.body)
		}
		if a := second.send(http.MethodPost, "/_anteroom/v1/rooms/shop/end", ""); a.StatusCode != 204 || second.cookie() != "" { // as a form
			t.Errorf("end: %d %v %s", a.StatusCode, a.Header, a.body)
		}
		if got := s.Shop.Stats(); got.Peak > 1 {
			t.Errorf("the shop had %d at once", got.Peak)
		}
	})
}

// buys puts a tea into the basket: a form, and a cookie of the shop's own.
func (v *visitor) buys() {
	v.t.Helper()
	a := v.send(http.MethodPost, "/basket", "tea=gyokuro")
	if to, err := a.Location(); a.StatusCode != http.StatusSeeOther || err != nil || to.Path != "/basket" {
		v.t.Fatalf("buy: %d %v\n%.200s", a.StatusCode, a.Header, a.body)
	}
	if a := v.open("/basket"); !strings.Contains(a.body, "Gyokuro") {
		v.t.Errorf("the basket is empty: %d\n%.300s", a.StatusCode, a.body)
	}
	if pass := v.site.Seen("/basket").Values("X-Anteroom-Pass"); len(pass) != 1 || strings.Count(pass[0], ".") != 2 {
		v.t.Errorf("the shop got the pass %q", pass)
	}
}

// waitsInAllWays is what somebody who waits sees who does not look at a page.
func (v *visitor) waitsInAllWays() {
	v.t.Helper()
	before := v.site.Seen("/checkout")
	a := v.send(http.MethodPost, "/checkout", "x=1", "Referer: "+v.site.URL+"/basket")
	if to, err := a.Location(); a.StatusCode != 303 && a.StatusCode != 302 || err != nil || v.site.Seen("/checkout") != nil && before == nil ||
		to.Path != "/basket" && to.Query().Get("to") != "/basket" {
		v.t.Errorf("a form: %d %v", a.StatusCode, a.Header)
	}
	script := []string{"Accept: application/json", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"}
	a = v.send(http.MethodGet, "/", "", script...)
	if to, err := a.Location(); err == nil {
		a = v.send(http.MethodGet, to.RequestURI(), "", script...)
	}
	var place struct {
		State    string
		Position int
	}
	if err := json.Unmarshal([]byte(a.body), &place); err != nil || a.StatusCode != 429 || a.Header.Get("Retry-After") == "" || place.State != "waiting" || place.Position != 1 {
		v.t.Errorf("a script: %d %v %s", a.StatusCode, a.Header, a.body)
	}
}

// ends leaves the site at its checkout. A proxy that asks does not read the
// site's command to us, so there the page says it.
func (v *visitor) ends() {
	v.t.Helper()
	if a := v.send(http.MethodPost, "/checkout", "x=1"); a.StatusCode != 200 || !strings.Contains(a.body, "Thank you") {
		v.t.Fatalf("check out: %d %.200s", a.StatusCode, a.body)
	}
	if v.site.Origin {
		return
	}
	v.beacon()
}

// beacon is what navigator.sendBeacon sends.
func (v *visitor) beacon() {
	v.t.Helper()
	a := v.send(http.MethodPost, "/_anteroom/v1/rooms/shop/end", "", "Accept: */*", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: empty", "Origin: "+v.site.URL)
	if a.StatusCode != 204 || v.cookie() != "" {
		v.t.Fatalf("a beacon: %d %v %s", a.StatusCode, a.Header, a.body)
	}
}

// A pass is renewed while somebody is on the site, and the new cookie comes with
// an answer of the site.
func TestRenewedCookieReachesTheBrowser(t *testing.T) {
	each(t, func(t *testing.T, p Proxy) {
		s := Start(t, p, 10*time.Second)
		v := s.visitor(t)
		v.enters()
		pass := v.cookie()
		var a answer
		eventually(t, "the pass is renewed", func() bool {
			if a = v.open("/tea/gyokuro"); a.StatusCode != 200 {
				t.Fatalf("%d %v", a.StatusCode, a.Header)
			}
			return v.cookie() != pass
		})
		want := 1
		if p.apart {
			want = 0
		}
		if got := a.Header.Values("Set-Cookie"); len(got) != want {
			t.Errorf("renewed with %q", got)
		}
	})
}

// What need not wait does not, and nobody else passes for it.
func TestForgedHeadersDoNotHelp(t *testing.T) {
	each(t, func(t *testing.T, p Proxy) {
		s := Start(t, p, time.Minute)
		s.visitor(t).enters()
		stranger := s.visitor(t)
		a := stranger.send(http.MethodGet, "/healthz", "", "X-Anteroom-Pass: a.b.c", "X-Forwarded-Uri: /")
		if a.body != "fine" || a.Header["Set-Cookie"] != nil || s.Seen("/healthz").Get("X-Anteroom-Pass") != "" {
			t.Errorf("a health check: %d %v %s; the shop got %v", a.StatusCode, a.Header, a.body, s.Seen("/healthz"))
		}
		secret := "/basket"
		for _, forged := range [][]string{
			nil,
			{"X-Forwarded-Uri: /healthz"},
			{"X-Original-Uri: /healthz"},
			{"X-Original-Url: http://127.0.0.1/healthz"},
			{"X-Forwarded-Uri: /healthz", "X-Original-Uri: /healthz", "X-Original-Url: /healthz", "X-Forwarded-Prefix: /healthz"},
			{"X-Forwarded-Method: OPTIONS", "Origin: http://a.example", "Access-Control-Request-Method: GET"},
			{"X-Original-Method: OPTIONS", "Origin: http://a.example", "Access-Control-Request-Method: GET"},
			{"X-Anteroom-Pass: a.b.c", "Anteroom-Pass: a.b.c"},
			{"Authorization: Bearer a.b.c"},
			{"Cookie: anteroom_shop=ICWmGOCt"},
		} {
			a := stranger.send(http.MethodGet, secret, "", forged...)
			if s.Seen(secret) != nil {
				t.Fatalf("%q is in: %d %v", forged, a.StatusCode, a.Header)
			}
		}
		another := s.visitor(t)
		if a := another.open("/basket?ticket=new&to=%2Fhealthz&proxy=caddy"); !another.waiting(a) || strings.Contains(a.Request.URL.RawQuery, "ticket=E") {
			t.Errorf("with a query for us: %d %v", a.StatusCode, a.Header)
		}
		a = stranger.send(http.MethodPost, "/webhooks/payment", "x=1", "X-Forwarded-For: 198.51.100.7", "X-Real-Ip: 198.51.100.7", "Forwarded: for=198.51.100.7")
		if s.Seen("/webhooks/payment") != nil {
			t.Errorf("with another's address: %d %v", a.StatusCode, a.Header)
		}
		a = stranger.send(http.MethodHead, "/_anteroom/v1/rooms/shop/page", "", "X-Forwarded-Host: evil.example", "X-Forwarded-Uri: //evil.example/")
		if strings.Contains(a.Header.Get("Refresh")+a.Header.Get("Location"), "evil") {
			t.Errorf("led elsewhere: %v", a.Header)
		}
	})
}
