package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// originWithin is how long it may take to get a connection to an origin.
const originWithin = 5 * time.Second

// errOriginsFull is the want of a connection, which is not the origin's fault.
var errOriginsFull = errors.New("gateway: as many connections to origins as there may be")

// origins makes connections to origins, and bounds how many there are in all.
// One connection of a visitor may carry a hundred requests, and each may need
// one of its own to the origin: the bound on the former does not bound these.
type origins struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	places chan struct{} // nil: no bound
	idle   func()        // closes the connections that carry no request
}

func newTransport(b Bounds) *http.Transport {
	o := &origins{dial: (&net.Dialer{Timeout: originWithin, KeepAlive: 30 * time.Second}).DialContext}
	if b.OriginConns > 0 {
		o.places = make(chan struct{}, b.OriginConns)
	}
	t := &http.Transport{
		DialContext:           o.DialContext,
		MaxIdleConns:          2048,
		MaxIdleConnsPerHost:   512,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   originWithin,
		ExpectContinueTimeout: time.Second,
		ResponseHeaderTimeout: max(0, b.OriginWait),
		DisableCompression:    true, // what the browser asked for is what it gets
		ForceAttemptHTTP2:     true,
	}
	o.idle = t.CloseIdleConnections
	return t
}

// DialContext waits for a place if it must. Who asked for the connection waits
// just as well for one that another request is done with.
func (o *origins) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if o.places == nil {
		return o.dial(ctx, network, address)
	}
	if err := o.take(ctx); err != nil {
		return nil, err
	}
	c, err := o.dial(ctx, network, address)
	if err != nil {
		<-o.places
		return nil, err
	}
	return &originConn{Conn: c, gone: sync.OnceFunc(func() { <-o.places })}, nil
}

func (o *origins) take(ctx context.Context) error {
	select {
	case o.places <- struct{}{}:
		return nil
	default:
	}
	o.idle() // perhaps another origin's are in the way
	wait := time.NewTimer(originWithin)
	defer wait.Stop()
	select {
	case o.places <- struct{}{}:
		return nil
	case <-wait.C:
		return errOriginsFull
	case <-ctx.Done():
		return ctx.Err()
	}
}

// originConn gives its place back when it is closed.
type originConn struct {
	net.Conn
	gone func()
}

func (c *originConn) Close() error {
	defer c.gone() // once the file descriptor is free
	return c.Conn.Close()
}

// CloseWrite passes on that a visitor's half of an upgraded connection is over.
func (c *originConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
