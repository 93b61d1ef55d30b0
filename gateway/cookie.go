package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A room has one cookie; a pass takes the place of the ticket in it. On https
// the name has the __Host- prefix, with which a browser takes it from this very
// host only. Ours are all names that begin so:
const (
	cookiePrefix = "anteroom_"
	hostPrefix   = "__Host-"
)

// ticketAge is how long a browser keeps a ticket: for as long as a cluster
// that was started anew takes it back.
const ticketAge = 24 * time.Hour

func (r *Room) cookieName(https bool) string {
	name := cookiePrefix + cookieToken(r.CookieSuffix)
	if https {
		return hostPrefix + name
	}
	return name
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
	return &http.Cookie{
		Name: r.cookieName(c.https), Value: value, Path: "/", MaxAge: seconds,
		Secure: c.https, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// held returns what the browser holds for the room; "" for nothing.
func (r *Room) held(h http.Header, c client) string {
	name := r.cookieName(c.https)
	for _, line := range h["Cookie"] {
		for part := range strings.SplitSeq(line, ";") {
			if k, v, ok := strings.Cut(strings.TrimSpace(part), "="); ok && k == name {
				return v
			}
		}
	}
	return ""
}

func isOurs(cookie string) bool {
	return strings.HasPrefix(strings.TrimPrefix(strings.TrimSpace(cookie), hostPrefix), cookiePrefix)
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
