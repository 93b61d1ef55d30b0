package gateway

import (
	"bytes"
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
	l, err := c.listener()
	if err != nil {
		return err
	}
	defer func() { // unless it goes on without us
		if l != nil {
			l.end()
		}
	}()
	c.catchUp(&l.by) // the first event tells of the messages as well
	l.on(t)          // first, so that nothing happens in between
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
	if l.leaves(c) {
		h.Set("Connection", "close")
	}
	c.w.WriteHeader(http.StatusOK)
	l.out = &events{pace(c.w, c.r, eventWithin)}
	if !l.tell(c, &a) {
		return nil
	}
	if l.takeOver(c) {
		go l.listen()
		l = nil
		return nil
	}
	for l.turn(l.wait()) {
	}
	return nil
}

// event tells the visitor of a, in the bytes that json.Marshal would take longer
// over: all who are called at once are told at once.
func (c *call) event(out outlet, a *ticket.Answer) error {
	p := c.place(*a)
	if err := c.sealed(&p, *a); err != nil {
		return errors.Join(err, problemEvent(out, err))
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
func (c *call) over(out outlet, why error) {
	if errors.Is(why, ticket.ErrSuperseded) {
		c.g.metrics.superseded.Inc()
	}
	_ = problemEvent(out, why)
}

// retryAfterMin is after how many milliseconds an EventSource that was superseded
// comes back by itself, and ends another in turn: seldom enough that three
// tabs which know no better do each other no harm.
const retryAfterMin = "60000"

// problemEvent is the last event of a stream.
func problemEvent(out outlet, why error) error {
	b, err := json.Marshal(problem(errorOf(why)))
	if err != nil {
		return err
	}
	retry := ""
	if errors.Is(why, ticket.ErrSuperseded) {
		retry = "retry: " + retryAfterMin + "\n"
	}
	return out.write([]byte(retry + "event: problem\ndata: " + string(b) + "\n\n"))
}

// outlet is where the events of a stream go.
type outlet interface {
	write(event []byte) error // which is on its way when it returns
	end()                     // nothing more is written
}

// events are those of a stream that net/http serves.
type events struct{ *paced }

func (e *events) write(b []byte) error {
	if _, err := e.Write(b); err != nil {
		return err
	}
	return e.FlushError()
}

func (e *events) end() { e.hold() }
