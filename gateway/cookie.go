package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A room has one cookie; a pass takes the place of the ticket in it. If it is
// for https only the name has the __Host- prefix, with which a browser takes it
// from this very host only; or __Secure- where it is for several hosts, see
// sharedDomain. Its path is always /, whatever the room's routes: our own pages
// need it. Ours are all names that begin so:
const (
	cookiePrefix = "anteroom_"
	hostPrefix   = "__Host-"
	securePrefix = "__Secure-" // a browser takes it over https only, and for several hosts too
)

// ticketHeader brings a program's ticket or pass in the cookie's stead.
const ticketHeader = "X-Anteroom-Ticket"

// Cookie says what a room's cookie is like. The words are Cloudflare's; the zero
// value stands for auto.
type Cookie struct {
	SameSite string // auto and lax: sent to our own pages; none: to frames in pages of other sites too; strict
	Secure   string // auto: as the request came; always: for https only; never
}

// secure reports whether the room's cookie is for https only.
func (r *Room) secure(https bool) bool {
	switch r.Cookie.Secure {
	case "always":
		return true
	case "never":
		return false
	default:
		return https
	}
}

// sameSite is the attribute. Browsers drop a cookie with None that is not for
// https only.
func (r *Room) sameSite(secure bool) http.SameSite {
	switch {
	case r.Cookie.SameSite == "strict":
		return http.SameSiteStrictMode
	case r.Cookie.SameSite == "none" && secure:
		return http.SameSiteNoneMode
	default:
		return http.SameSiteLaxMode
	}
}

// ticketAge is how long a browser keeps a ticket: for as long as a cluster
// that was started anew takes it back.
const ticketAge = 24 * time.Hour

func (r *Room) cookieName(c client) string {
	name := cookiePrefix + cookieToken(r.CookieSuffix)
	switch {
	case !r.secure(c.https):
		return name
	case r.domainFor(c) != "":
		return securePrefix + name
	default:
		return hostPrefix + name
	}
}

// domainFor is the domain of the room's cookie; empty: the host alone.
func (r *Room) domainFor(c client) string {
	d := r.cookieDomain
	if d != "" && (c.host == d || strings.HasSuffix(c.host, "."+d)) {
		return d
	}
	return ""
}

// cookieToken spells a name with the characters that a cookie's may have.
func cookieToken(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, ".%02x", c)
		}
	}
	return b.String()
}

// cookie returns the room's cookie, to be kept for age; 0 deletes it.
func (r *Room) cookie(c client, value string, age time.Duration) *http.Cookie {
	seconds := int((age + time.Second - 1) / time.Second)
	if seconds <= 0 {
		seconds = -1 // how http.Cookie spells Max-Age=0
	}
	secure := r.secure(c.https)
	sameSite := r.sameSite(secure)
	return &http.Cookie{
		Name: r.cookieName(c), Value: value, Domain: r.domainFor(c), Path: "/", MaxAge: seconds,
		Secure: secure, HttpOnly: true, SameSite: sameSite,
		// In a frame of another site browsers keep only a cookie of its own for
		// each site around it.
		Partitioned: sameSite == http.SameSiteNoneMode,
	}
}

// held returns what the browser holds for the room, or a program sends in the
// cookie's stead; "" for nothing.
func (r *Room) held(h http.Header, c client) string {
	name := r.cookieName(c)
	for _, line := range h["Cookie"] {
		for part := range strings.SplitSeq(line, ";") {
			if k, v, ok := strings.Cut(strings.TrimSpace(part), "="); ok && k == name {
				return v
			}
		}
	}
	return h.Get(ticketHeader)
}

func isOurs(cookie string) bool {
	cookie = strings.TrimPrefix(strings.TrimSpace(cookie), hostPrefix)
	return strings.HasPrefix(strings.TrimPrefix(cookie, securePrefix), cookiePrefix)
}

// withoutOurs takes our cookies out of a request's header and leaves the
// others as they were written.
func withoutOurs(h http.Header) {
	var lines []string
	for _, line := range h["Cookie"] {
		if !strings.Contains(line, cookiePrefix) {
			lines = append(lines, line)
			continue
		}
		var parts []string
		for part := range strings.SplitSeq(line, ";") {
			if !isOurs(part) && strings.TrimSpace(part) != "" {
				parts = append(parts, strings.TrimSpace(part))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, strings.Join(parts, "; "))
		}
	}
	if lines == nil {
		delete(h, "Cookie")
		return
	}
	h["Cookie"] = lines
}

// dropOurSetCookies drops from an answer the cookies that only we may set.
func dropOurSetCookies(h http.Header) {
	set := h["Set-Cookie"]
	kept := set[:0]
	for _, line := range set {
		if !isOurs(line) {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		delete(h, "Set-Cookie")
		return
	}
	h["Set-Cookie"] = kept
}
