package gateway

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// How long a client may take. Without these bounds a stranger who sends or
// takes in a byte now and then holds a connection, and what is behind it, for ever.
// How long an upload to the origin may take as a whole, the origin knows: it is
// bounded only while nothing comes. See Bounds.Stall, which is also how long a
// client may take to take in what was written at once.
const bodyWithin = 10 * time.Second // the rest of a body that is for us, or for nobody any more

// Hurry bounds how long the client takes over a request that is answered from
// here: to send the rest of its body, and to take in the answer. Whoever
// answers in the gateway's place calls it first.
func Hurry(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stallDefault)) // a writer without deadlines is a test's
	hurry(w, r)
}

// hurry bounds how long the client takes to send the rest of its body, for
// which HTTP/1 waits before it answers. Past the bound the request's context is
// done and the connection is closed. A body that has been read to its end has
// no deadline any more.
func hurry(w http.ResponseWriter, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin)) // a writer without deadlines is a test's
	}
}

// paced is a ResponseWriter that gives up when the client does not take in
// what is written. In between there is no deadline where that matters: HTTP/2
// ends a stream at it even if nothing is being written, and TLS may have
// something of its own to write. Else a deadline means nothing until something
// is written, which then has one of its own.
type paced struct {
	http.ResponseWriter
	c      *http.ResponseController
	within time.Duration
	lifts  bool      // no deadline in between
	held   time.Time // when the deadline was set that holds; if it is not lifted
	failed bool      // a Write did
	tunnel *tunnel   // that the connection may become; nil: none
}

func pace(w http.ResponseWriter, r *http.Request, within time.Duration) *paced {
	p := &paced{ResponseWriter: w, c: http.NewResponseController(w), within: within, lifts: r.ProtoMajor != 1 || r.TLS != nil}
	_ = p.c.SetWriteDeadline(time.Time{}) // the first write may be long in coming
	return p
}

func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *paced) Write(b []byte) (int, error) {
	p.hold()
	n, err := p.ResponseWriter.Write(b)
	p.failed = p.failed || err != nil
	p.release()
	return n, err
}

// Hijack is what http.ResponseController calls when the origin agrees to an upgrade.
func (p *paced) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := p.c.Hijack()
	if err != nil || p.tunnel == nil {
		return c, rw, err
	}
	return hijacked{c, &p.tunnel.sent}, rw, nil
}

// FlushError is what http.ResponseController calls.
func (p *paced) FlushError() error {
	p.hold()
	defer p.release()
	return p.c.Flush()
}

// hold is also for the end: net/http writes what is left after the handler.
// The next request of the connection begins with a deadline of its own. One that
// was set a moment ago will do.
func (p *paced) hold() {
	now := time.Now()
	if !p.lifts && now.Sub(p.held) < p.within/holdAgain {
		return
	}
	p.held = now
	_ = p.c.SetWriteDeadline(now.Add(p.within))
}

// holdAgain is the part of the bound by which a client may have less.
const holdAgain = 64

func (p *paced) release() {
	if p.lifts {
		_ = p.c.SetWriteDeadline(time.Time{})
	}
}
