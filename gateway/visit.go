package gateway

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/ticket"
)

// visit answers a request to a site, which is next, or the room's origin where
// next is nil.
func (g *Gateway) visit(w http.ResponseWriter, r *http.Request, next http.Handler) {
	from := g.client(r)
	to := g.rooms.Load().meet(from.host, r.URL, g.strictness)
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace: // the latter would show scripts what cookies say
		hurry(w, r)
		g.rest(w, r)
		w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
		g.fail(w, r, wrongMethod("This is neither a tunnel nor a mirror."))
		return
	case next != nil && to.route == nil:
		next.ServeHTTP(w, r)
		return
	case next == nil && to.noSite():
		hurry(w, r)
		g.rest(w, r)
		g.fail(w, r, notFound())
		return
	case to.refused():
		hurry(w, r)
		g.rest(w, r)
		g.fail(w, r, ambiguousPath(http.StatusBadRequest))
		return
	}
	c := &call{g: g, w: w, r: r, room: to.room, client: from, method: r.Method, site: next}
	if next != nil {
		c.before = maps.Clone(w.Header())
	}
	c.comeFor(local(r.URL.RequestURI()))
	c.r = g.withoutChallenge(r, to.room)
	c.share()
	if st, ok := c.enters(); ok && c.elsewhere(to.others, &st) {
		c.goOn(st)
	}
}

// enters finds out whether the request may go on to the site as far as c's room
// is concerned. If not, the visitor has been answered.
func (c *call) enters() (standing, bool) {
	if c.room.Suspended || c.bypasses(asked{c.r.Method, c.r.URL, c.client.addr}) {
		return standing{}, true
	}
	if preflight(c.r.Method, c.r) {
		hurry(c.w, c.r)
		c.g.rest(c.w, c.r)
		return standing{preflight: true}, c.preflight()
	}
	var known bool
	if c.state, known = c.g.c.Queue.Room(c.room.Name); !known {
		c.refuse(ticket.ErrUnavailable) // configured, and not yet taken up
		return standing{}, false
	}
	st, err := c.stand(c.mayJoin())
	switch {
	case err != nil:
		c.refuse(err)
	case st.in:
		return st, true
	default:
		c.wait(st)
	}
	return st, false
}

// mayJoin reports whether the request is somebody's coming: a picture or a
// prefetch joins only where that means going straight in.
func (c *call) mayJoin() bool { return !forAsset(c.r.Header) || c.state.HasRoom() }

// wait answers somebody who waits, or who has no place for want of a request
// that would take one.
func (c *call) wait(st standing) {
	hurry(c.w, c.r)
	c.g.rest(c.w, c.r)
	c.setCookie(st.cookie)
	switch {
	case forAsset(c.r.Header) || !st.placed:
		c.retryAfter(max(2, ceilSeconds(st.answer)))
		c.w.Header().Set("Content-Length", "0")
		c.w.WriteHeader(c.waitStatus())
	case !wantsPage(c.r.Header):
		c.waitJSON(st)
	case c.method != http.MethodGet && c.method != http.MethodHead:
		// The body of a form cannot be kept. Where it was filled in, the
		// browser still has it, or at least its page can say what to do.
		c.bounce()
	default:
		v := c.viewOf(st)
		c.page(v, c.room.StatusCode)
	}
}

// waitStatus is the status for those who would not read a page.
func (c *call) waitStatus() int {
	if c.room.StatusCode >= 400 {
		return c.room.StatusCode
	}
	return http.StatusTooManyRequests
}

func (c *call) waitJSON(st standing) {
	p := c.place(st.answer)
	if !fromPage(c.r) || c.cookieless() {
		s, err := c.g.sealTicket(st.answer.Ticket)
		if err != nil {
			c.g.fail(c.w, c.r, err)
			return
		}
		p.Ticket = s
	}
	c.retryAfter(p.RefreshIntervalSeconds)
	c.writePlace(c.waitStatus(), &p)
}

func ceilSeconds(a ticket.Answer) int { return ceil(a.Refresh, 1e9) }

func (c *call) retryAfter(seconds int) {
	h := c.w.Header()
	h.Set("Retry-After", strconv.Itoa(seconds))
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", varies)
}

// varies names what a waiting answer depends on.
const varies = "Accept, Accept-Encoding, Accept-Language, Cookie, Sec-Fetch-Dest, Sec-Fetch-Mode"

// bounce sends a browser back with GET.
func (c *call) bounce() {
	_ = c.redirect(c.client.origin() + c.back()) // absolute: other proxies resolve a path against our address
}

// back is the page that a form was sent from, if that is on this host.
func (c *call) back() string {
	if u, err := url.Parse(c.r.Header.Get("Referer")); err == nil && u.Scheme+"://"+u.Host == c.client.origin() {
		return local(u.RequestURI())
	}
	return c.here
}

// refuse answers a visitor whom the queue cannot serve: with a page if that is
// what is wanted.
func (c *call) refuse(err error) {
	hurry(c.w, c.r)
	c.g.rest(c.w, c.r)
	if to, ok := needsChallenge(err); ok && wantsPage(c.r.Header) && !forAsset(c.r.Header) {
		c.challenged(to)
		return
	}
	if errors.Is(err, ticket.ErrHandedOn) && wantsPage(c.r.Header) && !forAsset(c.r.Header) {
		c.setCookie(c.room.cookie(c.client, "", 0))
		_ = c.redirect(c.client.origin() + c.own("moved") + "?to=" + url.QueryEscape(c.here))
		return
	}
	e := errorOf(err)
	kind := map[string]PageKind{
		"queue_full": PageFull, "room_closed": PageClosed, "too_many_requests": PageBusy, "unavailable": PageUnavailable,
	}[e.Code]
	if full := (*peraddress.Error)(nil); errors.As(err, &full) {
		kind = PageNetwork
	}
	if kind == "" || !wantsPage(c.r.Header) || forAsset(c.r.Header) || c.r.Context().Err() != nil {
		c.g.fail(c.w, c.r, err)
		return
	}
	status := e.Status
	if kind == PageClosed {
		status = c.room.StatusCode
	}
	v := c.view(kind)
	v.RefreshSeconds, v.RefreshURL = e.RetryAfter, c.here
	c.page(v, status)
}
