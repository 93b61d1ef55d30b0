package replog

import (
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/anteroom/anteroom/internal/store"
)

const (
	snapshotsDir = "snapshots"
	snapshotMeta = "meta.json"
	snapshotSum  = "sum" // of the former
)

// snapshots are raft's files, with a sum of what those say about themselves:
// raft has one of the state only.
type snapshots struct {
	*raft.FileSnapshotStore
	dir string
}

func openSnapshots(dir string, log hclog.Logger) (*snapshots, error) {
	files, err := raft.NewFileSnapshotStoreWithLogger(dir, snapshotsKept, log)
	return &snapshots{files, filepath.Join(dir, snapshotsDir)}, err
}

// unfinished is what raft calls a snapshot's directory until it is whole.
const unfinished = ".tmp"

// sweep removes what was never finished, as raft does not.
func (s *snapshots) sweep() error {
	all, err := filepath.Glob(filepath.Join(s.dir, "*"+unfinished))
	for _, dir := range all {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// sumFile is a snapshot's.
type sumFile struct {
	Meta uint32 `json:"meta"` // CRC-32C of meta.json
}

// last returns the last entry that the newest snapshot has, 0 if there is none, once
// it has checked what the snapshots say about themselves. One without a sum is
// older than sums, or the process ended before it wrote that.
func (s *snapshots) last() (uint64, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	list, err := s.List()
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0].Index, nil
}

// validate checks all of the newest snapshot, unless a newer one takes its place
// meanwhile.
func (s *snapshots) validate() error {
	before, err := s.last()
	if err == nil {
		err = s.readable()
	}
	if now, _ := s.last(); now != before {
		return nil
	}
	return err
}

// readable reads the newest snapshot, of whose state raft has a sum.
func (s *snapshots) readable() error {
	list, err := s.List()
	if err != nil || len(list) == 0 {
		return err
	}
	_, state, err := s.Open(list[0].ID)
	if err != nil {
		return &Damage{filepath.Join(s.dir, list[0].ID, "state.bin"), err.Error(), 1, list[0].Index}
	}
	return state.Close()
}

func (s *snapshots) check() error {
	names, err := filepath.Glob(filepath.Join(s.dir, "*", snapshotMeta))
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(filepath.Dir(name), unfinished) {
			continue // raft never finished it
		}
		var sum sumFile
		f, err := openSealed(filepath.Dir(name), snapshotSum)
		if err != nil {
			return err
		}
		found, err := f.read(&sum)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if found && crc32.Checksum(text, castagnoli()) != sum.Meta {
			return damaged(name, "its checksum is wrong")
		}
	}
	return nil
}

// Create begins a snapshot.
func (s *snapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.FileSnapshotStore.Create(v, index, term, c, at, t)
	if err != nil {
		return nil, err
	}
	return &summedSink{sink, filepath.Join(s.dir, sink.ID())}, nil
}

// summedSink writes the sum once the snapshot is there. Raft drops the entries
// that it replaces after that only.
type summedSink struct {
	raft.SnapshotSink
	dir string
}

// Cancel leaves nothing behind: where the disk is full, raft would.
func (s *summedSink) Cancel() error {
	return errors.Join(s.SnapshotSink.Cancel(), os.RemoveAll(s.dir+unfinished))
}

func (s *summedSink) Close() error {
	if err := s.SnapshotSink.Close(); err != nil {
		return errors.Join(err, os.RemoveAll(s.dir+unfinished))
	}
	text, err := os.ReadFile(filepath.Join(s.dir, snapshotMeta))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a newer one has taken its place already
	}
	if err != nil {
		return err
	}
	dir, err := store.Open(s.dir)
	if err != nil {
		return err
	}
	return sealed{dir, snapshotSum}.write(sumFile{crc32.Checksum(text, castagnoli())})
}
