package rules_test

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/rules"
)

// FuzzParse gives anything for an expression. What is taken does not break,
// whatever the request, and says the same each time; what is refused is refused
// at a place in the text.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`http.host eq "shop.example.com" and not ip.src in {192.0.2.0/24 2001:db8::/32}`,
		`starts_with(lower(http.request.uri.path), "/assets/") or ip.src in $office`,
		`http.request.headers["x-a"][0] matches r#"^\d+"# || cookie("staff") == "yes"`,
		`(((ssl)))`, `{"a" "b"}`, `all(1..9, {true})`, "path ~ `x`", `not not ssl`, `a?.b ?? c | d()`, `"\"`, `r#"`, "\n\"", `$env`, `#`, `0x1`, `path[1:2]`,
	} {
		f.Add(text, "/assets/a.css?v=1", "x")
	}
	named := lists(f)
	f.Fuzz(func(t *testing.T, text, target, value string) {
		e, err := rules.Parse(text, named)
		if err != nil {
			var at *rules.Error
			if !errors.As(err, &at) || at.Line < 1 || at.Column < 1 || at.Column > len([]rune(text))+1 || at.Text == "" {
				t.Fatalf("%q: the error %#v", text, err)
			}
			return
		}
		r := &rules.Request{Method: value, Host: value, Query: value, Country: value, Header: http.Header{"User-Agent": {value}, "X-A": {value}, "Cookie": {"staff=" + value}}}
		if u, err := url.ParseRequestURI(target); err == nil {
			r.Path, r.Query = rules.Path(u), u.RawQuery
		}
		r.Addr, _ = netip.ParseAddr(value)
		first, err := e.Eval(r)
		if err != nil {
			t.Fatalf("%q of %+v: %v", text, r, err)
		}
		if again, _ := e.Eval(r); again != first {
			t.Fatalf("%q of %+v: %v, then %v", text, r, first, again)
		}
		opposite, err := rules.Parse("not ("+text+")", named)
		if err != nil {
			if len(text) > 4000 {
				return
			}
			t.Fatalf("not (%s): %v", text, err)
		}
		if got, _ := opposite.Eval(r); got != -first {
			t.Fatalf("%q of %+v: %v, and the opposite %v", text, r, first, got)
		}
	})
}

// FuzzPath gives anything for a path. What rules see is clean, and comes out the
// same when it is cleaned or decoded once more.
func FuzzPath(f *testing.F) {
	for _, p := range []string{"/a/../b", "/%2e%2e/x", "/a/..%2fb", "/a;b/c", "//x//", "/%25", "/a%5c", "/.", "/..", "/a/"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.ParseRequestURI(raw)
		if err != nil {
			u = &url.URL{Path: raw}
		}
		p := rules.Path(u)
		if p == "" {
			return
		}
		clean := path.Clean(p)
		if clean != "/" && strings.HasSuffix(p, "/") {
			clean += "/"
		}
		again := rules.Path(&url.URL{Path: p})
		if p != clean || again != p || strings.ContainsAny(p, "\\;\x00") {
			t.Fatalf("%q: %q, again %q", raw, p, again)
		}
		if plain, err := url.PathUnescape(p); err == nil && plain != p {
			t.Fatalf("%q: %q is encoded twice", raw, p)
		}
	})
}
