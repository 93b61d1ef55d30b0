package gateway

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/anteroom/anteroom/internal/ticket"
)

// listener is who hears of a place by a stream. There are as many of them as people
// who wait, and nearly all of the time nothing happens to one. So what a stream over
// HTTP/1 has meanwhile is this and its connection: no buffers of net/http, and two
// goroutines that are so shallow that they never outgrow the stack of 2 KiB that
// they begin with. One waits for news, the other for the client to hang up. What is to
// be done then, a goroutine does that is there for nothing else, with a stack as deep
// as that takes.
type listener struct {
	g                 *Gateway
	room              *Room
	addr              netip.Addr
	from              source
	ticket            ticket.Ticket   // the newest of the place
	news              <-chan struct{} // of it; closed: newer streams took the place of this one
	endNews, endCount func()
	by                reader
	asked             *http.Request // with the context of what is done for it
	out               outlet
	gone              <-chan struct{} // done when the client is
	timer             *time.Timer
	ask               time.Time // the place is due to be asked about
	beat              time.Time // something is due to be said
	served            *measured // the request, of a stream that outlasts its handler; nil: it does not
}

// listener counts one more, within the bounds.
func (c *call) listener() (*listener, error) {
	if n := c.g.streams.Add(1); c.g.c.Bounds.Streams > 0 && n > int64(c.g.c.Bounds.Streams) {
		c.g.streams.Add(-1)
		c.g.metrics.shed.Inc()
		return nil, tooMany(10)
	}
	closed, err := c.g.c.Addresses.Stream(c.room.Name, c.client.addr)
	if err != nil {
		c.g.streams.Add(-1)
		return nil, err
	}
	return &listener{
		g: c.g, room: c.room, addr: c.client.addr, from: c.from, endCount: closed, endNews: func() {},
		asked: c.r, gone: c.ctx().Done(), timer: time.NewTimer(0),
	}, nil
}

// on watches t, which may stand for a ticket of before.
func (l *listener) on(t ticket.Ticket) {
	if l.news == nil || t.ID != l.ticket.ID {
		l.endNews()
		l.news, l.endNews = l.g.c.Queue.Called(l.room.Name, t.ID)
	}
	l.ticket = t
}

// end is called when it is over.
func (l *listener) end() {
	if l.out != nil {
		l.out.end()
	}
	l.timer.Stop()
	l.endNews()
	l.endCount()
	l.g.streams.Add(-1)
}

// happening is why a listener stops waiting.
type happening uint8

const (
	itsTime    happening = iota
	something            // to the ticket
	posted               // there may be other messages
	superseded           // newer streams of the ticket took the place of this one
	noMore               // the client has gone, or the node closes: the browser comes back, to another node perhaps
)

// wait returns when something has happened.
func (l *listener) wait() happening {
	next := l.ask
	if l.beat.Before(next) {
		next = l.beat
	}
	l.timer.Reset(time.Until(next))
	select {
	case <-l.gone:
		return noMore
	case <-l.g.closing:
		return noMore
	case <-l.by.changed:
		return posted
	case _, open := <-l.news:
		if !open {
			return superseded
		}
		return something
	case <-l.timer.C:
		return itsTime
	}
}

// turn does what there is to do, and reports whether the stream goes on. An
// operator's messages it tells at once, and asks nobody: all streams are told.
func (l *listener) turn(what happening) bool {
	c := l.g.calls.Get().(*call)
	defer func() { *c = call{}; l.g.calls.Put(c) }()
	c.g, c.r, c.room, c.client.addr, c.from = l.g, l.asked, l.room, l.addr, l.from
	switch {
	case what == noMore:
		return false
	case what == superseded:
		c.over(l.out, ticket.ErrSuperseded)
		return false
	case what == posted:
		event := c.catchUp(&l.by)
		l.room = c.room
		return event == nil || l.write(event) == nil
	case what == itsTime && time.Now().Before(l.ask):
		return l.write([]byte(":\n\n")) == nil
	}
	return l.checkIn(c)
}

