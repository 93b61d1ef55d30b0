package rules

import (
	"net/http"
	"strings"
)

// operand is something that a request tells.
type operand struct {
	name  string
	text  func(*Request) string // nil: the address, or a flag
	known func(*Request) bool   // nil: always
	flag  func(*Request) bool   // of ssl
	style style
}

func (o *operand) isAddress() bool { return o.text == nil && o.flag == nil }

// style is what all values of an operand have in common, so that a comparison
// with something else is a slip that can be told.
type style uint8

const (
	anyStyle style = iota
	lowerCase
	upperCase
	pathStyle  // begins with a slash, decoded
	uriStyle   // has a path in it
	queryStyle // without its question mark
)

// field returns what a name stands for.
func field(name string) (operand, bool) {
	hasPath := func(r *Request) bool { return r.Path != "" }
	hasHost := func(r *Request) bool { return r.Host != "" }
	o := operand{name: name}
	switch name {
	case "http.request.uri.path", "path":
		o.text, o.known, o.style = func(r *Request) string { return r.Path }, hasPath, pathStyle
	case "http.request.uri.path.extension", "extension":
		o.text, o.known, o.style = func(r *Request) string { return extension(r.Path) }, hasPath, lowerCase
	case "http.request.uri", "uri":
		o.text, o.known, o.style = (*Request).uri, hasPath, pathStyle
	case "http.request.full_uri":
		o.text, o.style = (*Request).fullURI, uriStyle
		o.known = func(r *Request) bool { return hasPath(r) && hasHost(r) }
	case "http.request.uri.query", "query":
		o.text, o.style = func(r *Request) string { return r.Query }, queryStyle
	case "http.request.method", "method":
		o.text, o.style = func(r *Request) string { return r.Method }, upperCase
		o.known = func(r *Request) bool { return r.Method != "" }
	case "http.host", "host":
		o.text, o.known, o.style = func(r *Request) string { return r.Host }, hasHost, lowerCase
	case "http.user_agent", "user_agent":
		o.text = func(r *Request) string { return r.header("User-Agent") }
	case "http.referer", "referer":
		o.text = func(r *Request) string { return r.header("Referer") }
	case "http.cookie":
		o.text = func(r *Request) string { return r.header("Cookie") }
	case "ip.src.country", "ip.geoip.country", "country":
		o.text, o.style = func(r *Request) string { return r.Country }, upperCase
		o.known = func(r *Request) bool { return r.Country != "" }
	case "ip.src", "ip":
		o.known = func(r *Request) bool { return r.Addr.IsValid() }
	case "ssl":
		o.flag = func(r *Request) bool { return r.HTTPS }
	default:
		return o, false
	}
	return o, true
}

// fieldNames are those to suggest.
func fieldNames() []string {
	return []string{
		"http.request.uri.path", "http.request.uri.path.extension", "http.request.uri.query", "http.request.uri", "http.request.full_uri",
		"http.request.method", "http.host", "http.user_agent", "http.referer", "http.cookie", "ip.src", "ip.src.country", "ssl",
		"http.request.headers", "http.request.cookies",
		"path", "extension", "query", "uri", "method", "host", "user_agent", "referer", "ip", "country",
	}
}

// headerField is a header's first value. The error says why there is no such
// field.
func headerField(name string) (operand, string) {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || c == ':' }):
		return operand{}, "no name of a header; give one such as \"x-api-key\""
	case canonical == "Host":
		return operand{}, "the host is http.host"
	case canonical == "Forwarded" || strings.HasPrefix(canonical, "X-Forwarded-") || canonical == "X-Real-Ip" ||
		canonical == "Cf-Connecting-Ip" || canonical == "True-Client-Ip" || canonical == "X-Client-Ip":
		return operand{}, name + " is what anybody can send; ip.src is the visitor's address, as trusted_proxies tell it"
	}
	return operand{name: "the header " + name, text: func(r *Request) string { return r.header(canonical) }}, ""
}

func cookieField(name string) (operand, string) {
	if name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || c == ';' || c == '=' }) {
		return operand{}, "no name of a cookie; give one such as \"staff\""
	}
	return operand{name: "the cookie " + name, text: func(r *Request) string { return r.cookie(name) }}, ""
}
