package replog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	walsegment "github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// verifyTries is how often a log is read whose files change meanwhile.
const verifyTries = 20

// verifyRunning reads all of a directory in which a log runs, beside it and
// without a lock. What is written meanwhile is of no concern, and where files come or go
// meanwhile all is read again.
func verifyRunning(dir string, p papers) (Report, error) {
	for try := 1; ; try++ {
		before, err := metaOf(dir)
		if err != nil {
			return reported(p, err)
		}
		r, found := readAll(dir, p, before)
		after, err := metaOf(dir)
		if err != nil {
			return reported(p, err)
		}
		if found == nil || slices.Equal(before.Segments, after.Segments) && try > 1 {
			r.Running = true
			if errors.As(found, &r.Damage) {
				found = nil
			}
			return r, found
		}
		if try == verifyTries {
			return r, fmt.Errorf("the log is being rewritten all the time; try again: %w", found)
		}
	}
}

func reported(p papers, err error) (Report, error) {
	r := Report{Node: string(p.Node), Kind: p.Kind, Running: true}
	if errors.As(err, &r.Damage) {
		err = nil
	}
	return r, err
}

// metaOf returns which files the log in dir has.
func metaOf(dir string) (types.PersistentState, error) {
	var at metaState
	name := filepath.Join(dir, "log", metaFile)
	found, err := readSealed(name, &at)
	if err == nil && !found {
		err = damaged(name, "it is missing")
	}
	return at.Log, err
}

// readAll reads what is in dir. How far it was acknowledged is looked up first: a
// log only grows, or has other files then.
func readAll(dir string, p papers, at types.PersistentState) (Report, error) {
	r := Report{Node: string(p.Node), Kind: p.Kind}
	acked, err := witnessed(dir)
	if err != nil {
		return r, err
	}
	path := filepath.Join(dir, "log")
	if err := whole(path, at, acked); err != nil {
		return r, err
	}
	plain := p.Plain
	if !p.Summed {
		plain = 1<<64 - 1
	}
	files := walsegment.NewFiler(path, walfs.New())
	for _, info := range at.Segments {
		last, err := readSegment(files, info, plain)
		if err != nil {
			return r, &Damage{filepath.Join(path, walsegment.FileName(info)), err.Error(), info.MinIndex, max(acked, last, info.MinIndex)}
		}
		if last == 0 {
			continue
		}
		if r.Last = last; r.First == 0 {
			r.First = info.MinIndex
		}
	}
	shots, err := openSnapshots(dir, hclog.NewNullLogger())
	if err == nil {
		r.Snapshot, err = shots.last()
	}
	if err == nil {
		err = shots.validate()
	}
	if found := max(r.Last, r.Snapshot); err == nil && found < acked {
		err = &Damage{segmentOf(path, found+1), fmt.Sprintf("the log ends with entry %d, and %d were acknowledged", found, acked), found + 1, acked}
	}
	return r, err
}

// readSegment reads all entries of a file, and returns the last, 0 if there is
// none.
func readSegment(files *walsegment.Filer, info types.SegmentInfo, plain uint64) (last uint64, err error) {
	defer func() {
		if p := recover(); p != nil { // of the library's, at what it did not write
			err = fmt.Errorf("%v", p)
		}
	}()
	var from types.SegmentReader
	if last = info.MaxIndex; info.SealTime.IsZero() {
		tail, err := files.RecoverTail(info)
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil // whole knows whether it is missing
		}
		if err != nil {
			return 0, err
		}
		from, last = tail, tail.LastIndex()
	} else if from, err = files.Open(info); err != nil {
		return 0, err
	}
	defer from.Close() //nolint:errcheck // it was only read
	codec := wal.BinaryCodec{}
	for i := info.MinIndex; i <= last; i++ {
		b, err := from.GetLog(i)
		if err != nil {
			return i, err
		}
		var l raft.Log
		err = errors.Join(codec.Decode(b.Bs, &l), b.Close())
		if err == nil {
			err = checked(i, &l, plain)
		}
		if err != nil {
			return i, err
		}
	}
	return last, nil
}
