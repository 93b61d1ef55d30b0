package e2e

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/page"
	"github.com/anteroom/anteroom/internal/shop"
	"github.com/anteroom/anteroom/internal/ticket"
)

const api = "/_anteroom/v1/rooms/shop/"

// line is a waiting room in one slice, with the real page and the real shop. It
// does to the page what a healthy cluster does not do on demand.
type line struct {
	*httptest.Server
	shop  *shop.Shop
	pages *page.Pages

	mu      sync.Mutex
	limit   int
	waiting []string // ids, the first in front
	joined  map[string]time.Time
	inside  map[string]bool
	paused  ticket.Pause
	why     string         // what limits the flow; empty: the room is full
	starts  time.Time      // the doors open; zero: they are open
	draws   bool           // at the start
	dark    bool           // answers nobody
	streams bool           // has event streams
	news    chan struct{}  // closed when something changes
	asked   map[string]int // requests by kind
	open    int            // event streams
	refresh int            // seconds
	confirm bool           // nobody goes in unseen
	claim   time.Duration  // a call stands so long

	messages []gateway.Message // the newest first
	stale    int               // the next events of streams are a call of a minute ago
}

func newLine(t *testing.T, limit int) *line {
	t.Helper()
	needBrowser(t)
	pages, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	l := &line{
		shop: shop.New(shop.Config{}), pages: pages, limit: limit, streams: true, refresh: 2, news: make(chan struct{}),
		joined: make(map[string]time.Time), inside: make(map[string]bool), asked: make(map[string]int),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", l.visit)
	mux.HandleFunc("POST "+api+"checkin", l.checkIn)
	mux.HandleFunc("POST "+api+"leave", l.leave)
	mux.HandleFunc("POST "+api+"abandon", l.abandon)
	mux.HandleFunc("GET "+api+"stream", l.stream)
	mux.HandleFunc("GET /_anteroom/wait", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.FormValue("to"), http.StatusSeeOther)
	})
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		dark := l.dark
		l.mu.Unlock()
		if dark {
			panic(http.ErrAbortHandler) // a connection that breaks
		}
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		l.change(func() { l.dark = true })
		l.CloseClientConnections()
		l.Close()
	})
	return l
}

// change does something to the line and tells all streams.
func (l *line) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.news)
	l.news = make(chan struct{})
}

func (l *line) count(kind string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[kind]
}

// crowd puts n people in front of everyone who comes later.
func (l *line) crowd(n int) {
	l.change(func() {
		for range n {
			id := rand.Text()
			l.joined[id] = time.Now()
			l.waiting = append(l.waiting, id)
		}
	})
}

func (l *line) streaming() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

func (l *line) everyone() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.waiting)
}

// crowdInFront puts n people before everyone, as never happens to a place that
// one node has.
func (l *line) crowdInFront(n int) {
	l.change(func() {
		for range n {
			l.waiting = slices.Insert(l.waiting, 0, rand.Text())
		}
	})
}

// letIn lets the n in front go in, and out again.
func (l *line) letIn(n int) { l.change(func() { l.waiting = slices.Delete(l.waiting, 0, n) }) }

// answer is where somebody stands; the caller holds the lock.
func (l *line) answer(id string) (map[string]any, bool) {
	at := slices.Index(l.waiting, id)
	a := map[string]any{
		"state": "waiting", "position": at + 1, "people_ahead": at, "queued": len(l.waiting), "estimated_wait_seconds": nil,
		"refresh_interval_seconds": l.refresh, "joined_at": l.joined[id], "last_updated": time.Now(), "queueing_method": "fifo", "room": "shop", "why": cmp.Or(l.why, gateway.WhyFull),
	}
	if at >= 0 {
		a["estimated_wait_seconds"] = map[string]int{"p25": at * 20, "p50": at * 30, "p75": at * 45}
	}
	if l.paused != "" {
		a["paused_code"] = l.paused
	}
	if len(l.messages) > 0 {
		a["messages"] = l.messages
	}
	early := l.starts.After(time.Now())
	if early {
		a["starts_at"], a["estimated_wait_seconds"] = l.starts, nil
	}
	if l.draws {
		a["draw"] = map[string]any{"event": "sale"}
		if early {
			a["position"], a["people_ahead"] = nil, nil
			return a, at >= 0
		}
	}
	if l.inside[id] || at >= 0 && l.paused == "" && at < l.limit-len(l.inside) {
		a["state"] = "called"
		return a, true
	}
	return a, at >= 0
}

func ticketOf(r *http.Request) string {
	c, err := r.Cookie("place")
	if err != nil {
		return ""
	}
	return c.Value
}

