package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/rules"
	"github.com/anteroom/anteroom/internal/ticket"
)

// How another proxy passes on a refusal.
type refusal uint8

const (
	wholeAnswer  refusal = iota // status, headers and body reach the browser
	statusOnly                  // 401 means no; the proxy has a page of its own to show
	redirectOnly                // the Location of a 302 reaches the browser
)

// What other proxies ask. Of a proxy that asks askOnly nothing but the status and the
// pass of a yes is used, as in the Gateway API (GEP-1494): a cookie has to go with a
// refusal.
const (
	ask     = "auth"
	askOnly = "auth-only"
)

// refusalOf knows the proxies. An Envoy, which calls us below its own path,
// cannot say its name.
func refusalOf(proxy string) (refusal, bool) {
	switch proxy {
	case "", "traefik", "caddy", "envoy":
		return wholeAnswer, true
	case "nginx", ingressNginx:
		return statusOnly, true
	case "haproxy":
		return redirectOnly, true
	default:
		return 0, false
	}
}

// apiAuth tells another proxy whether a visitor may go on to the site: 200
// without a body if so. It sets a cookie only when there is a new one to keep,
// and then exactly one.
func (c *call) apiAuth() error {
	c.byProxy = true
	proxy := c.r.URL.Query().Get("proxy")
	if c.behindOwn() {
		proxy = "envoy" // whose visitors write that query
	}
	how, known := refusalOf(proxy)
	if !known {
		return invalid("proxy: give nginx, ingress-nginx, traefik, caddy, envoy or haproxy.")
	}
	c.believe(proxy)
	c.comeFor(c.wanted())
	if m := c.forwardedMethod(); m != "" {
		c.method = m
	}
	to := c.alsoFor()
	if to.refused() {
		return c.unread(how)
	}
	free := c.room.Suspended || c.bypasses(c.askedFor())
	if len(to.others) > 0 && !c.passesElsewhere(to.others, how) {
		return nil
	}
	if free {
		return c.allow(standing{})
	}
	if preflight(c.method, c.r) {
		return c.authPreflight()
	}
	c.share()
	// Where a refusal carries no cookie a new place would be lost at once, and be called
	// in vain.
	c.mute = how != wholeAnswer
	join := c.state.HasRoom() || how == wholeAnswer && c.mayJoin()
	if c.yesOnly() && forAsset(c.r.Header) {
		join = false // a picture takes no cookie from a refusal
	}
	st, err := c.stand(join)
	if err == nil && st.in {
		if st.cookie != nil && c.yesOnly() {
			return c.handOver(st)
		}
		return c.allow(st)
	}
	switch how {
	case statusOnly:
		return c.deny(st, http.StatusUnauthorized)
	case redirectOnly:
		to := c.here
		if c.method != http.MethodGet && c.method != http.MethodHead {
			to = c.back() // the browser will come with GET
		}
		c.w.Header().Set("Location", c.client.origin()+c.own("page")+"?to="+url.QueryEscape(to)+c.tokenOn())
		return c.deny(st, http.StatusFound)
	default:
	}
	c.room = behindProxy(c.room)
	if err != nil {
		c.refuse(notServerError(err))
		return nil
	}
	c.wait(st)
	return nil
}

// alsoFor is where the request is, if servers read its path in different ways: in
// the room that the proxy asks about, and in others that some reading leads to. Of a
// path that is read in one way but for its capitals the proxy knows best where it leads
// as it is written.
func (c *call) alsoFor() address {
	u := c.writtenURL()
	if u == nil {
		return address{plain: true}
	}
	rooms := c.g.rooms.Load()
	var others []*route
	plain := rules.Plain(u)
	if plain {
		if r := rooms.alike(c.client.host, u.Path); r != rooms.lookup(c.client.host, u.Path) {
			others = []*route{r}
		}
	} else {
		to := rooms.meet(c.client.host, u, c.g.strictness)
		others = to.others
		if to.route != nil {
			others = append([]*route{to.route}, others...)
		}
	}
	others = slices.DeleteFunc(others, func(r *route) bool { return r.room.Name == c.room.Name })
	return address{route: &route{room: c.room}, others: others, plain: plain}
}

// writtenURL is the visitor's address as it was written; nil: unknown. What an
// Envoy asks has been tidied up.
func (c *call) writtenURL() *url.URL {
	if !c.behindOwn() {
		return c.forwardedURL()
	}
	written, _, _ := strings.Cut(c.r.RequestURI, "?")
	u, err := url.ParseRequestURI(written[c.g.questionIn(written):])
	if err != nil {
		return c.askedFor().url
	}
	return u
}

