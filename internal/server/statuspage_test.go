package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/health"
)

// shown is the status page, as who asks for it gets it.
func (p *statusPage) shown() (page, cache, policy string) {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", "http://shop.example.com/_anteroom/status", nil))
	return w.Body.String(), w.Header().Get("Cache-Control"), w.Header().Get("Content-Security-Policy")
}

// nothing is what visitors get who are not there.
func nothing(string) (a gateway.Answers, ok bool) { return a, false }

func TestTheStatusPageTellsWhatTheClusterThinks(t *testing.T) {
	room := checked()
	room.Title = "Shop & <b>friends</b>"
	alone(t, func(o *operated) {
		p := newStatusPage(o.s, nothing)
		wants := func(what string, has ...string) {
			t.Helper()
			page, cache, policy := p.shown()
			for _, h := range append(has, "Shop &amp; &lt;b&gt;friends&lt;/b&gt;") {
				if !strings.Contains(page, h) {
					t.Errorf("%s: it does not say %q:\n%s", what, h, page)
				}
			}
			_, rest, _ := strings.Cut(page, "<style>")
			style, _, _ := strings.Cut(rest, "</style>")
			sum := sha256.Sum256([]byte(style)) // as it is sent: browsers drop a style of another sum
			if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; style == "" || !strings.Contains(policy, want) {
				t.Errorf("%s: %s, want %s in it", what, policy, want)
			}
			if strings.Contains(page, "127.0.0.1") || strings.Contains(page, "<script") || cache != "public, max-age=2" || !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") {
				t.Errorf("%s: %s, %s", what, cache, policy)
			}
		}
		wants("before anybody has looked", "Not known yet", "Nothing is known to be wrong")
		o.say("a", health.Healthy, health.NoFailures)
		wants("healthy", "✓ Well")
		o.say("a", health.Unhealthy, "TCP connection failed")
		wants("unhealthy", "Not all is well", "✗ In trouble", "TCP connection failed", "Nobody is let in until it is well again")
		o.say("a", health.Healthy, health.NoFailures)
		wants("healthy again", "✓ Well", "<h3>History</h3>", "TCP connection failed, for 4 s")
		for range 2 * health.PastMax {
			o.say("a", health.Unhealthy, "TCP connection failed")
			o.say("a", health.Healthy, health.NoFailures)
		}
		running, _ := o.s.loop.Snapshot().Room("shop")
		if n := len(healthOf(running.Room).Checks[0].Past); n != health.PastMax {
			t.Errorf("%d turns are remembered, want %d", n, health.PastMax)
		}
		if page, _, _ := p.shown(); len(page) > 16<<10 {
			t.Errorf("the page has %d bytes", len(page))
		}
	}, room)
}

// What visitors get is told in words that hide how many they are, and only of enough of them.
func TestTheStatusPageTellsWhatVisitorsGet(t *testing.T) {
	alone(t, func(o *operated) {
		for _, c := range []struct {
			a    gateway.Answers
			says string // empty: nothing of it
			well bool
		}{
			{gateway.Answers{}, "", true},
			{gateway.Answers{Count: 99, Failed: 99, P95: time.Second}, "", true},
			{gateway.Answers{Count: 12345, Failed: 7, P95: 40 * time.Millisecond}, "In the last minutes fewer than 1 in 100 requests failed, and 95 in 100 had an answer within 0.1 s.", true},
			{gateway.Answers{Count: 12345, Failed: 370, P95: 430 * time.Millisecond}, "about 3 in 100 requests failed, and 95 in 100 had an answer within 0.5 s.", true},
			{gateway.Answers{Count: 12345, Failed: 4567, P95: 12 * time.Second}, "about 4 in 10 requests failed, and 95 in 100 had an answer within 20 s.", false},
			{gateway.Answers{Count: 100, Failed: 100, P95: time.Minute}, "nearly all requests failed, and 95 in 100 had an answer after more than 50 s.", false},
		} {
			p := newStatusPage(o.s, func(room string) (gateway.Answers, bool) { return c.a, room == "shop" && c.a.Count > 0 })
			page, _, _ := p.shown()
			if !strings.Contains(page, c.says) || c.says == "" && strings.Contains(page, "In the last minutes") || strings.Contains(page, "Some requests fail") == c.well {
				t.Errorf("%+v: want %q, well %t:\n%s", c.a, c.says, c.well, page)
			}
			for _, secret := range []string{"12345", "4567", "370"} {
				if strings.Contains(page, secret) {
					t.Errorf("%+v: the public may read %s", c.a, secret)
				}
			}
		}
	}, checked())
}

// TestACrowdAtTheStatusPageMakesItOnce for the time that it is good.
func TestACrowdAtTheStatusPageMakesItOnce(t *testing.T) {
	alone(t, func(o *operated) {
		p := newStatusPage(o.s, nothing)
		first := p.fresh(time.Now())
		time.Sleep(statusFor - 1)
		if again := p.fresh(time.Now()); &again[0] != &first[0] {
			t.Error("it is made anew although it is good")
		}
		time.Sleep(time.Nanosecond)
		if later := p.fresh(time.Now()); bytes.Equal(later, first) {
			t.Error("it is what it was when its time was over")
		}
	}, checked())
}
