package rules

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Request is what rules look at.
type Request struct {
	Method  string // empty: unknown
	HTTPS   bool
	Host    string // lower case, without port; empty: unknown
	Path    string // as Path returns it; empty: unknown
	Query   string // as it was written, without the question mark
	Addr    netip.Addr
	Country string // of the address, two capitals; empty: unknown
	Header  http.Header
}

// Path returns the path of u as rules compare it: decoded, without dots and
// double slashes, with the slash at its end if it has one. It is empty where
// servers disagree what the path is, so that no rule about paths is met: with an
// encoded slash or a backslash in it, with parameters after a semicolon, which
// some drop, encoded twice, with control characters, with spaces or dots at the
// end of a segment, beginning with two slashes, or with dots and double slashes
// both. Readings has what they take it for.
func Path(u *url.URL) string {
	p := u.Path
	if p == "" || p[0] != '/' || u.RawPath != "" && encodedSlash(u.RawPath) {
		return ""
	}
	switch dots, double, odd := look(p); {
	case odd || double && (dots || p[1] == '/'):
		return ""
	case dots || double:
		return clean(p)
	}
	return p
}

// ambiguous reports whether some server reads a constant of a rule otherwise.
func ambiguous(p string) bool {
	_, _, odd := look(p)
	return odd
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func encodedSlash(raw string) bool {
	return strings.Contains(raw, "%2f") || strings.Contains(raw, "%2F")
}

// extension is what stands after the last dot of a path, in lower case.
func extension(p string) string {
	p = p[strings.LastIndexByte(p, '/')+1:]
	i := strings.LastIndexByte(p, '.')
	if i < 0 {
		return ""
	}
	return strings.ToLower(p[i+1:])
}

func (r *Request) uri() string {
	if r.Query == "" {
		return r.Path
	}
	return r.Path + "?" + r.Query
}

func (r *Request) fullURI() string {
	if r.HTTPS {
		return "https://" + r.Host + r.uri()
	}
	return "http://" + r.Host + r.uri()
}

// header returns the first value; name is canonical.
func (r *Request) header(name string) string {
	if v := r.Header[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// cookie returns the first cookie of that name.
func (r *Request) cookie(name string) string {
	for _, line := range r.Header["Cookie"] {
		for part := range strings.SplitSeq(line, ";") {
			if k, v, ok := strings.Cut(strings.TrimSpace(part), "="); ok && k == name {
				return v
			}
		}
	}
	return ""
}
