package conns

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Conn is a connection that has a place until it is closed.
type Conn struct {
	net.Conn
	limiter *Limiter
	at      netip.AddrPort // of the other side; zero: not TCP
	groups  groups

	mu       sync.Mutex
	until    time.Time // deadline of writes
	quiet    uint64    // the turn at which it fell quiet; 0: it carries a request, or is gone
	requests int       // being answered; with HTTP/2 there may be many
	idle     bool      // the server waits for a request; one over gRPC always does beside the calls
	gone     bool
}

func (c *Conn) quietSince() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quiet
}

// asks counts a request that begins or ends. A nil connection is one that is not
// known.
func (c *Conn) asks(n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests += n
	c.settle()
}

// rests notes whether the server waits for a request.
func (c *Conn) rests(idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = idle
	c.settle()
}

// settle finds out whether it carries a request. After its last one it does
// until the server says that it is idle: only then is the answer out.
func (c *Conn) settle() {
	switch {
	case c.requests > 0 || c.gone:
		c.quiet = 0
	case c.idle && c.quiet == 0:
		c.quiet = c.limiter.turn.Add(1)
	}
}

// Close gives the place back, once the file descriptor is free.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	c.gone = true
	c.settle()
	c.mu.Unlock()
	c.limiter.remove(c)
	return err
}

// SetWriteDeadline leaves a deadline alone that is only a little nearer: every
// request sets one, most of them on a connection that had one a moment ago.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sooner := t.Sub(c.until); !t.IsZero() && !c.until.IsZero() && 0 <= sooner && sooner < soonerMax {
		return nil
	}
	c.until = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline is both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// soonerMax is how much earlier a client may be given up than the server says.
const soonerMax = time.Second

// CloseWrite is what a server does before it closes, so that its last words
// arrive, and what ends one half of an upgraded connection. A server lets half a
// second pass in between, in which the connection carries nothing any more: a
// flood of requests that are refused does not hold places for that long.
func (c *Conn) CloseWrite() error {
	c.rests(true)
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
