package replog

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
)

const (
	segmentSize = 4 << 20                // bytes of one file of the log, which is as large from the start
	diskRetry   = 100 * time.Millisecond // between two tries of what cannot be left out
)

// entries is where raft keeps its log and its votes.
type entries interface {
	raft.LogStore
	raft.StableStore
	IsMonotonic() bool
	Close() error
}

// disk is the log on a disk that may fail. Appending returns the error, which
// raft deals with. Raft panics, however, on a vote that it cannot write and on a
// committed entry that it cannot read; these are tried until they succeed. When
// the log ends before they do, they end the goroutine of raft's that asked.
type disk struct {
	entries
	fault atomic.Pointer[error] // of the last operation that failed, until one succeeds
	ended chan struct{}         // closed when the log ends
}

var (
	_ raft.LogStore          = (*disk)(nil)
	_ raft.StableStore       = (*disk)(nil)
	_ raft.MonotonicLogStore = (*disk)(nil)
)

// openDisk opens the log in dir and reads all of it, so that what cannot be read
// is known before raft starts.
func openDisk(dir string, log hclog.Logger) (*disk, error) {
	path := filepath.Join(dir, "log")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	meta := &metadb.BoltMetaDB{}
	w, err := wal.Open(path, wal.WithSegmentSize(segmentSize), wal.WithLogger(log), wal.WithMetaStore(meta))
	if err != nil {
		_ = meta.Close()
		return nil, fmt.Errorf("the log in %s cannot be opened: %w", path, err)
	}
	if err := readable(w); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("the log in %s: %w", path, err)
	}
	return &disk{entries: files{w}, ended: make(chan struct{})}, nil
}

// files are those of the log.
type files struct{ *wal.WAL }

// GetLog finds no entry that was removed. The library still finds those that are in
// the file it writes to, so a node that is far behind would get them all and no
// snapshot.
func (f files) GetLog(index uint64, l *raft.Log) error {
	if first, err := f.FirstIndex(); err != nil || index < first {
		return cmp.Or(err, raft.ErrLogNotFound)
	}
	return f.WAL.GetLog(index, l)
}

// readable reads all entries.
func readable(s raft.LogStore) error {
	first, err := s.FirstIndex()
	if err != nil {
		return err
	}
	last, err := s.LastIndex()
	if err != nil || last == 0 {
		return err
	}
	for i := first; i <= last; i++ {
		var l raft.Log
		if err := s.GetLog(i, &l); err != nil {
			return fmt.Errorf("entry %d cannot be read: %w", i, err)
		}
	}
	return nil
}

// complete checks that the log begins where the snapshot ends, or earlier.
func complete(s raft.LogStore, shots raft.SnapshotStore) error {
	first, err := s.FirstIndex()
	if err != nil {
		return err
	}
	list, err := shots.List()
	if err != nil {
		return err
	}
	upTo := uint64(0)
	if len(list) > 0 {
		upTo = list[0].Index
	}
	if first > upTo+1 {
		return fmt.Errorf("the log begins with entry %d, and the snapshot ends with %d (0: there is none that can be read): "+
			"bring the directory back from a copy, or move it away", first, upTo)
	}
	return nil
}

// note remembers how an operation went.
func (d *disk) note(err error) error {
	switch {
	case err != nil:
		d.fault.Store(&err)
	case d.fault.Load() != nil:
		d.fault.Store(nil)
	}
	return err
}

// Fault returns what is wrong with the disk, or nil.
func (d *disk) Fault() error {
	if err := d.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// must does what raft cannot go on without.
func (d *disk) must(do func() error) {
	for d.note(do()) != nil {
		select {
		case <-d.ended:
			runtime.Goexit()
		case <-time.After(diskRetry):
		}
	}
}

func (d *disk) StoreLog(l *raft.Log) error { return d.note(d.entries.StoreLog(l)) }

func (d *disk) StoreLogs(l []*raft.Log) error { return d.note(d.entries.StoreLogs(l)) }

func (d *disk) DeleteRange(first, last uint64) error {
	return d.note(d.entries.DeleteRange(first, last))
}

// GetLog returns ErrLogNotFound at once: raft asks for entries that it has
// removed.
func (d *disk) GetLog(index uint64, l *raft.Log) error {
	err := d.entries.GetLog(index, l)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	d.must(func() error {
		err = d.entries.GetLog(index, l)
		if errors.Is(err, raft.ErrLogNotFound) {
			return nil
		}
		return err
	})
	return err
}

func (d *disk) Set(key, value []byte) error {
	d.must(func() error { return d.entries.Set(key, value) })
	return nil
}

func (d *disk) SetUint64(key []byte, value uint64) error {
	d.must(func() error { return d.entries.SetUint64(key, value) })
	return nil
}
