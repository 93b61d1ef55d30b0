package replog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	walsegment "github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// library is the library's log, which is of no use after a write that failed:
// where there was no room for its next file it takes no entry any more. So it is
// opened anew then, as after a crash, and cut back to what its caller knows that it
// has: what failed may be on the disk all the same.
type library struct {
	open    func() (files, error)
	writing sync.Mutex // of what follows but files
	broken  bool
	last    uint64 // the last entry, as the caller knows it

	mu sync.RWMutex // its readers use files; its writer replaces them
	files
}

var _ entries = (*library)(nil)

func openLibrary(open func() (files, error)) (*library, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	last, err := f.LastIndex()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &library{open: open, files: f, last: last}, nil
}

// mend opens the log anew if the last write failed. The caller holds y.writing.
func (y *library) mend() error {
	if !y.broken {
		return nil
	}
	f, err := y.open()
	if err != nil {
		return err
	}
	if err := cut(f, y.last); err != nil {
		return errors.Join(err, f.Close())
	}
	y.mu.Lock()
	old := y.files
	y.files, y.broken = f, false
	y.mu.Unlock()
	_ = old.Close() // nobody writes to it, and what was read is read
	return nil
}

// cut removes what follows an entry.
func cut(f files, last uint64) error {
	end, err := f.LastIndex()
	if err != nil || end <= last {
		return err
	}
	return f.DeleteRange(last+1, end)
}

func (y *library) StoreLog(l *raft.Log) error { return y.StoreLogs([]*raft.Log{l}) }

func (y *library) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	y.writing.Lock()
	defer y.writing.Unlock()
	err := y.append(logs)
	if errors.Is(err, wal.ErrSealed) { // it has only logged why there is no next file
		err = y.append(logs)
	}
	return err
}

func (y *library) append(logs []*raft.Log) error {
	if err := y.mend(); err != nil {
		return err
	}
	if err := y.files.StoreLogs(logs); err != nil {
		y.broken = true
		return err
	}
	y.last = logs[len(logs)-1].Index
	return nil
}

func (y *library) DeleteRange(first, last uint64) error {
	y.writing.Lock()
	defer y.writing.Unlock()
	if err := y.mend(); err != nil {
		return err
	}
	if err := y.files.DeleteRange(first, last); err != nil {
		y.broken = true
		return err
	}
	end, err := y.files.LastIndex()
	y.last = end
	return err
}

func (y *library) GetLog(index uint64, l *raft.Log) error {
	y.mu.RLock()
	defer y.mu.RUnlock()
	return y.files.GetLog(index, l)
}

func (y *library) FirstIndex() (uint64, error) {
	y.mu.RLock()
	defer y.mu.RUnlock()
	return y.files.FirstIndex()
}

func (y *library) LastIndex() (uint64, error) {
	y.mu.RLock()
	defer y.mu.RUnlock()
	return y.files.LastIndex()
}

func (y *library) Set(key, value []byte) error {
	y.mu.RLock()
	defer y.mu.RUnlock()
	return y.files.Set(key, value)
}

func (y *library) SetUint64(key []byte, value uint64) error {
	y.mu.RLock()
	defer y.mu.RUnlock()
	return y.files.SetUint64(key, value)
}

func (y *library) Get(key []byte) ([]byte, error) {
	y.mu.RLock()
	defer y.mu.RUnlock()
	return y.files.Get(key)
}

func (y *library) GetUint64(key []byte) (uint64, error) {
	y.mu.RLock()
	defer y.mu.RUnlock()
	return y.files.GetUint64(key)
}

// Close closes the log once nobody writes to it.
func (y *library) Close() error {
	y.writing.Lock()
	defer y.writing.Unlock()
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.files.Close()
}

// wholeFiles leaves no file behind for which there was no room: the library
// would not make it again.
type wholeFiles struct{ types.VFS }

func (v wholeFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := v.VFS.Create(dir, name, size)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = errors.Join(err, ignoring(os.Remove(filepath.Join(dir, name)), fs.ErrNotExist))
	}
	return f, err
}

func ignoring(err, but error) error {
	if errors.Is(err, but) {
		return nil
	}
	return err
}

// logFiles says how the files of a log are made.
type logFiles struct {
	size int       // bytes of one
	on   types.VFS // nil: the system's
}

// openFiles opens the library's log. It may panic at what it did not write.
func openFiles(path string, c logFiles, m *meta, log hclog.Logger) (f files, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	if c.on == nil {
		c.on = walfs.New()
	}
	segments := walsegment.NewFiler(path, wholeFiles{c.on})
	if err := follow(path, segments, c.size, m); err != nil {
		return files{}, err
	}
	w, err := wal.Open(path, wal.WithSegmentSize(c.size), wal.WithLogger(log), wal.WithMetaStore(m), wal.WithSegmentFiler(segments))
	return files{w}, err
}

// follow gives a full file its follower. The library fills one, with an index at
// its end, and then makes the next; if it ends between the two it opens the full one
// again and never writes another entry. Nor does it if the index is torn, with what
// was to be written before it: that was not acknowledged and is cut off.
func follow(path string, segments *walsegment.Filer, segmentSize int, m *meta) error {
	at, err := m.Load("")
	if err != nil || len(at.Segments) == 0 || !at.Segments[len(at.Segments)-1].SealTime.IsZero() {
		return err
	}
	full := at.Segments[len(at.Segments)-1]
	tail, err := segments.RecoverTail(full)
	if err != nil {
		return ignoring(err, fs.ErrNotExist) // the library makes it
	}
	defer tail.Close() //nolint:errcheck // it was only read
	sealed, start, err := tail.Sealed()
	if err != nil || !sealed {
		return err
	}
	name := filepath.Join(path, walsegment.FileName(full))
	switch indexed, err := indexedUpTo(name, full.BaseIndex, int64(start)); {
	case err != nil:
		return err
	case indexed == 0 || indexed != tail.LastIndex():
		return os.Truncate(name, int64(start)-frameHead)
	}
	full.SealTime, full.IndexStart, full.MaxIndex = time.Now(), start, tail.LastIndex()
	next := types.SegmentInfo{
		ID: at.NextSegmentID, BaseIndex: full.MaxIndex + 1, MinIndex: full.MaxIndex + 1,
		SizeLimit: uint32(segmentSize), Codec: wal.CodecBinaryV1, CreateTime: full.SealTime,
	}
	before := at.Segments[: len(at.Segments)-1 : len(at.Segments)-1]
	return m.CommitState(types.PersistentState{NextSegmentID: at.NextSegmentID + 1, Segments: append(before, full, next)})
}

// frameHead is how many bytes stand before what the library writes into a file: what
// it is, and how long.
const (
	frameHead   = 8
	frameCommit = 3 // is the first byte of one that ends what was written together
)

// indexedUpTo returns the last entry that the index of a file has, 0 if the index is
// torn. It is an array of where each entry begins, and a commit follows it.
func indexedUpTo(name string, base uint64, start int64) (uint64, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	size := int64(binary.LittleEndian.Uint32(b[start-frameHead+4:]))
	commit := start + (size+7)/8*8
	if size < 4 || commit+frameHead > int64(len(b)) || b[commit] != frameCommit {
		return 0, nil
	}
	last := uint32(0)
	for i := start; i < start+size; i += 4 {
		at := binary.LittleEndian.Uint32(b[i:])
		if at <= last || int64(at) >= start {
			return 0, nil
		}
		last = at
	}
	return base + uint64(size/4) - 1, nil
}
