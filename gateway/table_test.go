package gateway

import (
	"fmt"
	"net/url"
	"testing"
)

func TestTheMostSpecificRouteWins(t *testing.T) {
	rooms := []Room{
		{Name: "all", Routes: []Route{{Host: "*", Path: "/"}}},
		{Name: "tickets", Routes: []Route{{Host: "*", Path: "/tickets"}}},
		{Name: "shop", Routes: []Route{{Host: "Shop.Example.com.", Path: "/"}, {Host: "www.example.com", Path: "/shop"}}},
		{Name: "checkout", Routes: []Route{{Host: "shop.example.com", Path: "/checkout/"}, {Host: "checkout.example.com"}}},
		{Name: "pay", Routes: []Route{{Host: "shop.example.com", Path: "/checkout/pay"}}},
	}
	tab, err := newTable(rooms)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ host, path, want string }{
		{"other.example.com", "/", "all"},
		{"other.example.com", "/tickets", "tickets"},
		{"other.example.com", "/tickets/42", "tickets"},
		{"other.example.com", "/ticketsale", "all"},
		{"other.example.com", "/Tickets", "all"}, // paths have their case
		{"other.example.com", "//x/../tickets/./42", "tickets"},
		{"shop.example.com", "/", "shop"},
		{"shop.example.com", "/tickets", "shop"}, // a host of its own before *
		{"shop.example.com", "/checkout", "checkout"},
		{"shop.example.com", "/checkout/basket", "checkout"},
		{"shop.example.com", "/checkouts", "shop"},
		{"shop.example.com", "/checkout/pay", "pay"},
		{"shop.example.com", "/checkout/pay/done", "pay"},
		{"shop.example.com", "/checkout/pay/../x", "checkout"},
		{"checkout.example.com", "/any", "checkout"},
		{"www.example.com", "/", "all"},
		{"www.example.com", "/shop/1", "shop"},
		{"", "/", "all"},
	} {
		if r := tab.at(c.host, c.path); r == nil || r.Name != c.want {
			t.Errorf("%s%s: %v, want %s", c.host, c.path, r, c.want)
		}
	}
	none, err := newTable(rooms[2:])
	if err != nil {
		t.Fatal(err)
	}
	if r := none.at("other.example.com", "/"); r != nil {
		t.Errorf("a host of no room is in %s", r.Name)
	}
}

func TestTheCookieReachesAllHostsOfARoom(t *testing.T) {
	for _, c := range []struct {
		hosts []string
		want  string
	}{
		{nil, ""},
		{[]string{"*"}, ""},
		{[]string{"shop.example.com"}, ""},
		{[]string{"shop.example.com", "Shop.Example.com."}, ""}, // one host, with two paths
		{[]string{"shop.example.com", "checkout.example.com"}, "example.com"},
		{[]string{"example.com", "www.example.com"}, "example.com"},
		{[]string{"a.shop.example.com", "b.shop.example.com", "b.shop.example.com"}, "shop.example.com"},
		{[]string{"a.shop.example.com", "b.shop.example.com", "www.example.com"}, "example.com"},
		{[]string{"shop.example.com", "*"}, ""},
		{[]string{"shop.example.com", "shop.example.org"}, ""},
		{[]string{"a.co.uk", "b.co.uk"}, ""},                 // two owners
		{[]string{"a.github.io", "b.github.io"}, ""},         // as well
		{[]string{"x.a.co.uk", "y.a.co.uk"}, "a.co.uk"},      // one
		{[]string{"myexample.com", "shop.example.com"}, ""},  // labels, not letters
		{[]string{"shop.internal", "pay.internal"}, ""},      // may be a suffix
		{[]string{"a.shop.lan", "b.shop.lan"}, "shop.lan"},   //
		{[]string{"10.0.0.1", "10.0.0.2"}, ""},               // no names
		{[]string{"localhost", "shop.localhost"}, ""},        // browsers take none for it
		{[]string{"a.example.com", "a.example.com", ""}, ""}, // any
	} {
		var routes []Route
		for _, h := range c.hosts {
			routes = append(routes, Route{Host: h, Path: "/"})
		}
		if got := sharedDomain(routes); got != c.want {
			t.Errorf("%v: %q, want %q", c.hosts, got, c.want)
		}
	}
}

