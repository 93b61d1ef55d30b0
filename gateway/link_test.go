package gateway_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// linkTo is what somebody would make of a ticket of their own.
func linkTo(ticket, more string) string {
	return "/_anteroom/v1/rooms/shop/page?to=%2Flist&ticket=" + url.QueryEscape(ticket) + more
}

// arrivals are the ways in which a browser says where it comes from. Old ones,
// and all on plain http, say nothing.
func arrivals() map[string][]string {
	return map[string][]string{
		"another site": append([]string{"Sec-Fetch-Site: cross-site"}, navigation[1:]...),
		"a subdomain":  append([]string{"Sec-Fetch-Site: same-site"}, navigation[1:]...),
		"a message":    navigation,
		"our own site": append([]string{"Sec-Fetch-Site: same-origin"}, navigation[1:]...), // a forum's, with a link in a post
		"not said":     {"Accept: text/html"},
	}
}

// arrive opens a link and goes on as a browser does, until there is a page.
func (b *browser) arrive(path string, headers []string) reply {
	b.w.t.Helper()
	r := b.send("GET", path, "", headers...)
	for n := 0; r.StatusCode == 303 && n < 5; n++ {
		r = b.send("GET", r.Header.Get("Location"), "", headers...)
	}
	return r
}

// A link with a ticket puts nothing into a browser that keeps cookies, in
// whichever state the ticket is: the page asks, and only the form on it does.
func TestLinkPlantsNoTicket(t *testing.T) {
	for how, headers := range arrivals() {
		for _, called := range []bool{false, true} {
			for _, more := range []string{"", "&enter=1"} {
				w := newWorld(t, withOrigin(t, site), shop())
				first, evil := w.join(), w.join()
				if called {
					w.api("end", with("pass", first.Pass))
					w.pass(time.Second)
				}
				victim, joins := w.browser(), w.count(ticket.Join)
				r := victim.arrive(linkTo(evil.Ticket, more), headers)
				var v gateway.View
				r.json(t, &v)
				if v.Kind != gateway.PageLinked || v.TakeURL == "" || v.HereURL != "/list" || v.RefreshSeconds != 0 {
					t.Errorf("%s, called %v, %q: %+v", how, called, more, v)
				}
				if got := r.Header.Get("Referrer-Policy"); got != "strict-origin" {
					t.Errorf("%s: Referrer-Policy %s; the address has a ticket in it", how, got)
				}
				if _, planted := victim.jar["anteroom_shop"]; planted || w.count(ticket.Join) != joins {
					t.Errorf("%s, called %v, %q: the browser has %v, and %d joined", how, called, more, victim.jar, w.count(ticket.Join)-joins)
				}
				mine := victim.view(v.HereURL) // their own
				if mine.Kind != gateway.PageWaiting && mine.Kind != gateway.PageCalled || mine.JoinedAt.Equal(evil.JoinedAt) {
					t.Errorf("%s, called %v: %+v", how, called, mine)
				}
			}
		}
	}
}

// Whoever makes the link may write into it what our own addresses say. A browser
// that tells nothing of where it comes from then sees the place once, and is
// asked with the next request; nothing is put into it.
func TestLinkThatPretendsPlantsNoTicketEither(t *testing.T) {
	for how, headers := range arrivals() {
		w := newWorld(t, withOrigin(t, site), shop())
		w.join()
		evil := w.join()
		victim := w.browser()
		var v gateway.View
		victim.arrive(linkTo(evil.Ticket, "&tried=1"), headers).json(t, &v)
		if v.Kind == gateway.PageWaiting && v.InAddress && v.TakeURL == "" {
			victim.arrive(v.RefreshURL, headers).json(t, &v)
		}
		if _, planted := victim.jar["anteroom_shop"]; planted || v.Kind != gateway.PageLinked {
			t.Errorf("%s: %+v, and the browser has %v", how, v, victim.jar)
		}
		victim = w.browser()
		victim.arrive("/_anteroom/v1/rooms/shop/return?to=%2Flist&ticket="+url.QueryEscape(evil.Ticket), headers).json(t, &v)
		if v.Kind == gateway.PageCookies && v.KeepURL != "" {
			victim.arrive(v.KeepURL, append([]string{"Sec-Fetch-Site: same-origin"}, navigation[1:]...)).json(t, &v)
		}
		if _, planted := victim.jar["anteroom_shop"]; planted && v.JoinedAt.Equal(evil.JoinedAt) || v.InAddress && v.JoinedAt.Equal(evil.JoinedAt) {
			t.Errorf("%s, by way of the page about cookies: %+v, and the browser has %v", how, v, victim.jar)
		}
	}
}

