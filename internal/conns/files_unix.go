//go:build unix

package conns

import (
	"math"
	"syscall"
)

// filesMax is how many files and connections this process may have open.
func filesMax() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return math.MaxUint64 // it does not say, so nothing is known to stop us
	}
	return unsigned(l.Cur)
}

// unsigned: some systems have a signed number there.
func unsigned[T int64 | uint64](n T) uint64 { return uint64(max(n, 0)) }
