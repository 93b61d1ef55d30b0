package gateway_test

import "net/netip"

// loopback is where the tests' requests come from.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
