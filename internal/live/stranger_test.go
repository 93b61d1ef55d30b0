package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stranger is a second machine: a network namespace, joined to this one by a
// pair of virtual Ethernet devices, whose addresses are public ones. Loopback and
// private addresses are exempt from what is bounded per address, so that an
// attacker, or a crowd that must be no exception, has to speak from there.
//
//	s := newStranger(t)
//	c := newCluster(t, 10)
//	c.open(s) // gateways listen on all addresses, peer and gossip on s.host
//	c.run(3)
//	client := s.client(s.addr(7)) // an http.Client that speaks from 198.18.x.7
//	answer, err := client.Post(c.nodes[0].gateway()+"/_anteroom/v1/rooms/shop/join", "", nil)
//
// What is dialed from there may be named as it is here: 127.0.0.1 in an address
// is replaced by that of this machine. dial is for everything else that takes a
// function (grpc.WithContextDialer, visitors.Config's Transport), packets for
// UDP, listen for a server over there, do for anything that makes sockets.
//
// The namespace has no name and lives as long as this process holds it open:
// nothing stays behind, not even when the test is killed.
type stranger struct {
	t     testing.TB
	index byte
	link  string   // the device on this machine's side
	space *os.File // the namespace
	host  string   // this machine's address over there
	host6 string   // the same; "" where there is no IPv6
}

// needsRoot skips a test that cannot have what only root gets, and fails it
// where nothing is to be skipped.
func needsRoot(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv("ANTEROOM_NO_SKIP") != "" {
		t.Fatalf("needs root for %s, and ANTEROOM_NO_SKIP is set: %v", what, err)
	}
	t.Skipf("SKIPPED: needs root for %s: %v", what, err)
}

func newStranger(t testing.TB) *stranger {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real processes; set ANTEROOM_E2E=1")
	}
	const what = "a network namespace"
	if _, err := exec.LookPath("ip"); err != nil {
		needsRoot(t, what+" and iproute2", err)
	}
	s := &stranger{t: t}
	err := apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		var err error
		s.space, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		needsRoot(t, what, err)
	}
	t.Cleanup(func() { _ = s.space.Close() })
	if err := s.plug(); err != nil {
		needsRoot(t, what, err)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", s.link).Run() })
	if err := s.route(); err != nil {
		t.Fatalf("a network namespace: %v", err)
	}
	return s
}

// The addresses of the two devices. Each knows the other's from the start: on a
// busy machine nobody may answer within the three seconds for which a kernel asks.
const macHere, macThere = "02:00:5e:00:53:01", "02:00:5e:00:53:02"

// plug makes the pair of devices. The name of the one here is what tests that
// run at the same time exclude one another by.
func (s *stranger) plug() error {
	space := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.space.Fd())
	first := rand.IntN(256)
	for i := range 256 {
		s.index = byte(first + i)
		s.link = fmt.Sprintf("anteroom%d", s.index)
		out, err := exec.Command("ip", "link", "add", s.link, "address", macHere, "type", "veth",
			"peer", "name", "outside", "address", macThere, "netns", space).CombinedOutput()
		if err == nil {
			return nil
		}
		if !strings.Contains(string(out), "exists") {
			return fmt.Errorf("ip link add: %w: %s", err, out)
		}
	}
	return errors.New("256 tests have one already; remove what is left over: ip link del anteroom0")
}

// route gives both sides their addresses. Those over there are routes to
// loopback rather than addresses of a device, so that a whole network is theirs.
func (s *stranger) route() error {
	x := s.index
	s.host = fmt.Sprintf("198.19.%d.1", x)
	here := fmt.Sprintf("addr add 198.19.%d.1/32 dev %s\nlink set %[2]s up\n"+
		"neigh add 198.18.%[1]d.1 lladdr %[3]s dev %[2]s nud permanent\nroute add 198.18.%[1]d.0/24 via 198.18.%[1]d.1 dev %[2]s onlink\n", x, s.link, macThere)
	there := fmt.Sprintf("link set lo up\nlink set outside up\nroute add local 198.18.%d.0/24 dev lo\n"+
		"neigh add 198.19.%[1]d.1 lladdr %[2]s dev outside nud permanent\nroute add default via 198.19.%[1]d.1 dev outside onlink\n", x, macHere)
	if err := batch(here); err != nil {
		return err
	}
	if err := s.do(func() error { return batch(there) }); err != nil {
		return err
	}
	here = fmt.Sprintf("addr add 3fff:0:%x::1/64 dev %s nodad\nneigh add 3fff:0:%[1]x::2 lladdr %[4]s dev %[2]s nud permanent\nroute add 2001:db8:%x::/40 via 3fff:0:%[1]x::2 dev %[2]s\n", x, s.link, int(x)<<8, macThere)
	there = fmt.Sprintf("addr add 3fff:0:%x::2/64 dev outside nodad\nneigh add 3fff:0:%[1]x::1 lladdr %[3]s dev outside nud permanent\n"+
		"route add local 2001:db8:%[2]x::/40 dev lo\nroute add default via 3fff:0:%[1]x::1 dev outside\n", x, int(x)<<8, macHere)
	if err := batch(here, "-6"); err == nil && s.do(func() error { return batch(there, "-6") }) == nil {
		s.host6 = fmt.Sprintf("3fff:0:%x::1", x)
	}
	return nil
}

