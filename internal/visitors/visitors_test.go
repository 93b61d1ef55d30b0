package visitors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/visitors"
)

// room is a waiting room of one person at a time that anybody may ask.
type room struct {
	mu     sync.Mutex
	n      int
	line   []string // tickets
	inside map[string]bool
	most   int
	sick   int // so many requests are answered 503
	// sickEnds are those of them that end sessions.
	sickEnds int
}

func (r *room) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var body struct{ Ticket, Pass string }
	_ = json.NewDecoder(q.Body).Decode(&body)
	ending := strings.HasSuffix(q.URL.Path, "/end")
	if r.sick > 0 || ending && r.sickEnds > 0 {
		r.sick--
		if ending {
			r.sickEnds--
		}
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"code":"unavailable"}`)
		return
	}
	first := len(r.line) > 0 && r.line[0] == body.Ticket && len(r.inside) == 0
	switch path := q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]; {
	case path == "join":
		r.n++
		t := fmt.Sprintf("t%d", r.n)
		r.line = append(r.line, t)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"state":"waiting","ticket":%q,"refresh_interval_seconds":0.01}`, t)
	case path == "checkin" && first:
		fmt.Fprintf(w, `{"state":"called","ticket":%q}`, body.Ticket)
	case path == "checkin":
		fmt.Fprintf(w, `{"state":"waiting","ticket":%q,"refresh_interval_seconds":0.01}`, body.Ticket)
	case path == "leave" && first:
		r.line = r.line[1:]
		r.inside["p"+body.Ticket] = true
		r.most = max(r.most, len(r.inside))
		fmt.Fprintf(w, `{"state":"admitted","pass":"p%s"}`, body.Ticket)
	case path == "end":
		delete(r.inside, body.Pass)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"code":"not_called_yet"}`)
	}
}

func TestEveryoneComesInInTheirTurn(t *testing.T) {
	r := &room{inside: map[string]bool{}, sick: 3, sickEnds: 2}
	live := httptest.NewServer(r)
	defer live.Close()
	dead := httptest.NewServer(r)
	dead.Close()
	c := visitors.New(visitors.Config{Gateways: []string{dead.URL, live.URL}, Room: "shop", Users: 8, Stay: time.Millisecond})
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := c.Counts(); n.Done != 8 || n.Lost != 0 || n.Waiting != 0 || n.OnSite != 0 || n.Retries < 4 {
		t.Errorf("%+v; want eight who were in, and retries for the dead gateway and the sick one", n)
	}
	if r.most != 1 || len(r.inside) != 0 {
		t.Errorf("%d inside at once and %d at the end, want 1 and 0", r.most, len(r.inside))
	}
}

func TestWhoIsTurnedAwayGoesHome(t *testing.T) {
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":"room_unknown"}`)
	}))
	defer closed.Close()
	c := visitors.New(visitors.Config{Gateways: []string{closed.URL}, Room: "shop", Users: 2})
	err := c.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "room_unknown") || c.Counts().Lost != 2 {
		t.Errorf("%v, %+v; want two who were told room_unknown", err, c.Counts())
	}
}

func TestCrowdGoesHomeWhenToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &room{inside: map[string]bool{"somebody": true}}
	full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if r.ServeHTTP(w, q); strings.HasSuffix(q.URL.Path, "checkin") {
			cancel()
		}
	}))
	defer full.Close()
	c := visitors.New(visitors.Config{Gateways: []string{full.URL}, Room: "shop", Users: 3, Stay: time.Second})
	if err := c.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A node that dies may take the answer to an exit with it. Whoever asks again
// has no pass any more, and has left all the same; who is sent away without
// having left is lost.
func TestExitWhoseAnswerIsLostIsAnExit(t *testing.T) {
	for _, test := range []struct {
		name       string
		dies       bool
		done, lost int64
	}{
		{"the answer is lost", true, 1, 0},
		{"the pass has run out", false, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			exits := 0
			gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				switch {
				case q.Method == http.MethodGet:
				case q.URL.Path != "/checkout":
					fmt.Fprint(w, `{"state":"admitted","pass":"p"}`)
				case exits == 0 && test.dies:
					exits++
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(http.StatusTooManyRequests)
				}
			}))
			defer gateway.Close()
			c := visitors.New(visitors.Config{
				Gateways: []string{gateway.URL}, Room: "shop", Users: 1, Site: visitors.Site{Look: "/", Exit: "/checkout"},
			})
			err := c.Run(t.Context())
			if n := c.Counts(); n.Done != test.done || n.Lost != test.lost {
				t.Errorf("%+v, %v; want %d done and %d lost", n, err, test.done, test.lost)
			}
		})
	}
}
