package admin_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/gateway/admin"
)

// counter is a port that asks for a token, and the browser of somebody at it.
type counter struct {
	t    *testing.T
	port *admin.Port
}

func guarded(t *testing.T, logger *slog.Logger) (counter, *desk) {
	d := aDesk()
	return counter{t, admin.New(admin.Config{Source: aNode(), Operator: d, Token: "opensesame-opensesame", Logger: logger, Bearer: func(token string) (string, bool, bool) {
		switch token {
		case "looks":
			return "lou", true, false
		case "works":
			return "worker", false, false
		}
		return "", false, false
	}})}, d
}

func (d counter) ask(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1:9090", "127.0.0.1:4711"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Set(name, value); name == "From" {
			r.RemoteAddr = value
		}
	}
	w := httptest.NewRecorder()
	d.port.ServeHTTP(w, r)
	return w
}

const aForm = "Content-Type: application/x-www-form-urlencoded"

// login returns the cookie of somebody who has shown a token.
func (d counter) login(token string) string {
	d.t.Helper()
	w := d.ask("POST", "/login", url.Values{"token": {token}}.Encode(), aForm, "Sec-Fetch-Site: same-origin")
	cookies := w.Result().Cookies()
	if w.Code != 303 || w.Header().Get("Location") != "/" || len(cookies) != 1 {
		d.t.Fatalf("login: %d %v %s", w.Code, w.Header(), w.Body)
	}
	k := cookies[0]
	if !k.HttpOnly || k.SameSite != http.SameSiteStrictMode || k.Secure || k.Domain != "" || strings.Contains(k.Value, token) {
		d.t.Errorf("the cookie is %v", k)
	}
	return "Cookie: " + k.Name + "=" + k.Value
}

func TestALoginIsKeptInACookie(t *testing.T) {
	d, edits := guarded(t, nil)
	const eyes = "Accept: text/html"
	if w := d.ask("GET", "/", "", eyes); w.Code != 401 || !strings.Contains(w.Body.String(), `action="/login"`) || strings.Contains(w.Body.String(), "shop") {
		t.Errorf("a browser without a login: %d %s", w.Code, w.Body)
	}
	if w := d.ask("POST", "/login", "token=nobody%27s", aForm); w.Code != 401 || !strings.Contains(w.Body.String(), "Nobody has this token.") || len(w.Result().Cookies()) > 0 {
		t.Errorf("a wrong token: %d %s", w.Code, w.Body)
	}
	if w := d.ask("POST", "/login", "token=works", aForm); w.Code != 401 || !strings.Contains(w.Body.String(), "The token worker may not look at this") {
		t.Errorf("a token of a program: %d %s", w.Code, w.Body)
	}
	lou, admins := d.login("looks"), d.login("opensesame-opensesame")
	if w := d.ask("GET", "/", "", eyes, lou); w.Code != 200 || !strings.Contains(w.Body.String(), "Log out lou") || strings.Contains(w.Body.String(), `"operate":  true`) {
		t.Errorf("who may look: %d %s", w.Code, w.Body)
	}
	if w := d.ask("GET", "/", "", eyes, admins); w.Code != 200 || !strings.Contains(w.Body.String(), `"operate":  true`) {
		t.Errorf("who may operate: %d %s", w.Code, w.Body)
	}
	for _, x := range []struct {
		method, path, cookie, site string
		want                       int
	}{
		{"GET", "/v1/rooms", lou, "same-origin", 200},
		{"POST", "/v1/rooms/shop/hold", lou, "same-origin", 403},
		{"PATCH", "/v1/rooms/shop", lou, "same-origin", 403},
		{"DELETE", "/v1/rooms/shop", lou, "same-origin", 403},
		{"POST", "/v1/nodes/node-3/reclaim", lou, "same-origin", 403},
		{"POST", "/v1/rooms/shop/hold", admins, "cross-site", 403},
		{"POST", "/v1/rooms/shop/hold", admins, "same-site", 403},
		{"POST", "/v1/rooms/shop/hold", admins + "x", "same-origin", 401},
		{"POST", "/login", admins, "cross-site", 403},
		{"POST", "/logout", admins, "cross-site", 403},
		{"GET", "/logout", admins, "same-origin", 405},
	} {
		if w := d.ask(x.method, x.path, "{}", x.cookie, "Sec-Fetch-Site: "+x.site, "Content-Type: application/json"); w.Code != x.want {
			t.Errorf("%s %s by a %s page: %d %s, want %d", x.method, x.path, x.site, w.Code, w.Body, x.want)
		}
	}
	if len(edits.edits) > 0 {
		t.Errorf("it was changed: %v", edits.edits)
	}
	if w := d.ask("POST", "/v1/rooms/shop/hold", "", admins, "Sec-Fetch-Site: same-origin"); w.Code != 200 || edits.edits[0].Who != "admin_token" {
		t.Errorf("by the page itself: %d %s", w.Code, w.Body)
	}
	if w := d.ask("POST", "/logout", "", admins, "Sec-Fetch-Site: same-origin"); w.Code != 303 || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("logout: %d %v", w.Code, w.Header())
	}
	if w := d.ask("GET", "/v1/rooms", "", admins); w.Code != 401 {
		t.Errorf("after the logout: %d", w.Code)
	}
}

func TestALoginEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := guarded(t, nil)
		first := d.login("looks")
		if w := d.ask("GET", "/v1/rooms", "", first); w.Code != 200 {
			t.Errorf("at first: %d", w.Code)
		}
		time.Sleep(12*time.Hour + time.Second)
		if w := d.ask("GET", "/v1/rooms", "", first); w.Code != 401 {
			t.Errorf("after twelve hours: %d", w.Code)
		}
		second := d.login("looks")
		for range 256 {
			d.login("looks")
		}
		if w := d.ask("GET", "/v1/rooms", "", second); w.Code != 401 {
			t.Errorf("after as many others as there may be: %d", w.Code)
		}
	})
}

// A thousand wrong tokens in a second: ten are looked at, and one line is logged.
func TestWrongTokensAreSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d, _ := guarded(t, slog.New(slog.NewTextHandler(&log, nil)))
		lou := d.login("looks")
		codes := map[int]int{}
		for i := range 1000 {
			if i%2 == 0 {
				codes[d.ask("GET", "/v1/rooms", "", fmt.Sprintf("Authorization: Bearer wrong-%d", i)).Code]++
			} else {
				codes[d.ask("POST", "/login", fmt.Sprintf("token=wrong-%d", i), aForm).Code]++
			}
			time.Sleep(900 * time.Microsecond)
		}
		if codes[401] != 10 || codes[401]+codes[429] != 1000 {
			t.Errorf("the answers are %v", codes)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || strings.Contains(log.String(), "wrong-") {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
		right := "Authorization: Bearer opensesame-opensesame"
		if w := d.ask("GET", "/v1/rooms", "", right); w.Code != 429 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("the right one among them: %d", w.Code)
		}
		if w := d.ask("GET", "/v1/rooms", "", right, "From: 192.0.2.7:4711"); w.Code != 200 {
			t.Errorf("the right one from elsewhere: %d %s", w.Code, w.Body)
		}
		if w := d.ask("GET", "/v1/rooms", "", lou); w.Code != 200 {
			t.Errorf("who has logged in: %d", w.Code)
		}
		time.Sleep(2 * time.Second)
		if w := d.ask("GET", "/v1/rooms", "", right); w.Code != 200 {
			t.Errorf("the right one two seconds later: %d", w.Code)
		}
	})
}
