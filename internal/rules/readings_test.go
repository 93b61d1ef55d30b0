package rules_test

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/rules"
)

// servers read paths as those do that stand behind proxies; each gets what was
// written, and is written here by itself, in the order of that server.
var servers = map[string]func(raw string) string{
	"Go": func(raw string) string { return path.Clean("/" + decoded(raw)) },
	"Tomcat": func(raw string) string { // parameters first, then codes, then dots
		segments := strings.Split(raw, "/")
		for i, s := range segments {
			segments[i], _, _ = strings.Cut(s, ";")
		}
		return path.Clean("/" + decoded(strings.Join(segments, "/")))
	},
	"Windows": func(raw string) string {
		p := path.Clean("/" + strings.ReplaceAll(decoded(decoded(raw)), `\`, "/"))
		segments := strings.Split(p, "/")
		for i, s := range segments {
			segments[i] = strings.TrimRight(s, ". ")
		}
		return path.Clean(strings.Join(segments, "/"))
	},
	"nginx":            func(raw string) string { return path.Clean("/" + decoded(raw)) },
	"decodes twice":    func(raw string) string { return path.Clean("/" + decoded(decoded(raw))) },
	"C":                func(raw string) string { p, _, _ := strings.Cut(decoded(raw), "\x00"); return path.Clean("/" + p) },
	"Node's URL":       nodesURL,
	"nothing resolved": decoded,
	// One that decodes an address, and gives it to another to be taken apart.
	"decoded, and Node's URL": func(raw string) string {
		p, _, _ := strings.Cut(decoded(raw), "#")
		p, _, _ = strings.Cut(p, "?")
		return nodesURL(p)
	},
	"slashes left encoded": func(raw string) string {
		return path.Clean("/" + decoded(strings.NewReplacer("%2f", "%252f", "%2F", "%252F").Replace(raw)))
	},
	"parameters to the end": func(raw string) string { p, _, _ := strings.Cut(raw, ";"); return path.Clean("/" + decoded(p)) },
	"trims": func(raw string) string {
		segments := strings.Split(decoded(raw), "/")
		for i, s := range segments {
			segments[i] = strings.Trim(s, " ")
		}
		return path.Clean("/" + strings.Join(segments, "/"))
	},
	"ASCII": func(raw string) string { // the nearest one has: full-width forms are as many further
		return path.Clean("/" + strings.Map(func(r rune) rune {
			if r >= 0xff01 && r <= 0xff5e {
				return r - 0xfee0
			}
			return r
		}, decoded(raw)))
	},
	"UTF-8 of any length": func(raw string) string { return path.Clean("/" + strings.ReplaceAll(decoded(raw), "\xc0\xaf", "/")) },
}

// nodesURL takes //host/path for an address without its scheme, \ for /, and drops
// tabs and line ends.
func nodesURL(raw string) string {
	raw = strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(raw)
	if strings.HasPrefix(raw, "//") {
		_, rest, _ := strings.Cut(raw[2:], "/")
		raw = "/" + rest
	}
	return path.Clean("/" + decoded(raw))
}

func decoded(p string) string {
	if d, err := url.PathUnescape(p); err == nil {
		return d
	}
	return p // a server would refuse it, or leave it
}

// read returns an address as it was written, without its query; nil: no server
// takes it.
func read(raw string) *url.URL {
	u, err := url.ParseRequestURI(raw)
	if err != nil || raw[0] != '/' || u.Path == "" || u.Path[0] != '/' || u.Host != "" {
		return nil
	}
	return u
}

var spellings = []string{
	"/checkout", "/checkout;x", "/checkout;jsessionid=1/pay", "/x/..;/checkout", "/x/..%5ccheckout", `/x/..\checkout`, "/checkout%20", "/checkout%20/", "/%20checkout",
	"//checkout", "//x/checkout", "/x//..//checkout", "/x%2f..%2fcheckout", "/%2fcheckout", "/x/%2e%2e/checkout", "/x/%252e%252e/checkout", "/x%252f..%252fcheckout",
	"/checkout.", "/checkout...", "/checkout%2e", "/checkout%00.png", "/checkout%09", "/check%0aout", "/checkout%3fx", "/checkout%23x", "/check%256fut", "/x/.%20./checkout",
	"/x/..%20/checkout", "/%5ccheckout", "/x%25u002f..%25u002fcheckout", "/x/..%c0%afcheckout", "/／checkout", "/x/..／checkout", "/ｃheckout", "/./checkout", "/x/../checkout",
	"/checkout/../x", "/a;b/../checkout;c", "/a/%2e%2e;x/checkout", "/checkout%2fx", "/check%6fut%2fx", "/checkout;/../x", "/check%0aout/%01x",
}

// manifold are paths with more readings, or longer ones, than anybody looks at.
var manifold = map[string]string{
	"odd in every way": "/a;b/%20c%5c../%252fd/%23e",
	"long":             "/checkout;" + strings.Repeat("x/../", 1500) + "%20",
}

func TestEachServersReadingIsAmongThem(t *testing.T) {
	for _, raw := range spellings {
		if u := read(raw); u != nil {
			among(t, raw, u)
		} else {
			t.Errorf("%s is no path", raw)
		}
	}
}

func among(t *testing.T, raw string, u *url.URL) {
	t.Helper()
	readings, all := rules.Readings(u)
	if rules.Plain(u) && len(readings) > 2 {
		t.Errorf("%q is plain, and read as %q, all of them: %v", raw, readings, all)
	}
	for server, reads := range servers {
		want := reads(raw)
		if rules.Plain(u) && strings.TrimSuffix(want, "/") != strings.TrimSuffix(u.Path, "/") {
			t.Errorf("%q is plain, and %s reads %q", raw, server, want)
		}
		same := func(p string) bool { return strings.TrimSuffix(p, "/") == strings.TrimSuffix(want, "/") }
		if all && !slices.ContainsFunc(readings, same) {
			t.Errorf("%q: %s reads %q, which is not among %q", raw, server, want, readings)
		}
	}
}

// Whoever writes a path that can be read in hundreds of ways, or a long one in
// many, is not told all: it may be any path.
func TestWhatHasTooManyReadingsMayBeAnyPath(t *testing.T) {
	for what, raw := range manifold {
		if readings, all := rules.Readings(read(raw)); all || readings != nil || rules.Plain(read(raw)) {
			t.Errorf("%s: %d readings, all of them: %v", what, len(readings), all)
		}
	}
}

// FuzzReadings gives any path. What servers make of it is among its readings, and
// these are bounded.
func FuzzReadings(f *testing.F) {
	for _, raw := range spellings {
		f.Add(raw)
	}
	for _, raw := range manifold {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		raw, _, _ = strings.Cut(raw, "?")
		u := read(raw)
		if u == nil || len(raw) > 8000 {
			return
		}
		readings, all := rules.Readings(u)
		if len(readings) > 65 || !all && readings != nil {
			t.Fatalf("%q: %d readings, all of them: %v", raw, len(readings), all)
		}
		same := func(p string) bool { return strings.TrimSuffix(p, "/") == strings.TrimSuffix(rules.Path(u), "/") }
		if p := rules.Path(u); p != "" && all && !slices.ContainsFunc(readings, same) {
			t.Fatalf("%q: rules see %q, which is not among %q", raw, p, readings)
		}
		among(t, raw, u)
	})
}
