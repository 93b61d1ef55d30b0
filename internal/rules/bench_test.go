package rules_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"github.com/anteroom/anteroom/internal/rules"
)

// BenchmarkMatch asks five rules, none of which is met, of one request.
func BenchmarkMatch(b *testing.B) {
	items := make([]string, 0, 2000)
	for i := range 2000 {
		items = append(items, fmt.Sprintf("10.%d.%d.0/24", i/200, i%200))
	}
	l, err := rules.NewList(items)
	if err != nil {
		b.Fatal(err)
	}
	s, err := rules.NewSet([]rules.Rule{
		{Expression: `http.request.uri.path.extension in {"css" "js" "png" "svg" "woff2"} and starts_with(http.request.uri.path, "/assets/")`},
		{Expression: `http.request.uri.path eq "/healthz" and http.request.method in {"GET" "HEAD"}`},
		{Expression: `ip.src in $office and http.request.headers["x-staff"][0] eq "yes" or ip.src in {192.0.2.0/24}`},
		{Expression: `http.request.method eq "POST" and http.request.uri.path matches "^/webhooks/[a-z]+$"`},
		{Expression: `http.request.cookies["staff"][0] eq "yes" or http.user_agent contains "HealthChecker"`},
	}, rules.Lists{"office": l})
	if err != nil {
		b.Fatal(err)
	}
	r := &rules.Request{
		Method: "GET", HTTPS: true, Host: "shop.example.com", Path: "/tickets/42", Query: "lang=nl", Addr: netip.MustParseAddr("203.0.113.77"),
		Header: http.Header{
			"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"},
			"Cookie":     {"_ga=GA1.1.123456; consent=all; session=0123456789abcdef"},
		},
	}
	b.ReportAllocs()
	for b.Loop() {
		if met, _ := s.Match(r); met != nil {
			b.Fatal(met)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	named := lists(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rules.Parse(`starts_with(lower(http.request.uri.path), "/assets/") and http.request.method in {"GET" "HEAD"} or ip.src in $office`, named); err != nil {
			b.Fatal(err)
		}
	}
}
