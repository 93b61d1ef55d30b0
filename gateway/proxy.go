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
	passHeader = "X-Anteroom-Pass" // to the origin: the pass as a JWT

	// From the origin: revoke ends the session. The second is Cloudflare's.
	commandHeader           = "Anteroom-Command"
	cloudflareCommandHeader = "Cf-Waiting-Room-Command"
)

// forward passes the request on to the origin and its answer back. Streams,
// upgrades and trailers go through; a request that is cancelled here is
// cancelled there.
func (c *call) forward(st standing) {
	f := &forwarding{call: c, standing: st, began: time.Now()}
	if st.in {
		var err error
		if f.jwt, err = c.g.jwt(st.session); err != nil {
			c.refuse(err)
			return
		}
	}
	stall, in := c.g.c.Bounds.Stall, c.r
	f.paced = pace(c.w, c.r, stall)
	if c.upgrade(st) != "" {
		var err error
		if f.paced.tunnel, f.lasts, err = c.tunnel(st); err != nil {
			c.refuse(err)
			return
		}
		defer f.paced.tunnel.ended()
		in = c.r.WithContext(f.lasts)
	}
	c.w = f.paced
	if c.r.ContentLength != 0 { // else nobody reads a body
		in = new(*in) // the server looks at its own request's body
		if st.preflight {
			hurry(c.w, c.r)
			in.Body, in.ContentLength, in.TransferEncoding = http.NoBody, 0, nil
		} else {
			f.body = newUpload(f.paced.ResponseWriter, c.r, stall)
			c.g.uploads.begin(&f.body.arrival, c.w, c.client.addr, f.body)
			in.Body = f.body
		}
	}
	f.proxy = httputil.ReverseProxy{
		Transport: c.g.transport, ErrorLog: c.g.proxyLog, BufferPool: f,
		Rewrite: f.rewrite, ModifyResponse: f.begins, ErrorHandler: f.failed,
	}
	if f.plain = f.paced.tunnel == nil && f.body == nil; f.plain {
		c.room.flow.asks()
	}
	defer f.end() // deferred: an answer that breaks off is a panic
	f.proxy.ServeHTTP(f.paced, in)
}

// forwarding is a request on its way to the origin, and the answer on its way back.
type forwarding struct {
	*call
	standing standing
	began    time.Time
	jwt      string          // of the pass; empty where none is asked for
	lasts    context.Context // of the tunnel that the connection may become; nil: none
	answer   *http.Response  // nil: none has come
	paced    *paced
	body     *upload // nil: there is none
	plain    bool    // it has no body, and wants no tunnel
	early    bool    // the answer began before the body's end, and the connection ends with it
	proxy    httputil.ReverseProxy
}

// begins is called when the origin's answer has come.
func (f *forwarding) begins(r *http.Response) error {
	f.counted(r.StatusCode)
	f.room.flow.says(f.room.Watch, r.Header)
	unshare(f.w.Header())
	f.cleanAnswer(r.Header, f.standing)
	f.cleanTrailer(r)
	if f.paced.tunnel != nil && r.StatusCode == http.StatusSwitchingProtocols {
		go f.paced.tunnel.watch(f.lasts)
	}
	f.answered(r.Header)
	return nil
}

// failed is called when there is none.
func (f *forwarding) failed(_ http.ResponseWriter, _ *http.Request, err error) {
	if f.body.brokenOff() {
		f.stalled(f.standing, f.body.crowdedOut())
		return
	}
	f.answered(f.w.Header())
	if f.ctx().Err() == nil && !errors.Is(err, errOriginsFull) { // else the visitor has gone, or it was not asked
		f.counted(0)
	}
	f.originFailed(f.standing, err)
}

// counted counts what came of the request; status 0: no answer.
func (f *forwarding) counted(status int) {
	took := time.Since(f.began)
	f.g.metrics.origin(f.room.Name, status, took)
	f.room.flow.over(f.room.Watch, f.plain, status, took)
	f.room.answers.add(f.began.Add(took), status, took)
}

// answered is called when an answer begins, with its header.
func (f *forwarding) answered(h http.Header) {
	f.body.release()
	if f.early = f.r.ProtoMajor == 1 && !f.body.whole(); f.early {
		h.Set("Connection", "close") // else net/http takes the rest of the body away from the origin, and waits for it
	}
}

func (f *forwarding) end() {
	f.dropTrailer()
	f.body.release()
	if f.early {
		_ = f.paced.FlushError() // the connection is closed in any case
		f.body.rest(f.paced, f.r)
	}
	f.paced.hold()
}

// copyLen is as much as is read of an origin's answer, and written, at once.
const copyLen = 32 << 10

// Get returns a buffer to copy the answer with.
func (f *forwarding) Get() []byte {
	if b, ok := f.g.copying.Get().(*[copyLen]byte); ok {
		return b[:]
	}
	return make([]byte, copyLen)
}

// Put takes it back for another's answer, unless a write failed: the goroutine
// that writes a frame of HTTP/2 may still look at what a stream wanted to write
// that was reset meanwhile, and must not find what is another visitor's there.
func (f *forwarding) Put(b []byte) {
	if !f.paced.failed {
		f.g.copying.Put((*[copyLen]byte)(b))
	}
}

