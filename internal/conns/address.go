package conns

import (
	"net"
	"net/netip"
)

// One address gets an eighth of a port's connections, unless the port's Config
// says otherwise, so that it takes several to fill it, and never fewer than
// perAddressMin, with which a household or a machine with some programs gets by.
// An eighth of the 28,000 that a gateway has of 65,536 files is 3,500: the 1,000
// event streams that a room allows an address behind which there are many people,
// and two more for each of their browsers.
const (
	partDefault   = 8
	perAddressMin = 16
)

// perAddress is what one address may have now.
func (l *Limiter) perAddress() int { return max(l.max/l.c.Part, perAddressMin) }

// groups are those whose connections count together: an IPv4 address, or an IPv6
// /64, which is what one household has, and its /48, which is what a provider
// gives to whoever asks. The zero prefix is none.
type groups [2]netip.Prefix

// groupTimes is how much a group may have of what an address may.
var groupTimes = [...]int{1, 4} //nolint:gochecknoglobals // a table

func groupsOf(a netip.Addr) (g groups) {
	if a.Is4() {
		g[0] = netip.PrefixFrom(a, 32)
		return g
	}
	g[0], _ = a.Prefix(64) // both lengths are good for IPv6
	g[1], _ = a.Prefix(48)
	return g
}

// counted reports whether the connections of an address have a bound.
func (l *Limiter) counted(a netip.Addr) bool {
	return a.IsValid() && !a.IsLoopback() && (l.c.Exempt == nil || !l.c.Exempt(a))
}

// addrPort is where a connection comes from. What is not TCP comes from nowhere.
func addrPort(a net.Addr) (netip.AddrPort, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || tcp == nil {
		return netip.AddrPort{}, false
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), true
}