// batch has ip do what is said, line by line.
func batch(lines string, flags ...string) error {
	cmd := exec.Command("ip", append(flags, "-batch", "-")...)
	cmd.Stdin = strings.NewReader(lines)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s\n%s", err, out, lines)
	}
	return nil
}

// addr is the i-th of the stranger's addresses, from 1 to 254.
func (s *stranger) addr(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 18, s.index, byte(i)}) }

// addr6 is an address in one of the stranger's /64 networks, which are parts of
// /48 networks: 256 of them with 65,536 each.
func (s *stranger) addr6(site byte, network uint16, host int) netip.Addr {
	s.t.Helper()
	if s.host6 == "" {
		needsRoot(s.t, "a network namespace with IPv6", errors.New("this machine has none"))
	}
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8, s.index, site, byte(network >> 8), byte(network)}
	a[14], a[15] = byte(host>>8), byte(host)
	return netip.AddrFrom16(a)
}

// apart runs f on a thread that may change its namespace, and waits for it.
func apart(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- err
			return
		}
		defer func() { _ = home.Close() }()
		err = f()
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread() // else the thread ends with this goroutine
		}
		done <- err
	}()
	return <-done
}

// do runs f over there: sockets that it makes, and processes that it starts, are
// the stranger's. What f starts goroutines for is not.
func (s *stranger) do(f func() error) error {
	return apart(func() error {
		if err := unix.Setns(int(s.space.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// bindable has a socket take an IPv6 address that is no device's.
func bindable(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1) })
	return errors.Join(err, failed)
}

// dial returns a function that connects from one of the stranger's addresses, by
// TCP or UDP.
func (s *stranger) dial(from netip.Addr) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		d := net.Dialer{Timeout: 5 * time.Second, Control: bindable, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
		if strings.HasPrefix(network, "udp") {
			d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
		}
		address = s.seen(from, address)
		err = s.do(func() error {
			conn, err = d.DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
}

// seen is how an address of this machine reads over there.
func (s *stranger) seen(from netip.Addr, address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		if host = s.host; from.Is6() {
			host = s.host6
		}
	}
	return net.JoinHostPort(host, port)
}

// client returns a client that speaks from one of the stranger's addresses. It
// follows no redirects.
func (s *stranger) client(from netip.Addr) *http.Client {
	t := &http.Transport{DialContext: s.dial(from), MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute}
	s.t.Cleanup(t.CloseIdleConnections)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: t, Timeout: 10 * time.Second, CheckRedirect: stay}
}

// packets opens a UDP socket at one of the stranger's addresses. Port 0 is any.
func (s *stranger) packets(from netip.Addr, port int) net.PacketConn {
	s.t.Helper()
	var conn net.PacketConn
	err := s.do(func() (err error) {
		l := net.ListenConfig{Control: bindable}
		conn, err = l.ListenPacket(s.t.Context(), "udp", netip.AddrPortFrom(from, uint16(port)).String())
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// listen serves TCP at one of the stranger's addresses, which this machine
// reaches as it is.
func (s *stranger) listen(at netip.Addr, port int) net.Listener {
	s.t.Helper()
	var listener net.Listener
	err := s.do(func() (err error) {
		l := net.ListenConfig{Control: bindable}
		listener, err = l.Listen(s.t.Context(), "tcp", netip.AddrPortFrom(at, uint16(port)).String())
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// open has the nodes listen where the stranger reaches them: the gateway on all
// addresses, peer and gossip on the one that both sides can dial. The admin port
// stays on loopback. Call it before run.
func (c *cluster) open(s *stranger) {
	c.listen = map[string]string{"gateway": "::", "peer": s.host, "gossip": s.host}
	if s.host6 == "" {
		c.listen["gateway"] = "0.0.0.0"
	}
}

// From over there one is seen with the address that one speaks from, by IPv4 and
// by IPv6, and both ways work.
func TestStrangerSpeaksFromPublicAddresses(t *testing.T) {
	s := newStranger(t)
	seen := make(chan string, 1)
	here, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.RemoteAddr })}
	go func() { _ = server.Serve(here) }()
	defer func() { _ = server.Close() }()
	_, port, _ := net.SplitHostPort(here.Addr().String())
	from := []netip.Addr{s.addr(1), s.addr(254)}
	if s.host6 != "" {
		from = append(from, s.addr6(0, 0, 1), s.addr6(255, 65535, 2))
	}
	for _, from := range from {
		a, err := s.client(from).Get("http://127.0.0.1:" + port)
		if err != nil {
			t.Errorf("from %s: %v", from, err)
			continue
		}
		_ = a.Body.Close()
		if got := netip.MustParseAddrPort(<-seen).Addr(); got != from || got.IsPrivate() || got.IsLoopback() {
			t.Errorf("seen as %s, want %s", got, from)
		}
		there := s.listen(from, 0)
		conn, err := net.DialTimeout("tcp", there.Addr().String(), 5*time.Second)
		if err != nil {
			t.Errorf("to %s: %v", there.Addr(), err)
			continue
		}
		_ = conn.Close()
	}
	out := s.packets(s.addr(3), 0)
	in, err := net.ListenPacket("udp", net.JoinHostPort(s.host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	if _, err := out.WriteTo([]byte("x"), in.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	_ = in.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, at, err := in.ReadFrom(make([]byte, 1)); err != nil || at.String() != out.LocalAddr().String() {
		t.Errorf("a packet of %v is from %v: %v", out.LocalAddr(), at, err)
	}
}
