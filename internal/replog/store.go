package replog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	walsegment "github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

const (
	segmentDefault = 4 << 20                // bytes of one file of the log, which is as large from the start
	diskRetry      = 100 * time.Millisecond // between two tries of what cannot be left out
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
// committed entry that it cannot read, and goes on with a wrong idea of its own log
// if that was cut back and what should follow cannot be written; these are tried until they succeed. When
// the log ends before they do, they end the goroutine of raft's that asked.
type disk struct {
	entries
	witness *witness
	fault   atomic.Pointer[error] // of the last operation that failed, until one succeeds
	stuck   atomic.Bool           // there was no room for the last entry
	cutBack atomic.Bool           // the end of the log was removed, and nothing was written since
	patient atomic.Bool           // raft runs, and must waits for room
	ended   chan struct{}         // closed when the log ends
	log     hclog.Logger
}

var (
	_ raft.LogStore          = (*disk)(nil)
	_ raft.StableStore       = (*disk)(nil)
	_ raft.MonotonicLogStore = (*disk)(nil)
)

// openDisk opens the log in dir and reads all of it, so that what cannot be read,
// or is not there any more, is known before raft starts. What is wrong with it is
// a *Damage.
func openDisk(dir string, c logFiles, o *owner, shots *snapshots, log hclog.Logger) (*disk, error) {
	path := filepath.Join(dir, "log")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	m, err := openMeta(path)
	if err != nil {
		return nil, err
	}
	w, err := openWitness(dir)
	if err != nil {
		return nil, err
	}
	d, err := openEntries(path, c, o.papers(), m, w, shots, log)
	if err != nil {
		_ = w.f.Close()
		return nil, err
	}
	if p := o.papers(); !p.Summed {
		last, err := d.LastIndex()
		if err == nil {
			err = o.update(func(p *papers) { p.Summed, p.Plain = true, last })
		}
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// openEntries opens the library's log, and checks it against the witness.
func openEntries(path string, c logFiles, p papers, m *meta, w *witness, shots *snapshots, log hclog.Logger) (*disk, error) {
	if err := whole(path, m.at.Log, w.acked); err != nil {
		return nil, err
	}
	files, err := openLibrary(func() (files, error) { return openFiles(path, c, m, log) })
	if isFull(err) { // which must not hide that the log is damaged
		if _, found := readAll(filepath.Dir(path), p, m.at.Log); errors.As(found, new(*Damage)) {
			err = found
		}
		return nil, err
	}
	if err != nil {
		return nil, unreadable(path, m.at.Log, w.acked, err)
	}
	s := &summed{entries: files, plain: p.Plain}
	if !p.Summed {
		s.plain = 1<<64 - 1
	}
	err = readable(path, s, w.acked)
	if err == nil {
		err = complete(path, s, shots, w.acked)
	}
	if err == nil {
		err = vouch(path, s, w)
	}
	if err != nil {
		_ = files.Close()
		return nil, err
	}
	return &disk{entries: &watched{s, w}, witness: w, ended: make(chan struct{}), log: log}, nil
}

// whole checks that the files of the log are there and begin as they should. The
// library makes a missing last one anew, which is right only if nothing in it was
// acknowledged.
func whole(path string, at types.PersistentState, acked uint64) error {
	files := walsegment.NewFiler(path, walfs.New())
	for _, info := range at.Segments {
		name := filepath.Join(path, walsegment.FileName(info))
		_, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && (!info.SealTime.IsZero() || info.BaseIndex <= acked):
			return &Damage{name, "it is missing", info.MinIndex, max(acked, info.MinIndex)}
		case info.SealTime.IsZero():
			continue
		}
		r, err := files.Open(info)
		if err != nil {
			return &Damage{name, err.Error(), info.MinIndex, max(acked, info.MaxIndex)}
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

// unreadable says at which file the library gives up: the last one, unless there is
// nothing wrong with that.
func unreadable(path string, at types.PersistentState, acked uint64, why error) (d *Damage) {
	d = damaged(path, "%v", why)
	if len(at.Segments) == 0 {
		return d
	}
	last := at.Segments[len(at.Segments)-1]
	begin := &Damage{filepath.Join(path, walsegment.FileName(last)), why.Error(), last.MinIndex, max(acked, last.MinIndex)}
	defer func() {
		if recover() != nil { // of the library's, at what it did not write
			d = begin
		}
	}()
	tail, err := walsegment.NewFiler(path, walfs.New()).RecoverTail(last)
	if err != nil {
		return begin
	}
	_ = tail.Close() // it was only read
	return d
}

// files are those of the log.
type files struct{ *wal.WAL }

// GetLog finds no entry that was removed. The library still finds those that are in
// the file it writes to, so a node that is far behind would get them all and no
// snapshot. An entry at which the library panics is an error.
func (f files) GetLog(index uint64, l *raft.Log) (err error) {
	if first, err := f.FirstIndex(); err != nil || index < first {
		return cmp.Or(err, raft.ErrLogNotFound)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("entry %d: %v", index, p)
		}
	}()
	return f.WAL.GetLog(index, l)
}

// readable reads all entries.
func readable(path string, s raft.LogStore, acked uint64) error {
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
			return &Damage{segmentOf(path, i), err.Error(), i, max(last, acked)}
		}
	}
	return nil
}

// complete checks that the log begins where the snapshot ends, or earlier, and
// that one of them goes as far as was acknowledged.
func complete(path string, s raft.LogStore, shots *snapshots, acked uint64) error {
	first, err := s.FirstIndex()
	if err != nil {
		return err
	}
	last, err := s.LastIndex()
	if err != nil {
		return err
	}
	upTo, err := shots.last()
	if err != nil {
		return err
	}
	if first > upTo+1 {
		return &Damage{shots.dir, fmt.Sprintf("the log begins with entry %d, and the newest snapshot that can be read ends with %d (0: there is none)", first, upTo), 1, first - 1}
	}
	if err := shots.readable(); err != nil {
		return err
	}
	if found := max(last, upTo); found < acked {
		return &Damage{segmentOf(path, found+1), fmt.Sprintf("the log ends with entry %d, and %d were acknowledged", found, acked), found + 1, acked}
	}
	return nil
}

// dropCovered empties a log that ends before the snapshot does, as one whose end is
// damaged may: the snapshot has all of it, and what raft writes next would not follow.
func (d *disk) dropCovered(shots *snapshots) error {
	last, err := d.LastIndex()
	if err != nil || last == 0 {
		return err
	}
	upTo, err := shots.last()
	if err != nil || last >= upTo {
		return err
	}
	first, err := d.FirstIndex()
	if err != nil {
		return err
	}
	d.log.Warn("the end of the log is damaged, and a snapshot has what was in it", "last", last, "snapshot", upTo)
	return d.entries.DeleteRange(min(first, last), max(first, last)) // what was before first was removed, and may be more than there is now
}

// vouch has the witness know of all that is there: it may be damaged, and what it does
// not know of until the next entry would be lost without a word. A process that was killed may not
// have synced it.
func vouch(path string, s raft.LogStore, w *witness) error {
	last, err := s.LastIndex()
	if err != nil || last <= w.acked {
		return err
	}
	f, err := os.Open(segmentOf(path, last))
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	w.saw(last)
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

// must does what raft cannot go on without. Before raft runs it does not wait for
// room.
func (d *disk) must(do func() error) error {
	for {
		err := d.note(do())
		if err == nil || isFull(err) && !d.patient.Load() {
			return err
		}
		d.log.Error("waits for its disk, to which nothing can be written", "err", err)
		select {
		case <-d.ended:
			runtime.Goexit()
		case <-time.After(diskRetry):
		}
	}
}

func (d *disk) StoreLog(l *raft.Log) error { return d.StoreLogs([]*raft.Log{l}) }

// StoreLogs fails at a pace at which a leader without others may try again.
func (d *disk) StoreLogs(l []*raft.Log) error {
	err := d.append(l)
	if err == nil {
		return nil
	}
	if d.cutBack.Load() {
		return d.must(func() error { return d.append(l) })
	}
	select {
	case <-d.ended:
	case <-time.After(diskRetry):
	}
	return err
}

func (d *disk) append(l []*raft.Log) error {
	err := d.note(d.entries.StoreLogs(l))
	d.stuck.Store(isFull(err))
	if err == nil {
		d.cutBack.Store(false)
	}
	return err
}

// DeleteRange removes the beginning of the log, if it can, or its end.
func (d *disk) DeleteRange(first, last uint64) error {
	end, err := d.LastIndex()
	if err != nil || last < end {
		return cmp.Or(err, d.note(d.entries.DeleteRange(first, last)))
	}
	if err := d.must(func() error { return d.entries.DeleteRange(first, last) }); err != nil {
		return err
	}
	d.cutBack.Store(true)
	return nil
}

// GetLog returns ErrLogNotFound at once: raft asks for entries that it has
// removed.
func (d *disk) GetLog(index uint64, l *raft.Log) error {
	err := d.entries.GetLog(index, l)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	failed := d.must(func() error {
		err = d.entries.GetLog(index, l)
		if errors.Is(err, raft.ErrLogNotFound) {
			return nil
		}
		return err
	})
	return cmp.Or(failed, err)
}

func (d *disk) Set(key, value []byte) error {
	return d.must(func() error { return d.entries.Set(key, value) })
}

func (d *disk) SetUint64(key []byte, value uint64) error {
	return d.must(func() error { return d.entries.SetUint64(key, value) })
}
