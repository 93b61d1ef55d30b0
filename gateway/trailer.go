package gateway

import (
	"net/http"
	"strings"
)

// announced is what the origin is told of a request's trailers. They are filled
// when the body has been read, from what came: a trailer that was not announced,
// or that has no business there, does not go on.
func (f *forwarding) announced() http.Header {
	if f.body == nil || len(f.r.Trailer) == 0 {
		return nil
	}
	out := make(http.Header, len(f.r.Trailer))
	for name := range f.r.Trailer {
		if trails(name) {
			out[name] = nil
		}
	}
	f.body.ended = func() {
		for name := range out {
			out[name] = f.r.Trailer[name]
		}
	}
	return out
}

// trails reports whether a field may come after a request's body. Some servers add
// trailers to the headers: what says who asks, for what, or where the body ends,
// would be believed that nobody has looked at (RFC 9110, section 6.5.1).
func trails(name string) bool {
	if foreign(name, false) || overridesMethod(name) {
		return false
	}
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	for _, prefix := range []string{"access-control-", "cf-", "if-", "proxy-", "sec-", "x-envoy-"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	switch name {
	case "authorization", "cache-control", "client-ip", "connection", "content-encoding", "content-length", "content-range", "content-type", "cookie",
		"expect", "fastly-client-ip", "host", "keep-alive", "max-forwards", "origin", "pragma", "range", "referer", "set-cookie", "te", "trailer",
		"transfer-encoding", "true-client-ip", "upgrade", "via", "x-client-ip", "x-cluster-client-ip":
		return false
	}
	return true
}

// cleanTrailer takes out of the trailers that an answer announces those that are
// ours. Which there are besides shows at its end.
func (f *forwarding) cleanTrailer(r *http.Response) {
	for name := range r.Trailer {
		if isOurName(name) {
			delete(r.Trailer, name)
		}
	}
	f.answer = r
}

// dropTrailer takes them out of those that came after all.
func (f *forwarding) dropTrailer() {
	if f.answer == nil {
		return
	}
	for name := range f.answer.Trailer {
		if isOurName(name) {
			delete(f.w.Header(), name)
			delete(f.w.Header(), http.TrailerPrefix+name)
		}
	}
}
