package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/page"
	"github.com/anteroom/anteroom/internal/ticket"
)

func TestAPassIsRenewedNowAndThen(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	b := w.browser()
	b.open("/")
	for range 50 {
		b.open("/picture")
	}
	if got := w.count(ticket.Visit) + w.count(ticket.Refresh); got != 0 {
		t.Errorf("fifty pictures asked the queue %d times", got)
	}
	w.pass(10 * time.Second)
	b.open("/")
	if w.count(ticket.Visit) != 1 || w.count(ticket.Refresh) != 0 {
		t.Errorf("after a sixth of the session: %v", w.asked)
	}
	w.pass(15 * time.Second)
	if r := b.open("/"); len(r.Cookies()) != 1 || r.Cookies()[0].MaxAge != 60 || w.count(ticket.Refresh) != 1 {
		t.Errorf("with less than two thirds left: %v, %v", r.Header, w.asked)
	}
	for range 6 {
		w.pass(30 * time.Second)
		if r := b.open("/"); r.body != "GET / " {
			t.Fatalf("who is active was sent out: %s", r.body)
		}
	}
	w.pass(65 * time.Second)
	if r := b.open("/"); r.body != "GET / " || w.count(ticket.Join) != 2 {
		t.Errorf("after a silent minute: %d %s, %v", r.StatusCode, r.body, w.asked)
	}
}

func TestAnEndedPassStopsWorking(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	b := w.browser()
	b.open("/")
	pass, err := w.ring.OpenPass("shop", b.jar["anteroom_shop"])
	if err != nil {
		t.Fatal(err)
	}
	// Another gateway ends the session: this one has not heard of it.
	if _, err := w.Do(t.Context(), ticket.Request{Op: ticket.End, Room: "shop", Pass: pass}); err != nil {
		t.Fatal(err)
	}
	w.join() // and somebody takes the slot
	w.pass(2 * time.Second)
	if v := b.view("/"); v.Kind != gateway.PageWaiting {
		t.Errorf("two seconds after its end the pass is good: %+v", v)
	}
}

func TestAPassIsGoodWhileTheQueueIsBusy(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	b := w.browser()
	b.open("/")
	w.pass(3 * time.Second)
	w.breakWith(func(ticket.Request) error { return ticket.ErrBusy })
	if r := b.open("/"); r.body != "GET / " {
		t.Errorf("busy: %d %s", r.StatusCode, r.body)
	}
	w.pass(3 * time.Second)
	w.breakWith(func(ticket.Request) error { return ticket.ErrUnavailable }) // its clock is off
	if v := b.view("/"); v.Kind != gateway.PageUnavailable || len(b.jar) != 1 {
		t.Errorf("a node that cannot tell the time honours passes: %+v", v)
	}
}

func TestAPassMayComeAsABearerToken(t *testing.T) {
	var got http.Header
	w := newWorld(t, withOrigin(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() }), shop())
	p := w.join()
	if r := w.send("GET", "/", "", "Authorization: Bearer "+p.Pass); r.StatusCode != 200 || got.Get("Authorization") != "" || got.Get("X-Anteroom-Pass") != p.PassJWT {
		t.Errorf("%d %v", r.StatusCode, got)
	}
	w.api("end", with("pass", p.Pass))
	if r := w.send("GET", "/", "", "Authorization: Bearer theirs"); r.StatusCode != 200 || got.Get("Authorization") != "Bearer theirs" {
		t.Errorf("the origin's own token did not reach it: %d %v", r.StatusCode, got)
	}
}

func TestTheWaitingPageItself(t *testing.T) {
	pages, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, withOrigin(t, site, func(c *gateway.Config) { c.Pages = pages }), shop())
	w.join()
	b := w.browser()
	r := b.open("/list")
	_, nonce, _ := strings.Cut(r.Header.Get("Content-Security-Policy"), "script-src 'nonce-")
	nonce, _, _ = strings.Cut(nonce, "'")
	if r.StatusCode != 200 || !strings.Contains(r.body, `<html lang="nl"`) || strings.Contains(r.body, b.jar["anteroom_shop"]) {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if !strings.Contains(r.body, `<script nonce="`+nonce+`">`) {
		t.Errorf("the nonce %s is not in the page: %s", nonce, r.body)
	}
}

// Nothing is signed for who has no use for it, until they have.
func TestAPassComesWithoutItsJWTForWhoPrefersThat(t *testing.T) {
	var signed atomic.Int32
	w := newWorld(t, func(c *gateway.Config) { c.Sealer = &counting{c.Sealer, &signed} }, shop())
	var p gateway.Place
	minimal := []string{"Content-Type: application/json", "Prefer: return=minimal"}
	if r := w.send("POST", "/_anteroom/v1/rooms/shop/join", "", minimal...); json.Unmarshal([]byte(r.body), &p) != nil || p.State != "admitted" || p.Pass == "" || strings.Contains(r.body, "pass_jwt") || signed.Load() != 0 {
		t.Fatalf("a join, with %d signed: %s", signed.Load(), r.body)
	}
	if r := w.send("POST", "/_anteroom/v1/rooms/shop/refresh", with("pass", p.Pass), minimal...); r.StatusCode != 200 || strings.Contains(r.body, "pass_jwt") || signed.Load() != 0 {
		t.Errorf("a refresh, with %d signed: %d %s", signed.Load(), r.StatusCode, r.body)
	}
	if r := w.api("refresh", with("pass", p.Pass)); !strings.Contains(r.body, `"pass_jwt":"ey`) || signed.Load() != 1 {
		t.Errorf("a refresh of who wants it, with %d signed: %s", signed.Load(), r.body)
	}
}

// counting counts the signatures.
type counting struct {
	gateway.Sealer
	signed *atomic.Int32
}

func (c *counting) JWT(p ticket.Pass, issuer string) (string, error) {
	c.signed.Add(1)
	return c.Sealer.JWT(p, issuer)
}