// unread refuses a path that servers read in different ways. Some proxies pass on
// no other status.
func (c *call) unread(how refusal) error {
	if how == wholeAnswer {
		return ambiguousPath(http.StatusBadRequest)
	}
	return ambiguousPath(http.StatusForbidden)
}

// passesElsewhere asks for the passes of the other rooms that a request may be
// for. If one is missing the visitor waits there, or is refused where the proxy
// would send them to this room.
func (c *call) passesElsewhere(others []*route, how refusal) bool {
	for _, r := range others {
		d := *c
		d.room, d.from = r.room, fromNowhere
		if d.room.Suspended || d.bypasses(d.askedFor()) {
			continue
		}
		st, known := d.g.c.Queue.Room(d.room.Name)
		d.state = st
		stands, err := standing{}, ticket.ErrUnavailable
		if known {
			stands, err = d.stand(how == wholeAnswer && d.mayJoin())
		}
		switch {
		case err == nil && stands.in: // its cookie is renewed by another request
			continue
		case how != wholeAnswer:
			d.g.fail(d.w, d.r, ambiguousPath(http.StatusForbidden))
		case err != nil:
			d.room = behindProxy(d.room)
			d.refuse(notServerError(err))
		default:
			d.room = behindProxy(d.room)
			d.wait(stands)
		}
		return false
	}
	return true
}

// authPreflight answers a preflight where the room says that we do, and the proxy
// can pass the answer on: a browser takes only a success for one, which is a yes
// to all proxies but Envoy. The others answer preflights by their own means, and
// are told no.
func (c *call) authPreflight() error {
	switch {
	case c.room.PreflightToOrigin:
		if after, ok := c.g.preflights.take(c.room.Name, c.client.addr, c.g.c.Queue.Clock()); !ok {
			return tooMany(after)
		}
		return c.allow(standing{preflight: true})
	case c.behindOwn():
		c.refusedOrigin()
		c.preflightAnswer(c.room.CORS.Methods, append(slices.Clone(c.room.CORS.Headers), ticketHeader))
		return nil
	}
	c.refusedOrigin()
	return &HTTPError{
		Status: http.StatusForbidden, Code: "preflight_refused", Title: "Preflights are for the proxy to answer",
		Detail: "Have the proxy answer them before it asks, or let the site do so with preflight: origin.",
	}
}

