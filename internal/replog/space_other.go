//go:build !linux && !darwin

package replog

// spaceOf knows nothing here: a disk is full when it says so.
func spaceOf(string) (free, total uint64, err error) { return 0, 0, nil }