// checkIn asks about the place, and tells what it hears.
func (l *listener) checkIn(c *call) bool {
	c.state, _ = l.g.c.Queue.Room(l.room.Name)
	a, err := c.do(ticket.Request{Op: ticket.CheckIn, Room: l.room.Name, Ticket: l.ticket})
	switch {
	case errors.Is(err, ticket.ErrBusy) || errors.Is(err, ticket.ErrUnavailable):
		l.ask = time.Now().Add(2 * time.Second) // the place is kept; try again
		return true
	case err != nil:
		c.over(l.out, err)
		return false
	}
	if st, ok := l.g.c.Queue.Room(l.room.Name); ok {
		c.state = st
	}
	return l.tell(c, &a)
}

// tell tells the visitor of a, and reports whether there is more to come.
func (l *listener) tell(c *call, a *ticket.Answer) bool {
	if err := c.event(l.out, a); err != nil || a.State == ticket.Admitted {
		return false
	}
	l.on(a.Ticket)
	now := time.Now()
	l.ask, l.beat = now.Add(max(a.Refresh, time.Second)), now.Add(l.g.c.Bounds.Heartbeat)
	return true
}

func (l *listener) write(b []byte) error {
	l.beat = time.Now().Add(l.g.c.Bounds.Heartbeat)
	return l.out.write(b)
}

// leaves reports whether the stream is to go on without net/http. With HTTP/2 it has
// no connection of its own, and of Before the server around us is in charge.
func (l *listener) leaves(c *call) bool {
	m, ok := c.w.(*measured)
	return ok && !m.inside && c.r.ProtoMajor == 1
}

// takeOver takes the connection from net/http, which frees what that has for it. A
// request that the client sent behind this one would not be answered: it was
// told that the connection ends with the stream.
func (l *listener) takeOver(c *call) bool {
	if !l.leaves(c) {
		return false
	}
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		return false // a writer of a test
	}
	m := c.w.(*measured)
	m.lasts = true
	l.served = &measured{began: m.began, route: m.route, status: m.status}
	l.asked = l.g.nobodys
	l.out = &wire{Conn: conn, buffers: &l.g.buffers, chunked: c.r.ProtoAtLeast(1, 1), lifts: c.r.TLS != nil}
	l.gone = hangsUp(conn)
	l.g.listening.Add(1)
	return true
}

// listen waits, and has what there is to do done on another stack, at the end of which
// it is called again.
func (l *listener) listen() {
	what := l.wait()
	go func() {
		if l.goesOn(what) {
			go l.listen()
			return
		}
		l.end()
		l.g.metrics.served(http.MethodGet, l.served)
		l.g.listening.Done()
	}()
}

// goesOn is turn. A fault of ours ends this stream alone; net/http, which would see to
// that, is not in this goroutine.
func (l *listener) goesOn(what happening) (more bool) {
	defer func() {
		if fault := recover(); fault != nil {
			l.g.c.Logger.Error("a fault in an event stream ended it", "fault", fault, "stack", string(debug.Stack()))
			more = false
		}
	}()
	return l.turn(what)
}

// hangsUp returns a channel that is closed when the client has closed the connection.
// Like net/http it looks no further when the client says something instead: that it
// has gone is found out by the next event then.
func hangsUp(conn net.Conn) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		if n, _ := conn.Read(make([]byte, 1)); n == 0 {
			close(gone)
		}
	}()
	return gone
}

// wire is a connection without net/http, in the middle of an answer.
type wire struct {
	net.Conn
	buffers *sync.Pool
	chunked bool // as net/http began to write
	lifts   bool // no deadline in between: TLS may have something of its own to write
	failed  bool
}

func (w *wire) write(event []byte) error {
	buf := w.buffers.Get().(*bytes.Buffer)
	defer w.buffers.Put(buf)
	buf.Reset()
	if w.chunked {
		buf.Write(append(strconv.AppendInt(buf.AvailableBuffer(), int64(len(event)), 16), "\r\n"...))
	}
	buf.Write(event)
	if w.chunked {
		buf.WriteString("\r\n")
	}
	return w.send(buf.Bytes())
}

// send gives up when the client does not take in what is written.
func (w *wire) send(b []byte) error {
	_ = w.SetWriteDeadline(time.Now().Add(eventWithin)) // it fails where the Write does
	_, err := w.Write(b)
	w.failed = err != nil
	if w.lifts && err == nil {
		_ = w.SetWriteDeadline(time.Time{})
	}
	return err
}

func (w *wire) end() {
	if w.chunked && !w.failed {
		_ = w.send([]byte("0\r\n\r\n"))
	}
	_ = w.Close()
}
