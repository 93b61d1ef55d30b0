package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// listenable says what is wrong with an address to listen on.
func listenable(addr string) error {
	host, port, err := splitAddr(addr, "0.0.0.0:8080")
	switch {
	case err != nil:
		return err
	case !validHost(host) && host != "":
		return fmt.Errorf("%q has no host that can be listened on; give an address of this machine, or 0.0.0.0 for all", addr)
	case port < 0:
		return fmt.Errorf("%q has no port; give one from 1 to 65535, or 0 for any free one", addr)
	}
	return nil
}

// dialable says what is wrong with an address to connect to.
func dialable(addr string) error {
	host, port, err := splitAddr(addr, "10.0.0.2:7946")
	switch {
	case err != nil:
		return err
	case !validHost(host) || isWildcard(host):
		return fmt.Errorf("%q has no host to connect to; give the name or address of a node", addr)
	case port < 1:
		return fmt.Errorf("%q has no port; give that of the node's gossip, such as 7946", addr)
	}
	return nil
}

// splitAddr takes host:port apart; port is -1 if it is none.
func splitAddr(addr, example string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		if strings.Count(addr, ":") > 1 {
			return "", 0, fmt.Errorf("%q is not host:port; give one such as [2001:db8::2]:7946, with brackets", addr)
		}
		return "", 0, fmt.Errorf("%q is not host:port; give one such as %s", addr, example)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 {
		port = -1
	}
	return host, port, nil
}

// hostOf is the host of host:port, or all of addr if there is no port.
func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return strings.Trim(addr, "[]")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func isWildcard(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}

// validHost reports whether host is an IP address or could be a DNS name.
func validHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > 253 {
		return false
	}
	digits := true // a name of digits and dots only is a mistyped address
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, r := range label {
			letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_'
			if !letter && (r < '0' || r > '9') {
				return false
			}
			digits = digits && !letter
		}
	}
	return !digits
}

// clash reports whether two listeners could not both have their address.
func clash(a, b string) bool {
	hostA, portA, errA := splitAddr(a, "")
	hostB, portB, errB := splitAddr(b, "")
	if errA != nil || errB != nil || portA != portB || portA <= 0 {
		return false
	}
	return hostA == hostB || isWildcard(hostA) || isWildcard(hostB)
}
