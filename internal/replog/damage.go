package replog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anteroom/anteroom/internal/store"
)

// Damage is what a disk has done to what it was given to keep. The log does not
// start with it: a queue that has less than it acknowledged must say so.
type Damage struct {
	File string // or directory, in which it is
	What string // is wrong with it
	// First and Last are the entries of the log that are lost at most; 0 and 0: it
	// is not known which, or all of them.
	First, Last uint64
}

func (d *Damage) Error() string {
	lost := "it cannot be said how much is lost"
	if d.First > 0 {
		lost = fmt.Sprintf("at most entries %d to %d of the log are lost, each of one or more changes", d.First, d.Last)
	}
	return fmt.Sprintf("%s is damaged: %s; %s", d.File, d.What, lost)
}

func damaged(file, format string, a ...any) *Damage {
	return &Damage{File: file, What: fmt.Sprintf(format, a...)}
}

// castagnoli is the polynomial of CRC-32C, for which processors have an
// instruction.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// sealed is a small file whose first line is the CRC-32C of the rest, JSON. It is
// replaced as a whole, so a crash leaves the old one or the new one.
type sealed struct {
	dir  *store.Store
	name string
}

func openSealed(dir, name string) (sealed, error) {
	d, err := store.Open(dir)
	return sealed{d, name}, err
}

func (s sealed) path() string { return s.dir.Path(s.name) }

// read decodes the file into v and reports whether there is one.
func (s sealed) read(v any) (bool, error) { return readSealed(s.path(), v) }

func readSealed(name string, v any) (bool, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sum, body, _ := bytes.Cut(b, []byte("\n"))
	if string(sum) != sumText(body) {
		return true, damaged(name, "its checksum is wrong")
	}
	if err := json.Unmarshal(body, v); err != nil {
		return true, damaged(name, "%v", err)
	}
	return true, nil
}

// write makes v durable.
func (s sealed) write(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.dir.Write(s.name, append([]byte(sumText(body)+"\n"), body...))
}

func sumText(body []byte) string {
	var b [4]byte
	c := crc32.Checksum(body, castagnoli())
	b[0], b[1], b[2], b[3] = byte(c>>24), byte(c>>16), byte(c>>8), byte(c)
	return hex.EncodeToString(b[:])
}

// segmentOf returns the file that has an entry, or would have it; the directory
// if there is none.
func segmentOf(dir string, index uint64) string {
	at := dir
	names, err := filepath.Glob(filepath.Join(dir, "*.wal")) // in order
	if err != nil {
		return dir
	}
	for _, name := range names {
		var base uint64
		if _, err := fmt.Sscanf(filepath.Base(name), "%020d-", &base); err == nil && base <= index {
			at = name
		}
	}
	return at
}
