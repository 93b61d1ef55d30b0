//go:build !linux

package conns

import "runtime/debug"

// memoryMax is how much memory this process may have, in bytes: what GOMEMLIMIT says. Of
// the machine's nothing is known, and that is no reason for more connections.
func memoryMax() uint64 {
	if n := debug.SetMemoryLimit(-1); n < 1<<62 { // it only tells
		return uint64(n)
	}
	return 0
}