func (l *line) visit(w http.ResponseWriter, r *http.Request) {
	id := ticketOf(r)
	l.mu.Lock()
	l.asked["page"]++
	a, known := l.answer(id)
	if !known {
		id = rand.Text()
		l.joined[id] = time.Now()
		l.waiting = append(l.waiting, id)
		a, _ = l.answer(id)
		http.SetCookie(w, &http.Cookie{Name: "place", Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	}
	admitted := a["state"] == "called"
	l.mu.Unlock()
	if i := slices.Index(l.everyone(), id); admitted && i >= 0 {
		l.change(func() {
			l.inside[id] = true
			l.waiting = slices.Delete(l.waiting, i, i+1)
		})
	}
	if !admitted {
		l.writePage(w, r, l.viewOf(a, r))
		return
	}
	claims := fmt.Sprintf(`{"sub":%q,"exp":%d}`, id, time.Now().Add(time.Minute).Unix())
	r.Header.Set("X-Anteroom-Pass", "e30."+base64.RawURLEncoding.EncodeToString([]byte(claims))+".c2ln")
	l.shop.ServeHTTP(w, r)
	if w.Header().Get("Anteroom-Command") == "revoke" {
		l.change(func() { delete(l.inside, id) })
	}
}

func (l *line) viewOf(a map[string]any, r *http.Request) gateway.View {
	v := gateway.View{
		Kind: gateway.PageWaiting, Room: "shop", Method: "fifo", RefreshSeconds: l.refresh, LastUpdated: a["last_updated"].(time.Time),
		Queued: a["queued"].(int), JoinedAt: a["joined_at"].(time.Time),
		Claim: l.claim, Confirm: l.confirm, Why: a["why"].(string),
		CheckInURL: api + "checkin", LeaveURL: api + "leave", AbandonURL: api + "abandon", StreamURL: api + "stream",
		HereURL: r.URL.RequestURI(), RefreshURL: "/_anteroom/wait?to=" + r.URL.RequestURI(),
	}
	if p, ok := a["position"].(int); ok {
		v.Position, v.PeopleAhead = p, p-1
	}
	if p, ok := a["paused_code"].(ticket.Pause); ok {
		v.Paused = p
	}
	if at, ok := a["starts_at"].(time.Time); ok {
		v.StartsAt = at
	}
	if a["draw"] != nil {
		v.Draw = &gateway.Draw{Event: "sale", Commitment: "9f86d081884c7d65", Ticket: "00112233"}
	}
	if m, ok := a["messages"].([]gateway.Message); ok {
		v.Messages = m
	}
	if e, ok := a["estimated_wait_seconds"].(map[string]int); ok {
		v.Wait = gateway.Estimate{Known: true, P25: e["p25"], P50: e["p50"], P75: e["p75"]}
	}
	return v
}

// writePage sends the page under the policy that the gateway sends.
func (l *line) writePage(w http.ResponseWriter, r *http.Request, v gateway.View) {
	v.Nonce, v.AcceptLanguage = rand.Text(), cmp.Or(v.AcceptLanguage, r.Header.Get("Accept-Language"))
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", fmt.Sprintf(
		"default-src 'none'; script-src 'nonce-%[1]s'; style-src 'nonce-%[1]s'; img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'", v.Nonce))
	if v.RefreshSeconds > 0 {
		h.Set("Refresh", fmt.Sprintf("%d; url=%s", v.RefreshSeconds, v.RefreshURL))
	}
	if err := l.pages.Page(w, v); err != nil {
		panic(err)
	}
}

func (l *line) checkIn(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.asked["checkin"]++
	a, known := l.answer(ticketOf(r))
	l.mu.Unlock()
	if !known {
		w.WriteHeader(http.StatusGone)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a)
}

// leave lets in who is called, as a visit of the site does.
func (l *line) leave(w http.ResponseWriter, r *http.Request) {
	id := ticketOf(r)
	l.change(func() {
		l.asked["leave"]++
		if a, _ := l.answer(id); a["state"] == "called" && !l.inside[id] {
			l.inside[id] = true
			l.waiting = slices.DeleteFunc(l.waiting, func(other string) bool { return other == id })
		}
	})
	w.WriteHeader(http.StatusOK)
}

func (l *line) abandon(w http.ResponseWriter, r *http.Request) {
	l.change(func() {
		l.waiting = slices.DeleteFunc(l.waiting, func(id string) bool { return id == ticketOf(r) })
	})
	l.writePage(w, r, gateway.View{Kind: gateway.PageLeft, Room: "shop", HereURL: "/"})
}

func (l *line) stream(w http.ResponseWriter, r *http.Request) {
	l.change(func() { l.open++ })
	defer l.change(func() { l.open-- })
	for {
		l.mu.Lock()
		l.asked["stream"]++
		a, known := l.answer(ticketOf(r))
		if l.stale > 0 {
			l.stale--
			a["state"], a["last_updated"] = "called", time.Now().Add(-time.Minute)
		}
		news, open := l.news, l.streams && !l.dark && known
		l.mu.Unlock()
		if !open {
			if w.Header().Get("Content-Type") == "" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		b, _ := json.Marshal(a) // a map of plain things
		fmt.Fprintf(w, "data: %s\n\n", b)
		w.(http.Flusher).Flush()
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}
