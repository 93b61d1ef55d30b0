package gateway_test

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/internal/webpush"
)

// pushWorld is a world whose room tells by push, and what came to the push service.
type pushWorld struct {
	*world
	pushed  chan *http.Request
	metrics *prometheus.Registry
	push    *webpush.Sender
	moved   atomic.Bool // another node keeps the places now
	enters  atomic.Bool // whoever is called goes in as soon as anybody knows
}

// pushQueue does to places what a test wants.
type pushQueue struct {
	gateway.Queue
	w *pushWorld
}

func (q *pushQueue) Do(ctx context.Context, r ticket.Request) (ticket.Answer, error) {
	a, err := q.Queue.Do(ctx, r)
	if err == nil && a.State == ticket.Called && q.w.enters.Load() {
		_, err = q.Queue.Do(ctx, ticket.Request{Op: ticket.Leave, Room: r.Room, Ticket: a.Ticket})
	}
	if q.w.moved.Load() {
		a.Ticket.Home.Name = "node-2"
	}
	return a, err
}

func newPushWorld(t testing.TB, change ...func(*gateway.Config)) *pushWorld {
	t.Helper()
	w := &pushWorld{pushed: make(chan *http.Request, 10), metrics: prometheus.NewRegistry()}
	w.world = newWorld(t, withOrigin(t, site, func(c *gateway.Config) {
		ring := c.Sealer.(*seal.Ring)
		w.push = webpush.New(webpush.Config{
			Contact: "mailto:ops@example.com", Secrets: func() [][]byte { return ring.Derive("web push") },
			Do: func(r *http.Request) (*http.Response, error) {
				w.pushed <- r
				return &http.Response{StatusCode: 201, Body: io.NopCloser(strings.NewReader(""))}, nil
			},
		})
		c.Queue = &pushQueue{c.Queue, w}
		c.Push, c.Metrics, c.Rooms[0].Push, c.Bounds.PushAfter = w.push, w.metrics, true, time.Millisecond
		for _, f := range change {
			f(c)
		}
	}), shop())
	return w
}

// subscribe asks that the call of a place is told, with a browser of its own.
func (w *pushWorld) subscribe(sealed string, change ...func(*webpush.Subscription)) reply {
	w.t.Helper()
	browser, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	sub := &webpush.Subscription{Endpoint: "https://fcm.googleapis.com/a", Key: w.push.PublicKey(), Keys: webpush.Keys{P256DH: enc(browser.PublicKey().Bytes()), Auth: enc(make([]byte, 16))}}
	for _, f := range change {
		f(sub)
	}
	b, err := json.Marshal(map[string]any{"ticket": sealed, "push": sub})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.api("push", string(b))
}

// subscribed waits until so many places are told. Who begins and ends that tells
// nobody.
func (w *pushWorld) subscribed(n int) {
	w.t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	enough := time.After(20 * time.Second)
	want := "# HELP anteroom_push_subscriptions Places whose call this node would tell by web push.\n# TYPE anteroom_push_subscriptions gauge\n" + fmt.Sprintf("anteroom_push_subscriptions %d\n", n)
	for testutil.GatherAndCompare(w.metrics, strings.NewReader(want), "anteroom_push_subscriptions") != nil {
		select {
		case <-look.C:
		case <-enough:
			w.t.Fatalf("waited in vain for %d subscriptions", n)
		}
	}
}

// told waits for the push service to be asked.
func (w *pushWorld) told() *http.Request {
	w.t.Helper()
	select {
	case r := <-w.pushed:
		return r
	case <-time.After(20 * time.Second):
		w.t.Fatal("nobody was told")
		return nil
	}
}

func TestTheCallIsToldByPush(t *testing.T) {
	w := newPushWorld(t)
	first, second := w.join(), w.join()
	r := w.subscribe(second.Ticket)
	var p gateway.Place
	if r.json(t, &p); r.StatusCode != 200 || p.State != "waiting" || p.Ticket == "" {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	w.subscribed(1)
	for ticket, want := range map[string]string{p.Ticket: "{\"pushed\":true}\n", w.join().Ticket: "{\"pushed\":false}\n"} {
		if r := w.send("GET", "/_anteroom/v1/rooms/shop/pushed?ticket="+ticket, ""); r.StatusCode != 200 || r.body != want || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("pushed: %d %v %s, want %s", r.StatusCode, r.Header, r.body, want)
		}
	}
	w.api("end", with("pass", first.Pass))
	w.pass(time.Second)
	sent := w.told()
	if sent.URL.Host != "fcm.googleapis.com" || sent.Header.Get("TTL") == "" {
		t.Errorf("%s %v", sent.URL, sent.Header)
	}
	w.subscribed(0) // it is told once
	if r := w.send("GET", "/_anteroom/v1/rooms/shop/pushed?ticket="+p.Ticket, ""); r.body != "{\"pushed\":false}\n" {
		t.Errorf("told already: %d %s", r.StatusCode, r.body)
	}
	w.place(200, "leave", with("ticket", p.Ticket))
}

