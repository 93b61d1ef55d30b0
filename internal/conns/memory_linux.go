package conns

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// memoryMax is how much memory this process may have, in bytes: the machine's, or less
// where its control group or GOMEMLIMIT says so.
func memoryMax() uint64 {
	most := uint64(debug.SetMemoryLimit(-1)) // it only tells
	var m syscall.Sysinfo_t
	if syscall.Sysinfo(&m) == nil {
		most = min(most, uint64(m.Totalram)*uint64(m.Unit)) //nolint:unconvert // where words have 32 bits
	}
	own, _ := os.ReadFile("/proc/self/cgroup")
	return min(most, groupMax("/sys/fs/cgroup", string(own)))
}

// groupMax is the least memory.max of a group and those that it is in, under root.
// own is what /proc/self/cgroup says, of version 2: 0::/path.
func groupMax(root, own string) uint64 {
	most := uint64(math.MaxUint64)
	_, at, ok := strings.Cut("\n"+own, "\n0::/")
	if !ok {
		return most
	}
	at, _, _ = strings.Cut(at, "\n")
	for at = path.Clean("/" + at); ; at = path.Dir(at) {
		text, _ := os.ReadFile(path.Join(root, at, "memory.max"))
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil { // else it is max, or not there
			most = min(most, n)
		}
		if at == "/" {
			return most
		}
	}
}
