package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// cut is a writer that knows whether its request was broken off.
type cut struct {
	http.ResponseWriter
	off bool
}

func (c *cut) SetReadDeadline(time.Time) error { c.off = true; return nil }

// arrivesFrom begins a body and returns how to end it.
func (a *arriving) arrivesFrom(address string) (*cut, *arrival) {
	w, b := &cut{ResponseWriter: httptest.NewRecorder()}, new(arrival)
	a.begin(b, w, netip.MustParseAddr(address), nil)
	return w, b
}

func off(all []*cut) (n int) {
	for _, w := range all {
		if w.off {
			n++
		}
	}
	return n
}

func TestWhoeverHasMostBodiesOnTheirWayIsBrokenOffFirst(t *testing.T) {
	for _, flood := range []func(int) string{
		func(int) string { return "198.51.100.7" },
		func(i int) string { return fmt.Sprintf("2001:db8:7:7::%x", i+1) },
	} {
		a := &arriving{max: 64}
		var honest, attacker []*cut
		for i := range 20 {
			w, _ := a.arrivesFrom(fmt.Sprintf("203.0.113.%d", i+1))
			honest = append(honest, w)
		}
		for i := range 500 {
			w, _ := a.arrivesFrom(flood(i))
			attacker = append(attacker, w)
		}
		for i := range 20 { // who come while it is full
			w, _ := a.arrivesFrom(fmt.Sprintf("203.0.113.%d", i+101))
			honest = append(honest, w)
		}
		if n := off(honest); n > 0 {
			t.Errorf("%d of 40 honest visitors were broken off", n)
		}
		if n := off(attacker); n != 500+40-64 || a.n != 64 || a.evicted.Load() != int64(n) {
			t.Errorf("%d of 500 of one address were broken off, %d left", n, a.n)
		}
		if slices.ContainsFunc(attacker[:400], func(w *cut) bool { return !w.off }) {
			t.Error("an old one was left and a newer one broken off")
		}
	}
}

func TestOfManyAddressesTheOldestBodyIsBrokenOff(t *testing.T) {
	a := &arriving{max: 64}
	var all []*cut
	for i := range 100 {
		w, b := a.arrivesFrom(fmt.Sprintf("198.51.100.%d", i+1))
		if all = append(all, w); i == 0 {
			b.done()
			b.done()
		}
	}
	if n := off(all); n != 35 || all[0].off || !all[1].off || off(all[36:]) > 0 {
		t.Errorf("%d broken off; the one that had come: %v", n, all[0].off)
	}
}

// In every state the oldest request whose body does not come makes way for a
// newcomer, at once and with an answer, and the others go on.
func TestUnfinishedBodiesMakeWay(t *testing.T) {
	const room = "/_anteroom/v1/rooms/shop/"
	sized, chunked := "Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n64\r\n{"
	for _, c := range []struct {
		what, line, more string
		status           int
	}{
		{"a join", "POST " + room + "join", sized, 400},
		{"a check-in", "POST " + room + "checkin", chunked, 400},
		{"an unknown room", "POST /_anteroom/v1/rooms/nope/join", sized, 404},
		{"an unknown request", "POST " + room + "jion", chunked, 404},
		{"a status", "GET " + room + "status", sized, 200},
		{"a proxy that asks", "POST " + room + "auth?proxy=nginx", sized, 401},
		{"another site", "POST http://other.example.com/", sized, 404},
		{"a form of somebody who waits", "POST /buy", sized, 429},
		{"a GET of somebody who waits", "GET /", chunked, 429},
		{"an upload with a pass", "POST /photo", "Cookie: anteroom_shop=PASS\r\n" + sized, 408},
	} {
		t.Run(c.what, func(t *testing.T) {
			street(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, func(t *testing.T, g *Gateway, at pipes, q full) {
				g.bodies.max, g.uploads.max = 4, 4
				began := time.Now()
				var all []*caller
				for range 7 {
					all = append(all, at.call(t, c.line+" HTTP/1.1\r\nHost: shop.example.com\r\n"+strings.Replace(c.more, "PASS", q.pass(), 1)))
					synctest.Wait()
				}
				if n := g.bodies.open() + g.uploads.open(); n != 4 {
					t.Errorf("%d bodies are on their way, want 4", n)
				}
				for i, visitor := range all[:3] {
					if r := visitor.answer(); r.StatusCode != c.status {
						t.Errorf("number %d: %d, want %d", i, r.StatusCode, c.status)
					}
				}
				took(t, began, "to make way", 2*closing)
				if n := g.bodies.evicted.Load() + g.uploads.evicted.Load(); n != 3 {
					t.Errorf("%d crowded out, want 3", n)
				}
				for _, visitor := range all[3:] { // the others can still come to their end
					visitor.say(strings.Repeat(" ", 99))
				}
			})
		})
	}
}
