package admin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// named answers nobody who calls the port by a name that is not its own. A page
// whose name was made to point here (DNS rebinding) speaks to the port as its own
// site, with the browser of somebody who may reach it. It cannot show the token,
// and it cannot go by an address: the browser sends the name that it was given.
//
// Its own names are localhost, those in admin_hosts and the host of node.admin;
// its own addresses those of this machine on a loopback connection, else every
// address: ports are mapped, and whoever calls by an address was not led here.
func (a *admin) named(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.goesBy(r) && !a.proved(r) {
			a.fail(w, r, http.StatusForbidden, "host_refused",
				"The admin port does not go by "+shortened(r.Host)+". Add the name to admin_hosts, ask at an address of this node or at localhost, or send security.admin_token.")
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (a *admin) goesBy(r *http.Request) bool {
	if r.Host == "" {
		return true // HTTP/1.0, which no browser speaks
	}
	host := strings.TrimSuffix(strings.ToLower((&url.URL{Host: r.Host}).Hostname()), ".")
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(a.c.Hosts, host)
	}
	return ip.IsLoopback() || slices.Contains(a.c.Hosts, host) || !byLoopback(r)
}

// byLoopback reports whether a request came from this machine, as far as is known.
func byLoopback(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !ok || at.IP.IsLoopback()
}

// shortened is a caller's word as an answer repeats it.
func shortened(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.Quote(s)
}
