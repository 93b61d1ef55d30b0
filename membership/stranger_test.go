package membership_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/anteroom/anteroom/membership"
)

// stranger gossips by itself: it says of itself whatever the test likes.
type stranger struct {
	*memberlist.Memberlist
	meta []byte
}

func (s *stranger) NodeMeta(int) []byte                { return s.meta }
func (s *stranger) NotifyMsg([]byte)                   {}
func (s *stranger) GetBroadcasts(int, int) [][]byte    { return nil }
func (s *stranger) LocalState(bool) []byte             { return nil }
func (s *stranger) MergeRemoteState(b []byte, ok bool) {}

// stranger starts one, which stops with the cluster.
func (c *cluster) stranger(name string, p *port, meta []byte) *stranger {
	c.Helper()
	s := &stranger{meta: meta}
	conf := memberlist.DefaultLANConfig()
	conf.Name, conf.Transport, conf.Delegate, conf.LogOutput = name, p, s, io.Discard
	c.wire.hears(p, false) // as a node: else it may take over what others know of its name
	list, err := memberlist.Create(conf)
	if err != nil {
		c.Fatal(err)
	}
	c.wire.hears(p, true)
	s.Memberlist = list
	c.strangers = append(c.strangers, s)
	return s
}

// meta is what a member says of itself, well formed.
func meta(start uint64, addr string) []byte {
	b := binary.BigEndian.AppendUint64([]byte{1, membership.Protocol}, 7)
	b = append(binary.BigEndian.AppendUint64(b, start), byte(len(addr)))
	return append(b, addr...)
}

func TestStrangersAreNoMembers(t *testing.T) {
	good := meta(1, "10.0.0.7:7001")
	for what, test := range map[string]struct {
		name string
		meta []byte
		why  string
	}{
		"no metadata":      {"x", nil, "not anteroom's"},
		"text":             {"x", []byte("role=web,version=1.2.3"), "not anteroom's"},
		"too short":        {"x", good[:18], "not anteroom's"},
		"cut off":          {"x", good[:len(good)-9], "not host:port"},
		"no start":         {"x", meta(0, ":7001"), "time at which it started"},
		"negative start":   {"x", meta(1<<63, ":7001"), "time at which it started"},
		"no port":          {"x", meta(1, "10.0.0.7"), "not host:port"},
		"port 0":           {"x", meta(1, "10.0.0.7:0"), "no port"},
		"a scheme":         {"x", meta(1, "unix:///tmp/socket:1"), "not host:port"},
		"a path":           {"x", meta(1, "a/b:1"), "neither an address nor a host name"},
		"a zone":           {"x", meta(1, "[fe80::1%eth0]:1"), "zone"},
		"an older release": {"x", append([]byte{1, membership.Protocol - 1}, good[2:]...), "it speaks version 2 of the protocol and this node 3: run the same release"},
		"a newer release":  {"x", append([]byte{1, membership.Protocol + 1}, good[2:]...), "it speaks version 4 of the protocol and this node 3: run the same release"},
		"a long name":      {strings.Repeat("x", 129), good, "more than the 128"},
		"an invisible one": {"x\nlevel=ERROR", good, "cannot be shown"},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(c *cluster) {
				nodes := c.startAll(2)
				views := nodes[0].handedOut()
				s := c.stranger(test.name, c.wire.open(""), test.meta)
				if _, err := s.Join([]string{nodes[0].Addr()}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if !agree(nodes...) || nodes[0].handedOut() != views || nodes[0].NumMembers() != 2 {
					t.Errorf("views changed to %s", names(nodes[0].view()))
				}
				lines := nodes[0].log.lines("level=WARN", test.why)
				if n := len(lines); n == 0 || n > 30 {
					t.Errorf("%d log lines with %q; all warnings: %q", n, test.why, nodes[0].log.lines("level=WARN"))
				}
			})
		})
	}
}

// What a later release adds at the end of the metadata is skipped.
func TestMembersOfALaterReleaseAreMembers(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(2)
		s := c.stranger("x", c.wire.open(""), append(meta(1, ":7001"), 1, 2, 3))
		if _, err := s.Join([]string{nodes[0].Addr()}); err != nil {
			t.Fatal(err)
		}
		c.within(time.Second, "all in the views", func() bool {
			return names(nodes[0].view()) == "x a b" && names(nodes[1].view()) == "x a b"
		})
	})
}

// A member that comes back saying odd things is not what it was: it leaves the
// views, although gossip says that it is alive.
func TestMemberThatTurnsOddLeavesTheViews(t *testing.T) {
	bubble(t, func(c *cluster) {
		nodes := c.startAll(3)
		old := nodes[2]
		c.kill(old)
		s := c.stranger("c", c.wire.open(old.port.at.String()), []byte("odd"))
		if _, err := s.Join([]string{nodes[0].Addr()}); err != nil {
			t.Fatal(err)
		}
		c.within(time.Second, "views without it", func() bool { return agree(nodes[:2]...) })
		time.Sleep(20 * time.Second)
		if !agree(nodes[:2]...) {
			t.Errorf("a sees %s", names(nodes[0].view()))
		}
	})
}

func TestNodesOfTwoKeysDoNotMeetAndSaySo(t *testing.T) {
	key := func(b byte) func(*membership.Config) {
		return func(c *membership.Config) {
			if b != 0 {
				c.Keys = [][]byte{bytes.Repeat([]byte{b}, 32)}
			}
		}
	}
	for _, test := range []struct{ one, other byte }{{'k', 'l'}, {'k', 0}, {0, 'k'}} {
		bubble(t, func(c *cluster) {
			a := c.start("a", key(test.one))
			b := c.start("b", key(test.one), joining(a))
			x := c.start("x", key(test.other), joining(a, b))
			time.Sleep(5 * time.Minute)
			if !agree(a, b) || !agree(x) {
				t.Errorf("keys %q and %q: a sees %s, x sees %s", test.one, test.other, names(a.view()), names(x.view()))
			}
			for _, p := range []*process{a, x} {
				lines := p.log.lines("level=ERROR", "set the same security.gossip_key")
				if n := len(lines); n < 2 || n > 6 {
					t.Errorf("keys %q and %q: %s has said so %d times in 5 m:\n%s", test.one, test.other, p.name, n, strings.Join(lines, ""))
				}
			}
			for _, p := range c.nodes {
				if lines := p.log.lines("kkkk"); len(lines) > 0 {
					t.Errorf("the key is in the log: %q", lines)
				}
			}
		})
	}
}

// A caller that opens streams and says nothing takes up a bounded number of
// them, and members are heard again when its time is up.
func TestStreamsAreBounded(t *testing.T) {
	bubble(t, func(c *cluster) {
		a := c.start("a")
		caller := c.wire.open("")
		var held []net.Conn
		for range 200 {
			time.Sleep(time.Millisecond) // they are taken in one by one
			if conn, err := caller.DialTimeout(a.Addr(), time.Second); err == nil {
				held = append(held, conn)
			}
		}
		open := slices.Clone(held)
		open = slices.DeleteFunc(open, func(conn net.Conn) bool {
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := conn.Read(make([]byte, 1))
			return errors.Is(err, io.EOF)
		})
		if len(open) != 64 {
			t.Errorf("%d of %d streams are held open, want 64", len(open), len(held))
		}
		b := c.start("b", joining(a))
		c.within(10*time.Second, "a view of both", func() bool { return agree(a, b) })
	})
}
