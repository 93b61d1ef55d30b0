package peraddress

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

func idAt(n int) (id qpid.ItemID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	return id
}

// Whatever comes and goes, also past what is remembered, the counts of an address
// are those of its tickets, and a range has the sum of its parts.
func TestCountsAreThoseOfTheTickets(t *testing.T) {
	addrs := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:2::1", "2001:db8:1::1"}
	rapid.Check(t, func(t *rapid.T) {
		c, now := newCount(rapid.IntRange(5, 20).Draw(t, "addresses"), rapid.IntRange(3, 30).Draw(t, "tickets")), int64(0)
		for range 200 {
			now += rapid.Int64Range(0, 2e6).Draw(t, "later")
			from := c.find("shop", netip.MustParseAddr(rapid.SampledFrom(addrs).Draw(t, "address")))
			id := idAt(rapid.IntRange(0, 40).Draw(t, "id"))
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1, 2:
				if _, ok := c.ids[idOf(id)]; !ok {
					c.hold(id, from, rapid.Bool().Draw(t, "visit"), now, now+rapid.Int64Range(0, 30e6).Draw(t, "until"))
				}
			case 3:
				c.release(id)
			case 4:
				c.becomes(id, rapid.Bool().Draw(t, "a visit"), now+5e6)
			default:
				if c.full(from, times(1), now, active) != (c.addresses[from].active >= 1 || c.addresses[from].wider != 0 && c.addresses[c.addresses[from].wider].active >= wide) {
					t.Fatal("full is not what the counts say")
				}
			}
			c.check(t)
		}
	})
}

func (c *count) check(t *rapid.T) {
	if len(c.names) > c.most.addresses || len(c.ids) > c.most.tickets || int(c.n.Load()) != len(c.ids) {
		t.Fatalf("%d addresses, %d tickets, %d of them said", len(c.names), len(c.ids), c.n.Load())
	}
	want := make(map[uint32]counts)
	for id, i := range c.ids {
		k := &c.tickets[i]
		if k.id != id || k.from == 0 || c.addresses[k.from].net.Bits() == 0 {
			t.Fatalf("ticket %x is %+v of %+v", id, k, c.addresses[k.from])
		}
		for a := k.from; a != 0; a = c.addresses[a].wider {
			d, has := k.of(+1), want[a]
			want[a] = counts{has.places + d.places, has.active + d.active, 0}
		}
	}
	listed := 0
	for name, i := range c.names {
		a := &c.addresses[i]
		if a.key != name || a.counts != want[i] {
			t.Fatalf("%v has %+v, want %+v", name, a.counts, want[i])
		}
		if a.wider != 0 && c.names[c.addresses[a.wider].key] != a.wider {
			t.Fatalf("%v is in a range that was forgotten", name)
		}
		for k, before := a.tickets, uint32(0); k != 0; k, before = c.tickets[k].next, k {
			listed++
			if c.tickets[k].prev != before || c.widest(c.tickets[k].from) != i {
				t.Fatalf("%v: its list of tickets is broken", name)
			}
		}
	}
	if listed != len(c.ids) {
		t.Fatalf("%d tickets are in lists, %d are counted", listed, len(c.ids))
	}
}

// A /64 is one party. All that a /48 has of them may have four times as much.
func TestIPv6Ranges(t *testing.T) {
	c := newCount(100, 100)
	take := func(a string) bool {
		from := c.find("shop", netip.MustParseAddr(a))
		if c.full(from, times(2), 1e6, active) {
			return false
		}
		c.hold(idAt(len(c.ids)), from, true, 0, 9e6)
		return true
	}
	got := ""
	for _, a := range []string{"2001:db8:7::1", "2001:db8:7::2", "2001:db8:7::3"} { // within a /64
		got += fmt.Sprint(take(a), " ")
	}
	for i := range 8 { // from one /64 to the next, within a /48
		got += fmt.Sprint(take(fmt.Sprintf("2001:db8:7:%x::1", i+1)), " ")
	}
	got += fmt.Sprint(take("2001:db8:8::1"), " ") // the next /48
	if want := "true true false " + "true true true true true true false false " + "true "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	wait := func(a string) int64 { return c.join(c.find("shop", netip.MustParseAddr(a)), 6, 0) } // 10 at once
	n := 0
	for i := range 100 {
		if wait(fmt.Sprintf("2001:db8:9:%x::1", i)) == 0 {
			n++
		}
	}
	if n != 40 {
		t.Errorf("%d joins from a /48, want 40", n)
	}
}

// Past what is remembered the address that was heard of least lately starts
// afresh, and nothing is left of it.
func TestTheAddressHeardOfLeastLatelyIsForgotten(t *testing.T) {
	c := newCount(3, 100)
	for i, a := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.1", "192.0.2.4"} {
		c.hold(idAt(i), c.find("shop", netip.MustParseAddr(a)), false, 0, 9e6)
	}
	for a, want := range map[string]int32{"192.0.2.1": 2, "192.0.2.3": 1, "192.0.2.4": 1} {
		if got := c.addresses[c.find("shop", netip.MustParseAddr(a))].places; got != want {
			t.Errorf("%s has %d places, want %d", a, got, want)
		}
	}
	if _, ok := c.ids[idOf(idAt(1))]; ok || len(c.ids) != 4 {
		t.Errorf("the forgotten one's ticket is still counted, %d in all", len(c.ids))
	}
}

// Places of people who went without a word are free again, also where nobody else
// comes from that address, and the memory of a crowd is used again.
func TestTicketsThatAreGoneAreCountedNoMore(t *testing.T) {
	c := newCount(10, 1000)
	one := c.find("shop", netip.MustParseAddr("192.0.2.1"))
	for i := range 500 {
		c.hold(idAt(i), one, false, 0, 5e6)
	}
	if c.full(one, times(500), 6e6, places) {
		t.Error("full of tickets that are gone")
	}
	other := c.find("shop", netip.MustParseAddr("192.0.2.2"))
	for i := range 500 {
		c.hold(idAt(1000+i), one, false, 10e6, 15e6)
	}
	for i := range 2000 {
		c.hold(idAt(5000+i), other, false, 20e6+int64(i), 25e6)
		c.release(idAt(5000 + i))
	}
	if len(c.ids) != 0 || len(c.tickets) > 1001 {
		t.Errorf("%d tickets are counted, in %d records", len(c.ids), len(c.tickets))
	}
}

func TestAutoIsAQuarterOfTheLimit(t *testing.T) {
	for target, want := range map[int]most{0: {10, 10}, 20: {10, 10}, 40: {10, 20}, 200: {50, 100}, 10_000: {2500, 5000}} {
		if got := (Limits{Active: Auto}).activeMax(&eviction.Room{Target: target}); got != want {
			t.Errorf("of %d: %+v, want %+v", target, got, want)
		}
	}
	if got := (Limits{Active: 7}).activeMax(&eviction.Room{Target: 200}); got != (most{7, 28}) {
		t.Errorf("a number: %+v", got)
	}
}
