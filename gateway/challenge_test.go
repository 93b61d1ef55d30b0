package gateway_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/challenge"
	"github.com/anteroom/anteroom/internal/ticket"
)

const challengeKey = "0123456789abcdef0123456789abcdef"

// tokenOf makes a token as an operator's page does.
func tokenOf(key, room string, exp time.Time, id int) string {
	text := fmt.Sprintf(`{"room":%q,"exp":%d,"id":"0123456789-%08d"}`, room, exp.Unix(), id)
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// challenging is a world whose room asks for a token, with an origin that says
// what it was asked for.
func challenging(t *testing.T, more ...func(*gateway.Config)) *world {
	t.Helper()
	var w *world
	origin := func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.RequestURI) }
	w = newWorld(t, withOrigin(t, origin, append(more, func(c *gateway.Config) {
		c.Challenges = challenge.New(challengeKey, func() int64 { return w.Clock() })
		c.Challenges.SetRooms(map[string]string{"shop": "https://captcha.example.com/?lang=nl"})
	})...), shop())
	return w
}

// token is the nth good one.
func (w *world) token(n int) string {
	return tokenOf(challengeKey, "shop", time.UnixMicro(w.Clock()).Add(5*time.Minute), n)
}

func TestNobodyIsChallengedByDefault(t *testing.T) {
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.RequestURI) }), shop())
	if r := w.browser().open("/?anteroom_challenge=theirs"); r.StatusCode != 200 || r.body != "/?anteroom_challenge=theirs" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	w.join()
}

func TestAJoinTakesAToken(t *testing.T) {
	w := challenging(t)
	soon := time.UnixMicro(w.Clock()).Add(5 * time.Minute)
	for name, bad := range map[string]string{
		"none": "", "of another room": tokenOf(challengeKey, "news", soon, 1), "expired": tokenOf(challengeKey, "shop", soon.Add(-6*time.Minute), 1),
		"for too long": tokenOf(challengeKey, "shop", soon.Add(6*time.Minute), 1), "of another key": tokenOf(strings.Repeat("x", 32), "shop", soon, 1),
	} {
		r := w.api("join", with("challenge", bad))
		var p gateway.Problem
		if r.json(t, &p); r.StatusCode != 403 || p.Code != "challenge_required" || p.ChallengeURL != "https://captcha.example.com/?lang=nl" {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	if w.count(ticket.Join) != 0 {
		t.Fatal("somebody joined")
	}
	w.place(201, "join", with("challenge", w.token(1))) // there is room: a walk-in pays as well
	w.place(201, "join", "", "Anteroom-Challenge: "+w.token(2))
	for _, n := range []int{1, 2} {
		if r := w.api("join", with("challenge", w.token(n))); r.StatusCode != 403 || r.code() != "challenge_required" {
			t.Errorf("again: %d %s", r.StatusCode, r.body)
		}
	}
}

// A browser is sent to the captcha and comes back with a token, without a script.
func TestABrowserIsSentToTheChallenge(t *testing.T) {
	w := challenging(t)
	b := w.browser()
	r := b.open("/shoes?size=44")
	to, err := url.Parse(r.Header.Get("Location"))
	if err != nil || r.StatusCode != 303 || to.Host != "captcha.example.com" || to.Query().Get("room") != "shop" ||
		to.Query().Get("return") != "/shoes?size=44" || to.Query().Get("lang") != "nl" {
		t.Fatalf("%d %v", r.StatusCode, r.Header)
	}
	for range 2 { // with the pass, the token in the address is only taken out
		if r = b.open("/shoes?size=44&anteroom_challenge=" + w.token(1) + "&x=%2f"); r.StatusCode != 200 || r.body != "/shoes?size=44&x=%2f" {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
	}
	if r = w.browser().open("/shoes?anteroom_challenge=" + w.token(1)); r.StatusCode != 303 || !strings.HasSuffix(r.Header.Get("Location"), "return=%2Fshoes&room=shop") {
		t.Errorf("a used one: %d %v", r.StatusCode, r.Header)
	}
	if r = w.send("GET", "/shoes", ""); r.StatusCode != 403 || r.code() != "challenge_required" {
		t.Errorf("a program: %d %s", r.StatusCode, r.body)
	}
	if w.count(ticket.Join) != 1 {
		t.Errorf("%d joins", w.count(ticket.Join))
	}
}

// Who has a place is never asked, and the order of the line is that of the joins,
// not that of the tokens.
func TestAPlaceIsNeverChallenged(t *testing.T) {
	w := challenging(t)
	n := 0
	var line []gateway.Place
	for len(line) < 3 {
		n++
		if p := w.place(201, "join", with("challenge", w.token(1000-n))); p.State == "waiting" {
			line = append(line, p)
		}
	}
	before := line[0].JoinedAt
	for i, p := range line {
		q := w.place(200, "checkin", with("ticket", p.Ticket))
		if i > 0 && !q.JoinedAt.After(before) {
			t.Errorf("place %d is stamped %v, the one before %v", i, q.JoinedAt, before)
		}
		before = q.JoinedAt
	}
	b := w.browser()
	if r := b.open("/?anteroom_challenge=" + w.token(2000)); r.StatusCode != 200 || strings.Contains(r.body, "anteroom_challenge") {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if v := b.view("/"); v.Kind != gateway.PageWaiting {
		t.Errorf("who waits sees %s", v.Kind)
	}
	if r := w.api("abandon", with("ticket", line[2].Ticket)); r.StatusCode != 204 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// Another proxy's questions: the token is in the address that the visitor wanted.
func TestForwardAuthTakesAToken(t *testing.T) {
	w := challenging(t, func(c *gateway.Config) { c.TrustedProxies = loopback })
	ask := func(proxy, uri string) reply {
		return w.send("GET", "/_anteroom/v1/rooms/shop/auth?proxy="+proxy, "", append([]string{"X-Forwarded-Uri: " + uri, "X-Forwarded-Method: GET"}, navigation...)...)
	}
	if r := ask("traefik", "/a"); r.StatusCode != 303 || !strings.HasSuffix(r.Header.Get("Location"), "return=%2Fa&room=shop") {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if r := ask("traefik", "/a?anteroom_challenge="+w.token(1)); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	r := ask("haproxy", "/a?anteroom_challenge="+w.token(1))
	at, err := url.Parse(r.Header.Get("Location"))
	if err != nil || r.StatusCode != 302 || at.Query().Get("to") != "/a" || at.Query().Get("anteroom_challenge") != w.token(1) {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if v := w.browser().view("/_anteroom/v1/rooms/shop/page?to=%2Fa&anteroom_challenge=" + w.token(2)); v.Kind != gateway.PageWaiting {
		t.Errorf("%+v", v)
	}
}