// allow lets the request pass.
func (c *call) allow(st standing) error {
	h := c.w.Header()
	if st.in {
		jwt, err := c.g.jwt(st.session)
		if err != nil {
			return err
		}
		h.Set(passHeader, jwt)
	} else if c.behindOwn() {
		remove := strings.ToLower(passHeader) // one that the visitor made up
		if st.preflight {
			remove += ",cookie,authorization,upgrade"
		}
		h.Set("X-Envoy-Auth-Headers-To-Remove", remove)
	}
	c.setCookie(st.cookie)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", "0")
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// handOver gets a cookie to a browser by way of a proxy that passes on none of ours
// with a yes: who wants a page is sent to where it turns out whether the browser kept
// it, and from there to the page. Whatever is no page goes on with the pass that it
// has, and comes again if it has none yet.
func (c *call) handOver(st standing) error {
	page := wantsPage(c.r.Header) && !forAsset(c.r.Header)
	reads := c.method == http.MethodGet || c.method == http.MethodHead
	switch {
	case page && reads:
		c.setCookie(st.cookie)
		return c.redirect(c.client.origin() + c.own("return") + "?to=" + url.QueryEscape(c.here))
	case st.renewed:
		st.cookie = nil
		return c.allow(st)
	case page:
		c.setCookie(st.cookie)
		c.bounce()
		return nil
	}
	c.setCookie(st.cookie)
	c.g.fail(c.w, c.r, &HTTPError{
		Status: http.StatusTooManyRequests, Code: "cookie_first", Title: "You are in",
		Detail: "Send the request again, with the cookie that came with this answer.", RetryAfter: 1,
	})
	return nil
}

// deny refuses without a word, which is all that some proxies pass on.
func (c *call) deny(st standing, status int) error {
	c.setCookie(st.cookie)
	h := c.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", "0")
	c.w.WriteHeader(status)
	return nil
}

// behindProxy is r with a status that reaches the browser: other proxies take
// every success for a yes, and every server error for a failure of the check.
func behindProxy(r *Room) *Room {
	if r.StatusCode >= 400 && r.StatusCode < 500 {
		return r
	}
	copied := *r
	copied.StatusCode = http.StatusTooManyRequests
	return &copied
}

// notServerError is err with such a status.
func notServerError(err error) error {
	e := errorOf(err)
	if e.Status < 500 {
		return e
	}
	return &HTTPError{
		Status: http.StatusTooManyRequests, Code: e.Code, Title: e.Title, Detail: e.Detail,
		RetryAfter: max(e.RetryAfter, 2), Err: e.Err,
	}
}

// ingressNginx is the name of the ingress controller of Kubernetes' own.
const ingressNginx = "ingress-nginx"

// believe takes out of what a trusted proxy sent the headers that it does not
// set itself: they are as the visitor wrote them. What is left says the same in
// the same words, whoever the proxy is.
func (c *call) believe(proxy string) {
	original := []string{"X-Original-Uri", "X-Original-Url", "X-Original-Method"}
	forwarded := []string{"X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host"}
	if !c.client.trusted {
		return
	}
	r := *c.r
	r.Header = c.r.Header.Clone()
	drop := func(names []string) {
		for _, name := range names {
			r.Header.Del(name)
		}
	}
	switch proxy {
	case "traefik", "caddy":
		drop(original)
	case "envoy": // its own request is the visitor's
		drop(original)
		drop(forwarded)
	case ingressNginx: // it tells the whole address in one header, and asks with our own host
		u, err := url.ParseRequestURI(only(r.Header, "X-Original-Url"))
		method := only(r.Header, "X-Original-Method")
		drop(original)
		drop(forwarded)
		if err == nil && u.Host != "" {
			r.Header.Set("X-Forwarded-Proto", u.Scheme)
			r.Header.Set("X-Forwarded-Host", u.Host)
			r.Header.Set("X-Forwarded-Uri", u.RequestURI())
			r.Header.Set("X-Forwarded-Method", method)
		}
	default:
		return // nothing is known of it but what the headers agree on
	}
	c.r, c.client = &r, c.g.client(&r)
}

// only is the value of a header that is there once.
func only(h http.Header, name string) string {
	if v := h[name]; len(v) == 1 {
		return v[0]
	}
	return ""
}

// behindOwn reports whether the visitor's path stands behind ours, as Envoy
// writes it.
func (c *call) behindOwn() bool {
	return c.r.PathValue("path") != "" || strings.HasSuffix(c.r.URL.Path, "/"+ask+"/") || strings.HasSuffix(c.r.URL.Path, "/"+askOnly+"/")
}

// yesOnly reports whether the proxy uses nothing of a yes but its status and the pass.
func (c *call) yesOnly() bool { return strings.HasSuffix(c.r.Pattern, "/"+askOnly+"/{path...}") }

// questionIn is the length of our part of a path with a visitor's behind it; 0
// for other paths.
func (g *Gateway) questionIn(written string) int {
	rest, ok := strings.CutPrefix(written, g.c.Prefix+"/v1/rooms/")
	name, op, _ := strings.Cut(rest, "/")
	asked, _, behind := strings.Cut(op, "/")
	if !ok || name == "" || name == "." || name == ".." || !behind || asked != ask && asked != askOnly {
		return 0
	}
	return len(written) - len(op) + len(asked)
}

// RoomAt returns the name of the room that an address of a site is in; empty if
// in none. Of a path that servers read in different ways it is the strictest room
// that any reading leads to.
func (g *Gateway) RoomAt(host string, u *url.URL) string {
	if to := g.rooms.Load().meet(hostOf(host), u, g.strictness); to.route != nil {
		return to.room.Name
	}
	return ""
}

// wanted is the path that a visitor asked a proxy for, if it may be believed.
func (c *call) wanted() string {
	if c.behindOwn() {
		u := url.URL{Path: "/" + c.r.PathValue("path"), RawQuery: c.r.URL.RawQuery}
		return local(u.RequestURI())
	}
	u, err := url.Parse(c.forwarded("X-Forwarded-Uri", "X-Original-Uri", "X-Original-Url"))
	if err != nil {
		return "/"
	}
	return local(u.RequestURI())
}

// forwardedMethod is the method of the visitor's request, as a trusted proxy
// says. Where its headers disagree one of them is the visitor's own, and nothing
// is known: a request must not pass for one that asks nobody to wait.
func (c *call) forwardedMethod() string {
	if !c.client.trusted {
		return ""
	}
	said := slices.Compact(slices.Concat(c.r.Header["X-Forwarded-Method"], c.r.Header["X-Original-Method"]))
	switch len(said) {
	case 0:
		return ""
	case 1:
		return said[0]
	default:
		return http.MethodGet
	}
}

// forwarded returns the first of these headers that a trusted proxy sent.
func (c *call) forwarded(names ...string) string {
	if !c.client.trusted {
		return ""
	}
	for _, name := range names {
		if v := c.r.Header.Get(name); v != "" {
			return v
		}
	}
	return ""
}
