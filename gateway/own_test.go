package gateway_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/page"
	"github.com/anteroom/anteroom/internal/ticket"
)

func customPage(t testing.TB, html string) gateway.Pager {
	t.Helper()
	pages, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	c, err := pages.Custom(html)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const ownPage = `<p>{{state}} {{position}}/{{queued}} {{#queueIsFull}}full{{/queueIsFull}}{{#isRejectQueue}}reject{{/isRejectQueue}} {{hereURL}}</p>`

// A room's own page needs no script: the Refresh header brings its visitor back,
// the place is kept, and the visitor is let in when called.
func TestOwnPageLeadsOntoTheSite(t *testing.T) {
	w := newWorld(t, withOrigin(t, site, func(c *gateway.Config) { c.Rooms[0].Page = customPage(t, ownPage) }), shop())
	lucky, late := w.browser(), w.browser()
	lucky.open("/")
	for range 2 {
		r := late.open("/list?page=2")
		if want := "<p>waiting 1/0  /list?page=2</p>"; r.StatusCode != 200 || !strings.HasPrefix(r.body, "<p>waiting 1/") {
			t.Fatalf("%d %q, want such as %q", r.StatusCode, r.body, want)
		}
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Robots-Tag": "noindex", "Content-Type": "text/html; charset=utf-8",
			"Content-Security-Policy": "frame-ancestors 'self'", "Referrer-Policy": "same-origin",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		_, next, ok := strings.Cut(r.Header.Get("Refresh"), "; url=")
		if !ok || late.open(next).Header.Get("Location") != "/list?page=2" {
			t.Fatalf("Refresh: %q", r.Header.Get("Refresh"))
		}
	}
	if n := w.count(ticket.Join); n != 2 {
		t.Errorf("%d joins, want 2", n)
	}
	lucky.send("POST", "/_anteroom/v1/rooms/shop/end", "")
	w.pass(time.Second)
	if r := late.open("/list?page=2"); r.body != "GET /list?page=2 " {
		t.Fatalf("called, and shown %d %s", r.StatusCode, r.body)
	}
}

func TestOwnPageSaysThatThereIsNoQueue(t *testing.T) {
	w := newWorld(t, withOrigin(t, site, func(c *gateway.Config) { c.Rooms[0].Page = customPage(t, ownPage) }), shop())
	for _, c := range []struct {
		err    error
		status int
		want   string
	}{
		{ticket.ErrQueueFull, 503, "<p>full 0/0 full /</p>"},
		{ticket.ErrRejected, 200, "<p>closed 0/0 "},
		{ticket.ErrBusy, 429, `{"Kind":"busy"`}, // the built-in page's, which knows better
	} {
		w.breakWith(func(ticket.Request) error { return c.err })
		if r := w.browser().open("/"); r.StatusCode != c.status || !strings.HasPrefix(r.body, c.want) {
			t.Errorf("%v: %d %s, want %d %s", c.err, r.StatusCode, r.body, c.status, c.want)
		}
	}
}

type brokenPager struct{}

func (brokenPager) Page(w io.Writer, _ gateway.View) error {
	_, _ = io.WriteString(w, "half a page")
	return errors.New("too large")
}

func TestOwnPageThatFailsGivesWayToTheBuiltInOne(t *testing.T) {
	w := newWorld(t, withOrigin(t, site, func(c *gateway.Config) { c.Rooms[0].Page = brokenPager{} }), shop())
	w.join()
	b := w.browser()
	r := b.open("/")
	if !strings.HasPrefix(r.body, `{"Kind":"waiting"`) || !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %s %v", r.StatusCode, r.body, r.Header)
	}
}

