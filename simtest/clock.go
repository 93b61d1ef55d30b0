package simtest

import (
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// epochWall is the wall time at which every world begins: 2026-01-01, Unix
// microseconds.
const epochWall = 1_767_225_600_000_000

// clock is one machine's pair of clocks as functions of true time, which is in
// microseconds since the world began. The boot clock drifts; NTP keeps the wall
// clock at a distance from the truth that changes in steps.
type clock struct {
	since int64 // true time at which the boot clock showed base
	base  int64
	drift int64 // parts per million
	ahead int64 // of the truth, of the wall clock
}

func (c *clock) boot(now int64) int64 {
	d := max(0, now-c.since)
	return c.base + d + d*c.drift/1_000_000
}

func (c *clock) read(now int64) eviction.Time {
	return eviction.Time{Boot: c.boot(now), Wall: wallAt(now) + c.ahead}
}

// run makes the boot clock run fast by drift parts per million from true time now
// on, or slow.
func (c *clock) run(now, drift int64) { c.base, c.since, c.drift = c.boot(now), now, drift }

// stop makes both clocks stand still from true time now until so much later, as
// those of a virtual machine do that is moved to another host.
func (c *clock) stop(now, last int64) {
	c.base, c.since, c.ahead = c.boot(now), now+last, c.ahead-last
}

// goOn ends a stop before its time.
func (c *clock) goOn(now int64) {
	if early := c.since - now; early > 0 {
		c.since, c.ahead = now, c.ahead+early
	}
}

// when returns the first true time at which the boot clock shows b or more.
func (c *clock) when(b int64) int64 {
	if b <= c.base {
		return c.since
	}
	t := c.since + (b-c.base)*1_000_000/(1_000_000+c.drift)
	for c.boot(t) >= b {
		t--
	}
	for c.boot(t) < b {
		t++
	}
	return t
}

// set makes the wall clock wrong by off, from true time now on.
func (c *clock) set(_, off int64) { c.ahead = off }

// WallAt is the time, in Unix microseconds, so long after the beginning of a run.
func WallAt(d time.Duration) int64 { return wallAt(d.Microseconds()) }

// wallAt is the true time t as a wall clock that is right shows it.
func wallAt(t int64) int64 { return epochWall + t }
