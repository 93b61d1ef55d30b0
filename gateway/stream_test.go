package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/ticket"
)

// listener reads an event stream.
type listener struct {
	t   *testing.T
	res *http.Response
	in  *bufio.Scanner
}

func (w *world) listen(t *testing.T, query string, headers ...string) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a test that waits in vain says so
	t.Cleanup(cancel)
	res, err := http.DefaultTransport.RoundTrip(w.request("GET", "/_anteroom/v1/rooms/shop/stream"+query, "", headers...).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return &listener{t, res, bufio.NewScanner(res.Body)}
}

// next returns the next event: its kind and its data; "" and "" at the end.
func (l *listener) next() (kind, data string) {
	l.t.Helper()
	for l.in.Scan() {
		switch line := l.in.Text(); {
		case line == "" && data != "":
			return kind, data
		case strings.HasPrefix(line, "event: "):
			kind = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			data = line[len("data: "):]
		}
	}
	return "", ""
}

func (l *listener) place() gateway.Place {
	l.t.Helper()
	kind, data := l.next()
	var p gateway.Place
	if err := json.Unmarshal([]byte(data), &p); err != nil || kind != "" {
		l.t.Fatalf("event %q %q: %v", kind, data, err)
	}
	return p
}

func TestAStreamBringsTheCall(t *testing.T) {
	w := newWorld(t, nil, shop())
	first, second := w.join(), w.join()
	l := w.listen(t, "?ticket="+second.Ticket)
	if h := l.res.Header; l.res.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", l.res.StatusCode, h)
	}
	if p := l.place(); p.State != "waiting" || *p.Position != 1 || p.Ticket == "" {
		t.Fatalf("the first event: %+v", p)
	}
	w.api("end", with("pass", first.Pass))
	w.pass(time.Second)
	p := l.place()
	if p.State != "called" || p.Pass != "" {
		t.Fatalf("after the call: %+v", p)
	}
	w.place(200, "leave", with("ticket", p.Ticket))
	if p := l.place(); p.State != "admitted" || p.Pass == "" {
		t.Fatalf("after the leave: %+v", p)
	}
	if kind, data := l.next(); data != "" {
		t.Fatalf("after the end: %s %s", kind, data)
	}
}

func TestAStreamByCookieShowsNoTicket(t *testing.T) {
	w := newWorld(t, nil, shop())
	w.join()
	l := w.listen(t, "", "Cookie: anteroom_shop="+w.join().Ticket)
	if p := l.place(); p.Ticket != "" || p.State != "waiting" || len(l.res.Cookies()) != 1 {
		t.Errorf("%+v %v", p, l.res.Header)
	}
}

func TestAStreamEndsWithItsPlace(t *testing.T) {
	w := newWorld(t, nil, shop())
	w.join()
	place := w.join().Ticket
	l := w.listen(t, "?ticket="+place)
	l.place()
	w.api("abandon", with("ticket", place))
	if kind, data := l.next(); kind != "problem" || !strings.Contains(data, `"code":"ticket_expired"`) {
		t.Errorf("%s %s", kind, data)
	}
	if r := w.send("GET", "/_anteroom/v1/rooms/shop/stream?ticket="+place, ""); r.StatusCode != 410 || r.code() != "ticket_expired" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// One ticket does not hold streams without end: the oldest goes, says why, and
// says that it is not to be opened again at once, or two that go by it would end
// each other in turn.
func TestATicketHasTwoStreamsTheNewest(t *testing.T) {
	w := newWorld(t, nil, shop())
	w.join()
	place := w.join().Ticket
	var open []*listener
	for range 6 {
		l := w.listen(t, "?ticket="+place)
		l.place()
		open = append(open, l)
	}
	for i, l := range open[:4] {
		var said []string
		for l.in.Scan() {
			said = append(said, l.in.Text())
		}
		all := strings.Join(said, "\n")
		if !strings.Contains(all, "retry: 60000\nevent: problem\n") || !strings.Contains(all, `"code":"stream_superseded"`) {
			t.Errorf("stream %d ended with %q, want stream_superseded, and a pause before the next try", i, all)
		}
	}
	w.api("abandon", with("ticket", place))
	for i, l := range open[4:] {
		if kind, data := l.next(); kind != "problem" || !strings.Contains(data, `"code":"ticket_expired"`) {
			t.Errorf("of the two newest number %d: %s %s, want news of its place", i, kind, data)
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	w := newWorld(t, func(c *gateway.Config) { c.Bounds.Streams = 1; c.Bounds.Heartbeat = time.Millisecond }, shop())
	w.join()
	place := w.join().Ticket
	l := w.listen(t, "?ticket="+place)
	l.place()
	if r := w.send("GET", "/_anteroom/v1/rooms/shop/stream?ticket="+place, ""); r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("the second: %d %v", r.StatusCode, r.Header)
	}
	if !l.in.Scan() || l.in.Text() != ":" {
		t.Errorf("no heartbeat: %q", l.in.Text())
	}
	w.Close() // the node shuts down
	if kind, data := l.next(); data != "" {
		t.Errorf("after Close: %s %s", kind, data)
	}
}

func TestAStreamOutlivesATroubledQueue(t *testing.T) {
	w := newWorld(t, nil, shop())
	first, second := w.join(), w.join()
	l := w.listen(t, "?ticket="+second.Ticket)
	l.place()
	fail := make(chan struct{}, 1)
	w.breakWith(func(q ticket.Request) error {
		if q.Op == ticket.CheckIn && len(fail) == 0 {
			fail <- struct{}{}
			return ticket.ErrUnavailable
		}
		return nil
	})
	w.api("end", with("pass", first.Pass))
	w.pass(time.Second)
	if p := l.place(); p.State != "called" || len(fail) != 1 {
		t.Errorf("%+v", p)
	}
}
