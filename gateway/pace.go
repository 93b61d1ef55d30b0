package gateway

import (
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
// what is written. In between there is no deadline: HTTP/2 ends a stream at it
// even if nothing is being written.
type paced struct {
	http.ResponseWriter
	c      *http.ResponseController
	within time.Duration
}

func pace(w http.ResponseWriter, within time.Duration) *paced {
	p := &paced{w, http.NewResponseController(w), within}
	_ = p.c.SetWriteDeadline(time.Time{}) // the first write may be long in coming
	return p
}

func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *paced) Write(b []byte) (int, error) {
	p.hold()
	defer p.release()
	return p.ResponseWriter.Write(b)
}

// FlushError is what http.ResponseController calls.
func (p *paced) FlushError() error {
	p.hold()
	defer p.release()
	return p.c.Flush()
}

// hold is also for the end: net/http writes what is left after the handler.
// The next request of the connection begins with a deadline of its own.
func (p *paced) hold() { _ = p.c.SetWriteDeadline(time.Now().Add(p.within)) }

func (p *paced) release() { _ = p.c.SetWriteDeadline(time.Time{}) }
