// Package term helps commands to be pleasant at a terminal and quiet in a pipe:
// a progress line that rewrites itself, tables with aligned columns, and the
// question whether anybody is looking.
//
// It starts no goroutine and reads no clock: who draws, and when, is up to the
// caller.
package term

import (
	"io"
	"os"
)

// IsTerminal reports whether w is a terminal that can rewrite its line: a
// character device other than the null device, unless TERM is dumb.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// HasColour reports whether text on w may be coloured: w is a terminal and
// NO_COLOR is empty or not set (https://no-color.org).
func HasColour(w io.Writer) bool { return IsTerminal(w) && os.Getenv("NO_COLOR") == "" }
