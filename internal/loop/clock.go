package loop

import (
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// SystemClock reads this machine's clocks. What it returns is safe for
// concurrent use.
func SystemClock() func() eviction.Time {
	base := time.Now()
	c := clocks{boot: bootTime, others: func() (mono, wall int64) {
		t := time.Now()
		return int64(t.Sub(base)), t.UnixNano()
	}}
	return c.now
}

// clocks reads the boot clock, which takes a system call, as seldom as it may,
// and the monotonic clock instead, which does not: a check-in asks for the time
// some five times.
//
// The two run at the same rate, and boot time is ahead by how long the machine
// has slept. So their difference changes only when it sleeps, and then the
// kernel puts the wall clock forward by the same. As long as the wall clock
// stands to the monotonic one as it did, there was no sleep. For the case that
// somebody set it back at once by just as much, the boot clock is read now and
// then all the same: twice as often as the margin that leases are given asks for.
type clocks struct {
	boot   func() int64               // ns
	others func() (mono, wall int64)  // ns, read together
	known  atomic.Pointer[difference] // nil: not yet read
}

// difference is how two clocks stood to the monotonic one at time at, in ns.
type difference struct{ boot, wall, at int64 }

const (
	stepMin   = int64(time.Millisecond)       // no sleep is as short
	bootEvery = int64(100 * time.Millisecond) // at least
	wideMin   = int64(20 * time.Microsecond)  // a reading of three clocks takes 1 µs or so
)

func (c *clocks) now() eviction.Time {
	mono, wall := c.others()
	d := c.known.Load()
	if d == nil || mono-d.at >= bootEvery || max(wall-mono-d.wall, d.wall-wall+mono) >= stepMin {
		d = c.compare(d)
		mono, wall = c.others()
	}
	return eviction.Time{Boot: (mono + d.boot) / 1000, Wall: wall / 1000}
}

// compare finds out the difference between boot time and monotonic time. It is
// between boot - after and boot - before; what is known stands as long as it
// is, so that boot time does not go back. A reading that was interrupted is too
// wide to be of use.
func (c *clocks) compare(old *difference) *difference {
	var d *difference
	width := int64(0)
	for range 5 {
		before, _ := c.others()
		boot := c.boot()
		after, wall := c.others()
		if d != nil && after-before >= width {
			continue
		}
		width, d = after-before, &difference{boot: boot - after, wall: wall - after, at: after}
		if old != nil && boot-after <= old.boot && old.boot <= boot-before {
			d.boot = old.boot
		}
		if width <= wideMin {
			break
		}
	}
	c.known.Store(d)
	return d
}
