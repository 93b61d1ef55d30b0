package gateway

import (
	"cmp"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// arriving are requests of one kind whose body is still on its way, the oldest
// first. Each holds a connection that counts as busy, so there is a bound: when it
// is reached the oldest request of whichever address has most of them is broken
// off for the newcomer; of addresses with a few each, the oldest of all. A body
// that comes at once is never the oldest for long, and no stranger's slow bodies
// break off somebody else's before their own.
type arriving struct {
	max     int // negative: no bound
	mu      sync.Mutex
	first   *arrival
	last    *arrival
	n       int
	seq     uint64
	victims []victim     // to be broken off next, as of the last look; some may have ended since
	evicted atomic.Int64 // so far
}

// arrival is one of them, from begin to end.
type arrival struct {
	all        *arriving
	w          http.ResponseWriter
	from       netip.Addr
	upload     *upload // nil: not on its way to an origin
	seq        uint64
	prev, next *arrival
	linked     bool
}

type victim struct {
	*arrival
	seq uint64
}

// begin notes in b, which is not in use, that a body is on its way.
func (a *arriving) begin(b *arrival, w http.ResponseWriter, from netip.Addr, u *upload) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.max >= 0 && a.n >= a.max {
		a.evict()
	}
	a.seq++
	*b = arrival{all: a, w: w, from: from, upload: u, seq: a.seq, prev: a.last, linked: true}
	if a.last != nil {
		a.last.next = b
	} else {
		a.first = b
	}
	a.last = b
	a.n++
}

// done is called when the body has come, or nothing depends on the rest of it. It
// may be called again.
func (b *arrival) done() {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.unlink()
}

// awaited notes that a body for us is on its way, until came is called.
func (g *Gateway) awaited(w http.ResponseWriter, from netip.Addr) *arrival {
	b := g.arrivals.Get().(*arrival) // used again: most requests to the API have a body
	g.bodies.begin(b, w, from, nil)
	return b
}

// came is called once, when it has come or is given up.
func (g *Gateway) came(b *arrival) {
	b.done()
	b.w = nil
	g.arrivals.Put(b)
}

func (b *arrival) unlink() {
	if !b.linked {
		return
	}
	b.linked = false
	if b.prev != nil {
		b.prev.next = b.next
	} else {
		b.all.first = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	} else {
		b.all.last = b.prev
	}
	b.prev, b.next = nil, nil
	b.all.n--
}

// evict breaks off one. Its reader is told by an error.
func (a *arriving) evict() {
	for again := true; ; again = false {
		for len(a.victims) > 0 {
			v := a.victims[0]
			a.victims = a.victims[1:]
			if !v.linked || v.arrival.seq != v.seq {
				continue // over, and perhaps another's by now
			}
			v.unlink()
			a.evicted.Add(1)
			if v.upload != nil {
				v.upload.crowdOut()
				return
			}
			_ = http.NewResponseController(v.w).SetReadDeadline(time.Unix(1, 0)) // past: the Read fails now
			return
		}
		if !again {
			return
		}
		a.look()
	}
}

// look finds victims, for many newcomers at a time.
func (a *arriving) look() {
	of := make(map[netip.Prefix][]victim)
	var most []victim
	for b := a.first; b != nil; b = b.next {
		p := network(b.from)
		of[p] = append(of[p], victim{b, b.seq})
		if len(of[p]) > len(most) {
			most = of[p]
		}
	}
	if few := max(2, a.max/64); len(most) <= few { // nobody stands out
		for b := a.first; b != nil && len(a.victims) < few; b = b.next {
			a.victims = append(a.victims, victim{b, b.seq})
		}
		return
	}
	a.victims = most[:(len(most)+1)/2]
	slices.SortFunc(a.victims, func(x, y victim) int { return cmp.Compare(x.seq, y.seq) })
}

// network is what counts as one address.
func network(a netip.Addr) netip.Prefix {
	bits := 32
	if a.Is6() {
		bits = 64 // what one household has
	}
	p, _ := a.WithZone("").Prefix(bits) // the zero prefix for those without one
	return p
}

// open is how many there are.
func (a *arriving) open() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

// hasBody reports whether a request may have one.
func hasBody(r *http.Request) bool {
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

// restMax is as much of a body that nobody needs as is read, so that the client
// sees the answer and the connection can be used again. It is what net/http reads.
const restMax = 256 << 10

// rest takes in what is left of a body that nobody needs. net/http would do so
// before it answers, and nothing could break it off. Over HTTP/2 no answer waits
// for it, and who asks whether to send a body (Expect) is answered instead.
func (g *Gateway) rest(w http.ResponseWriter, r *http.Request) {
	if !hasBody(r) || r.ProtoMajor != 1 || len(r.Header["Expect"]) > 0 {
		return
	}
	b := g.awaited(w, g.client(r).addr)
	defer g.came(b)
	_, _ = io.CopyN(io.Discard, r.Body, restMax)
}
