package membership

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"

	"github.com/anteroom/anteroom/eviction"
)

func TestMetadataFitsWhateverTheAddress(t *testing.T) {
	host := strings.Repeat("a.", 124) // 248 bytes: with any port the longest that fits
	for _, addr := range []string{"0.0.0.0:1", ":65535", "[::]:7001", "[fd00::1]:7001", host + ":65535"} {
		want := saying{Peer: eviction.Peer{Member: eviction.Member{Name: "a", Boot: 1<<64 - 1}, Start: 1<<63 - 1}, addr: addr, version: strings.Repeat("v", versionMax)}
		b, err := encode(want)
		if err != nil {
			t.Errorf("encode(%.30s): %v", addr, err)
			continue
		}
		got, err := decode("a", b)
		if err != nil || len(b) > memberlist.MetaMaxSize {
			t.Errorf("%.30s: %d bytes, %v", addr, len(b), err)
		}
		at := netip.MustParseAddrPort("10.0.0.1:7946")
		if got.Peer != want.Peer || got.version != want.version || got.dialAddr(at) != want.dialAddr(at) {
			t.Errorf("%.30s came back as %v", addr, got)
		}
	}
	if _, err := encode(saying{addr: host + "aaaa:65535"}); err == nil {
		t.Error("an address of 258 bytes was taken")
	}
}

// The version is for people to read: of one that is cut short, or that would write
// elsewhere than it stands, nothing is shown, and the member is one all the same.
func TestAVersionIsReadWhereItCanBeShown(t *testing.T) {
	self := saying{Peer: eviction.Peer{Member: eviction.Member{Name: "a", Boot: 1}, Start: 1}, addr: "10.0.0.1:7001"}
	with := func(version string) []byte {
		self.version = version
		b, err := encode(self)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := with("v1.2.3")
	for _, c := range []struct {
		meta []byte
		want string
	}{
		{good, "v1.2.3"},
		{good[:len(good)-1], ""},
		{good[:len(good)-7], ""}, // a release that says nothing of it
		{with(""), ""},
		{with("v1\x1b[2J"), ""},
		{with("v1 (7496972)"), "v1 (7496972)"},
		{with(strings.Repeat("x", 300)), strings.Repeat("x", versionMax)},
		{append(good, "and what a later release adds"...), "v1.2.3"},
	} {
		s, err := decode("a", c.meta)
		if err != nil || s.version != c.want || s.addr != self.addr {
			t.Errorf("%q: %q, at %q (%v); want %q", c.meta, s.version, s.addr, err, c.want)
		}
	}
}

// Whatever a stranger says, reading it neither panics nor yields a member that
// could not be called.
func FuzzMetadata(f *testing.F) {
	good, err := encode(saying{Peer: eviction.Peer{Member: eviction.Member{Name: "a", Boot: 1}, Start: 1}, addr: "10.0.0.1:7001"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a", good)
	f.Add("", good[:len(good)-1])
	f.Add("a\x00", append(good, 1))
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		s, err := decode(name, b)
		if err != nil {
			return
		}
		if s.Start <= 0 || string(s.Name) != name || checkName(name) != nil || checkHostPort(s.addr, false) != nil {
			t.Errorf("decode(%q, %x) = %+v", name, b, s)
		}
		again, err := encode(s)
		if err != nil {
			t.Fatalf("encode(%+v): %v", s, err)
		}
		if twice, err := decode(name, again); err != nil || twice.Peer != s.Peer {
			t.Errorf("%+v came back as %+v, %v", s, twice, err)
		}
	})
}

func TestBestAddressOfSeveral(t *testing.T) {
	for _, test := range []struct {
		have string
		v4   bool
		want string
	}{
		{"", false, "127.0.0.1"},
		{"127.0.0.1 ::1 fe80::1 169.254.0.1", false, "127.0.0.1"},
		{"127.0.0.1 203.0.113.9 10.1.2.3 192.168.0.1", false, "10.1.2.3"},
		{"127.0.0.1 203.0.113.9 fd00::1", false, "203.0.113.9"},
		{"::1 2001:db8::9 fd00::1", false, "fd00::1"},
		{"::1 2001:db8::9", false, "2001:db8::9"},
		{"::1 2001:db8::9 203.0.113.9", true, "203.0.113.9"},
		{"::1 2001:db8::9", true, "127.0.0.1"},
	} {
		var all []netip.Addr
		for _, s := range strings.Fields(test.have) {
			all = append(all, netip.MustParseAddr(s))
		}
		if got := best(all, test.v4); got.String() != test.want {
			t.Errorf("best(%s, %v) = %v, want %s", test.have, test.v4, got, test.want)
		}
	}
}
