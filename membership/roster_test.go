package membership

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/anteroom/anteroom/eviction"
)

// A cluster has so many names at most, whoever makes them up. One that was lost
// makes room, but not before memberlist has forgotten it too.
func TestNamesAreBounded(t *testing.T) {
	meta, err := encode(saying{Peer: eviction.Peer{Start: 1}, addr: ":7001"})
	if err != nil {
		t.Fatal(err)
	}
	node := func(name string) *memberlist.Node {
		return &memberlist.Node{Name: name, Addr: net.IPv4(10, 0, 0, 1), Port: 7946, Meta: meta, PMin: 1, PMax: 5, PCur: 2}
	}
	r := newRoster(saying{})
	now := time.Unix(1_000_000_000, 0)
	for i := range namesMax {
		n := node(fmt.Sprint("x", i))
		if err := r.admits(n, now); err != nil {
			t.Fatalf("%s: %v", n.Name, err)
		}
		r.alive(n, now)
	}
	one := node("x0")
	for _, test := range []struct {
		what  string
		after time.Duration
		do    func()
		ok    bool
	}{
		{"all alive", time.Hour, func() {}, false},
		{"one just lost", 0, func() { r.gone(one, now) }, false},
		{"as memberlist still has it", 14 * time.Minute, func() {}, false},
		{"as it has forgotten it", 2 * time.Minute, func() {}, true},
		{"taken again", 0, func() { r.alive(node("y"), now) }, false},
	} {
		now = now.Add(test.after)
		test.do()
		if err := r.admits(node("z"), now); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.what, err)
		}
		if err := r.admits(node("x1"), now); err != nil {
			t.Errorf("%s: a known name: %v", test.what, err)
		}
	}
}

// The mailbox keeps one state and one wake-up, however much happens unread.
func TestMailboxDoesNotFill(t *testing.T) {
	meta, err := encode(saying{Peer: eviction.Peer{Start: 1}, addr: ":7001"})
	if err != nil {
		t.Fatal(err)
	}
	r := newRoster(saying{})
	n := &memberlist.Node{Name: "x", Addr: net.IPv6loopback, Port: 1, Meta: meta}
	for range 100_000 {
		r.alive(n, time.Time{})
		r.gone(n, time.Time{})
	}
	if len(r.changed) != 1 || len(r.known) != 1 {
		t.Errorf("%d wake-ups, %d names", len(r.changed), len(r.known))
	}
}

// Who has just started hands out no view as long as another process may have its
// name: once. Neither more rivals nor word of one to who serves hold anything up.
func TestNoViewWhileTheNameIsInDoubt(t *testing.T) {
	peer := func(boot uint64, start int64) eviction.Peer {
		return eviction.Peer{Member: eviction.Member{Name: "a", Boot: boot}, Start: start}
	}
	now := time.Unix(1_000_000_000, 0)
	hear := func(r *roster, other eviction.Peer) {
		meta, err := encode(saying{Peer: other, addr: ":7001"})
		if err != nil {
			t.Fatal(err)
		}
		r.conflict(&memberlist.Node{Name: "a", Addr: net.IPv4(10, 0, 0, 2), Port: 7946, Meta: meta}, now)
	}
	sees := func(r *roster) bool { _, ok := r.view(); return ok }
	for _, test := range []struct {
		what  string
		other eviction.Peer
		doubt bool
	}{
		{"itself at another address", peer(5, 1000), false},
		{"a later one", peer(6, 2000), true},
		{"an earlier one", peer(4, 10), true},
	} {
		r := newRoster(saying{Peer: peer(5, 1000), addr: ":7001"})
		hear(r, test.other)
		if sees(r) == test.doubt || r.settled(now.Add(time.Hour)) == test.doubt {
			t.Errorf("%s: a view: %v, settled: %v", test.what, sees(r), r.settled(now.Add(time.Hour)))
		}
	}

	r := newRoster(saying{Peer: peer(5, 1000), addr: ":7001"})
	hear(r, peer(4, 10))
	c := r.challenger(time.Second)
	if c == nil {
		t.Fatal("nobody to call")
	}
	r.stands(c, now)
	if !sees(r) || len(r.changed) != 1 || !r.settled(now) {
		t.Error("no view after nobody answered")
	}
	if r.challenger(time.Second) != nil {
		t.Error("called again at once")
	}
	hear(r, peer(3, 5))
	if !sees(r) || r.challenger(time.Second) == nil {
		t.Error("another old life holds up the views, or is not called")
	}

	r = newRoster(saying{Peer: peer(5, 1000), addr: ":7001"})
	r.meet(true)
	hear(r, peer(4, 10))
	if !sees(r) || r.challenger(time.Second) == nil {
		t.Error("who serves hands out no view, or calls nobody")
	}
}
