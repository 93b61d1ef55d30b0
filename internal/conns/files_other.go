//go:build !unix

package conns

import "math"

// filesMax is how many files and connections this process may have open. Here
// memory is what bounds them.
func filesMax() uint64 { return math.MaxUint64 }
