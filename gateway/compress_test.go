package gateway_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/page"
)

// overTheWireMax is what the README says of the waiting page, in bytes.
const overTheWireMax = 8000

// withPages has the real pages written.
func withPages(t testing.TB) func(*gateway.Config) {
	t.Helper()
	pages, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	return func(c *gateway.Config) { c.Pages = pages }
}

func TestPagesAreCompressed(t *testing.T) {
	w := newWorld(t, withOrigin(t, site, withPages(t)), shop())
	w.join()
	plain := w.browser().send("GET", "/list", "", navigation...)
	for accept, want := range map[string]bool{
		"gzip, deflate, br": true, "br;q=1, GZIP;q=0.5": true, "gzip": true,
		"gzip;q=0": false, "gzip; q=0.0": false, "identity": false, "*": false, "x-gzip": false, "gzip;q=x": false,
	} {
		r := w.browser().send("GET", "/list", "", append([]string{"Accept-Encoding: " + accept}, navigation...)...)
		if got := r.Header.Get("Content-Encoding") == "gzip"; got != want || int64(len(r.body)) != r.ContentLength || !strings.Contains(r.Header.Get("Vary"), "Accept-Encoding") {
			t.Errorf("%s: gzip %v, want %v; %d bytes of %d; Vary %q", accept, got, want, len(r.body), r.ContentLength, r.Header.Get("Vary"))
		}
		if !want {
			continue
		}
		z, err := gzip.NewReader(strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if d := len(text) - len(plain.body); err != nil || !strings.HasSuffix(string(text), "</html>") && !strings.HasSuffix(string(text), "</html>\n") || d < -50 || d > 50 {
			t.Errorf("%s: %d bytes, not compressed %d (%v)", accept, len(text), len(plain.body), err)
		}
	}
}

// What comes over the wire, in each language; headers have about 800 bytes more.
func TestWaitingPageIsSmallOverTheWire(t *testing.T) {
	pages, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	w := newPushWorld(t, withPages(t))
	w.join()
	for _, lang := range pages.Languages() {
		r := w.browser().send("GET", "/list", "", append([]string{"Accept-Encoding: gzip", "Accept-Language: " + lang}, navigation...)...)
		n := len(r.body)
		t.Logf("%s: %d bytes", lang, n)
		if n > overTheWireMax || r.StatusCode != http.StatusOK {
			t.Errorf("the waiting page in %s is %d bytes over the wire, want at most %d", lang, n, overTheWireMax)
		}
	}
}

// Whoever may choose the address of a page and sees how long it is learns nothing
// of a ticket in it; and not every proxy passes on how an answer is encoded.
func TestPagesThatAreNotCompressed(t *testing.T) {
	w := newWorld(t, withOrigin(t, site, withPages(t)), shop())
	w.join()
	b := w.browser()
	b.open("/")
	const own = "/_anteroom/v1/rooms/shop/"
	linked := b.send("GET", own+"page?to=%2F&ticket="+w.join().Ticket, "", append([]string{"Accept-Encoding: gzip"}, navigation...)...)
	asked := w.browser().send("GET", own+"auth", "", append([]string{"Accept-Encoding: gzip", "X-Forwarded-Uri: /", "X-Forwarded-Host: shop.example"}, navigation...)...)
	for name, r := range map[string]*reply{"a page with a ticket": &linked, "the answer to a proxy": &asked} {
		if r.Header.Get("Content-Encoding") != "" || !strings.Contains(r.body, "</html>") {
			t.Errorf("%s: %d, Content-Encoding %q", name, r.StatusCode, r.Header.Get("Content-Encoding"))
		}
	}
	if !strings.Contains(linked.body, `name="ticket"`) && !strings.Contains(linked.body, "ticket=") {
		t.Error("the page that was to have a ticket in it has none")
	}
}
