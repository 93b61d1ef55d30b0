package membership_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/membership"
)

// nobody answers.
func nobody(context.Context, string, string) (eviction.Peer, bool, error) {
	return eviction.Peer{}, false, errors.New("nobody")
}

func valid() membership.Config {
	return membership.Config{
		Self: eviction.Peer{Member: eviction.Member{Name: "a", Boot: 1}, Start: 1},
		Bind: "0.0.0.0:7946", PeerAddr: "0.0.0.0:7001", OnView: func(membership.View) {},
		Ask: nobody,
	}
}

func TestConfigIsAccepted(t *testing.T) {
	for what, change := range map[string]func(*membership.Config){
		"as in the sample": func(c *membership.Config) { c.Join = []string{"10.0.0.2:7946"} },
		"any port":         func(c *membership.Config) { c.Bind = "127.0.0.1:0" },
		"any address":      func(c *membership.Config) { c.Bind, c.PeerAddr = ":7946", ":7001" },
		"IPv6": func(c *membership.Config) {
			c.Bind, c.PeerAddr, c.Advertise, c.Join = "[::]:7946", "[::1]:7001", "[fd00::1]:7946", []string{"[fd00::2]:7946"}
		},
		"names": func(c *membership.Config) {
			c.Bind, c.PeerAddr, c.Advertise, c.Join = "localhost:7946", "node-1.peers:7001", "node-1.peers", []string{"anteroom_gossip.shop.svc:7946"}
		},
		"advertised address": func(c *membership.Config) { c.Advertise = "fd00::1" },
		"128-bit key":        func(c *membership.Config) { c.Keys = [][]byte{make([]byte, 16)} },
		"a name in Greek":    func(c *membership.Config) { c.Self.Name = "κόμβος 1" },
	} {
		c := valid()
		change(&c)
		if _, err := membership.New(c); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestConfigErrorsSayWhatWouldBeRight(t *testing.T) {
	for what, test := range map[string]struct {
		change func(*membership.Config)
		want   string
	}{
		"no name":            {func(c *membership.Config) { c.Self.Name = "" }, "node.id: empty; give the node a name"},
		"no start":           {func(c *membership.Config) { c.Self.Start = 0 }, "start: 0 is no time"},
		"no port":            {func(c *membership.Config) { c.Bind = "10.0.0.1" }, `node.gossip: "10.0.0.1" is not host:port`},
		"port too large":     {func(c *membership.Config) { c.Bind = "10.0.0.1:70000" }, "no port from 1 to 65535"},
		"peer at any port":   {func(c *membership.Config) { c.PeerAddr = "10.0.0.1:0" }, `node.peer: "10.0.0.1:0" has no port`},
		"peer with a scheme": {func(c *membership.Config) { c.PeerAddr = "http://a:1" }, "node.peer"},
		"advertised wild":    {func(c *membership.Config) { c.Advertise = "0.0.0.0:7946" }, "node.advertise"},
		"advertised nothing": {func(c *membership.Config) { c.Advertise = "a b" }, "neither an address nor a host name"},
		"join wild":          {func(c *membership.Config) { c.Join = []string{":7946"} }, "node.join"},
		"join without port":  {func(c *membership.Config) { c.Join = []string{"10.0.0.2:7946", "10.0.0.3"} }, `node.join: "10.0.0.3"`},
		"join with a zone":   {func(c *membership.Config) { c.Join = []string{"[fe80::1%eth0]:7946"} }, "zone"},
		"short key":          {func(c *membership.Config) { c.Keys = [][]byte{[]byte("secret")} }, "security.gossip_key: 6 bytes"},
		"no OnView":          {func(c *membership.Config) { c.OnView = nil }, "OnView"},
		"negative interval":  {func(c *membership.Config) { c.Rejoin = -time.Second }, "negative"},
	} {
		c := valid()
		test.change(&c)
		_, err := membership.New(c)
		switch {
		case err == nil || !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: error %v, want one with %q", what, err, test.want)
		case strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the key is in the error %v", what, err)
		}
	}
}

func TestConfigErrorsComeAllAtOnce(t *testing.T) {
	_, err := membership.New(membership.Config{Join: []string{"x", "y"}, Keys: [][]byte{{1}}, Advertise: ":"})
	for _, want := range []string{"node.id", "start", "node.gossip", "node.advertise", "node.peer", `"x"`, `"y"`, "gossip_key", "OnView"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no error about %s in:\n%v", want, err)
		}
	}
}
