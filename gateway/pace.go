package gateway

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// How long a client may take. Without these bounds a stranger who sends or
// takes in a byte now and then holds a connection, and what is behind it, for ever.
// An upload to the origin has no bound: how long it may take, the origin knows.
const (
	bodyWithin  = 10 * time.Second // the rest of a body that is for us, or for nobody any more
	writeWithin = time.Minute      // to take in what was written at once
)

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

// upload is a request's body on its way to the origin.
type upload struct {
	io.ReadCloser
	over    atomic.Bool   // it was read to its end, or broke off
	reading chan struct{} // has a value while somebody reads
}

func newUpload(r *http.Request) *upload {
	u := &upload{ReadCloser: r.Body, reading: make(chan struct{}, 1)}
	u.over.Store(r.ContentLength == 0)
	return u
}

func (u *upload) Read(b []byte) (int, error) {
	u.reading <- struct{}{}
	defer func() { <-u.reading }()
	n, err := u.ReadCloser.Read(b)
	if err != nil {
		u.over.Store(true)
	}
	return n, err
}

// rest reads on when the origin does not, or not for long: who is answered
// while they send may not see the answer if the connection ends under them.
func (u *upload) rest(w http.ResponseWriter, r *http.Request) {
	hurry(w, r) // the transport, which may still be reading, as well
	u.reading <- struct{}{}
	_ = u.Close() // reads 256 KiB at most
}
