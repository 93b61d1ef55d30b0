package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A path that plain answers has the same answer by way of the mux.
func TestPlainPathsAreAnsweredAsTheMuxAnswersThem(t *testing.T) {
	g, err := New(Config{Rooms: []Room{{Name: "shop"}}})
	if err != nil {
		t.Fatal(err)
	}
	var asked string
	for op := range g.ops {
		g.ops[op] = roomOp{func(_ http.ResponseWriter, _ *http.Request, name string) { asked = op + " of " + name }, g.ops[op].route}
	}
	mux := http.NewServeMux()
	for op, h := range g.ops {
		if h.route != "/_anteroom/v1/rooms/{room}/"+op {
			t.Errorf("%s goes by %s", op, h.route)
		}
		mux.HandleFunc(h.route, named(h.answer))
	}
	piece := rapid.SampledFrom([]string{"/", "/v1/rooms/", "shop", "checkin", "join", "auth", ".", "..", "a b", "%2F", "%73hop", "é", "?to=/x", ";x", "//", ""})
	path := rapid.OneOf(
		rapid.Map(rapid.SliceOfN(piece, 0, 6), func(s []string) string { return strings.Join(s, "") }),
		rapid.Map(rapid.SliceOfN(piece, 2, 2), func(s []string) string { return "/v1/rooms/" + s[0] + "/" + s[1] }),
	)
	if h, name := g.plain(&url.URL{Path: "/_anteroom/v1/rooms/shop/checkin"}, "/v1/rooms/shop/checkin"); h.answer == nil || name != "shop" {
		t.Errorf("an ordinary path leads to %q", name)
	}
	rapid.Check(t, func(t *rapid.T) {
		u, err := url.Parse("http://shop.example/_anteroom" + path.Draw(t, "path"))
		if err != nil {
			return
		}
		h, name := g.plain(u, strings.TrimPrefix(u.Path, "/_anteroom"))
		if h.answer == nil {
			return
		}
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.URL = u
		asked = ""
		h.answer(nil, r, name)
		want := asked
		asked = ""
		mux.ServeHTTP(httptest.NewRecorder(), g.asWritten(r))
		if asked != want {
			t.Fatalf("%s: %q, by the mux %q", u, want, asked)
		}
	})
}

func TestPatienceEndsAsADeadlineDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		request, leave := context.WithCancel(t.Context())
		p := &patience{Context: request, longest: time.Second}
		if d, ok := p.Deadline(); !ok || !d.Equal(time.Now().Add(time.Second)) {
			t.Errorf("deadline %v, %v", d, ok)
		}
		inner, cancel := context.WithTimeout(p, time.Hour)
		defer cancel()
		began := time.Now()
		<-inner.Done()
		if after := time.Since(began); after != time.Second || !errors.Is(inner.Err(), context.DeadlineExceeded) || !errors.Is(p.Err(), context.DeadlineExceeded) {
			t.Errorf("over after %v: %v, %v", after, inner.Err(), p.Err())
		}
		p.end()

		p = &patience{Context: request, longest: time.Second}
		leave()
		<-p.Done()
		if !errors.Is(p.Err(), context.Canceled) {
			t.Errorf("the visitor has left: %v", p.Err())
		}
		p.end()

		p = &patience{Context: t.Context(), longest: time.Second}
		done := p.Done()
		p.end()
		<-done // nothing is left behind
	})
}
