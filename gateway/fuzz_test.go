package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/ticket"
)

// FuzzCredentials sends anything as body, cookie and bearer token: nothing
// but what was sealed here is taken, nothing panics, and no error of ours comes out.
func FuzzCredentials(f *testing.F) {
	w := newWorld(f, nil, shop())
	pass, place := w.join().Pass, w.join().Ticket
	f.Add("checkin", with("ticket", place), "", "")
	f.Add("leave", "", "anteroom_shop="+place, "")
	f.Add("refresh", "", "", "Bearer "+pass)
	f.Add("end", `{"pass":4}`, "anteroom_shop="+place, "Basic x")
	f.Add("auth", "", "anteroom_shop="+pass+"; anteroom_shop=", "bearer ")
	f.Add("join", "{", ";", "")
	f.Fuzz(func(t *testing.T, op, body, cookie, authorization string) {
		r := httptest.NewRequest("POST", "/_anteroom/v1/rooms/shop/x", strings.NewReader(body))
		r.URL.Path = "/_anteroom/v1/rooms/shop/" + op
		r.Header.Set("Cookie", cookie)
		r.Header.Set("Authorization", authorization)
		before := w.count(ticket.CheckIn) + w.count(ticket.Leave) + w.count(ticket.Refresh) + w.count(ticket.End)
		res := httptest.NewRecorder()
		w.ServeHTTP(res, r)
		if res.Code >= http.StatusInternalServerError && res.Code != http.StatusServiceUnavailable {
			t.Fatalf("%d %s", res.Code, res.Body)
		}
		after := w.count(ticket.CheckIn) + w.count(ticket.Leave) + w.count(ticket.Refresh) + w.count(ticket.End)
		if all := body + cookie + authorization; after > before && !strings.Contains(all, pass[:20]) && !strings.Contains(all, place[:20]) {
			t.Fatalf("%s with %q, %q, %q reached the queue", op, body, cookie, authorization)
		}
	})
}

// BenchmarkOnTheSite is what the gateway adds to a request of somebody who has
// a pass; the origin is another gateway's answer to forward-auth, so there is none.
func BenchmarkOnTheSite(b *testing.B) {
	w := newWorld(b, nil, shop())
	r := httptest.NewRequest("GET", "/_anteroom/v1/rooms/shop/auth?proxy=nginx", nil)
	r.Header.Set("Cookie", "anteroom_shop="+w.join().Pass)
	b.ReportAllocs()
	for b.Loop() {
		res := httptest.NewRecorder()
		if w.ServeHTTP(res, r); res.Code != http.StatusOK {
			b.Fatal(res.Code)
		}
	}
}

// BenchmarkCheckIn is the most frequent request of somebody who waits.
func BenchmarkCheckIn(b *testing.B) {
	w := newWorld(b, nil, shop())
	w.join()
	place := with("ticket", w.join().Ticket)
	b.ReportAllocs()
	for b.Loop() {
		res := httptest.NewRecorder()
		w.ServeHTTP(res, httptest.NewRequest("POST", "/_anteroom/v1/rooms/shop/checkin", strings.NewReader(place)))
		if res.Code != http.StatusOK {
			b.Fatal(res.Code, res.Body)
		}
	}
}
