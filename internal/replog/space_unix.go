//go:build linux || darwin

package replog

import "golang.org/x/sys/unix"

// spaceOf returns how many bytes of the disk that has dir this process may still
// write, and how many it has in all.
func spaceOf(dir string) (free, total uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	size := uint64(s.Bsize) //nolint:gosec // it is positive, and of another type elsewhere
	return s.Bavail * size, s.Blocks * size, nil
}
