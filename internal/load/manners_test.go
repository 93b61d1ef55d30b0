package load_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/load"
)

func TestVisitorsGoWithoutEndingTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(100)
		got := send(t, t.Context(), r, func(c *load.Config) {
			c.Arrivals.Users, c.Arrivals.Concurrency, c.Manners.Stay, c.Manners.NoEnd = 20, 1, 10*time.Second, true
		})
		if n := got.Requests["end"].Count; n != 0 || r.asked["end"] != 0 || got.Visitors != (load.Visitors{Came: 20, Done: 20}) {
			t.Errorf("%d requests to end, the room had %d; %+v", n, r.asked["end"], got.Visitors)
		}
		// One comes when another has gone, after 10 s or so, but passes are good for a minute.
		if got.HeldMost < 4 || got.HeldMost > 12 || got.Seconds < 100 {
			t.Errorf("%d passes at a time, in %v s; want those of a minute", got.HeldMost, got.Seconds)
		}
	})
}

func TestJoinsMayAskForAnAnswerAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, async := range []bool{true, false} {
			r, asked := newRoom(1), map[string]int{}
			r.answer = func(_ http.ResponseWriter, q *http.Request) bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				if q.Header.Get("Prefer") == "respond-async" {
					asked[q.URL.Path]++
				}
				return false
			}
			send(t, t.Context(), r, func(c *load.Config) { c.Arrivals.Users, c.Manners.JoinAsync = 5, async })
			want := map[string]int{}
			if async {
				want["/_anteroom/v1/rooms/shop/join"] = 5
			}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("async %v (-want +got):\n%s", async, diff)
			}
		}
	})
}
