package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/gateway"
)

// TestWhatCameOfTheRequestsToAnOrigin counts what a governor goes by. A visitor's own
// upload is no slowness of the origin.
func TestWhatCameOfTheRequestsToAnOrigin(t *testing.T) {
	w := newWorld(t, withOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Load", r.URL.Query().Get("load"))
		switch r.URL.Path {
		case "/bad":
			w.WriteHeader(http.StatusInternalServerError)
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
		case "/broken":
			panic(http.ErrAbortHandler)
		}
	}, func(c *gateway.Config) { c.Rooms[0].Watch = &gateway.Watch{Slow: time.Nanosecond, Header: "X-Load"} }), shop())
	b := w.browser()
	for _, path := range []string{"/", "/?load=0.5", "/?load=1.25", "/?load=much", "/?load=-1", "/?load=1e9", "/bad", "/gone", "/broken"} {
		if r := b.open(path); r.Header.Get("X-Load") != "" {
			t.Errorf("%s: the visitor is told the load", path)
		}
	}
	want := gateway.Flow{Asked: 9, Answered: 9, Failed: 2, Slow: 9, Loads: 2, Load: 1_750_000}
	if diff := cmp.Diff(want, w.Flow("shop")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := b.send("POST", "/", strings.Repeat("x", 1000)); r.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	want.Asked, want.Answered = 10, 10
	if diff := cmp.Diff(want, w.Flow("shop")); diff != "" {
		t.Errorf("with an upload (-want +got):\n%s", diff)
	}
	if got := w.Flow("elsewhere"); got != (gateway.Flow{}) {
		t.Errorf("of no room: %+v", got)
	}
}
