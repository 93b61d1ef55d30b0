package conns

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// HTTP makes h, which has not started, tell the limiter about its connections.
// It serves inner by way of the listener that is returned.
func (l *Limiter) HTTP(h *http.Server, inner net.Listener) net.Listener {
	next := h.Handler
	h.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, connOf(c))
	}
	h.ConnState = func(c net.Conn, s http.ConnState) {
		if g := connOf(c); g != nil {
			g.rests(s == http.StateIdle)
		}
	}
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(*Conn)
		c.asks(1)
		defer c.asks(-1)
		next.ServeHTTP(w, r)
	})
	return l.Listen(inner)
}

type connKey struct{}

// connOf finds the limiter's connection below TLS; nil: there is none.
func connOf(c net.Conn) *Conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	g, _ := c.(*Conn)
	return g
}
