package server

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/rules"
)

// TestRulesTravelWithTheirRoom: what a file says of a room reaches the gateways
// of nodes that have no file.
func TestRulesTravelWithTheirRoom(t *testing.T) {
	r := config.DefaultRoom()
	r.Name, r.SearchEngines = "shop", true
	r.BypassRules = []config.BypassRule{
		{Description: "off", Expression: "ssl", Action: rules.Bypass},
		{Description: "the office", Expression: "ip.src in $office", Action: rules.Bypass, Enabled: true},
	}
	r.IPLists = []config.IPList{
		{Name: "office", Items: []string{"192.0.2.0/24"}}, {Name: rules.SearchEngines, Items: []string{"198.51.100.0/24"}}, {Name: "unused", Items: []string{"10.9.8.7"}},
	}
	carried := roomOf(r)
	if strings.Contains(carried.Settings, "10.9.8.7") {
		t.Errorf("a list that no rule asks for goes along: %s", carried.Settings)
	}
	g, err := gatewayRoom(carried)
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{"192.0.2.1": "the office", "198.51.100.1": "search_engine_crawler_bypass", "203.0.113.1": ""} {
		q := rules.Request{HTTPS: true, Addr: netip.MustParseAddr(from), Header: map[string][]string{"User-Agent": {"Googlebot/2.1"}}}
		got := ""
		if met, _ := g.Bypass.Match(&q); met != nil {
			got = met.Description
		}
		if got != want {
			t.Errorf("%s met %q, want %q", from, got, want)
		}
	}
}

// TestARoomIsServedWithoutTheRulesThatCannotBeRead: those of a newer version,
// say. Who would meet them waits.
func TestARoomIsServedWithoutTheRulesThatCannotBeRead(t *testing.T) {
	g, err := gatewayRoom(eviction.Room{Name: "shop", Settings: `{"bypass_rules":[{"expression":"of.tomorrow eq \"a\""},{"expression":"ip.src in $x"},{"expression":"ssl"}],"ip_lists":{"x":["?"]}}`})
	if !errors.Is(err, errRules) {
		t.Fatalf("the error is %v", err)
	}
	if met, _ := g.Bypass.Match(&rules.Request{HTTPS: true}); g.Name != "shop" || met == nil {
		t.Errorf("room %q, met %v", g.Name, met)
	}
	if met, _ := g.Bypass.Match(&rules.Request{Addr: netip.MustParseAddr("192.0.2.1")}); met != nil {
		t.Errorf("met %v", met)
	}
}
