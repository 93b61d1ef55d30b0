package load

import (
	"math/rand/v2"
	"time"
)

// visitor is one person on the way. What it wants next is want, and from when is
// due. It belongs to the lane it waits in, or to the connection that serves it.
//
// A million of them wait at a time: mind the size.
type visitor struct {
	held []byte // ticket; pass once it is let in

	due   int64 // µs since the start, as all times here but the last two
	tried int64 // when a request that has to be repeated was meant to be sent first
	came  int64 // when it wanted to join
	told  int64 // when it heard that it was called, or let in; 0: not yet
	since int64 // when it got its pass
	until int64 // when its stay is over
	good  int64 // when its pass expires if nobody uses it
	stay  int64 // how long it wants to stay

	joined   int64 // when it joined: Unix µs, by a node's clock
	entitled int64 // its turn had come by then: Unix µs, by a node's clock

	telling
	wave    uint64 // in which its turn came
	lane    uint16
	life    uint32 // ms that a pass is good
	pages   uint16 // it still wants to see
	asks    uint8  // check-ins until it gives up; 0: it does not
	want    kind
	tries   uint8 // that have failed
	started bool  // it has been counted among those who came
	again   bool  // it means to come back
	queued  bool  // it was not let in at once
	hasWave bool
}

// arriving reports that v is about to come for the first time.
func (v *visitor) arriving() bool { return !v.started && v.want == join && v.tries == 0 }

// inLine reports whether v has a ticket and is to go in with it, or gives it up.
func (v *visitor) inLine() bool { return v.want == checkIn || v.want == leave || v.want == abandon }

// meant is when what v wants was meant to be asked for first.
func (v *visitor) meant() int64 {
	if v.tries > 0 {
		return v.tried
	}
	return v.due
}

// keep remembers a ticket or pass. The text is copied into no more memory than
// it needs.
func (v *visitor) keep(token []byte) {
	if len(token) > cap(v.held) {
		v.held = make([]byte, len(token))
	}
	v.held = v.held[:len(token)]
	copy(v.held, token)
}

// asksMax is the most check-ins of somebody who gives up.
const asksMax = 3

// newVisitor draws what the visitor with that number will do.
func newVisitor(c *Config, number int, due int64) *visitor {
	var source rand.PCG
	source.Seed(c.Seed, uint64(number))
	draw := func() float64 { return float64(source.Uint64()>>11) / (1 << 53) } // in [0, 1)
	v := &visitor{due: due, came: due, stay: int64(float64(c.Manners.Stay.Microseconds()) * (0.5 + draw()))}
	if draw() < c.Manners.Abandon {
		v.asks = uint8(1 + source.Uint64()%asksMax)
	}
	v.again = draw() < c.Manners.Return
	return v
}

// spread is a point within every that is peculiar to v, so that those who came
// together do not ask together for ever.
func (v *visitor) spread(every time.Duration) int64 {
	var source rand.PCG
	source.Seed(uint64(v.joined), uint64(v.came))
	return int64(source.Uint64() % uint64(max(1, every.Microseconds())))
}
