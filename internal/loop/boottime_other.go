//go:build !linux

package loop

import "time"

var started = time.Now() //nolint:gochecknoglobals // set once, before anything runs

// bootTime is a monotonic time in nanoseconds. Where the system offers no clock
// that counts on through sleep, do not let a node's machine sleep.
func bootTime() int64 { return int64(time.Since(started)) + 1000 }
