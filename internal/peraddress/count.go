package peraddress

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/anteroom/anteroom/qpid"
)

// Bounds of what is remembered. Past addressesMax the address that was heard of
// least lately is forgotten, with all that is counted for it: it starts afresh.
// Past ticketsMax one of the tickets that would be released soonest is counted no
// more. So who can speak from a hundred thousand addresses is not held by bounds
// of one, and nobody else pays for that.
const (
	addressesMax = 100_000
	ticketsMax   = 1 << 20
)

// key is an address, or a range that one party has, in a room.
type key struct {
	room string
	net  netip.Prefix
}

// address is what one has.
type address struct {
	key
	counts
	ahead      int64  // µs: joins have used up the time until then, see join
	swept      int64  // µs: when its tickets were last looked through; of the widest range
	wider      uint32 // the /48 of a /64; 0: none
	tickets    uint32 // the first, of a list; of the widest range
	prev, next uint32 // by when they were heard of, the latest first; next also of free ones
}

// counts are of what is held, not of what is done.
type counts struct{ places, active, streams int32 }

// counted is a ticket, or the visit that came of it.
type counted struct {
	id         uint64 // the first half of a ticket's: they are random
	until      int64  // µs: nobody has heard of it by then, so it is gone
	from       uint32 // address; 0: free
	prev, next uint32 // of the same widest range; next also of free ones
	visit      bool
	held       bool // its turn has come, and its address is full
}

// count says how much each address has. What lies in the slices is named by its
// index, so that there is nothing for the garbage collector to follow; 0 is none.
// Invariant: what an address has of places and visits are the tickets counted for
// it, and a wider range has the sum of its parts.
type count struct {
	mu        sync.Mutex
	addresses []address
	names     map[key]uint32
	freeName  uint32
	latest    uint32 // of the addresses: a ring by prev and next
	tickets   []counted
	ids       map[uint64]uint32
	freeID    uint32
	hand      uint32       // looks for tickets that are gone, two for each that comes
	n, held   atomic.Int64 // tickets counted; of them, held back
	most      struct{ addresses, tickets int }
}

func newCount(addresses, tickets int) *count {
	c := &count{addresses: make([]address, 1), names: map[key]uint32{}, tickets: make([]counted, 1), ids: map[uint64]uint32{}}
	c.most.addresses, c.most.tickets = addresses, tickets
	return c
}

func idOf(id qpid.ItemID) uint64 { return binary.BigEndian.Uint64(id[:8]) }

// find returns the record of an address, and makes one if there is none.
func (c *count) find(room string, a netip.Addr) uint32 {
	if a.Is4() {
		return c.at(key{room, netip.PrefixFrom(a, 32)}, 0)
	}
	wide, _ := a.Prefix(48)
	narrow, _ := a.Prefix(64)
	w := c.at(key{room, wide}, 0)
	n := c.at(key{room, narrow}, w)
	c.touch(w) // it is forgotten after all of its parts
	return n
}

func (c *count) at(k key, wider uint32) uint32 {
	i, ok := c.names[k]
	if !ok {
		i = c.fresh()
		c.addresses[i] = address{key: k, wider: wider}
		c.names[k] = i
		c.link(i)
		return i
	}
	c.touch(i)
	return i
}

func (c *count) fresh() uint32 {
	if len(c.names) >= c.most.addresses {
		c.forget(c.addresses[c.latest].prev)
	}
	if i := c.freeName; i != 0 {
		c.freeName = c.addresses[i].next
		return i
	}
	c.addresses = append(c.addresses, address{})
	return uint32(len(c.addresses) - 1)
}

// forget drops an address and what is counted for it.
func (c *count) forget(i uint32) {
	for t := c.addresses[c.widest(i)].tickets; t != 0; {
		next := c.tickets[t].next
		if c.tickets[t].from == i {
			c.drop(t)
		}
		t = next
	}
	c.unlink(i)
	delete(c.names, c.addresses[i].key)
	c.addresses[i] = address{next: c.freeName}
	c.freeName = i
}

func (c *count) touch(i uint32) {
	if i != c.latest {
		c.unlink(i)
		c.link(i)
	}
}

func (c *count) link(i uint32) {
	a := &c.addresses[i]
	if c.latest == 0 {
		a.prev, a.next = i, i
	} else {
		a.next, a.prev = c.latest, c.addresses[c.latest].prev
		c.addresses[a.prev].next, c.addresses[a.next].prev = i, i
	}
	c.latest = i
}

func (c *count) unlink(i uint32) {
	a := &c.addresses[i]
	if a.next == i {
		c.latest = 0
		return
	}
	c.addresses[a.prev].next, c.addresses[a.next].prev = a.next, a.prev
	if c.latest == i {
		c.latest = a.next
	}
}

func (c *count) widest(i uint32) uint32 {
	if w := c.addresses[i].wider; w != 0 {
		return w
	}
	return i
}

