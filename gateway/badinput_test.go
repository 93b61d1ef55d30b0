package gateway_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/ticket"
)

// then tidies up between the tests and the search for what they left running.
type then struct{ *testing.M }

func (m then) Run() int {
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return m.M.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(then{m}) }

// forgeries are strings like a good one, but not it.
func forgeries(t *testing.T, w *world, good string) map[string]string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	turned := func(i int) string {
		b := append([]byte(nil), raw...)
		b[i] ^= 1
		return base64.RawURLEncoding.EncodeToString(b)
	}
	strangers := seal.New(seal.Config{Now: w.Clock})
	if err := strangers.Rotate(); err != nil {
		t.Fatal(err)
	}
	foreignTicket, err := strangers.Ticket(ticket.Ticket{Room: "shop", Stamp: 1})
	if err != nil {
		t.Fatal(err)
	}
	foreignPass, err := strangers.Pass(ticket.Pass{Room: "shop", Expires: 1 << 60})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"garbage": "hello", "a percent sign": "%00%ff", "half of it": good[:len(good)/2], "all but its end": good[:len(good)-1],
		"all but its start": good[1:], "twice": good + good, "padded": good + "=", "another alphabet": "+/" + good[2:], "in capitals": strings.ToUpper(good),
		"another kind": turned(0), "another key's name": turned(4), "another nonce": turned(12), "another content": turned(30),
		"another seal": turned(len(raw) - 1), "another cluster's ticket": foreignTicket, "another cluster's pass": foreignPass, "3000 letters": strings.Repeat("A", 3000),
		"zeros": strings.Repeat("A", len(good)), "no key at all": "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
	}
}

func TestForgedTicketsAndPassesAreWorthNothing(t *testing.T) {
	w := newWorld(t, nil, shop())
	pass, place := w.join().Pass, w.join()
	asked := func() int {
		return w.count(ticket.CheckIn) + w.count(ticket.Leave) + w.count(ticket.Abandon) + w.count(ticket.End) + w.count(ticket.Refresh) + w.count(ticket.Visit)
	}
	refused := func(what string, r reply, code string) {
		t.Helper()
		if r.StatusCode != 401 || r.code() != code || r.Header.Get("WWW-Authenticate") != "Bearer" || r.Header["Set-Cookie"] != nil {
			t.Errorf("%s: %d %s %v, want 401 %s", what, r.StatusCode, r.body, r.Header, code)
		}
	}
	before := asked()
	for _, op := range []string{"checkin", "leave", "abandon"} {
		for what, s := range forgeries(t, w, place.Ticket) {
			refused(op+" with "+what, w.api(op, with("ticket", s)), "ticket_invalid")
			refused(op+" with bearer "+what, w.api(op, "", "Authorization: Bearer "+s), "ticket_invalid")
			refused(op+" with cookie "+what, w.api(op, "", "Cookie: anteroom_shop="+s), "ticket_invalid")
		}
		for what, s := range map[string]string{"NUL": place.Ticket + "\\u0000", "a line break": place.Ticket[:9] + "\\n" + place.Ticket[9:], "not UTF-8": "\xff" + place.Ticket} {
			refused(op+" with "+what, w.api(op, `{"ticket":"`+s+`"}`), "ticket_invalid")
		}
	}
	for what, s := range forgeries(t, w, pass) {
		refused("stream with "+what, w.send("GET", "/_anteroom/v1/rooms/shop/stream", "", "Authorization: Bearer "+s), "ticket_invalid")
		refused("refresh with "+what, w.api("refresh", with("pass", s)), "pass_invalid")
		refused("end with bearer "+what, w.api("end", "", "Authorization: Bearer "+s), "pass_invalid")
		refused("end with cookie "+what, w.api("end", "", "Cookie: anteroom_shop="+s), "pass_invalid")
	}
	if n := asked(); n != before {
		t.Errorf("the queue was asked %d times", n-before)
	}
	if p := w.place(200, "checkin", with("ticket", place.Ticket)); p.State != "waiting" || *p.Position != 1 || !p.JoinedAt.Equal(place.JoinedAt) {
		t.Errorf("after all that the place is %+v", p)
	}
	if r := w.api("refresh", with("pass", pass)); r.StatusCode != 200 {
		t.Errorf("after all that the pass: %d %s", r.StatusCode, r.body)
	}
}

// A person with a cookie that is worth nothing, for whatever reason, is
// somebody who comes for the first time: no error, and never the site.
func TestAForgedCookieIsNoCookie(t *testing.T) {
	w := newWorld(t, withOrigin(t, site), shop())
	pass := w.join().Pass
	for what, s := range forgeries(t, w, pass) {
		b := w.browser()
		b.jar["anteroom_shop"] = s
		if r := b.open("/"); r.StatusCode != 200 || !strings.Contains(r.body, `"Kind":"waiting"`) {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.body)
		}
		if _, err := w.ring.OpenTicket("shop", b.jar["anteroom_shop"]); err != nil {
			t.Errorf("%s: no place came of it: %v", what, err)
		}
	}
}

// TestReplaysGainNothing: copies of a ticket are one place, copies of a pass
// one session, and neither comes back when it is over.
func TestReplaysGainNothing(t *testing.T) {
	w := newWorld(t, nil, shop())
	first, place := w.join(), w.join()
	newer := w.place(200, "checkin", with("ticket", place.Ticket))
	w.api("end", with("pass", first.Pass))
	w.pass(time.Second)
	in := w.place(200, "leave", with("ticket", place.Ticket))
	again := w.place(200, "leave", with("ticket", newer.Ticket))
	if !sameSession(t, w, in.Pass, again.Pass) {
		t.Error("two tickets of one place became two sessions")
	}
	if next := w.join(); next.State != "waiting" {
		t.Errorf("the room for one has another: %+v", next)
	}
	w.api("end", with("pass", in.Pass))
	for _, c := range []struct{ op, kind, sealed, code string }{
		{"checkin", "ticket", place.Ticket, "ticket_used"},
		{"leave", "ticket", newer.Ticket, "ticket_used"},
		{"refresh", "pass", in.Pass, "pass_expired"},
		{"refresh", "pass", again.Pass, "pass_expired"},
		{"refresh", "pass", first.Pass, "pass_expired"},
	} {
		if r := w.api(c.op, with(c.kind, c.sealed)); r.StatusCode != 410 || r.code() != c.code {
			t.Errorf("%s: %d %s, want 410 %s", c.op, r.StatusCode, r.body, c.code)
		}
	}
}

func TestTicketsAndPassesExpire(t *testing.T) {
	w := newWorld(t, nil, shop())
	pass, place, other := w.join().Pass, w.join().Ticket, w.join().Ticket
	for range 12 {
		w.pass(30 * time.Second)
		other = w.place(200, "checkin", with("ticket", other)).Ticket
	}
	for _, c := range []struct{ op, kind, sealed, code string }{
		{"checkin", "ticket", place, "ticket_expired"}, {"leave", "ticket", place, "ticket_expired"}, {"refresh", "pass", pass, "pass_expired"},
	} {
		if r := w.api(c.op, with(c.kind, c.sealed)); r.StatusCode != 410 || r.code() != c.code {
			t.Errorf("%s: %d %s, want 410 %s", c.op, r.StatusCode, r.body, c.code)
		}
	}
	if p := w.place(200, "leave", with("ticket", other)); p.Pass == "" {
		t.Errorf("who kept checking in has %+v", p)
	}
}
