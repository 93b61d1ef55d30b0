package origin

import (
	"net/url"
	"strings"
	"testing"
)

func FuzzParseSet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","use":"sig","alg":"ES256","kid":"a","x":"5DEduLv6","y":"JNuhEJo4"}]}`))
	f.Add([]byte(`{"keys":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		set, err := parseSet(b)
		if (err == nil) != (len(set) > 0) || len(set) > keysMax {
			t.Errorf("%d keys, %v", len(set), err)
		}
		for id, key := range set {
			if id == "" || key == nil {
				t.Errorf("a key by the name of %q is %v", id, key)
			}
		}
	})
}

// What follows the gateway's address stays at the gateway.
func FuzzLocal(f *testing.F) {
	for _, s := range []string{"/a?b=c", "//evil", "http://evil/x", "/\\evil", "*", "/@evil", "/%0d%0aX: y", "/?#%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.ParseRequestURI(s)
		if err != nil {
			return
		}
		got := local(u)
		to, err := url.Parse("https://shop.example.com" + got)
		if err != nil || to.Host != "shop.example.com" || to.User != nil || strings.ContainsAny(got, "\r\n") {
			t.Errorf("%q leads to %q: %v", s, got, err)
		}
	})
}
