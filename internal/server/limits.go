package server

import (
	"net/netip"
	"slices"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/conns"
)

// limiters bound the connections of the ports, each by itself.
type limiters struct{ gateway, admin, peer, grpc *conns.Limiter }

// limit makes the limiters. They bound nothing before their listeners are there.
func (s *Server) limit() {
	s.share = conns.SharesHere(s.log)
	port := func(c conns.Config) *conns.Limiter {
		c.Logger = s.log
		l := conns.New(c)
		s.metrics.MustRegister(l.Metrics()...)
		return l
	}
	trusted := s.c.Proxies()
	s.limits = limiters{
		// A proxy brings everybody's connections, be it one that is listed or one in the
		// same network that somebody forgot to list.
		gateway: port(conns.Config{Name: "gateway", Max: s.share.Visitors, Exempt: func(a netip.Addr) bool {
			return a.IsPrivate() || a.IsLinkLocalUnicast() || slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
		}}),
		admin: port(conns.Config{Name: "admin", Max: s.share.Admin, Part: 2}),
		peer:  port(conns.Config{Name: "peer", Max: s.share.Peer, Part: 2}), // several nodes may share an address
		grpc:  port(conns.Config{Name: "grpc", Max: s.share.GRPC, Part: 2}), // and so may workers
	}
}

// bounds are the gateway's, as far as they follow from the connections that
// visitors may have. Requests whose body does not come hold some, and no more than
// a part: an eighth where the body is for the node itself, which needs it within
// seconds, a quarter where it is an upload to an origin, which may be long.
//
// Streams are as many as connections may be; over HTTP/2 one has many.
func (s *Server) bounds() gateway.Bounds {
	const least, streamsMany = 16, 20_000
	return gateway.Bounds{
		Streams:     max(streamsMany, s.share.Gateway(false)),
		OriginConns: s.share.Origins, Bodies: max(least, s.share.Visitors/8), Uploads: max(least, s.share.Visitors/4),
	}
}