// add changes what an address has, and the range that it is in.
func (c *count) add(i uint32, d counts) {
	for ; i != 0; i = c.addresses[i].wider {
		a := &c.addresses[i]
		a.places, a.active, a.streams = a.places+d.places, a.active+d.active, max(0, a.streams+d.streams)
	}
}

// of is what a ticket adds to the counts of its address.
func (t *counted) of(sign int32) counts {
	if t.visit {
		return counts{active: sign}
	}
	return counts{places: sign}
}

// hold counts a ticket for an address.
func (c *count) hold(id qpid.ItemID, from uint32, visit bool, now, until int64) {
	for range 2 {
		c.tidy(now)
	}
	if len(c.ids) >= c.most.tickets {
		c.drop(c.soonest())
	}
	i := c.freeID
	if i != 0 {
		c.freeID = c.tickets[i].next
	} else {
		c.tickets = append(c.tickets, counted{})
		i = uint32(len(c.tickets) - 1)
	}
	w := &c.addresses[c.widest(from)]
	c.tickets[i] = counted{id: idOf(id), until: until, from: from, next: w.tickets, visit: visit}
	if w.tickets != 0 {
		c.tickets[w.tickets].prev = i
	}
	w.tickets = i
	c.ids[idOf(id)] = i
	c.n.Store(int64(len(c.ids)))
	c.add(from, c.tickets[i].of(+1))
}

func (c *count) setHeld(i uint32, held bool) {
	if t := &c.tickets[i]; t.held != held {
		t.held = held
		if held {
			c.held.Add(+1)
		} else {
			c.held.Add(-1)
		}
	}
}

func (c *count) drop(i uint32) {
	c.setHeld(i, false)
	t := &c.tickets[i]
	if t.prev != 0 {
		c.tickets[t.prev].next = t.next
	} else {
		c.addresses[c.widest(t.from)].tickets = t.next
	}
	if t.next != 0 {
		c.tickets[t.next].prev = t.prev
	}
	c.add(t.from, t.of(-1))
	delete(c.ids, t.id)
	c.n.Store(int64(len(c.ids)))
	*t = counted{next: c.freeID}
	c.freeID = i
}

// tidy drops the next ticket, round and round, if it is gone.
func (c *count) tidy(now int64) {
	c.hand++
	if int(c.hand) >= len(c.tickets) {
		c.hand = 1
	}
	if int(c.hand) < len(c.tickets) && c.tickets[c.hand].from != 0 && c.tickets[c.hand].until <= now {
		c.drop(c.hand)
	}
}

// soonest is the one that ends first of the next 64. There is none free.
func (c *count) soonest() uint32 {
	best := uint32(0)
	for range min(64, len(c.tickets)-1) {
		c.hand++
		if int(c.hand) >= len(c.tickets) {
			c.hand = 1
		}
		if best == 0 || c.tickets[c.hand].until < c.tickets[best].until {
			best = c.hand
		}
	}
	return best
}

// sweep drops the tickets of an address's widest range that are gone, at most
// once a second: it may be some thousands.
func (c *count) sweep(i uint32, now int64) {
	w := &c.addresses[c.widest(i)]
	if now-w.swept < 1e6 {
		return
	}
	w.swept = now
	for t := w.tickets; t != 0; {
		next := c.tickets[t].next
		if c.tickets[t].until <= now {
			c.drop(t)
		}
		t = next
	}
}

// full reports whether an address, or the range that it is in, has no room for
// one more of what has says.
func (c *count) full(i uint32, most most, now int64, has func(*counts) int32) bool {
	if most.one <= 0 || !c.over(i, most, has) {
		return false
	}
	c.sweep(i, now)
	return c.over(i, most, has)
}

func (c *count) over(i uint32, most most, has func(*counts) int32) bool {
	a := &c.addresses[i]
	return int(has(&a.counts)) >= most.one || a.wider != 0 && int(has(&c.addresses[a.wider].counts)) >= most.wide
}

// most is a bound: of one address, and of a /48. Not above 0: none.
type most struct{ one, wide int }

func times(one int) most { return most{one, wide * one} }

func places(c *counts) int32  { return c.places }
func active(c *counts) int32  { return c.active }
func streams(c *counts) int32 { return c.streams }

// join counts a join by the generic cell rate algorithm: each pushes the
// address's time on by one interval, and that time may be ahead of the clock by a
// burst of them. If it would be too far, the time to wait is returned, in µs.
func (c *count) join(i uint32, aMinute int, now int64) (wait int64) {
	every := max(1, int64(60e6)/int64(aMinute))
	for a := i; a != 0; a = c.addresses[a].wider {
		each := every
		if a != i {
			each = max(1, every/wide)
		}
		wait = max(wait, max(c.addresses[a].ahead, now)+each-now-burst)
	}
	if wait > 0 {
		return wait
	}
	for a := i; a != 0; a = c.addresses[a].wider {
		each := every
		if a != i {
			each = max(1, every/wide)
		}
		c.addresses[a].ahead = max(c.addresses[a].ahead, now) + each
	}
	return 0
}