func TestCookieHasTheAttributesOfTheRoom(t *testing.T) {
	const https = "X-Forwarded-Proto: https"
	tests := []struct {
		samesite, secure, header string
		name, want               string
		frames                   string
	}{
		{"", "", "X-A: b", "anteroom_shop", "; HttpOnly; SameSite=Lax", "'self'"},
		{"auto", "auto", https, "__Host-anteroom_shop", "; HttpOnly; Secure; SameSite=Lax", "'self'"},
		{"lax", "always", "X-A: b", "__Host-anteroom_shop", "; HttpOnly; Secure; SameSite=Lax", "'self'"},
		{"lax", "never", https, "anteroom_shop", "; HttpOnly; SameSite=Lax", "'self'"},
		{"strict", "auto", https, "__Host-anteroom_shop", "; HttpOnly; Secure; SameSite=Strict", "'self'"},
		{"none", "auto", https, "__Host-anteroom_shop", "; HttpOnly; Secure; SameSite=None; Partitioned", "*"},
		{"none", "auto", "X-A: b", "anteroom_shop", "; HttpOnly; SameSite=Lax", "'self'"}, // browsers would drop None
	}
	for _, tt := range tests {
		w := newWorld(t, withOrigin(t, site, func(c *gateway.Config) {
			c.TrustedProxies = loopback
			c.Rooms[0].Cookie = gateway.Cookie{SameSite: tt.samesite, Secure: tt.secure}
		}), shop())
		w.join()
		r := w.send("GET", "/", "", append([]string{tt.header}, navigation...)...)
		line := r.Header.Get("Set-Cookie")
		if !strings.HasPrefix(line, tt.name+"=") || !strings.HasSuffix(line, tt.want) {
			t.Errorf("%q, %q, %s: %s, want %s=…%s", tt.samesite, tt.secure, tt.header, line, tt.name, tt.want)
		}
		if csp := r.Header.Get("Content-Security-Policy"); !strings.HasSuffix(csp, "frame-ancestors "+tt.frames) {
			t.Errorf("%q, %q: %s", tt.samesite, tt.secure, csp)
		}
		name, value, _ := strings.Cut(strings.SplitN(line, ";", 2)[0], "=")
		again := w.send("GET", "/", "", append([]string{tt.header, "Cookie: " + name + "=" + value}, navigation...)...)
		if n := w.count(ticket.Join); again.StatusCode != 200 || n != 2 {
			t.Errorf("%q, %q: its own cookie is not known again: %d joins", tt.samesite, tt.secure, n)
		}
	}
}

// A program that keeps no cookies sends its ticket in a header.
func TestTicketInAHeaderStandsForTheCookie(t *testing.T) {
	w := newWorld(t, withOrigin(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Anteroom-Ticket") != "" {
			t.Error("the origin got the ticket")
		}
		site(rw, r)
	}), shop())
	first := w.join()
	const accept = "Accept: application/json"
	var p gateway.Place
	r := w.send("GET", "/list", "", accept)
	r.json(t, &p)
	if r.StatusCode != 429 || p.Ticket == "" || p.Position == nil {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	joined := p.JoinedAt
	r = w.send("GET", "/list", "", accept, "X-Anteroom-Ticket: "+p.Ticket)
	r.json(t, &p)
	if !p.JoinedAt.Equal(joined) || w.count(ticket.Join) != 2 {
		t.Fatalf("%d %s: another place", r.StatusCode, r.body)
	}
	if got := w.place(200, "checkin", "", "X-Anteroom-Ticket: "+p.Ticket); got.Ticket == "" || !got.JoinedAt.Equal(joined) {
		t.Fatalf("check-in: %+v", got)
	}
	w.api("end", with("pass", first.Pass))
	w.pass(time.Second)
	for range 2 { // the ticket goes on working, for as long as the session
		if r := w.send("GET", "/list", "", accept, "X-Anteroom-Ticket: "+p.Ticket); r.body != "GET /list " {
			t.Fatalf("called, and told %d %s", r.StatusCode, r.body)
		}
	}
	if n := w.count(ticket.Join); n != 2 {
		t.Errorf("%d joins, want 2", n)
	}
}

