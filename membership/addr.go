package membership

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// lookup returns the addresses of a host: its own if it is one.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var ips []netip.Addr
	for _, ip := range found {
		ip = ip.Unmap()
		if ip.Zone() == "" {
			ips = append(ips, ip)
		}
	}
	if len(ips) == 0 {
		return nil, fmt.Errorf("%s has no address", host)
	}
	return ips, nil
}

// lookupOne returns one address of a host, IPv4 first.
func lookupOne(ctx context.Context, host string) (netip.Addr, error) {
	ips, err := lookup(ctx, host)
	if err != nil {
		return netip.Addr{}, err
	}
	slices.SortStableFunc(ips, func(a, b netip.Addr) int { return cmp.Compare(a.BitLen(), b.BitLen()) })
	return ips[0], nil
}

// outward is the address at which others are likely to reach a node that
// listens at every address: the one from which it would call a member, or
// anybody, and else the best of its interfaces. Nothing is sent.
func outward(join []string, v4 bool) netip.Addr {
	public := []string{"192.0.2.1:9", "[2001:db8::1]:9"} // documentation addresses: the default route
	for _, to := range slices.Concat(join, public) {
		host, _, _ := net.SplitHostPort(to)
		if _, err := netip.ParseAddr(host); err != nil {
			continue // a name; its addresses are on the default route more likely than not
		}
		c, err := net.Dial("udp", to)
		if err != nil {
			continue
		}
		ip := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
		_ = c.Close() // never written to
		if usable(ip, v4) {
			return ip
		}
	}
	var all []netip.Addr
	addrs, _ := net.InterfaceAddrs() // none is as good as an error: loopback remains
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p.Addr().Unmap())
		}
	}
	return best(all, v4)
}

func usable(ip netip.Addr, v4 bool) bool {
	return ip.IsGlobalUnicast() && ip.Zone() == "" && (ip.Is4() || !v4)
}

// best prefers private addresses to public ones and IPv4 to IPv6; without any
// it is loopback, which serves a cluster on one machine.
func best(all []netip.Addr, v4 bool) netip.Addr {
	all = slices.DeleteFunc(slices.Clone(all), func(ip netip.Addr) bool { return !usable(ip, v4) })
	if len(all) == 0 {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	rank := func(ip netip.Addr) int {
		n := ip.BitLen() // 32 or 128
		if !ip.IsPrivate() {
			n++
		}
		return n
	}
	slices.SortStableFunc(all, func(a, b netip.Addr) int { return cmp.Compare(rank(a), rank(b)) })
	return all[0]
}
