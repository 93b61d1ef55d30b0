package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// client is who sent a request and how, as far as it can be believed.
type client struct {
	addr    netip.Addr // invalid where the connection has none
	trusted bool       // it came through a trusted proxy, whose headers count
	https   bool
	host    string // lower case, no port
	site    string // host and port, as the browser sees them
}

// scheme is that of the address as the browser sees it.
func (c client) scheme() string {
	if c.https {
		return "https"
	}
	return "http"
}

// origin is scheme and host as the browser sees them.
func (c client) origin() string { return c.scheme() + "://" + c.site }

func (g *Gateway) client(r *http.Request) client {
	c := client{https: r.TLS != nil}
	if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		c.addr = a.Addr().Unmap()
	}
	c.trusted = g.trusts(c.addr)
	host := r.Host
	if c.trusted {
		if p := last(r.Header, "X-Forwarded-Proto"); p != "" {
			c.https = strings.EqualFold(p, "https")
		}
		if h := last(r.Header, "X-Forwarded-Host"); h != "" {
			host = h
		}
		c.addr = g.farthest(r.Header, c.addr)
	} else if c.addr.IsLoopback() || c.addr.IsPrivate() {
		g.noticeProxy(c.addr, r.Header)
	}
	c.site = host
	c.host = hostOf(host)
	return c
}

// noticeProxy tells of a proxy that nobody listed, once: a neighbour that asks for
// others. They all count as one, which is exempt from what is bounded per address.
func (g *Gateway) noticeProxy(a netip.Addr, h http.Header) {
	if len(h["X-Forwarded-For"])+len(h["Forwarded"])+len(h["X-Real-Ip"]) == 0 || g.proxy.Load() != nil {
		return
	}
	if g.proxy.CompareAndSwap(nil, &a) {
		g.c.Logger.Warn(g.Warning())
	}
}

// Warning is what an operator should know of how visitors come here; empty:
// nothing.
func (g *Gateway) Warning() string {
	a := g.proxy.Load()
	if a == nil {
		return ""
	}
	return "visitors come by way of " + a.String() + ", a proxy that trusted_proxies does not list: to this node they are all one address, " +
		"for which no bound per address holds; add it to trusted_proxies"
}

// hostOf is the host of a Host header, as rooms and rules know it.
func hostOf(header string) string { return strings.ToLower(strings.TrimSuffix(bare(header), ".")) }

func (g *Gateway) trusts(a netip.Addr) bool {
	for _, p := range g.c.TrustedProxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// farthest walks X-Forwarded-For from its end, where the nearest proxy wrote,
// to the first address that no trusted proxy has.
func (g *Gateway) farthest(h http.Header, near netip.Addr) netip.Addr {
	hops := strings.Split(strings.Join(h["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0 && g.trusts(near); i-- {
		a, err := netip.ParseAddr(bare(strings.TrimSpace(hops[i])))
		if err != nil {
			break
		}
		near = a.Unmap()
	}
	return near
}

// last is the last element of a list header: the nearest proxy's.
func last(h http.Header, name string) string {
	v := h[name]
	if len(v) == 0 {
		return ""
	}
	s := v[len(v)-1]
	return strings.TrimSpace(s[strings.LastIndexByte(s, ',')+1:])
}

// bare takes the port off a host or an address, and the brackets off the latter.
func bare(host string) string {
	if strings.IndexByte(host, ':') < 0 {
		return host // SplitHostPort would make an error of it
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// fromPage reports whether a browser's script or form sent r: programs do not
// say where a request comes from.
func fromPage(r *http.Request) bool { return r.Header.Get("Sec-Fetch-Site") != "" }

// wantsPage reports whether a person looks at the answer. Browsers say so in
// Sec-Fetch-Mode; the older ones ask for HTML by name.
func wantsPage(h http.Header) bool {
	if mode := h.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	html, json := accepts(h.Values("Accept"))
	return html > 0 && html >= json
}

// forAsset reports whether a browser fetches a part of a page, or a page ahead
// of time: nobody would see what we say, and it is no visit of its own.
func forAsset(h http.Header) bool {
	if strings.HasPrefix(h.Get("Sec-Purpose"), "prefetch") {
		return true
	}
	switch h.Get("Sec-Fetch-Dest") {
	case "", "document", "iframe", "frame", "empty", "embed", "object":
		return false
	default:
		return true
	}
}

// accepts returns the weights in thousandths that an Accept header gives to HTML and to JSON by
// name; 0 where it does not name them.
func accepts(values []string) (html, json int) {
	for media := range strings.SplitSeq(strings.Join(values, ","), ",") {
		kind, params, _ := strings.Cut(media, ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "text/html", "application/xhtml+xml":
			html = max(html, weight(params))
		case "application/json", "application/problem+json":
			json = max(json, weight(params))
		}
	}
	return html, json
}

// weight reads q from the parameters of a media range, in thousandths. What it
// cannot read counts in full.
func weight(params string) int {
	for p := range strings.SplitSeq(params, ";") {
		q, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(p)), "q=")
		if !ok {
			continue
		}
		whole, frac, _ := strings.Cut(q, ".")
		if whole != "0" {
			return 1000
		}
		n := 0
		for i := range 3 {
			n *= 10
			if i < len(frac) && '0' <= frac[i] && frac[i] <= '9' {
				n += int(frac[i] - '0')
			}
		}
		return n
	}
	return 1000
}
