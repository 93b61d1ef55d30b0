package gateway

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/rules"
)

// asked is a visitor's request, as far as it is known: in doubt it waits.
type asked struct {
	method string     // empty: unknown
	url    *url.URL   // nil: unknown
	from   netip.Addr // not valid: unknown
}

// bypasses reports whether a visitor's request meets a rule of the room, so that
// it goes to the origin as it is: it joins nothing, and whoever sent it is
// neither counted nor known afterwards.
func (c *call) bypasses(a asked) bool {
	met := c.rule(a)
	if met {
		c.g.metrics.bypassed.WithLabelValues(c.room.Name).Inc()
	}
	return met
}

// rule reports whether a request meets one.
func (c *call) rule(a asked) bool {
	if c.room.Bypass == nil || a.url == nil {
		return false
	}
	q := c.client.ask(a, c.r.Header, c.g.c.CountryHeader)
	met, broken := c.room.Bypass.Match(&q)
	if broken > 0 {
		c.g.metrics.brokenRules.WithLabelValues(c.room.Name).Add(float64(broken))
	}
	return met != nil
}

// ask is what rules look at.
func (c *client) ask(a asked, h http.Header, countryHeader string) rules.Request {
	q := rules.Request{Method: a.method, HTTPS: c.https, Host: c.host, Path: rules.Path(a.url), Query: a.url.RawQuery, Addr: a.from, Header: h}
	if c.trusted {
		q.Country = country(h, countryHeader)
	}
	return q
}

// country is what the nearest proxy says; empty where it does not know.
func country(h http.Header, name string) string {
	if name == "" {
		return ""
	}
	v := strings.ToUpper(last(h, http.CanonicalHeaderKey(name)))
	if len(v) != 2 || v == "XX" || v == "ZZ" {
		return ""
	}
	return v
}

// askedFor is what a visitor asked another proxy for, as far as that tells, and
// is believed. The proxy's own method and address are not the visitor's.
func (c *call) askedFor() asked {
	a := asked{method: c.forwarded("X-Forwarded-Method", "X-Original-Method")}
	if c.client.trusted && len(c.r.Header["X-Forwarded-For"]) > 0 {
		a.from = c.client.addr
	}
	if !c.behindOwn() {
		a.url = c.forwardedURL()
		return a
	}
	a.method = c.r.Method // Envoy asks with what it was asked
	path := c.r.URL.EscapedPath()
	ours := c.g.questionIn(path)
	if u, err := url.ParseRequestURI(path[ours:]); err == nil && ours > 0 {
		u.RawQuery = c.r.URL.RawQuery
		a.url = u
	}
	return a
}

// forwardedURL is what a trusted proxy says that the visitor asked for. Some
// proxies set one of these headers and let what the visitor wrote in the others
// through; where they are not of one mind nothing is known.
func (c *call) forwardedURL() *url.URL {
	if !c.client.trusted {
		return nil
	}
	h := c.r.Header
	uris := slices.Concat(h["X-Forwarded-Uri"], h["X-Original-Uri"], h["X-Original-Url"])
	methods := slices.Concat(h["X-Forwarded-Method"], h["X-Original-Method"])
	if len(uris) == 0 || len(slices.Compact(methods)) > 1 || len(h["X-Forwarded-Host"]) > 1 {
		return nil
	}
	var said *url.URL
	for _, text := range uris {
		u, err := url.ParseRequestURI(text)
		if err != nil || said != nil && u.RequestURI() != said.RequestURI() {
			return nil
		}
		said = u
	}
	return said
}
