//go:build unix

package config

import (
	"os"
	"syscall"
)

// ofAnother reports whether a file belongs to another user than this process's.
func ofAnother(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) != os.Geteuid()
}
