// Package store keeps in a directory what a node must not forget: the record of
// package eviction, durable before it counts as written.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/anteroom/anteroom/eviction"
)

// name of the record's file, and what is added to that of a file while it is new.
const (
	name   = "state.json"
	suffix = ".new"
)

// file is what is on disk. The sum tells a damaged file from a good one.
type file struct {
	Format int             `json:"format"` // 1
	Sum    uint32          `json:"crc32"`  // of Record's bytes
	Record json.RawMessage `json:"record"`
}

// Store is a directory that belongs to one node.
type Store struct {
	dir  string
	disk disk
	used *os.File // of the hour that AppendUsed wrote to last
	hour int64
}

// disk is the calls after which a power cut takes nothing back. Tests watch them.
type disk struct {
	sync   func(*os.File) error // of what was written to a file, or of the names in a directory
	rename func(from, to string) error
}

// Open makes the directory if it is not there, and finds out whether it can be
// written to.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("node.data: %w; name a directory that this user may write to", err)
	}
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o002 != 0 && runtime.GOOS != "windows" { // which has no such bits
		return nil, fmt.Errorf("node.data: %s may be written by every user of this machine (mode %04o), who could put keys and records of theirs there; run: chmod 700 %s",
			dir, info.Mode().Perm(), dir)
	}
	probe, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return nil, fmt.Errorf("node.data: %w; name a directory that this user may write to", err)
	}
	s := &Store{dir: dir, disk: disk{(*os.File).Sync, os.Rename}}
	return s, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Path is where the directory keeps a file of that name.
func (s *Store) Path(name string) string { return filepath.Join(s.dir, name) }

// Load returns what was last saved, nil if nothing ever was.
func (s *Store) Load() (*eviction.Record, error) {
	b, err := os.ReadFile(s.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("node.data: %w", err)
	}
	damaged := func(why error) error {
		return fmt.Errorf("%s is damaged: %w; if the other nodes are up, move the file away: this node then starts as a new one", s.Path(name), why)
	}
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, damaged(err)
	}
	if f.Format != 1 {
		return nil, fmt.Errorf("%s has format %d and this version knows 1; use the version that wrote it, or a newer one", s.Path(name), f.Format)
	}
	if crc32.ChecksumIEEE(f.Record) != f.Sum {
		return nil, damaged(errors.New("its checksum is wrong"))
	}
	var r eviction.Record
	if err := json.Unmarshal(f.Record, &r); err != nil {
		return nil, damaged(err)
	}
	return &r, nil
}

// Save makes r durable. After an error the last record is still there.
func (s *Store) Save(r *eviction.Record) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b, err := json.Marshal(file{1, crc32.ChecksumIEEE(body), body})
	if err != nil {
		return err
	}
	return s.Write(name, b)
}

// Write makes a file of that name durable. After an error the one that was there
// still is.
func (s *Store) Write(name string, b []byte) error {
	if err := s.write(s.Path(name+suffix), b); err != nil {
		return err
	}
	if err := s.disk.rename(s.Path(name+suffix), s.Path(name)); err != nil {
		return err
	}
	return s.syncNames()
}

func (s *Store) write(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = s.disk.sync(f)
	}
	return errors.Join(err, f.Close())
}

// syncNames makes a rename durable.
func (s *Store) syncNames() error {
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(s.disk.sync(d), d.Close())
}