// Whoever looks at the page goes in by it, and is told nothing.
func TestWhoComesIsNotTold(t *testing.T) {
	w := newPushWorld(t)
	first, second := w.join(), w.join()
	w.subscribe(second.Ticket)
	w.enters.Store(true)
	w.api("end", with("pass", first.Pass))
	w.pass(time.Second)
	w.subscribed(0)
	if n := w.count(ticket.Leave); n != 1 {
		t.Errorf("%d went in", n)
	}
	select {
	case <-w.pushed:
		t.Error("somebody who went in was told of the call")
	default:
	}
}

func TestPushEndsWithThePlace(t *testing.T) {
	w := newPushWorld(t, func(c *gateway.Config) { c.Bounds.Pushes = 1 })
	w.join()
	second, third := w.join(), w.join()
	w.subscribe(second.Ticket)
	if r := w.subscribe(third.Ticket); r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("beyond the bound: %d %s", r.StatusCode, r.body)
	}
	if r := w.subscribe(second.Ticket); r.StatusCode != 200 {
		t.Errorf("the same place again: %d %s", r.StatusCode, r.body)
	}
	w.subscribed(1)
	w.place(200, "push", with("ticket", second.Ticket)) // no more
	w.subscribed(0)
	w.subscribe(second.Ticket)
	w.subscribed(1)
	w.api("abandon", with("ticket", second.Ticket))
	w.subscribed(0)
	w.subscribe(third.Ticket)
	w.subscribed(1)
	w.Close()
	w.subscribed(0)
}

// Where the home of a place was lost, its copy in the browser is of before: the page
// asks again when it is loaded.
func TestPushEndsWithTheHomeOfThePlace(t *testing.T) {
	w := newPushWorld(t)
	first, second := w.join(), w.join()
	w.subscribe(second.Ticket)
	w.moved.Store(true)
	w.api("end", with("pass", first.Pass))
	w.pass(time.Second)
	w.subscribed(0)
	select {
	case <-w.pushed:
		t.Error("a place that was taken over is told")
	default:
	}
}

func TestPushesThatAreRefused(t *testing.T) {
	w := newPushWorld(t)
	w.join()
	waits := w.join().Ticket
	for name, c := range map[string]struct {
		r      reply
		status int
		code   string
	}{
		"an inner host": {w.subscribe(waits, func(s *webpush.Subscription) { s.Endpoint = "https://169.254.169.254/a" }), 400, "request_invalid"},
		"plain http":    {w.subscribe(waits, func(s *webpush.Subscription) { s.Endpoint = "http://fcm.googleapis.com/a" }), 400, "request_invalid"},
		"no key":        {w.subscribe(waits, func(s *webpush.Subscription) { s.Key = "" }), 409, "push_key_unknown"},
		"no secret":     {w.subscribe(waits, func(s *webpush.Subscription) { s.Keys.Auth = "" }), 400, "request_invalid"},
		"no ticket":     {w.subscribe(""), 401, "ticket_invalid"},
	} {
		if c.r.StatusCode != c.status || c.r.code() != c.code {
			t.Errorf("%s: %d %s", name, c.r.StatusCode, c.r.body)
		}
	}
	w.subscribed(0)
	off := newPushWorld(t, func(c *gateway.Config) { c.Rooms[0].Push = false })
	off.join()
	if r := off.subscribe(off.join().Ticket); r.StatusCode != 404 || off.send("GET", "/_anteroom/v1/rooms/shop/push.js", "").StatusCode != 404 {
		t.Errorf("a room without: %d %s", r.StatusCode, r.body)
	}
	if v := off.browser().view("/"); v.PushURL != "" {
		t.Errorf("its page has %s", v.PushURL)
	}
}

func TestThePageHasTheScriptsOfPush(t *testing.T) {
	w := newPushWorld(t)
	w.join()
	b := w.browser()
	page := b.open("/")
	var v gateway.View
	page.json(t, &v)
	if v.PushURL != "/_anteroom/v1/rooms/shop/push.js" || !strings.Contains(page.Header.Get("Content-Security-Policy"), "worker-src 'self'") {
		t.Errorf("%q, %s", v.PushURL, page.Header.Get("Content-Security-Policy"))
	}
	script := b.send("GET", v.PushURL, "")
	if worker := b.send("GET", "/_anteroom/v1/rooms/shop/pushworker.js?to=%2F", ""); !strings.Contains(script.body, `("`+w.push.PublicKey()+`");`) || worker.StatusCode != 200 ||
		!strings.HasPrefix(worker.Header.Get("Content-Type"), "text/javascript") || !strings.HasPrefix(script.Header.Get("Content-Type"), "text/javascript") {
		t.Errorf("%s\n%v\n%v", script.body, script.Header, worker.Header)
	}
}
