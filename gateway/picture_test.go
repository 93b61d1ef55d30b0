package gateway_test

import (
	"strings"
	"testing"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/brand"
)

// A room's pictures come from this host, once, and nothing runs in them.
func TestPicturesOfARoom(t *testing.T) {
	logo, err := brand.NewPicture([]byte("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script>" + strings.Repeat(" ", brand.InlineMax) + "</svg>"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, withOrigin(t, site, withPages(t), func(c *gateway.Config) {
		c.Rooms[0].Logo, c.Rooms[0].Brand = &logo, gateway.Brand{Title: "Leaf & Kettle"}
	}), shop())
	w.join()
	page := w.browser().open("/list")
	at := "/_anteroom/v1/rooms/shop/logo?v=" + logo.Sum
	for _, want := range []string{`<img src="` + at + `" alt="Leaf &amp; Kettle">`, `<link rel="icon" href="` + at + `">`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "img-src data: 'self'; connect-src 'self';") {
		t.Errorf("Content-Security-Policy %s", csp)
	}
	r := w.browser().send("GET", at, "")
	want := map[string]string{
		"Content-Type": "image/svg+xml", "Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox", "Set-Cookie": "",
	}
	for name, value := range want {
		if got := r.Header.Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	if r.StatusCode != 200 || r.body != string(logo.Bytes) {
		t.Errorf("%d %q", r.StatusCode, r.body)
	}
	if r := w.browser().send("GET", "/_anteroom/v1/rooms/shop/logo?v=another", ""); r.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("a picture under the address of another is kept: %v", r.Header)
	}
	if r := w.browser().send("GET", "/_anteroom/v1/rooms/shop/favicon", ""); r.StatusCode != 404 {
		t.Errorf("a picture that is not there: %d", r.StatusCode)
	}
}

// A small picture is no request: it comes with the page.
func TestSmallPicturesComeWithThePage(t *testing.T) {
	icon, err := brand.NewPicture([]byte("<svg xmlns='http://www.w3.org/2000/svg'/>"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, withOrigin(t, site, withPages(t), func(c *gateway.Config) { c.Rooms[0].Icon = &icon }), shop())
	w.join()
	page := w.browser().open("/list")
	if !strings.Contains(page.body, `<link rel="icon" href="data:image/svg&#43;xml;base64,PHN2ZyB4bWxucz0naHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmcnLz4=">`) {
		t.Errorf("the page has no icon in it:\n%.600s", page.body)
	}
	if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "img-src data:; ") {
		t.Errorf("the page may load pictures, and has none to load: %s", csp)
	}
}
