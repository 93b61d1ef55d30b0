package gateway

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CORS is what scripts of other sites may do with a room's part of a site. The
// zero value lets nobody's do anything.
type CORS struct {
	Origins     []string      `json:"origins,omitempty"` // https://app.example.com, https://*.example.com, or * for any
	Methods     []string      `json:"methods,omitempty"`
	Headers     []string      `json:"headers,omitempty"` // or * for any
	Credentials bool          `json:"credentials,omitempty"`
	MaxAge      time.Duration `json:"max_age,omitempty"`
}

// named reports whether an origin is one of the list, and not just any.
func (c *CORS) named(origin string) bool {
	return slices.ContainsFunc(c.Origins, func(o string) bool {
		scheme, below, ok := strings.Cut(o, "://*")
		return o == origin || ok && strings.HasPrefix(origin, scheme+"://") && len(origin) > len(o)-1 && strings.HasSuffix(origin, below)
	})
}

// allows returns what Access-Control-Allow-Origin says to a script of an origin;
// empty: nothing.
func (c *CORS) allows(origin string) string {
	switch {
	case origin == "" || len(c.Origins) == 0:
		return ""
	case c.named(origin):
		return origin
	case slices.Contains(c.Origins, "*"):
		return "*"
	}
	return ""
}

// share lets a script of another site read an answer of ours, if it may.
func (c *call) share() {
	if len(c.room.CORS.Origins) == 0 {
		return
	}
	h := c.w.Header()
	h.Add("Vary", "Origin")
	to := c.room.CORS.allows(c.r.Header.Get("Origin"))
	if to == "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", to)
	h.Set("Access-Control-Expose-Headers", "Retry-After")
	if c.room.CORS.Credentials {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
}

// unshare takes that back where it is the origin that answers: it knows better.
func unshare(h http.Header) {
	if h["Access-Control-Allow-Origin"] != nil {
		delete(h, "Access-Control-Allow-Origin")
		delete(h, "Access-Control-Expose-Headers")
		delete(h, "Access-Control-Allow-Credentials")
	}
	delete(h, "Vary")
}

// cookieless reports whether a script of another site asks that may not send
// cookies: its ticket goes with the answer.
func (c *call) cookieless() bool {
	cors := &c.room.CORS
	return !cors.Credentials && c.r.Header.Get("Sec-Fetch-Site") != "same-origin" && cors.allows(c.r.Header.Get("Origin")) != ""
}

// trusts reports whether a page of another site may do what only our own may:
// one that the room names, or any without cookies.
func (c *CORS) trusts(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return c.allows(origin) != "" && (c.Credentials && c.named(origin) || r.Header["Cookie"] == nil)
}

// apiHeaders are those with which a script brings a ticket or a pass to us, and a
// body in JSON.
func apiHeaders() []string { return []string{"Authorization", "Content-Type", ticketHeader} }

// preflightAnswer says what a script may do.
func (c *call) preflightAnswer(methods, headers []string) {
	h, cors := c.w.Header(), &c.room.CORS
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
	if to := cors.allows(c.r.Header.Get("Origin")); to != "" {
		h.Set("Access-Control-Allow-Origin", to)
		if cors.Credentials {
			h.Set("Access-Control-Allow-Credentials", "true")
		}
		h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		if slices.Contains(headers, "*") { // of which browsers except some
			headers = slices.DeleteFunc(append(slices.Clone(headers), c.wantedHeaders()...), func(s string) bool { return s == "*" })
		}
		h.Set("Access-Control-Allow-Headers", strings.Join(headers, ", "))
		h.Set("Access-Control-Max-Age", strconv.Itoa(int(cors.MaxAge/time.Second)))
	}
	c.w.WriteHeader(http.StatusNoContent)
}

// wantedMax is how many headers of a preflight are looked at.
const wantedMax = 50

// wantedHeaders are those that a preflight asks for.
func (c *call) wantedHeaders() (names []string) {
	for name := range strings.SplitSeq(c.r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.TrimSpace(name)
		token := strings.IndexFunc(name, func(r rune) bool {
			return r != '-' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
		}) < 0
		if name != "" && token && len(names) < wantedMax {
			names = append(names, name)
		}
	}
	return names
}
