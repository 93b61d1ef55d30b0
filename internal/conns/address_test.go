package conns

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
)

// far is a connection from somewhere.
type far struct {
	net.Conn
	at *net.TCPAddr
}

func (f far) RemoteAddr() net.Addr { return f.at }

// addresses admits connections from addresses.
type addresses struct {
	*Limiter
	port int
	log  bytes.Buffer
}

func newAddresses(most int) *addresses {
	a := &addresses{}
	a.Limiter = New(Config{Name: "peer", Max: most, Logger: slog.New(slog.NewTextHandler(&a.log, nil)), Exempt: netip.MustParsePrefix("203.0.113.0/24").Contains})
	return a
}

func (a *addresses) comes(from string) *Conn {
	_, theirs := net.Pipe()
	a.port++
	return a.admit(far{theirs, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), uint16(a.port)))})
}

func TestOneAddressDoesNotFillAPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAddresses(160) // 20 each
		other := a.comes("198.51.100.2")
		first := a.comes("198.51.100.1")
		for range 200 {
			if a.comes("198.51.100.1") == nil {
				t.Fatal("a newcomer was refused while others of its address are quiet")
			}
		}
		if !first.gone || other.gone || len(a.all.conns) != 21 || a.evicted[byAddress] != 181 {
			t.Errorf("%d connections, %d evicted; the longest quiet one gone: %v; the other address's gone: %v", len(a.all.conns), a.evicted[byAddress], first.gone, other.gone)
		}
	})
}

func TestAnAddressWhoseConnectionsAllCarryRequestsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAddresses(160)
		for range 20 {
			a.comes("198.51.100.1").asks(1)
		}
		if a.comes("198.51.100.1") != nil || a.refused[byAddress] != 1 {
			t.Error("an address got more than its part")
		}
		if a.comes("198.51.100.2") == nil {
			t.Error("another address was refused with it")
		}
		if log := a.log.String(); !strings.Contains(log, "address=198.51.100.1 limit=20") {
			t.Errorf("the log does not say which address: %s", log)
		}
	})
}

func TestWhoCountsAsOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			from func(i int) string
			most int
		}{
			"an IPv4 address":            {func(int) string { return "198.51.100.1" }, 20},
			"the same in IPv6's writing": {func(i int) string { return []string{"198.51.100.1", "::ffff:198.51.100.1"}[i%2] }, 20},
			"an IPv6 /64":                {func(i int) string { return fmt.Sprintf("2001:db8:1:1::%x", i) }, 20},
			"an IPv6 /48":                {func(i int) string { return fmt.Sprintf("2001:db8:1:%x::1", i) }, 80},
			"this machine":               {func(int) string { return "127.0.0.1" }, 100},
			"who is exempt":              {func(int) string { return "203.0.113.7" }, 100},
		} {
			a := newAddresses(160)
			for i := range 100 {
				if g := a.comes(c.from(i)); g != nil {
					g.asks(1)
				}
			}
			if got := len(a.all.conns); got != c.most {
				t.Errorf("%s: %d connections, want %d", name, got, c.most)
			}
			for g := range a.all.conns {
				_ = g.Close()
			}
			if len(a.of) != 0 || len(a.from) != 0 {
				t.Errorf("%s: %d addresses and %d connections are remembered after all are closed", name, len(a.of), len(a.from))
			}
		}
	})
}
