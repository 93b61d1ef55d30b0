package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

const (
	passHeader    = "X-Anteroom-Pass"  // to the origin: the pass as a JWT
	commandHeader = "Anteroom-Command" // from the origin: revoke ends the session
)

// forward passes the request on to the origin and its answer back. Streams,
// upgrades and trailers go through; a request that is cancelled here is
// cancelled there.
func (c *call) forward(st standing) {
	var jwt string
	if st.in {
		var err error
		if jwt, err = c.g.jwt(st.session); err != nil {
			c.refuse(err)
			return
		}
	}
	early, stall := false, c.g.c.Bounds.Stall
	w, in, body := pace(c.w, stall), *c.r, newUpload(c.w, c.r, stall)
	c.w, in.Body = w, body // of a copy: the server looks at its own request's
	answered := func(h http.Header) {
		body.release()
		if early = c.r.ProtoMajor == 1 && !body.over.Load(); early {
			h.Set("Connection", "close") // else net/http takes the rest of the body away from the origin, and waits for it
		}
	}
	proxy := httputil.ReverseProxy{
		Transport: c.g.transport,
		ErrorLog:  slog.NewLogLogger(c.g.c.Logger.Handler(), slog.LevelDebug),
		Rewrite:   func(p *httputil.ProxyRequest) { c.rewrite(p, jwt) },
		ModifyResponse: func(r *http.Response) error {
			c.cleanAnswer(r.Header, st)
			answered(r.Header)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			if body.brokenOff() {
				c.stalled(st)
				return
			}
			answered(w.Header())
			c.originFailed(st, err)
		},
	}
	defer func() { // deferred: an answer that breaks off is a panic
		body.release()
		if early {
			_ = w.FlushError() // the connection is closed in any case
			body.rest(w, c.r)
		}
		w.hold()
	}()
	proxy.ServeHTTP(w, &in)
}

// rewrite makes the origin's request of the visitor's. ReverseProxy has taken
// out what concerns one connection only, and all that says who forwarded it.
func (c *call) rewrite(p *httputil.ProxyRequest, jwt string) {
	for name := range p.Out.Header {
		if ours(name) || lookalike(name) || !c.client.trusted && claims(name) {
			delete(p.Out.Header, name)
		}
	}
	withoutOurs(p.Out.Header)
	if c.from == fromBearer {
		p.Out.Header.Del("Authorization") // it was for us
	}
	p.SetURL(c.room.Origin)
	p.Out.URL.RawQuery = p.In.URL.RawQuery // as it was written; we decide nothing by it
	p.Out.Host = p.In.Host
	p.Out.Trailer = p.In.Trailer // the same map: it is filled when the body has been read
	if c.client.trusted {
		p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	}
	p.SetXForwarded()
	scheme, host, _ := strings.Cut(c.client.origin, "://")
	p.Out.Header.Set("X-Forwarded-Proto", scheme)
	p.Out.Header.Set("X-Forwarded-Host", host)
	if jwt != "" {
		p.Out.Header.Set(passHeader, jwt)
	}
}

// claims reports whether a header says who forwarded a request: only trusted
// proxies may.
func claims(name string) bool {
	name = strings.ToLower(name)
	return name == "forwarded" || name == "x-real-ip" || strings.HasPrefix(name, "x-forwarded-")
}

// lookalike reports whether a header becomes one that we answer for where an
// origin takes _ for -.
func lookalike(name string) bool {
	if !strings.Contains(name, "_") {
		return false
	}
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	switch name {
	case "authorization", "connection", "content-length", "cookie", "host", "te", "trailer", "transfer-encoding", "upgrade":
		return true
	}
	return claims(name)
}

// cleanAnswer takes out of an origin's answer what only we may say, does what
// the origin commands, and adds the visitor's cookie.
func (c *call) cleanAnswer(h http.Header, st standing) {
	revoke := strings.EqualFold(strings.TrimSpace(h.Get(commandHeader)), "revoke")
	for name := range h {
		if ours(name) {
			delete(h, name)
		}
	}
	dropOurSetCookies(h)
	cookie := st.cookie
	if revoke && st.in {
		cookie = c.room.cookie(c.client, "", 0)
		c.revoke(st)
	}
	if cookie != nil {
		h.Add("Set-Cookie", cookie.String())
		private(h)
	}
}

// revoke ends the session because the origin says so: the visitor is done.
func (c *call) revoke(st standing) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx()), time.Second)
	defer cancel()
	if err := c.g.end(ctx, st.session.pass); err != nil {
		c.g.c.Logger.LogAttrs(ctx, slog.LevelWarn, "session not ended, its slot is free when the pass expires",
			slog.String("room", c.room.Name), slog.String("error", err.Error()))
	}
}

// private keeps caches from giving one visitor's cookie to another.
func private(h http.Header) {
	kept := []string{"private"}
	for _, line := range h["Cache-Control"] {
		for part := range strings.SplitSeq(line, ",") {
			part = strings.TrimSpace(part)
			name, _, _ := strings.Cut(strings.ToLower(part), "=")
			switch name {
			case "", "public", "private", "s-maxage":
			default:
				kept = append(kept, part)
			}
		}
	}
	h.Set("Cache-Control", strings.Join(kept, ", "))
	h.Del("CDN-Cache-Control")
	h.Del("Surrogate-Control")
}

// stalled answers a visitor who stopped in the middle of an upload. The origin
// has nothing to do with it, and the pass is kept.
func (c *call) stalled(st standing) {
	c.setCookie(st.cookie)
	if c.r.ProtoMajor == 1 {
		c.w.Header().Set("Connection", "close") // what follows may be the rest of the body
	}
	c.g.fail(c.w, c.r, &HTTPError{
		Status: http.StatusRequestTimeout, Code: "request_timeout", Title: "The request did not arrive in time",
		Detail: fmt.Sprintf("Nothing of its body came for %v. The pass is kept. Send it again.", c.g.c.Bounds.Stall),
	})
}

// originFailed answers for an origin that does not. The pass is kept.
func (c *call) originFailed(st standing, err error) {
	if c.ctx().Err() != nil {
		return // the visitor has gone
	}
	if errors.Is(err, errOriginsFull) {
		c.g.metrics.shed.Inc()
		c.setCookie(st.cookie)
		c.g.fail(c.w, c.r, &HTTPError{
			Status: http.StatusServiceUnavailable, Code: "unavailable", Title: "Not available just now",
			Detail: "There are too many requests to the site at once. The pass is kept. Try again.", RetryAfter: 5, Err: err,
		})
		return
	}
	c.g.metrics.originErrors.WithLabelValues(c.room.Name).Inc()
	c.g.c.Logger.LogAttrs(c.ctx(), slog.LevelWarn, "origin failed", slog.String("room", c.room.Name), slog.String("error", err.Error()))
	c.setCookie(st.cookie)
	status := http.StatusBadGateway
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		status = http.StatusGatewayTimeout
	}
	if wantsPage(c.r.Header) {
		c.page(c.view(PageOriginDown), status)
		return
	}
	c.g.fail(c.w, c.r, &HTTPError{
		Status: status, Code: "origin_down", Title: "The site behind the waiting room does not answer",
		Detail: "The pass is kept. Try again.", RetryAfter: 5,
	})
}
