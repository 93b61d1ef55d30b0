package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/page"
	"github.com/anteroom/anteroom/internal/config"
)

func withPage(html string) config.Room {
	r := config.DefaultRoom()
	r.Name, r.TotalActiveUsers, r.CustomPageHTML = "shop", 1, html
	return r
}

func newTestPages(t *testing.T) (*customPages, *bytes.Buffer) {
	t.Helper()
	base, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	return newCustomPages(base, slog.New(slog.NewTextHandler(&log, nil))), &log
}

// A wave says of a page no more than its sum, however large the page.
func TestAPageTravelsAsItsSum(t *testing.T) {
	small, large := roomOf(withPage("x")), roomOf(withPage(strings.Repeat("x", 1<<20)))
	if len(small.Settings) != len(large.Settings) || small.Settings == large.Settings {
		t.Errorf("settings of %d and %d bytes", len(small.Settings), len(large.Settings))
	}
	if s := roomOf(withPage("")).Settings; strings.Contains(s, "page") || strings.Contains(s, "cookie_attributes") {
		t.Errorf("settings of a room that has neither: %s", s)
	}
}

func TestARoomHasThePageOfTheFile(t *testing.T) {
	p, log := newTestPages(t)
	first, second := withPage("first {{room}}"), withPage("second {{room}}")
	shown := func(r eviction.Room) string {
		t.Helper()
		c := p.of(r)
		if c == nil {
			return ""
		}
		var b bytes.Buffer
		v, err := page.Sample("waiting")
		if err == nil {
			err = c.Page(&b, v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	p.learn([]config.Room{first})
	if got := shown(roomOf(first)); got != "first shop" || !p.fresh() || p.fresh() {
		t.Errorf("page %q", got)
	}
	// The cluster moves on to a page that this node has not got.
	for range 2 {
		if got := shown(roomOf(second)); got != "" {
			t.Errorf("page %q", got)
		}
	}
	if n := strings.Count(log.String(), "another page"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log)
	}
	// It gets it with the next file, while the cluster still has the first.
	p.learn([]config.Room{second})
	p.keep([]eviction.Room{roomOf(first)})
	if got := shown(roomOf(first)) + ", " + shown(roomOf(second)); got != "first shop, second shop" || !p.fresh() {
		t.Errorf("pages %q", got)
	}
	p.keep([]eviction.Room{roomOf(second)})
	if got := shown(roomOf(first)); got != "" || len(p.bySum) != 1 {
		t.Errorf("page %q, %d kept; want the first one forgotten", got, len(p.bySum))
	}
	if got := shown(roomOf(withPage(""))); got != "" {
		t.Errorf("page %q for a room without", got)
	}
}

func TestAPageThatCannotBeShownIsLeftOut(t *testing.T) {
	p, log := newTestPages(t)
	bad := withPage("{{#queueAll}}")
	p.learn([]config.Room{bad})
	if p.of(roomOf(bad)) != nil || !strings.Contains(log.String(), "has no end") {
		t.Errorf("log: %s", log)
	}
}

func TestCookieAttributesReachTheGateway(t *testing.T) {
	r := withPage("")
	r.CookieAttributes = config.CookieAttributes{SameSite: "none", Secure: "auto"}
	g, err := gatewayRoom(roomOf(r))
	if err != nil || g.Cookie != (gateway.Cookie{SameSite: "none"}) {
		t.Errorf("%+v, %v", g.Cookie, err)
	}
}

// Pictures travel as their sums, as pages do, and a node shows those of its file.
func TestPicturesOfTheFile(t *testing.T) {
	p, _ := newTestPages(t)
	r := withPage("")
	r.Logo, r.Favicon = "data:image/gif;base64,R0lGODlh", "data:image/gif;base64,R0lGODdh"
	p.learn([]config.Room{r})
	if logo, icon := p.pictures(roomOf(r)); logo == nil || icon == nil || string(logo.Bytes) != "GIF89a" || string(icon.Bytes) != "GIF87a" {
		t.Errorf("pictures %v, %v", logo, icon)
	}
	if s := roomOf(r).Settings; strings.Contains(s, "R0lGODlh") {
		t.Errorf("the picture itself travels: %s", s)
	}
	p.learn([]config.Room{withPage("")})
	if logo, icon := p.pictures(roomOf(r)); logo != nil || icon != nil {
		t.Error("pictures that the file has no more")
	}
}
