package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
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
	closed, err := c.g.c.Addresses.Stream(c.room.Name, c.client.addr)
	if err != nil {
		return err
	}
	defer closed()
	by := &reader{}
	c.catchUp(by)      // the first event tells of the messages as well
	w := c.watch(t.ID) // first, so that nothing happens in between
	defer func() { w.end() }()
	a, err := c.do(ticket.Request{Op: ticket.CheckIn, Room: c.room.Name, Ticket: t})
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
	c.follow(&a, w, by)
	return nil
}

// watch hears of what happens to a ticket.
type watch struct {
	c    *call
	id   qpid.ItemID
	news <-chan struct{}
	end  func()
}

func (c *call) watch(id qpid.ItemID) *watch {
	w := &watch{c: c, id: id}
	w.news, w.end = c.g.c.Queue.Called(c.room.Name, id)
	return w
}

// on goes over to a ticket that the one before stands for.
func (w *watch) on(id qpid.ItemID) {
	if id != w.id {
		w.end()
		w.id = id
		w.news, w.end = w.c.g.c.Queue.Called(w.c.room.Name, id)
	}
}

// follow writes events until the visitor is admitted, lost or gone.
func (c *call) follow(a *ticket.Answer, w *watch, by *reader) {
	out := events{pace(c.w, c.r, eventWithin)}
	defer out.hold()
	ask := time.NewTimer(0)
	defer ask.Stop()
	beat := time.NewTicker(c.g.c.Bounds.Heartbeat)
	defer beat.Stop()
	for {
		if err := c.event(out, a); err != nil || a.State == ticket.Admitted {
			return
		}
		w.on(a.Ticket.ID)
		if err := c.next(a, w.news, by, ask, beat.C, out); err != nil {
			c.over(out, err)
			return
		}
	}
}

// event tells the visitor of a, in the bytes that json.Marshal would take longer
// over: all who are called at once are told at once.
func (c *call) event(out events, a *ticket.Answer) error {
	p := c.place(*a)
	if err := c.sealed(&p, *a); err != nil {
		return errors.Join(err, out.problem(err))
	}
	buf := c.g.buffers.Get().(*bytes.Buffer)
	defer c.g.buffers.Put(buf)
	buf.Reset()
	buf.Grow(placeLen)
	buf.WriteString("data: ")
	buf.Write(append(p.appendJSON(buf.AvailableBuffer()), "\n\n"...))
	return out.write(buf.Bytes())
}

// over says why a stream ends, where that is not the client's doing.
func (c *call) over(out events, why error) {
	switch {
	case errors.Is(why, errStreamOver):
		return
	case errors.Is(why, ticket.ErrSuperseded):
		c.g.metrics.superseded.Inc()
	}
	_ = out.problem(why)
}

// retryAfterMin is after how many milliseconds an EventSource that was superseded
// comes back by itself, and ends another in turn: seldom enough that three
// tabs which know no better do each other no harm.
const retryAfterMin = "60000"

var errStreamOver = errors.New("the stream is over")

// next waits for news, or until the place is due to be asked about, and asks. An
// operator's messages it tells at once, and asks nobody: all streams are told.
func (c *call) next(a *ticket.Answer, news <-chan struct{}, by *reader, ask *time.Timer, beat <-chan time.Time, out events) error {
	ask.Reset(max(a.Refresh, time.Second))
	for {
		select {
		case <-c.ctx().Done():
			return errStreamOver
		case <-c.g.closing:
			return errStreamOver // the browser comes back, to another node perhaps
		case <-beat:
			if out.write([]byte(":\n\n")) != nil {
				return errStreamOver
			}
			continue
		case <-by.changed:
			if event := c.catchUp(by); event != nil && out.write(event) != nil {
				return errStreamOver
			}
			continue
		case _, open := <-news:
			if !open {
				return ticket.ErrSuperseded
			}
		case <-ask.C:
		}
		err := c.ask(a)
		if errors.Is(err, ticket.ErrBusy) || errors.Is(err, ticket.ErrUnavailable) {
			ask.Reset(2 * time.Second) // the place is kept; try again
			continue
		}
		return err
	}
}

// ask puts the answer to a check-in in place of a.
func (c *call) ask(a *ticket.Answer) error {
	b, err := c.do(ticket.Request{Op: ticket.CheckIn, Room: c.room.Name, Ticket: a.Ticket})
	if err != nil {
		return err
	}
	if st, ok := c.g.c.Queue.Room(c.room.Name); ok {
		c.state = st
	}
	*a = b
	return nil
}

// events writes server-sent events.
type events struct{ *paced }

// problem is the last event of a stream.
func (e events) problem(why error) error {
	b, err := json.Marshal(problem(errorOf(why)))
	if err != nil {
		return err
	}
	retry := ""
	if errors.Is(why, ticket.ErrSuperseded) {
		retry = "retry: " + retryAfterMin + "\n"
	}
	return e.write([]byte(retry + "event: problem\ndata: " + string(b) + "\n\n"))
}

func (e events) write(b []byte) error {
	if _, err := e.Write(b); err != nil {
		return err
	}
	return e.FlushError()
}
