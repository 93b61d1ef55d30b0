package rules

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/gaissmai/bart"
)

// Lists are sets of addresses by name: $office in an expression is the one
// named office.
type Lists map[string]*List

// List is a set of addresses.
type List struct{ table bart.Lite }

// NewList makes a list of addresses and ranges. The error is about the first
// item that is neither.
func NewList(items []string) (*List, error) {
	l := new(List)
	for _, text := range items {
		p, err := ParseItem(text)
		if err != nil {
			return nil, err
		}
		l.table.Insert(p)
	}
	return l, nil
}

// ParseItem reads an address, or a range such as 192.0.2.0/24.
func ParseItem(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return p, fmt.Errorf("%q is no address; give one such as 192.0.2.7, or a range such as 192.0.2.0/24", text)
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%s is IPv4 within IPv6; write the IPv4 range", text)
	case p != p.Masked():
		return p, fmt.Errorf("%s has bits beyond its length; write %s, or %s for that address alone", text, p.Masked(), p.Addr())
	case p.Bits() == 0:
		return p, errors.New(text + " is everyone; to let everyone through, suspend the room")
	}
	return p, nil
}

// Contains reports whether a is in the list.
func (l *List) Contains(a netip.Addr) bool { return l.table.Lookup(a.WithZone("")) }