func TestTheCookieIsOfOneHostWhereItCanBe(t *testing.T) {
	tab, err := newTable([]Room{
		{Name: "shop", Routes: []Route{{Host: "shop.example.com"}, {Host: "pay.example.com", Path: "/basket"}}},
		{Name: "one", Routes: []Route{{Host: "one.example.com"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		room, host   string
		https        bool
		name, domain string
	}{
		{"shop", "shop.example.com", true, "__Secure-anteroom_shop", "example.com"},
		{"shop", "shop.example.com", false, "anteroom_shop", "example.com"},
		{"shop", "example.com", true, "__Secure-anteroom_shop", "example.com"},
		{"shop", "other.example.org", true, "__Host-anteroom_shop", ""}, // by forward-auth; the browser would refuse the domain
		{"shop", "evilexample.com", true, "__Host-anteroom_shop", ""},
		{"one", "one.example.com", true, "__Host-anteroom_one", ""},
		{"one", "one.example.com", false, "anteroom_one", ""},
	} {
		k := tab.byName[c.room].cookie(client{https: c.https, host: c.host}, "v", 1e9)
		if k.Name != c.name || k.Domain != c.domain || k.Path != "/" || k.Secure != c.https {
			t.Errorf("%s at %s, https %v: %v", c.room, c.host, c.https, k)
		}
		h := map[string][]string{"Cookie": {"a=b; " + k.Name + "=v; c=d"}}
		if got := tab.byName[c.room].held(h, client{https: c.https, host: c.host}); got != "v" {
			t.Errorf("%s at %s, https %v: the browser brings %q back", c.room, c.host, c.https, got)
		}
		withoutOurs(h)
		if got := h["Cookie"][0]; got != "a=b; c=d" {
			t.Errorf("the origin sees %s", got)
		}
	}
}

func TestCapitalsMeetTheRoomsOfBothReadings(t *testing.T) {
	tab, err := newTable([]Room{
		{Name: "site", Routes: []Route{{Host: "a.example.com"}}},
		{Name: "shop", Routes: []Route{{Host: "a.example.com", Path: "/Shop"}, {Host: "*", Path: "/any"}}},
		{Name: "vip", Routes: []Route{{Host: "a.example.com", Path: "/shop/vip"}}},
		{Name: "small", Routes: []Route{{Host: "b.example.com", Path: "/shop"}}},
		{Name: "large", Routes: []Route{{Host: "b.example.com", Path: "/Shop"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"a.example.com/Shop":       "shop",
		"a.example.com/shop":       "shop site",
		"a.example.com/SHOP/x":     "shop site",
		"a.example.com/shop/vip":   "vip",
		"a.example.com/Shop/vip":   "vip shop",
		"a.example.com/Shop/Vip/x": "vip shop",
		"a.example.com/sHop/Vip":   "vip site",
		"a.example.com/shopping":   "site",
		"a.example.com/ANY":        "site", // a host of its own goes before any
		"c.example.com/ANY":        "shop",
		"c.example.com/other":      "",
		"b.example.com/shop":       "small", // as it is written, where two are alike
		"b.example.com/Shop":       "large",
		"a.example.com/sHop;x":     "shop site",
	} {
		u, err := url.Parse("http://" + at)
		if err != nil {
			t.Fatal(err)
		}
		a := tab.meet(u.Hostname(), u, unasked)
		got := ""
		if a.route != nil {
			got = a.room.Name
		}
		for _, o := range a.others {
			got += " " + o.room.Name
		}
		if got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
}

func BenchmarkTable(b *testing.B) {
	var rooms []Room
	for i := range 1000 {
		rooms = append(rooms, Room{Name: fmt.Sprint(i), Routes: []Route{{Host: fmt.Sprintf("%d.example.com", i)}, {Host: "*", Path: fmt.Sprintf("/%d", i)}}})
	}
	t, err := newTable(rooms)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if t.at("777.example.com", "/tickets/42") == nil {
			b.Fatal("no room")
		}
	}
}
