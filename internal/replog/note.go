package replog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anteroom/anteroom/internal/store"
)

// A note outside of a log's directory says that there is a log. Without one a directory
// that is gone as a whole, or whose disk was not mounted, is taken for that of a new node.

// Gone returns what is wrong with a directory that is not there, or has nothing of a log in it,
// though there is a note of one; else nil.
func Gone(dir, note string) *Damage {
	if note == "" || hasLog(dir) {
		return nil
	}
	if _, err := os.Stat(note); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range []string{ownerFile, oldOwnerFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return damaged(dir, "it is gone, and %s says that there was a log in it", note)
}

// noted makes the note, if there is none.
func noted(note string) error {
	if note == "" {
		return nil
	}
	if _, err := os.Stat(note); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d, err := store.Open(filepath.Dir(note))
	if err != nil {
		return err
	}
	return d.Write(filepath.Base(note), []byte("This node keeps a log of queues. With this file it does not take an empty directory for a new one.\n"))
}
