package gateway

import (
	"bufio"
	"context"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"
)

// Before is the waiting room in front of a handler of the same process: who may go
// on to the site goes to next, whatever the room's origin, and so does a request
// that is for no room. How long clients may take, and who forwarded a request, is
// the affair of the server around both.
func (g *Gateway) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, next) })
}

// goOn lets the request through to the site.
func (c *call) goOn(st standing) {
	if c.site == nil {
		c.forward(st)
		return
	}
	in := new(*c.r)
	in.Header = c.r.Header.Clone()
	w := &inside{ResponseWriter: c.w, call: c, standing: st}
	if err := w.readies(in.Header); err != nil {
		c.refuse(err)
		return
	}
	if st.preflight {
		hurry(c.w, c.r)
		in.Body, in.ContentLength, in.TransferEncoding = http.NoBody, 0, nil
	}
	if c.upgrade(st) != "" {
		var err error
		if w.tunnel, w.lasts, err = c.tunnel(st); err != nil {
			c.refuse(err)
			return
		}
		defer w.tunnel.ended()
		in = in.WithContext(w.lasts)
	}
	unshare(c.w.Header())
	maps.Copy(c.w.Header(), c.before)
	began := time.Now()
	defer func() { // deferred: an answer that breaks off is a panic
		w.ends()
		c.g.metrics.origin(c.room.Name, w.status, time.Since(began))
	}()
	c.site.ServeHTTP(w, in)
}

// inside is what the next handler writes its answer to.
type inside struct {
	http.ResponseWriter
	call     *call
	standing standing
	tunnel   *tunnel         // that the connection may become; nil: none
	lasts    context.Context // of the tunnel
	status   int             // 0: nothing was written yet
}

// readies takes out of the visitor's headers what only we may say, and adds it.
// What says who forwarded the request is left to the server around us.
func (w *inside) readies(h http.Header) error {
	c := w.call
	if w.standing.preflight {
		asksOnly(h)
	}
	for name := range h {
		if foreign(name, true) || !w.standing.in && overridesMethod(name) {
			delete(h, name)
		}
	}
	if h["Upgrade"] != nil && c.upgrade(w.standing) == "" {
		delete(h, "Upgrade")
		delete(h, "Connection")
	}
	withoutOurs(h)
	if c.from == fromBearer {
		delete(h, "Authorization") // it was for us
	}
	if !w.standing.in {
		return nil
	}
	jwt, err := c.g.jwt(w.standing.session)
	if err == nil {
		h.Set(passHeader, jwt)
	}
	return err
}

// Unwrap is for http.ResponseController.
func (w *inside) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// begins is called when the answer's header is as it will be. The site's answer may
// command us, and must not speak for us.
func (w *inside) begins(status int) {
	if w.status != 0 || status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	w.status = status
	w.call.cleanAnswer(w.Header(), w.standing)
}

func (w *inside) WriteHeader(status int) {
	w.begins(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *inside) Write(b []byte) (int, error) {
	w.begins(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// FlushError is what http.ResponseController calls.
func (w *inside) FlushError() error {
	w.begins(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack is what http.ResponseController calls when the site agrees to an upgrade.
// A connection that nobody asked to be a tunnel is the handler's own affair.
func (w *inside) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return conn, rw, err
	}
	w.begins(http.StatusSwitchingProtocols)
	if w.tunnel == nil {
		return conn, rw, nil
	}
	context.AfterFunc(w.lasts, func() { _ = conn.Close() })
	go w.tunnel.watch(w.lasts)
	return hijacked{conn, &w.tunnel.sent}, rw, nil
}

// ends is called when the handler has returned, or panics. If it wrote nothing,
// whoever answers in its place does so with the visitor's cookie.
func (w *inside) ends() {
	h := w.Header()
	if w.status == 0 {
		w.call.cleanAnswer(h, w.standing)
		return
	}
	for name := range h { // what is new is a trailer
		if isOurName(strings.TrimPrefix(name, http.TrailerPrefix)) {
			delete(h, name)
		}
	}
}
