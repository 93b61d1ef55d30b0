package e2e

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// stranger has a place in the queue of a full shop, and a site of their own, at
// another host name, with what may be made of it.
type stranger struct {
	*httptest.Server
	link, place string // with the ticket; and where in line it is
}

// newStranger comes after everybody who is there.
func newStranger(t *testing.T, shop, place string) *stranger {
	t.Helper()
	r, err := http.Post(shop+"/_anteroom/v1/rooms/shop/join", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	_, rest, ok := strings.Cut(string(b), `"ticket":"`)
	ticket, _, _ := strings.Cut(rest, `"`)
	if err != nil || !ok {
		t.Fatalf("join: %v %s", err, b)
	}
	const own = "/_anteroom/v1/rooms/shop/"
	keep(t, shop+own+"checkin", ticket)
	rest = url.Values{"to": {"/tea/gyokuro"}, "ticket": {ticket}}.Encode()
	s := &stranger{link: shop + own + "page?" + rest, place: place}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<p>Win a teapot</p><a id=link href="%s">here</a>
			<form id=form method=post action="%s"><button>or here</button></form>`,
			html.EscapeString(s.link), html.EscapeString(shop+own+"take?"+rest))
	}))
	s.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	t.Cleanup(s.Close)
	return s
}

// keep checks in with a ticket until the test is over: who is silent for some
// seconds is not counted in the line any more.
func keep(t *testing.T, checkin, ticket string) {
	t.Helper()
	var asking sync.WaitGroup
	asking.Go(func() {
		again := time.NewTicker(time.Second)
		defer again.Stop()
		for {
			select {
			case <-t.Context().Done():
				return
			case <-again.C:
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, checkin, strings.NewReader(`{"ticket":"`+ticket+`"}`))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			if a, err := http.DefaultClient.Do(r); err == nil { // else the next one
				_ = a.Body.Close()
			}
		}
	})
	t.Cleanup(asking.Wait)
}

// A link on another site has a ticket in it. Whoever follows it is asked, with
// scripts and without, and has a place of their own unless they say otherwise.
func TestLinkWithAPlaceAsksFirst(t *testing.T) {
	shop := demo(t)
	guests(t, shop, 5, 0)
	evil := newStranger(t, shop, "1")
	for look, options := range map[string][]chromedp.Action[chromedp.Void]{"scripts": nil, "no scripts": {withoutScripts()}} {
		p := newPerson(t, options...)
		p.open(evil.URL)
		p.click("#form button") // a form of another site takes nothing over
		p.sees("cross_origin")
		p.open(evil.URL)
		p.click("#link")
		p.sees("This link carries a place in line")
		p.picture("asks, " + look)
		p.isAccessible("asks, " + look)
		p.do("set the browser up", options...)
		p.click("a.button")
		p.sees("You are in line")
		p.until("a place of their own, where the link leads", `location.pathname === "/tea/gyokuro" && +place.textContent > 1`)

		// From here on the same link is another place than the own one.
		p.open(evil.URL)
		p.click("#link")
		// Without scripts it reloads itself, and says nothing of the link from then on.
		// Stopped before all of it is read, it would end in the middle.
		p.until("their own place, and the page to stay", `document.readyState !== "loading" && document.body.innerText.includes("You keep your own") && +place.textContent > 1 && (stop(), true)`)
		p.picture("keeps, " + look)
		p.isAccessible("keeps, " + look)
		p.do("set the browser up", options...)
		p.click("form.note button")
		p.reads("#place", evil.place)

		trusting := newPerson(t, options...)
		trusting.open(evil.URL)
		trusting.click("#link")
		trusting.sees("This link carries a place in line")
		trusting.click("form button")
		trusting.reads("#place", evil.place)
		trusting.until("the address to be the tea's", `location.pathname === "/tea/gyokuro"`)
	}
}

// A browser that keeps no cookies waits with its place in the address, and is not
// asked about it: this one has them taken away on the way, and is like any other
// in all else.
func TestBrowserWithoutCookiesKeepsItsPlaceInTheAddress(t *testing.T) {
	shop := demo(t)
	others := guests(t, shop, 5, 1)
	target, err := url.Parse(shop)
	if err != nil {
		t.Fatal(err)
	}
	crumbless := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Del("Cookie")
		},
		ModifyResponse: func(r *http.Response) error { r.Header.Del("Set-Cookie"); return nil },
	})
	t.Cleanup(crumbless.Close)
	p := newPerson(t, withoutScripts())
	p.open(crumbless.URL + "/tea/gyokuro")
	p.sees("Please allow cookies")
	p.click(`a:not(.button)`)
	p.sees("your place is in the address")
	p.until("a place", `+place.textContent > 0`) // the third, until that of the first page, which nobody asks for, is parked
	first := p.text("#updated")
	p.until("it to reload by itself, to ask nothing and to take no other place", fmt.Sprintf(`updated.textContent !== %q && +place.textContent <= 3`, first))
	others[0].goesOut()
	others[5].comesIn()
	p.reads("#place", "1")
}
