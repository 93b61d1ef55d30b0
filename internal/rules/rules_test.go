package rules_test

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/rules"
)

func lists(t testing.TB) rules.Lists {
	t.Helper()
	office, err := rules.NewList([]string{"192.0.2.0/24", "2001:db8::/32", "198.51.100.7"})
	if err != nil {
		t.Fatal(err)
	}
	bots, err := rules.NewList([]string{"66.249.64.0/19"})
	if err != nil {
		t.Fatal(err)
	}
	return rules.Lists{"office": office, rules.SearchEngines: bots}
}

// visit is a request that tells everything.
func visit() *rules.Request {
	return &rules.Request{
		Method: "GET", HTTPS: true, Host: "shop.example.com", Path: "/Assets/app.min.CSS", Query: "v=3&lang=nl",
		Addr: netip.MustParseAddr("192.0.2.9"), Country: "NL",
		Header: http.Header{
			"User-Agent": {"Mozilla/5.0 (X11) \"quoted\""}, "Referer": {"https://example.com/"}, "X-Api-Key": {"s3cret", "other"},
			"Cookie": {"a=1; staff=yes", "b=2"},
		},
	}
}

func parse(t testing.TB, text string) *rules.Expression {
	t.Helper()
	e, err := rules.Parse(text, lists(t))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}

