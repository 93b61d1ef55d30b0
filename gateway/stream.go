package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// eventWithin is how long a client may take to take in one event.
const eventWithin = 10 * time.Second

// apiStream sends the waiting object whenever there is news, and as often as
// the place would have been asked about. It ends when the visitor is admitted.
// A ticket in a cookie cannot be replaced by an event: who streams by cookie
// checks in beside it now and then, so that the cookie does not grow old.
func (c *call) apiStream() error {
	if c.r.Method != http.MethodGet {
		return invalid("A stream is for GET.")
	}
	t, err := c.ticket(sealed{}, c.r.URL.Query().Get("ticket"))
	if err != nil {
		return err
	}
	if n := c.g.streams.Add(1); c.g.c.Bounds.Streams > 0 && n > int64(c.g.c.Bounds.Streams) {
		c.g.streams.Add(-1)
		c.g.metrics.shed.Inc()
		return tooMany(10)
	}
	defer c.g.streams.Add(-1)
	news, done := c.g.c.Queue.Called(c.room.Name, t.ID) // first, so that nothing happens in between
	defer done()
	a, err := c.g.do(c.ctx(), ticket.Request{Op: ticket.CheckIn, Room: c.room.Name, Ticket: t})
	if err != nil {
		return err
	}
	if c.from == fromCookie {
		if err := c.keep(a); err != nil {
			return err
		}
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would collect events first
	c.w.WriteHeader(http.StatusOK)
	c.follow(a, news)
	return nil
}

// follow writes events until the visitor is admitted, lost or gone.
func (c *call) follow(a ticket.Answer, news <-chan struct{}) {
	out := events{pace(c.w, eventWithin)}
	defer out.hold()
	ask := time.NewTimer(0)
	defer ask.Stop()
	beat := time.NewTicker(c.g.c.Bounds.Heartbeat)
	defer beat.Stop()
	for {
		p := c.place(a)
		if err := c.sealed(&p, a); err != nil {
			_ = out.send("event: problem\n", problem(errorOf(err)))
			return
		}
		if out.send("", p) != nil || a.State == ticket.Admitted {
			return
		}
		var err error
		if a, err = c.next(a, news, ask, beat.C, out); err != nil {
			if !errors.Is(err, errStreamOver) {
				_ = out.send("event: problem\n", problem(errorOf(err)))
			}
			return
		}
	}
}

var errStreamOver = errors.New("the stream is over")

// next waits for news, or until the place is due to be asked about, and asks.
func (c *call) next(a ticket.Answer, news <-chan struct{}, ask *time.Timer, beat <-chan time.Time, out events) (ticket.Answer, error) {
	ask.Reset(max(a.Refresh, time.Second))
	for {
		select {
		case <-c.ctx().Done():
			return a, errStreamOver
		case <-c.g.closing:
			return a, errStreamOver // the browser comes back, to another node perhaps
		case <-beat:
			if out.write([]byte(":\n\n")) != nil {
				return a, errStreamOver
			}
			continue
		case <-news:
		case <-ask.C:
		}
		b, err := c.g.do(c.ctx(), ticket.Request{Op: ticket.CheckIn, Room: c.room.Name, Ticket: a.Ticket})
		if errors.Is(err, ticket.ErrBusy) || errors.Is(err, ticket.ErrUnavailable) {
			ask.Reset(2 * time.Second) // the place is kept; try again
			continue
		}
		if st, ok := c.g.c.Queue.Room(c.room.Name); ok {
			c.state = st
		}
		return b, err
	}
}

// events writes server-sent events.
type events struct{ *paced }

func (e events) send(kind string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.write([]byte(kind + "data: " + string(b) + "\n\n"))
}

func (e events) write(b []byte) error {
	if _, err := e.Write(b); err != nil {
		return err
	}
	return e.FlushError()
}