// rewrite makes the origin's request of the visitor's. ReverseProxy has taken
// out what concerns one connection only, and all that says who forwarded it.
func (f *forwarding) rewrite(p *httputil.ProxyRequest) {
	h := p.Out.Header
	if f.standing.preflight {
		asksOnly(h)
	}
	for name := range h {
		if foreign(name, f.client.trusted) || !f.standing.in && overridesMethod(name) {
			delete(h, name)
		}
	}
	if f.paced.tunnel == nil && h["Upgrade"] != nil { // as a server does that does not know the protocol
		delete(h, "Upgrade")
		delete(h, "Connection")
	}
	withoutOurs(h)
	if f.from == fromBearer {
		delete(h, "Authorization") // it was for us
	}
	p.SetURL(f.room.Origin)
	p.Out.URL.RawQuery = p.In.URL.RawQuery // as it was written; we decide nothing by it
	p.Out.Host = p.In.Host
	p.Out.Trailer = f.announced()
	if f.client.trusted {
		h["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	}
	p.SetXForwarded()
	scheme, host := f.client.scheme(), f.client.site
	h.Set("X-Forwarded-Proto", scheme)
	h.Set("X-Forwarded-Host", host)
	if f.jwt != "" {
		h.Set(passHeader, f.jwt)
	}
}

// foreign reports whether a header has no business at an origin: it is ours, or
// passes itself off as what we answer for, or as what was asked for.
func foreign(name string, trusted bool) bool {
	return isOurName(name) || lookalike(name) || overrides(name) || !trusted && claims(name)
}

// overrides reports whether frameworks take a header for the address or the method
// that was asked for, in the stead of those by which the room was found. Not even
// a trusted proxy's go on: it may have passed on the visitor's.
func overrides(name string) bool {
	return begins(name, "X-Original-") || begins(name, "X-Rewrite-") || strings.EqualFold(name, "Http2-Settings")
}

// overridesMethod reports whether they take it for the method. Who has a pass may
// ask with any; a bypass rule may be about some.
func overridesMethod(name string) bool {
	if len(name) < len("X-Http-Method") || name[0] != 'X' && name[0] != 'x' {
		return false
	}
	switch strings.ToLower(strings.ReplaceAll(name, "_", "-")) {
	case "x-http-method", "x-http-method-override", "x-method-override":
		return true
	}
	return false
}

// isOurName is ours, in less time where the name is spelt as most are.
func isOurName(name string) bool {
	if strings.IndexByte(name, '_') >= 0 {
		return ours(name)
	}
	return begins(name, "X-Anteroom-") || begins(name, "Anteroom-")
}

func begins(name, with string) bool {
	return len(name) >= len(with) && strings.EqualFold(name[:len(with)], with)
}

// claims reports whether a header says who forwarded a request: only trusted
// proxies may.
func claims(name string) bool {
	return strings.EqualFold(name, "Forwarded") || strings.EqualFold(name, "X-Real-Ip") || begins(name, "X-Forwarded-")
}

// lookalike reports whether a header becomes one that we answer for where an
// origin takes _ for -.
func lookalike(name string) bool {
	if strings.IndexByte(name, '_') < 0 {
		return false
	}
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	switch name {
	case "authorization", "connection", "content-length", "cookie", "host", "te", "trailer", "transfer-encoding", "upgrade":
		return true
	}
	return claims(name) || overrides(name)
}

// cleanAnswer takes out of an origin's answer what only we may say, does what
// the origin commands, and adds the visitor's cookie.
func (c *call) cleanAnswer(h http.Header, st standing) {
	revoke := !c.room.IgnoreOrigin && (commands(h[commandHeader]) || commands(h[cloudflareCommandHeader]))
	if revoke {
		delete(h, cloudflareCommandHeader) // it was for us; else it may be for who stands before us
	}
	for name := range h {
		if isOurName(name) {
			delete(h, name)
		}
	}
	dropOurSetCookies(h)
	cookie := st.cookie
	if revoke && st.in {
		cookie = c.room.cookie(c.client, "", 0)
		c.revoke(st)
	}
	for _, k := range append(st.cookies, cookie) {
		if k != nil {
			h.Add("Set-Cookie", k.String())
			private(h)
		}
	}
}

// commands reports whether an origin says revoke.
func commands(lines []string) bool {
	for _, line := range lines {
		for word := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(word), "revoke") {
				return true
			}
		}
	}
	return false
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
func (c *call) stalled(st standing, crowded bool) {
	c.setCookie(st.cookie)
	if c.r.ProtoMajor == 1 {
		c.w.Header().Set("Connection", "close") // what follows may be the rest of the body
	}
	why, again := fmt.Sprintf("Nothing of its body came for %v.", c.g.c.Bounds.Stall), 0
	if crowded {
		why, again = "Too many uploads are on their way at once, and it was the oldest.", 5
	}
	c.g.fail(c.w, c.r, &HTTPError{
		Status: http.StatusRequestTimeout, Code: "request_timeout", Title: "The request did not arrive in time",
		Detail: why + " The pass is kept. Send it again.", RetryAfter: again,
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