// A browser that keeps no cookies waits with its place in the address, and goes
// in as soon as it keeps one.
func TestPlaceInTheAddress(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	first := w.join()
	b := w.browser()
	ours := append([]string{"Sec-Fetch-Site: same-origin"}, navigation[1:]...)                         // a page of this host led here
	bare := func(method, path string) reply { clear(b.jar); return b.send(method, path, "", ours...) } // it keeps nothing
	view := func(path string) (v gateway.View, r reply) {
		t.Helper()
		r = bare("GET", path)
		if r.StatusCode == 303 && strings.HasSuffix(r.Header.Get("Location"), "&tried=1") { // it is given a cookie to try
			r = bare("GET", r.Header.Get("Location"))
		}
		r.json(t, &v)
		return v, r
	}
	v, _ := view("/_anteroom/v1/rooms/shop/return?to=%2Flist") // where the refresh of its first page led
	if v.Kind != gateway.PageCookies || v.KeepURL == "" {
		t.Fatalf("%+v", v)
	}
	joins := w.count(ticket.Join)
	at := bare("GET", v.KeepURL).Header.Get("Location") // it takes a place
	var joined time.Time
	for i := range 3 {
		v, r := view(at)
		if v.Kind != gateway.PageWaiting || !v.InAddress || v.StreamURL+v.CheckInURL+v.AbandonURL != "" {
			t.Fatalf("%+v", v)
		}
		if i > 0 && !v.JoinedAt.Equal(joined) {
			t.Fatalf("the place was lost: %+v", v)
		}
		if got := r.Header.Get("Referrer-Policy"); got != "no-referrer" {
			t.Errorf("Referrer-Policy: %s; the address has the ticket in it", got)
		}
		if _, next, _ := strings.Cut(r.Header.Get("Refresh"), "; url="); next != v.RefreshURL {
			t.Errorf("Refresh: %s", r.Header.Get("Refresh"))
		}
		joined, at = v.JoinedAt, v.RefreshURL
	}
	if n := w.count(ticket.Join); n != joins+1 {
		t.Errorf("%d more joins, want 1", n-joins)
	}
	w.api("end", with("pass", first.Pass))
	w.pass(time.Second)
	v, _ = view(at)
	if v.Kind != gateway.PageCalled || v.HereURL == "/list" || v.TakeURL == "" {
		t.Fatalf("%+v", v)
	}
	// It says that cookies are allowed now, and they are not.
	enter := v.TakeURL
	r := bare("POST", enter)
	if r.StatusCode != 303 || r.Header.Get("Set-Cookie") == "" {
		t.Fatalf("%d %v", r.StatusCode, r.Header)
	}
	v, _ = view(r.Header.Get("Location"))
	if v.Kind != gateway.PageCookies || v.KeepURL == "" {
		t.Fatalf("%+v", v)
	}
	if v, _ := view(v.KeepURL); v.Kind != gateway.PageCalled || !v.JoinedAt.Equal(joined) {
		t.Fatalf("the turn was lost: %+v", v)
	}
	// Now they are.
	clear(b.jar)
	method := "POST"
	for _, want := range []string{"/_anteroom/v1/rooms/shop/return", "/list"} {
		r := b.send(method, enter, "", ours...)
		method = "GET"
		if enter = r.Header.Get("Location"); r.StatusCode != 303 || !strings.HasPrefix(enter, want) {
			t.Fatalf("%d %v, want to go to %s", r.StatusCode, r.Header, want)
		}
	}
	if r := b.open(enter); r.body != "GET /list " {
		t.Fatalf("with a cookie: %d %s", r.StatusCode, r.body)
	}
	if n := w.count(ticket.Join); n != joins+1 {
		t.Errorf("%d more joins, want 1", n-joins)
	}
}

// Nobody loses a place because somebody else's address was put before them.
func TestCookieCountsMoreThanTheAddress(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	w.join()
	other := w.join()
	b := w.browser()
	mine := b.view("/list")
	v := b.view("/_anteroom/v1/rooms/shop/page?to=%2Flist&ticket=" + url.QueryEscape(other.Ticket))
	if v.InAddress || !v.JoinedAt.Equal(mine.JoinedAt) {
		t.Errorf("%+v", v)
	}
	for _, bad := range []string{"x", "new", other.Ticket + "x"} {
		if r := w.browser().open("/_anteroom/v1/rooms/shop/page?to=%2F%2Fevil.example&ticket=" + url.QueryEscape(bad)); strings.Contains(r.Header.Get("Location"), "evil") || r.StatusCode >= 400 {
			t.Errorf("%s: %d %v", bad, r.StatusCode, r.Header)
		}
	}
}
