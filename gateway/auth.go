package gateway

import (
	"net/http"
	"net/url"
)

// How another proxy passes on a refusal.
type refusal uint8

const (
	wholeAnswer  refusal = iota // status, headers and body reach the browser
	statusOnly                  // 401 means no; the proxy has a page of its own to show
	redirectOnly                // the Location of a 302 reaches the browser
)

// refusalOf knows the proxies. An Envoy, which calls us below its own path,
// cannot say its name.
func refusalOf(proxy string) (refusal, bool) {
	switch proxy {
	case "", "traefik", "caddy", "envoy":
		return wholeAnswer, true
	case "nginx":
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
	how, known := refusalOf(c.r.URL.Query().Get("proxy"))
	if !known {
		return invalid("proxy: give nginx, traefik, caddy, envoy or haproxy.")
	}
	c.here = c.wanted()
	if m := c.forwarded("X-Forwarded-Method", "X-Original-Method"); m != "" {
		c.method = m
	}
	if c.room.Suspended || c.method == http.MethodOptions && c.r.Header.Get("Access-Control-Request-Method") != "" {
		return c.allow(standing{})
	}
	if c.bypasses(c.askedFor()) {
		return c.allow(standing{})
	}
	// Where a refusal carries no cookie a new place would be lost at once.
	join := c.state.HasRoom() || how == wholeAnswer && c.mayJoin()
	st, err := c.stand(join)
	if err == nil && st.in {
		return c.allow(st)
	}
	switch how {
	case statusOnly:
		return c.deny(st, http.StatusUnauthorized)
	case redirectOnly:
		c.w.Header().Set("Location", c.client.origin()+c.own("page")+"?to="+url.QueryEscape(c.here))
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

// allow lets the request pass.
func (c *call) allow(st standing) error {
	h := c.w.Header()
	if st.in {
		jwt, err := c.g.jwt(st.session)
		if err != nil {
			return err
		}
		h.Set(passHeader, jwt)
	}
	c.setCookie(st.cookie)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", "0")
	c.w.WriteHeader(http.StatusOK)
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

// wanted is the path that a visitor asked a proxy for, if it may be believed.
func (c *call) wanted() string {
	if rest := c.r.PathValue("path"); rest != "" { // Envoy's
		u := url.URL{Path: "/" + rest, RawQuery: c.r.URL.RawQuery}
		return local(u.RequestURI())
	}
	u, err := url.Parse(c.forwarded("X-Forwarded-Uri", "X-Original-Uri", "X-Original-Url"))
	if err != nil {
		return "/"
	}
	return local(u.RequestURI())
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
