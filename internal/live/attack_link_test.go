package live

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Attack 14: somebody makes a link of the ticket that they hold, and of the turn
// that they are given. A browser that follows it, whatever it says of where it
// comes from, is asked, and keeps nothing of theirs.
func TestAttackLinkPlantsATicket(t *testing.T) {
	c := newCluster(t, 1)
	c.run(1)
	p := c.nodes[0]
	pass := p.enter("")
	evil := p.visit("join", nil)
	if evil.State != "waiting" {
		t.Fatalf("join = %+v", evil)
	}
	follow := func(enter, site string) (page string, kept []*http.Cookie) {
		t.Helper()
		at := p.gateway() + "/_anteroom/v1/rooms/shop/page?" + url.Values{"to": {"/"}, "ticket": {evil.Ticket}}.Encode() + enter
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		q, err := http.NewRequest(http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Accept", "text/html")
		if site != "" {
			q.Header.Set("Sec-Fetch-Site", site)
		}
		client := http.Client{Jar: jar, Timeout: 5 * time.Second}
		a, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Body.Close() }()
		b, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b), jar.Cookies(a.Request.URL)
	}
	check := func() {
		t.Helper()
		for _, enter := range []string{"", "&enter=1"} {
			for _, site := range []string{"", "none", "cross-site", "same-origin"} {
				page, kept := follow(enter, site)
				if !strings.Contains(page, "This link carries a place in line") {
					t.Errorf("%q from %q: no question, but\n%.2000s", enter, site, page)
				}
				for _, k := range kept {
					if k.Name == "anteroom_shop" {
						t.Errorf("%q from %q: the browser has a place that it was not asked about", enter, site)
					}
				}
			}
		}
	}
	check()
	c.phase("waiting, the ticket of a link is in no browser")
	if a := p.visit("end", map[string]string{"pass": pass}); a.Status != http.StatusNoContent {
		t.Fatalf("end = %+v", a)
	}
	c.until("turn for the one with the link", 10*time.Second, func() bool {
		return p.visit("checkin", map[string]string{"ticket": evil.Ticket}).State == "called"
	})
	check()
	if s := c.shop.Stats(); s.Seen != 0 {
		t.Errorf("%d came into the shop by the link", s.Seen)
	}
	c.phase("called, it is in none either")
}
