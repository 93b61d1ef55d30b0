package server

import (
	"net/netip"

	"github.com/anteroom/anteroom/internal/config"
)

// openTo says of each port where it is and who may do something there, for the
// line that a node logs when it starts: whoever reads it at night knows at a
// glance what the world can reach.
func openTo(c config.Config, at Addresses, profiles bool) []any {
	closed := func(at, whom string) string {
		if at == "" {
			return config.None
		}
		return at + ", open to " + whom
	}
	reach := func(at string) string {
		if a, err := netip.ParseAddrPort(at); err == nil && a.Addr().Unmap().IsLoopback() {
			return "this machine"
		}
		return "the network"
	}
	operators := reach(at.Admin)
	switch {
	case !c.Security.AdminToken.Empty():
		operators += " with admin_token"
	case c.TokensForAdmin():
		operators += " with a token"
	}
	if c.Security.TLS.Admin.Cert != "" {
		operators += " by https"
	}
	if profiles {
		operators += ", profiles too"
	}
	programs := reach(at.GRPC)
	if len(c.Security.Tokens) > 0 {
		programs += " with a token"
	}
	visitors := "everyone"
	if reach(at.Gateway) == "this machine" {
		visitors = "this machine"
	}
	if c.Security.TLS.Gateway.Cert != "" {
		visitors += " by https"
	}
	return []any{
		"gateway", closed(at.Gateway, visitors), "admin", closed(at.Admin, operators), "grpc", closed(at.GRPC, programs),
		"peer", closed(at.Peer, "members with the cluster's key"), "gossip", closed(at.Gossip, "the same"),
	}
}
