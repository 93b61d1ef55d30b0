package gateway

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestLRUForgetsWhatWasNotUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLRU[int, int](3)
		var twin []int // keys, the last used at the end
		use := func(k int) {
			for i, o := range twin {
				if o == k {
					twin = append(twin[:i:i], twin[i+1:]...)
					break
				}
			}
			twin = append(twin, k)
			twin = twin[max(0, len(twin)-3):]
		}
		for range 50 {
			k := rapid.IntRange(0, 5).Draw(t, "key")
			switch rapid.SampledFrom([]string{"put", "at", "remove"}).Draw(t, "do") {
			case "put":
				l.put(k, k*10)
				use(k)
			case "at":
				if v := l.at(k); v != nil {
					if *v != k*10 {
						t.Fatalf("at(%d) = %d", k, *v)
					}
					use(k)
				}
			case "remove":
				l.remove(k)
				for i, o := range twin {
					if o == k {
						twin = append(twin[:i:i], twin[i+1:]...)
						break
					}
				}
			}
			if len(l.items) != len(twin) || l.order.Len() != len(twin) {
				t.Fatalf("%d items, want %v", len(l.items), twin)
			}
			for _, o := range twin {
				if l.items[o] == nil {
					t.Fatalf("%d is forgotten, want %v", o, twin)
				}
			}
		}
	})
}

func TestAcceptHasWeights(t *testing.T) {
	for accept, want := range map[string]bool{
		"text/html": true, "": false, "*/*": false, "application/json": false,
		"text/html;q=0.5, application/json": false, "application/json;q=0.8,text/html;level=1": true,
		"TEXT/HTML; Q=0.001": true, "text/html;q=0": false, "text/html;q=0.000, application/json;q=0": false,
		"text/html;q=nonsense": true, "text/html;q=0.12345, application/json;q=0.124": false,
	} {
		if got := wantsPage(http.Header{"Accept": {accept}}); got != want {
			t.Errorf("%q wants a page: %v, want %v", accept, got, want)
		}
	}
}

func TestTheClientIsTheFirstThatNoProxyOfOursIs(t *testing.T) {
	g := &Gateway{c: Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}}
	for _, c := range []struct {
		remote string
		for_   []string
		want   string
	}{
		{"1.2.3.4:5", []string{"9.9.9.9"}, "1.2.3.4"},
		{"10.0.0.1:5", nil, "10.0.0.1"},
		{"10.0.0.1:5", []string{"9.9.9.9"}, "9.9.9.9"},
		{"10.0.0.1:5", []string{"6.6.6.6, 9.9.9.9, 10.1.1.1"}, "9.9.9.9"},
		{"10.0.0.1:5", []string{"6.6.6.6", "9.9.9.9:443, [fd00::1]:80"}, "9.9.9.9"},
		{"10.0.0.1:5", []string{"6.6.6.6, nonsense"}, "10.0.0.1"},
		{"10.0.0.1:5", []string{"6.6.6.6, 10.1.1.1, nonsense, 10.2.2.2"}, "10.2.2.2"},
		{"[::ffff:10.0.0.1]:5", []string{"2001:db8::1"}, "2001:db8::1"},
		{"@", nil, "invalid IP"},
	} {
		h := http.Header{"X-Forwarded-For": c.for_}
		if got := g.client(&http.Request{RemoteAddr: c.remote, Header: h}).addr.String(); got != c.want {
			t.Errorf("%s with %q: %s, want %s", c.remote, c.for_, got, c.want)
		}
	}
}

// FuzzLocal: whatever asks to be sent somewhere stays on this host.
func FuzzLocal(f *testing.F) {
	for _, s := range []string{"/", "//x", "/\\x", "https://x", "/a?b#c", "/%2f%2fx", "/\tx", "/\x00", "/#\x00", "/é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		to := local(s)
		if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t\x00") {
			t.Fatalf("local(%q) = %q", s, to)
		}
	})
}

// FuzzCookies: ours never get to the origin, the others always do.
func FuzzCookies(f *testing.F) {
	f.Add("a=1; anteroom_shop=x; b=2")
	f.Add("__Host-anteroom_shop=x;anteroom_=;anteroom_shop")
	f.Add(" ; ;; =; anteroom_")
	f.Fuzz(func(t *testing.T, line string) {
		h := http.Header{"Cookie": {line, "theirs=1"}}
		withoutOurs(h)
		var kept []string
		for _, l := range h["Cookie"] {
			kept = append(kept, strings.Split(l, ";")...)
		}
		for _, k := range kept {
			if isOurs(k) {
				t.Fatalf("%q became %q", line, h["Cookie"])
			}
		}
		for _, k := range strings.Split(line, ";") {
			if k = strings.TrimSpace(k); k != "" && !isOurs(k) && !strings.Contains(strings.Join(h["Cookie"], ";"), k) {
				t.Fatalf("%q lost %q: %q", line, k, h["Cookie"])
			}
		}
	})
}

func FuzzAccepts(f *testing.F) {
	f.Add("text/html,application/json;q=0.9", "application/xhtml+xml ; q=0.30;x=y")
	f.Add("application/problem+json;Q=1.000", ";;q=,q=0.")
	f.Fuzz(func(t *testing.T, a, b string) {
		html, json := accepts([]string{a, b})
		if html < 0 || html > 1000 || json < 0 || json > 1000 {
			t.Errorf("%q, %q: %d and %d", a, b, html, json)
		}
		if !strings.Contains(strings.ToLower(a+b), "html") && html > 0 || !strings.Contains(strings.ToLower(a+b), "json") && json > 0 {
			t.Errorf("%q, %q: %d and %d, for what is not named", a, b, html, json)
		}
	})
}

// FuzzForwarded has a stranger, and a trusted proxy, say anything of where a
// request comes from: a stranger's word is worth nothing.
func FuzzForwarded(f *testing.F) {
	for _, from := range []string{"192.0.2.7:80", "127.0.0.1:80"} {
		f.Add(from, "198.51.100.7, 10.0.0.1", "https", "shop.example.com:8080")
		f.Add(from, "unknown,,[2001:db8::1]:99", "HTTPS,http", "[::1]")
		f.Add(from, "::ffff:10.1.1.1", "", ".,\x00")
	}
	g := &Gateway{c: Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}}}
	f.Fuzz(func(t *testing.T, from, addresses, proto, host string) {
		r := httptest.NewRequest("GET", "http://site.example.com/", nil)
		r.RemoteAddr = from
		plain := g.client(r)
		for name, v := range map[string]string{"X-Forwarded-For": addresses, "X-Forwarded-Proto": proto, "X-Forwarded-Host": host} {
			r.Header.Set(name, v)
		}
		if c := g.client(r); !c.trusted && c != plain || c.trusted != plain.trusted {
			t.Errorf("from %q: %+v, without its headers %+v", from, c, plain)
		}
	})
}
