package replog

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
)

const (
	metaFile = "meta"
	termKey  = "CurrentTerm" // of raft's
)

// meta is what the log's library must remember beside the entries: which files
// there are, and raft's term and vote. The library's own way is a bbolt file,
// which has no checksums for it: one bit more in the name of a segment and the
// library takes the file for a left-over and removes it.
type meta struct {
	file sealed
	mu   sync.Mutex
	at   metaState
	torn bool // the file may say something else than at, for a write of it failed
}

type metaState struct {
	Log    types.PersistentState `json:"log"`
	Stable map[string][]byte     `json:"stable"`
}

var _ types.MetaStore = (*meta)(nil)

// openMeta reads the file in dir. What an earlier version of the program wrote is
// taken over.
func openMeta(dir string) (*meta, error) {
	f, err := openSealed(dir, metaFile)
	if err != nil {
		return nil, err
	}
	m := &meta{file: f}
	found, err := f.read(&m.at)
	switch {
	case err != nil:
		return nil, err
	case found:
	default:
		if err := m.adopt(dir); err != nil {
			return nil, err
		}
	}
	if m.at.Stable == nil {
		m.at.Stable = map[string][]byte{}
	}
	return m, nil
}

// adopt takes over the bbolt file of an earlier version, if there is one. Segments
// without either file are not an empty log.
func (m *meta) adopt(dir string) error {
	old := filepath.Join(dir, metadb.FileName)
	if _, err := os.Stat(old); errors.Is(err, fs.ErrNotExist) {
		if all, _ := filepath.Glob(filepath.Join(dir, "*.wal")); len(all) > 0 {
			return damaged(m.file.path(), "it is missing")
		}
		return nil
	}
	db := &metadb.BoltMetaDB{}
	log, err := db.Load(dir)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	m.at = metaState{Log: log, Stable: map[string][]byte{}}
	for _, key := range []string{termKey, "LastVoteTerm", "LastVoteCand", markKey} {
		v, err := db.GetStable([]byte(key))
		if err != nil {
			return errors.Join(err, db.Close())
		}
		if v != nil {
			m.at.Stable[key] = v
		}
	}
	if err := errors.Join(db.Close(), m.file.write(m.at)); err != nil {
		return err
	}
	return os.Remove(old)
}

// Load returns what was last committed.
func (m *meta) Load(string) (types.PersistentState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at.Log, nil
}

// CommitState makes s durable.
func (m *meta) CommitState(s types.PersistentState) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commit(metaState{s, m.at.Stable})
}

// commit makes s durable, or changes nothing. The caller holds m.mu.
func (m *meta) commit(s metaState) error {
	if err := m.file.write(s); err != nil {
		m.torn = true
		return err
	}
	m.at, m.torn = s, false
	return nil
}

// GetStable returns a value, nil if there is none.
func (m *meta) GetStable(key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at.Stable[string(key)], nil
}

// SetStable makes a value durable. One that is takes no room.
func (m *meta) SetStable(key, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was, ok := m.at.Stable[string(key)]; ok && bytes.Equal(was, value) && !m.torn {
		return nil
	}
	stable := maps.Clone(m.at.Stable)
	stable[string(key)] = append([]byte(nil), value...)
	return m.commit(metaState{m.at.Log, stable})
}

// Close has nothing open.
func (m *meta) Close() error { return nil }
