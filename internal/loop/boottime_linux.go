package loop

import "golang.org/x/sys/unix"

// bootTime is the time since the machine's boot in nanoseconds. It counts on
// while the machine sleeps, as a lease must.
func bootTime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("clock_gettime(CLOCK_BOOTTIME): " + err.Error()) // every Linux since 2.6.39 has it
	}
	return ts.Nano()
}