// The form takes the place over: it is sent by the person, from a page of this
// host, and by no other site's.
func TestClickTakesThePlaceOfALinkOver(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	first, other := w.join(), w.join()
	b := w.browser()
	v := b.view(linkTo(other.Ticket, ""))
	ours := append([]string{"Sec-Fetch-Site: same-origin"}, navigation[1:]...)
	for name, headers := range map[string][]string{
		"another site's form":             append([]string{"Sec-Fetch-Site: cross-site"}, navigation[1:]...),
		"a subdomain's form":              append([]string{"Sec-Fetch-Site: same-site"}, navigation[1:]...),
		"another site's, which tells not": {"Origin: https://evil.example", "Accept: text/html"},
		"a frame without an origin":       {"Origin: null", "Accept: text/html"},
	} {
		if r := b.send("POST", v.TakeURL, "", headers...); r.StatusCode != 403 || b.jar["anteroom_shop"] != "" {
			t.Errorf("%s: %d %v", name, r.StatusCode, b.jar)
		}
	}
	if r := b.send("GET", v.TakeURL, "", ours...); r.StatusCode != 405 || b.jar["anteroom_shop"] != "" {
		t.Errorf("GET: %d %v", r.StatusCode, b.jar)
	}
	joins := w.count(ticket.Join)
	r := b.send("POST", v.TakeURL, "", ours...)
	for r.StatusCode == 303 {
		r = b.send("GET", r.Header.Get("Location"), "", ours...)
	}
	var mine gateway.View
	r.json(t, &mine)
	if mine.Kind != gateway.PageWaiting || mine.InAddress || !mine.JoinedAt.Equal(other.JoinedAt) || w.count(ticket.Join) != joins {
		t.Fatalf("%+v, and %d joined", mine, w.count(ticket.Join)-joins)
	}
	w.api("end", with("pass", first.Pass))
	w.pass(time.Second)
	if r := b.open("/list"); r.body != "GET /list " {
		t.Errorf("called, and shown %d %s", r.StatusCode, r.body)
	}
}

// A browser with a place of its own keeps it, and its page says that the link
// has another one.
func TestOwnPlaceIsKeptWhenALinkCarriesAnother(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	w.join()
	other := w.join()
	b := w.browser()
	mine := b.view("/list")
	for how, headers := range arrivals() {
		var v gateway.View
		b.arrive(linkTo(other.Ticket, ""), headers).json(t, &v)
		if v.Kind != gateway.PageWaiting || v.InAddress || !v.JoinedAt.Equal(mine.JoinedAt) || v.TakeURL == "" {
			t.Errorf("%s: %+v", how, v)
		}
		if v := b.view("/list"); v.TakeURL != "" || !v.JoinedAt.Equal(mine.JoinedAt) {
			t.Errorf("%s: at the next page %+v", how, v)
		}
	}
	// Nor is it given up by a link to the form, or by another site's form, with all
	// that ours says.
	take := b.view(linkTo(other.Ticket, "")).TakeURL
	for how, headers := range arrivals() {
		b.send("GET", take, "", headers...)
		if how == "another site" || how == "a subdomain" {
			b.send("POST", take, "", headers...)
		}
		if v := b.view("/list"); !v.JoinedAt.Equal(mine.JoinedAt) {
			t.Errorf("%s took the form's way: %+v", how, v)
		}
	}
	if v := b.view(linkTo(b.jar["anteroom_shop"], "")); v.TakeURL != "" {
		t.Errorf("its own link: %+v", v)
	}
	if v := b.view(linkTo("x", "")); v.TakeURL != "" {
		t.Errorf("a link with nothing in it: %+v", v)
	}
	// A form that does not know of the own place gives nothing up; the one on the
	// page that says so does.
	ours := append([]string{"Sec-Fetch-Site: same-origin"}, navigation[1:]...)
	v := b.view(linkTo(other.Ticket, ""))
	blind, _, _ := strings.Cut(v.TakeURL, "&instead")
	before := b.jar["anteroom_shop"]
	if r := b.send("POST", blind, "", ours...); r.StatusCode != 303 || b.jar["anteroom_shop"] != before {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	b.send("POST", v.TakeURL, "", ours...)
	if v := b.view("/list"); !v.JoinedAt.Equal(other.JoinedAt) {
		t.Errorf("after the change: %+v", v)
	}
}

// A ticket that is worth nothing any more is no reason to ask: the visitor goes
// where the link leads, as everybody does.
func TestLinkWithNothingInItLeadsToTheSite(t *testing.T) {
	for _, bad := range []string{"x", strings.Repeat("A", 300), "new"} {
		w := newWorld(t, withOrigin(t, site), shop())
		w.join()
		b := w.browser()
		for how, headers := range arrivals() {
			var v gateway.View
			b.arrive(linkTo(bad, ""), headers).json(t, &v)
			if v.Kind != gateway.PageWaiting || v.InAddress || b.jar["anteroom_shop"] == "" {
				t.Errorf("%.5s from %s: %+v", bad, how, v)
			}
		}
		if n := w.count(ticket.Join); n != 2 {
			t.Errorf("%.5s: %d joins, want 2", bad, n)
		}
	}
}
