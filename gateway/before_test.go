package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/gateway"
)

// inside has the world's visitors come by a server with a site of its own behind the
// waiting room, in the same process.
func (w *world) inside(t *testing.T, site http.HandlerFunc) {
	t.Helper()
	s := httptest.NewServer(w.Before(site))
	t.Cleanup(func() { w.Close(); s.Close() })
	w.url = s.URL
}

// atRoot has the first room wherever a path leads, without an origin.
func atRoot(c *gateway.Config) { c.Rooms[0].Routes = []gateway.Route{{Host: "*", Path: "/"}} }

func TestTheHandlerBehindGetsWhoMayGoOn(t *testing.T) {
	w := newWorld(t, atRoot, shop())
	asked := 0
	w.inside(t, func(rw http.ResponseWriter, r *http.Request) {
		asked++
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(rw, "%s %s %s cookie=%q spoofed=%q forwarded=%q pass=%t", r.Method, r.URL.Path, body,
			r.Header.Get("Cookie"), r.Header.Get("X-Anteroom-Room"), r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Anteroom-Pass") != "made up" && r.Header.Get("X-Anteroom-Pass") != "")
	})
	first := w.join()
	r := w.send("POST", "/cart", "one book", "Cookie: a=b; anteroom_shop="+first.Pass, "X-Anteroom-Pass: made up", "X-Anteroom-Room: staff", "X-Forwarded-For: 192.0.2.1")
	if want := `POST /cart one book cookie="a=b" spoofed="" forwarded="192.0.2.1" pass=true`; r.StatusCode != 200 || r.body != want {
		t.Errorf("%d %s, want %s", r.StatusCode, r.body, want)
	}
	w.join()
	w.join()
	before := asked
	if r := w.send("GET", "/cart", "", "Accept: text/html", "Sec-Fetch-Mode: navigate"); asked != before || !strings.Contains(r.Header.Get("Set-Cookie"), "anteroom_shop=") {
		t.Errorf("who must wait: the site was asked %d times, %d %v", asked-before, r.StatusCode, r.Header)
	}
}

func TestARequestForNoRoomGoesToTheHandlerBehindAsItCame(t *testing.T) {
	w := newWorld(t, nil, shop()) // the room has /shop
	w.inside(t, func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, r.Header.Get("Cookie")) })
	if r := w.send("GET", "/elsewhere", "", "Cookie: anteroom_shop=x"); r.StatusCode != 200 || r.body != "anteroom_shop=x" || r.Header.Get("Set-Cookie") != "" {
		t.Errorf("%d %q %v", r.StatusCode, r.body, r.Header)
	}
}

func TestTheHandlerBehindMayRevokeAndSpeaksNotForUs(t *testing.T) {
	w := newWorld(t, atRoot, shop())
	w.inside(t, func(rw http.ResponseWriter, _ *http.Request) {
		h := rw.Header()
		h.Set("Anteroom-Command", "revoke")
		h.Set("X-Anteroom-Pass", "made up")
		h.Add("Set-Cookie", "anteroom_shop=made-up")
		h.Add("Set-Cookie", "basket=7")
		rw.WriteHeader(http.StatusTeapot)
	})
	pass := w.join().Pass
	r := w.send("GET", "/thanks", "", cookie(pass))
	cookies := strings.Join(r.Header["Set-Cookie"], "; ")
	if r.StatusCode != http.StatusTeapot || r.Header.Get("X-Anteroom-Pass") != "" || strings.Contains(cookies, "made-up") || !strings.Contains(cookies, "basket=7") || !strings.Contains(cookies, "Max-Age=0") {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if r := w.api("refresh", with("pass", pass)); r.StatusCode == 200 {
		t.Errorf("the visit goes on: %s", r.body)
	}
}

// A handler in the middle leaves an error to whoever is around, which answers.
func TestAnAnswerThatIsLeftToOthersCarriesTheCookie(t *testing.T) {
	w := newWorld(t, atRoot, shop())
	chain := w.Before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Add("Vary", "X-Shop")
		chain.ServeHTTP(rw, r)
		rw.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(s.Close)
	w.url = s.URL
	r := w.send("GET", "/", "", "Accept: text/html", "Sec-Fetch-Mode: navigate")
	if r.StatusCode != http.StatusBadGateway || !strings.Contains(r.Header.Get("Set-Cookie"), "anteroom_shop=") || strings.Join(r.Header["Vary"], ",") != "X-Shop" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
}

func TestATunnelThroughTheHandlerBehindEndsWithItsVisit(t *testing.T) {
	w := newWorld(t, func(c *gateway.Config) { atRoot(c); quick(c) }, shop())
	w.inside(t, echoes)
	pass := w.join().Pass
	s := w.socket(t, "/ws", "websocket", cookie(pass))
	s.says("hello")
	if s.endsWithin(10 * quickRecheck) {
		t.Fatal("it ends while the visit lasts")
	}
	if r := w.api("end", with("pass", pass)); r.StatusCode != 204 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	s.closed()
	if s := w.socket(t, "/ws", "h2c", cookie(w.join().Pass)); s.res.StatusCode != 200 {
		t.Errorf("a protocol that the room does not have: %s", s.res.Status)
	}
}