func TestExpressionsOfARequest(t *testing.T) {
	for text, want := range map[string]rules.Truth{
		`http.host eq "shop.example.com"`:                             rules.True,
		`http.host == "shop.example.com"`:                             rules.True,
		`host ne "shop.example.com"`:                                  rules.False,
		`not http.host eq "shop.example.com"`:                         rules.False,
		`not http.host contains "admin" and ssl`:                      rules.True,
		`!(ssl)`:                                                      rules.False,
		`not ssl or http.request.method eq "GET"`:                     rules.True,
		`not (ssl and http.request.method in {"GET" "HEAD"})`:         rules.False,
		`http.request.method in {"GET" "HEAD"}`:                       rules.True,
		`http.request.method in {"POST", "PUT"}`:                      rules.False,
		`method in ["POST", "PUT"]`:                                   rules.False,
		`http.request.method not in {"POST" "PUT"}`:                   rules.True,
		`not http.request.method in {"POST"}`:                         rules.True,
		`starts_with(http.request.uri.path, "/Assets/")`:              rules.True,
		`starts_with(http.request.uri.path, "/assets/")`:              rules.Unknown,
		`starts_with(lower(http.request.uri.path), "/assets/")`:       rules.True,
		`path startsWith "/Assets/"`:                                  rules.True,
		`ends_with(lower(path), ".css")`:                              rules.True,
		`http.request.uri.path.extension in {"css" "js"}`:             rules.True,
		`http.request.uri eq "/Assets/app.min.CSS?v=3&lang=nl"`:       rules.True,
		`http.request.full_uri contains "https://shop.example.com/A"`: rules.True,
		`http.request.uri.query contains "lang=nl"`:                   rules.True,
		`query == ""`: rules.False,
		`http.request.uri.path matches "\.min\.CSS$"`:                         rules.True,
		`http.request.uri.path matches "\\.min\\.CSS$"`:                       rules.True,
		`http.request.uri.path ~ r"\.min\.(?i)css$"`:                          rules.True,
		`path matches r#"^/[A-Z]"#`:                                           rules.True,
		"path matches `\\.css$`":                                              rules.Unknown,
		`ip.src in {192.0.2.0/24 2001:db8::/32}`:                              rules.True,
		`ip.src in {10.0.0.0/8}`:                                              rules.False,
		`ip.src in ["192.0.2.0/24"]`:                                          rules.True,
		`ip.src eq 192.0.2.9`:                                                 rules.True,
		`ip.src ne 192.0.2.9`:                                                 rules.False,
		`ip.src in $office`:                                                   rules.True,
		`not ip.src in $office`:                                               rules.False,
		`ip in $search_engines`:                                               rules.False,
		`ip.src.country in {"NL" "BE"}`:                                       rules.True,
		`ip.geoip.country eq "DE"`:                                            rules.False,
		`http.user_agent contains "\"quoted\""`:                               rules.True,
		`http.request.headers["x-api-key"][0] eq "s3cret"`:                    rules.True,
		`header("X-Api-Key") == "s3cret"`:                                     rules.True,
		`header("x-none") == ""`:                                              rules.True,
		`http.request.cookies["staff"][0] eq "yes" and cookie("b") eq "2"`:    rules.True,
		`cookie("staff") == "y"`:                                              rules.False,
		`http.cookie contains "staff=yes"`:                                    rules.True,
		`http.referer eq "https://example.com/"`:                              rules.True,
		"http.host eq \"a\"\n  or ssl":                                        rules.True,
		`(http.host eq "a" or http.host eq "b") and ssl`:                      rules.False,
		`http.host eq "a" or http.host eq "shop.example.com" and ssl`:         rules.True,
		`http.host in {"a.example.com" "shop.example.com"} && ip.src ne ::1 `: rules.True,
		`upper(http.host) eq "SHOP.EXAMPLE.COM"`:                              rules.True,
	} {
		if got, err := parse(t, text).Eval(visit()); got != want || err != nil {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestWhatIsNotKnownIsNotMet(t *testing.T) {
	nothing := &rules.Request{Method: "GET"}
	for text, want := range map[string]rules.Truth{
		`ip.src in $office`:                          rules.Unknown,
		`not ip.src in $office`:                      rules.Unknown,
		`ip.src ne 192.0.2.1`:                        rules.Unknown,
		`ip.src.country ne "NL"`:                     rules.Unknown,
		`lower(country) ne "nl"`:                     rules.Unknown,
		`not starts_with(path, "/checkout")`:         rules.Unknown,
		`extension == ""`:                            rules.Unknown,
		`http.host ne "a"`:                           rules.Unknown,
		`http.host ne "a" or method eq "GET"`:        rules.True,
		`http.host ne "a" and method eq "POST"`:      rules.False,
		`not (http.host ne "a" and method eq "GET")`: rules.Unknown,
	} {
		if got, _ := parse(t, text).Eval(nothing); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	long := &rules.Request{Header: http.Header{"User-Agent": {strings.Repeat("a", 1<<20)}}}
	for _, text := range []string{`http.user_agent ne "b"`, `not http.user_agent matches "b"`, `lower(http.user_agent) ne "b"`, `http.user_agent contains "a"`} {
		if got, _ := parse(t, text).Eval(long); got != rules.Unknown {
			t.Errorf("%s of a megabyte: %v, want unknown", text, got)
		}
	}
}

func TestMistakesAreToldWithTheirColumn(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, `column 1: empty; give one such as starts_with(http.request.uri.path, "/assets/")`},
		{`http.hots eq "a"`, `column 1: http.hots is no field; did you mean http.host?`},
		{`ssl and http.hots eq "a"`, `column 9: http.hots is no field; did you mean http.host?`},
		{`http.host eq "Shop.example.com"`, `column 14: http.host is in lower case; write shop.example.com`},
		{`method in {"GET" "post"}`, `column 18: method is in capitals; write POST`},
		{`lower(path) eq "/A"`, `column 16: path is in lower case; write /a`},
		{`starts_with(path, "assets")`, `column 19: a path begins with a slash; write /assets`},
		{`path eq "/a%20b"`, `column 9: paths are compared decoded; write the character itself, and not its %-code`},
		{`path contains "?a"`, `column 15: what comes after ? is http.request.uri.query; http.request.uri has both`},
		{`query eq "?a=1"`, `column 10: the query is without its question mark; write a=1`},
		{`path contains ""`, `column 15: every text has nothing in it, so this would be met by everyone; give some text`},
		{`path matches ".*"`, `column 14: a pattern that everything meets; say what has to be there`},
		{`path matches "("`, "column 14: no pattern of RE2: missing closing ): `(`"},
		{`path matches header("x")`, `column 14: a constant is wanted here: a text in double quotes, or an address; only fields are compared with it`},
		{`path matches "` + strings.Repeat("a", 300) + `"`, `column 14: a pattern of 300 bytes; give one of at most 256, or starts_with, ends_with and in`},
		{`ip.src in {10.0.0.1/8}`, `column 12: 10.0.0.1/8 has bits beyond its length; write 10.0.0.0/8, or 10.0.0.1 for that address alone`},
		{`ip.src in {0.0.0.0/0}`, `column 12: 0.0.0.0/0 is everyone; to let everyone through, suspend the room`},
		{`ip.src in $offices`, `column 11: there is no list offices; put it under ip_lists of the room`},
		{`http.host in $office`, `column 14: $office is a list of addresses, for ip.src only`},
		{`ip.src eq 10.0.0.0/8`, `column 11: "10.0.0.0/8" is no single address; give one such as 192.0.2.7, or write ip.src in {192.0.2.0/24}`},
		{`ip.src contains "10."`, `column 8: an address is no text; write ip.src in {192.0.2.0/24}, or ip.src eq 192.0.2.7`},
		{`method in {GET}`, `column 12: "GET" is neither a name nor an address; put texts in double quotes`},
		{`http.host eq 'a'`, `column 14: a single quote; put texts in double quotes`},
		{`http.host eq "a`, `column 14: this text has no end; close it with "`},
		{`http.host eq "a\n"`, `column 16: \n is no escape; there are \" and \\`},
		{`http.host eq`, `column 13: something is missing at the end; a comparison is a field, an operator and a value, and each ( has a )`},
		{`(ssl`, `column 5: something is missing at the end; a comparison is a field, an operator and a value, and each ( has a )`},
		{`ssl ssl`, `column 5: "ssl" is not expected here; between two comparisons stands and or or, between a field and a value an operator such as eq`},
		{`http.request.uri.path`, `column 1: http.request.uri.path alone is no condition; compare it, as in starts_with(http.request.uri.path, "/assets/")`},
		{`true`, `column 1: true and false are no conditions; to let everyone through, suspend the room`},
		{`ssl eq true`, `column 5: ssl is compared with nothing; write ssl, or not ssl`},
		{`cf.threat_score gt 5`, `column 17: nothing here is larger or smaller; there are eq, ne, in, contains and matches`},
		{`cf.client.bot`, `column 1: cf.client.bot is known at Cloudflare only; docs/rules.md has the fields that there are`},
		{`header("x-forwarded-for") eq "10.0.0.1"`, `column 1: x-forwarded-for is what anybody can send; ip.src is the visitor's address, as trusted_proxies tell it`},
		{`header("host") eq "a"`, `column 1: the host is http.host`},
		{`http.request.headers["a"] eq "b"`, `column 1: only the first value of a header or a cookie can be had; write http.request.headers["name"][0]`},
		{`any(http.request.headers["a"][*] eq "b")`, `column 31: * for all values is not known here; write [0] for the first`},
		{`all(1..100000000, {# > 0})`, `column 20: '#' in a set; give texts in quotes or addresses, with spaces between them`},
		{`all(1..100000000, ssl)`, `column 1: all is no function; docs/rules.md has those that there are`},
		{`len(path) > 3`, `column 11: nothing here is larger or smaller; there are eq, ne, in, contains and matches`},
		{`len(path) == "3"`, `column 1: len is no function; docs/rules.md has those that there are`},
		{`start_with(path, "/a")`, `column 1: start_with is no function; did you mean starts_with?`},
		{`path ? ssl : ssl`, `column 6: '?' is not known here; texts are put in double quotes`},
		{`let x = 1; x`, `column 10: ';' is not known here; texts are put in double quotes`},
		{`ssl xor ssl`, `column 5: xor is not known here; there are and, or, not, and matches for patterns`},
		{`"a" == http.host`, `column 1: a field is wanted here, and not the text "a"; write the field first, as in http.host eq "shop.example.com"`},
		{"ssl and\n  http.hots eq \"a\"", `line 2, column 3: http.hots is no field; did you mean http.host?`},
		{`http.host eq "é" and http.hots eq "a"`, `column 22: http.hots is no field; did you mean http.host?`},
	} {
		_, err := rules.Parse(c.text, lists(t))
		var e *rules.Error
		if !errors.As(err, &e) || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
	if _, err := rules.Parse(strings.Repeat("(", 5000), nil); err == nil {
		t.Error("a long expression is taken")
	}
	if _, err := rules.Parse(strings.Repeat("(", 2000)+"ssl"+strings.Repeat(")", 2000), nil); err != nil {
		t.Errorf("2000 brackets: %v", err)
	}
}

func TestThePathIsWhatAnOriginWillResolve(t *testing.T) {
	for raw, want := range map[string]string{
		"/assets/a.css":                    "/assets/a.css",
		"/assets/":                         "/assets/",
		"/":                                "/",
		"/assets///a.css":                  "/assets/a.css",
		"//assets///a.css":                 "", // assets is a host to some
		"/checkout//../assets/a.css":       "", // which goes first?
		"/checkout%20":                     "", // a space or dot at the end is dropped by some
		"/checkout./x":                     "",
		"/checkout%3fa.css":                "",
		"/assets/..%c0%afcheckout":         "",
		"/assets/..／checkout":              "",
		"/assets/../checkout":              "/checkout",
		"/assets/%2e%2e/checkout":          "/checkout",
		"/assets/.%2E/checkout":            "/checkout",
		"/caf%C3%A9":                       "/café",
		"/assets/..%2fcheckout":            "", // one part or two?
		"/assets/..%5Ccheckout":            "", // \ is / to some
		`/assets/..\checkout`:              "",
		"/assets/..;/checkout":             "", // and parameters are dropped by some
		"/checkout;.css":                   "",
		"/checkout%3B.css":                 "",
		"/assets/%252e%252e/checkout":      "", // encoded twice
		"/checkout%00.css":                 "",
		"/checkout%0a.css":                 "",
		"/100%25":                          "/100%",
		"/assets/%2e%2e/%2e%2e/etc/passwd": "/etc/passwd",
	} {
		u, err := url.ParseRequestURI(raw)
		if err != nil {
			u = &url.URL{Path: raw}
		}
		if got := rules.Path(u); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

func TestTheFirstRuleThatIsMetCounts(t *testing.T) {
	s, err := rules.NewSet([]rules.Rule{
		{Description: "off", Expression: `ssl`, Disabled: true},
		{Description: "posts", Expression: `method eq "POST"`},
		{Description: "office", Expression: `ip.src in $office`},
		{Description: "all", Expression: `ssl`},
		rules.Crawlers(),
	}, lists(t))
	if err != nil {
		t.Fatal(err)
	}
	if met, broken := s.Match(visit()); met == nil || met.Description != "office" || broken != 0 {
		t.Errorf("met %v, %d broken", met, broken)
	}
	var said []string
	for _, v := range s.Explain(visit()) {
		said = append(said, v.Description+" "+v.Truth.String())
	}
	if got := strings.Join(said, ", "); got != "off yes, posts no, office yes, all yes, search_engine_crawler_bypass no" {
		t.Errorf("explained: %s", got)
	}
	bot := visit()
	bot.HTTPS, bot.Addr = false, netip.MustParseAddr("66.249.66.1")
	if met, _ := s.Match(bot); met != nil {
		t.Errorf("somebody at a search engine, who does not say to be one, met %v", met)
	}
	bot.Header = http.Header{"User-Agent": {"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}}
	if met, _ := s.Match(bot); met == nil {
		t.Error("a crawler at an address of its own waits")
	}
	bot.Addr = netip.MustParseAddr("203.0.113.1")
	if met, _ := s.Match(bot); met != nil {
		t.Errorf("who only says to be a crawler met %v", met)
	}
	var none *rules.Set
	if met, _ := none.Match(visit()); met != nil || none.Explain(visit()) != nil {
		t.Error("a room without rules has some")
	}
	if _, err := rules.NewSet([]rules.Rule{{Expression: "a"}, {Expression: "ssl"}, {Expression: "b"}}, nil); err == nil ||
		!strings.Contains(err.Error(), "rule 1: column 1") || !strings.Contains(err.Error(), "rule 3: column 1") {
		t.Errorf("two wrong rules: %v", err)
	}
}

func TestListsOfAddresses(t *testing.T) {
	l := lists(t)["office"]
	for text, want := range map[string]bool{
		"192.0.2.1": true, "192.0.3.1": false, "198.51.100.7": true, "198.51.100.8": false, "2001:db8:1::1": true, "2001:db9::1": false, "2001:db8::1%eth0": true,
	} {
		if got := l.Contains(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for text, want := range map[string]string{
		"office":            `"office" is no address; give one such as 192.0.2.7, or a range such as 192.0.2.0/24`,
		"192.0.2.1/24":      "192.0.2.1/24 has bits beyond its length; write 192.0.2.0/24, or 192.0.2.1 for that address alone",
		"::/0":              "::/0 is everyone; to let everyone through, suspend the room",
		"::ffff:10.0.0.0/8": "::ffff:10.0.0.0/8 is IPv4 within IPv6; write the IPv4 range",
		"fe80::1%eth0":      `"fe80::1%eth0" is no address; give one such as 192.0.2.7, or a range such as 192.0.2.0/24`,
	} {
		if _, err := rules.NewList([]string{text}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestTheDocumentIsTrue reads the rows of docs/rules.md: of fields, the long name
// and the short one; of operators, the examples.
func TestTheDocumentIsTrue(t *testing.T) {
	text, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	fields, operators := 0, 0
	code := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		switch {
		case len(cells) == 3 && strings.HasPrefix(line, "| `"):
			for _, m := range code.FindAllStringSubmatch(cells[0]+cells[1], -1) {
				test := m[1] + ` eq "x"`
				switch {
				case m[1] == "ssl":
					test = m[1]
				case strings.HasPrefix(m[1], "ip.src") && !strings.Contains(m[1], "country") || m[1] == "ip":
					test = m[1] + " eq ::1"
				case !strings.Contains(m[1], "("):
					test = "lower(" + test[:len(m[1])] + `) eq "x"`
				}
				parse(t, test)
				fields++
			}
		case len(cells) == 2 && strings.HasPrefix(line, "| ") && strings.Contains(line, "`"):
			for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
				if strings.ContainsAny(m[1], "\"$") {
					parse(t, m[1])
					operators++
				}
			}
		}
	}
	if fields < 20 || operators < 7 {
		t.Errorf("%d fields and %d examples, want more", fields, operators)
	}
}

// An origin may take /CHECKOUT for /checkout: who writes it so meets no rule that spares
// all but the checkout. What the rule itself writes in small letters is met by it alone.
func TestCapitalsMeetNoRuleOfPaths(t *testing.T) {
	for expression, want := range map[string][3]rules.Truth{ // of /checkout, /CHECKOUT and /blog
		`not starts_with(http.request.uri.path, "/checkout")`:                       {rules.False, rules.Unknown, rules.True},
		`not path in {"/checkout" "/pay"}`:                                          {rules.False, rules.Unknown, rules.True},
		`not http.request.uri.path matches "^/checkout"`:                            {rules.False, rules.Unknown, rules.True},
		`http.request.uri.path ne "/checkout"`:                                      {rules.False, rules.Unknown, rules.True},
		`not http.request.uri contains "/check"`:                                    {rules.False, rules.Unknown, rules.True},
		`not http.request.full_uri contains "/check"`:                               {rules.False, rules.Unknown, rules.True},
		`not lower(http.request.uri.path) contains "/check"`:                        {rules.False, rules.False, rules.True},
		`starts_with(http.request.uri.path, "/checkout")`:                           {rules.True, rules.Unknown, rules.False},
		`starts_with(http.request.uri.path, "/CHECKOUT")`:                           {rules.Unknown, rules.True, rules.False},
		`http.request.uri.path eq "/CHECKOUT" or http.request.uri.path eq "/blog"`:  {rules.Unknown, rules.True, rules.True},
		`http.request.uri.path eq "/CHECKOUT" and http.request.uri.path eq "/blog"`: {rules.False, rules.False, rules.False},
	} {
		e, err := rules.Parse(expression, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, path := range []string{"/checkout", "/CHECKOUT", "/blog"} {
			got, err := e.Eval(&rules.Request{Method: "GET", Host: "x", Path: path})
			if err != nil || got != want[i] {
				t.Errorf("%s of %s: %v %v, want %v", expression, path, got, err, want[i])
			}
		}
	}
}

func TestFold(t *testing.T) {
	for _, same := range [][]string{
		{"/checkout", "/CHECKOUT", "/Checkout", "/chec\u212aout", "/CHEC\u212aOUT"},
		{"/tickets/list", "/t\u0131ckets/list", "/T\u0130CKETS/LIST", "/ticket\u017f/li\u017ft"},
		{"/caf\u00e9", "/CAF\u00c9"},
		{"/\u03c3", "/\u03a3", "/\u03c2"},
	} {
		for _, p := range same {
			if rules.Fold(p) != rules.Fold(same[0]) {
				t.Errorf("%q is not %q", p, same[0])
			}
		}
	}
	if rules.Fold("/a") == rules.Fold("/b") {
		t.Error("/a is /b")
	}
}
