package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// upload is a request's body on its way to the origin. While somebody reads and
// nothing comes for as long as a client may stall, the reading is broken off.
// It is a timer that does so, not a deadline kept up to date: the deadline of an
// HTTP/2 stream runs on while nobody reads, because the origin is the slow one,
// and that of an HTTP/1 connection belongs to the next request as soon as the
// handler has returned, when a transport may still be reading.
type upload struct {
	io.ReadCloser
	c       *http.ResponseController
	within  time.Duration
	over    atomic.Bool   // it was read to its end, or broke off
	reading chan struct{} // has a value while somebody reads
	ended   func()        // called by whoever reads its end, before they know

	mu      sync.Mutex
	timer   *time.Timer // nil before the first Read
	since   time.Time   // when the Read under way began; zero: none
	patient bool        // silence is no stall any more
	stalled bool        // it was broken off
	crowded bool        // for a newcomer, not because nothing came

	arrival // until it is over, or an answer begins
}

func newUpload(w http.ResponseWriter, r *http.Request, within time.Duration) *upload {
	return &upload{ReadCloser: r.Body, c: http.NewResponseController(w), within: within, reading: make(chan struct{}, 1)}
}

func (u *upload) Read(b []byte) (int, error) {
	u.reading <- struct{}{}
	defer func() { <-u.reading }()
	u.listen()
	n, err := u.ReadCloser.Read(b)
	u.heard()
	if err != nil {
		if errors.Is(err, io.EOF) && u.ended != nil {
			u.ended()
		}
		u.over.Store(true)
		u.done()
	}
	return n, err
}

// listen is called when a Read begins.
func (u *upload) listen() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.patient {
		return
	}
	u.since = time.Now()
	if u.timer == nil {
		u.timer = time.AfterFunc(u.within, u.breakOff)
		return
	}
	u.timer.Reset(u.within)
}

// heard is called when a Read has ended.
func (u *upload) heard() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since = (time.Time{}); u.timer != nil {
		u.timer.Stop()
	}
}

func (u *upload) breakOff() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.patient || u.since.IsZero() || time.Since(u.since) < u.within {
		return // the Read that the timer was set for is over
	}
	u.stalled = true
	_ = u.c.SetReadDeadline(time.Unix(1, 0)) // past: the Read fails now. If it cannot be set, the writer is a test's
}

// crowdOut breaks it off to make way for others, whether somebody reads just now
// or the origin takes its time.
func (u *upload) crowdOut() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.patient {
		return
	}
	u.stalled, u.crowded = true, true
	_ = u.c.SetReadDeadline(time.Unix(1, 0)) // past: this Read fails now, or the next one
}

// release makes silence no stall any more, and leaves the connection alone: the
// origin has begun to answer, and to whom it talks with how long pauses is its
// affair from then on, or the handler is about to return.
func (u *upload) release() {
	if u == nil {
		return
	}
	u.done()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.patient = true; u.timer != nil {
		u.timer.Stop()
	}
}

// brokenOff reports whether the client sent nothing for too long.
func (u *upload) brokenOff() bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stalled
}

// crowdedOut reports whether that was for want of room.
func (u *upload) crowdedOut() bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.crowded
}

// whole reports whether nothing of it is left to come.
func (u *upload) whole() bool { return u == nil || u.over.Load() }

// rest reads on when the origin does not, or not for long: who is answered
// while they send may not see the answer if the connection ends under them.
func (u *upload) rest(w http.ResponseWriter, r *http.Request) {
	hurry(w, r) // the transport, which may still be reading, as well
	u.reading <- struct{}{}
	_ = u.Close() // reads 256 KiB at most
}
