package replog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/metadb"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/anteroom/anteroom/qpid"
)

const (
	ownerFile    = "owner"
	oldOwnerFile = "owner.db"
	lockFile     = "lock"
	ownerVersion = 1

	durableKind    = "durable" // what the directories are called, too
	replicatedKind = "replicated"
	markKey        = "anteroom"
	lockWithin     = time.Second // of another process that is just ending
	lockRetry      = 20 * time.Millisecond
)

// papers say whose directory this is. They are written before they are acted on.
type papers struct {
	Version int         `json:"version"`
	Node    qpid.NodeID `json:"node"`
	Disk    string      `json:"disk"` // names this life of the directory
	Kind    string      `json:"kind"` // durable or replicated
	// Marked says that the log beside this file bears the name of Disk.
	Marked bool `json:"marked,omitempty"`
	// Summed says that entries after Plain have sums; those up to there are of a
	// version of the program without.
	Summed bool   `json:"summed,omitempty"`
	Plain  uint64 `json:"plain,omitempty"`
	// Lost says that this directory was made because the one before was damaged or gone:
	// the group is there, and this node neither founds one nor votes for one.
	Lost bool `json:"lost,omitempty"`
	// Group is the log that this directory has a part of; empty: none yet.
	Group string `json:"group,omitempty"`
	// Founded says that this node founded Group.
	Founded bool `json:"founded,omitempty"`
	// Voted is the node that may found VotedGroup with our vote.
	Voted      qpid.NodeID `json:"voted,omitempty"`
	VotedGroup string      `json:"voted_group,omitempty"`
}

var errUsed = errors.New("another process is using it")

// owner keeps the papers, and keeps other processes out of the directory.
type owner struct {
	lock *flock.Flock
	file sealed
	mu   sync.Mutex
	p    papers
}

// openOwner opens the papers in dir, or makes them; lost says that they are to
// replace damaged ones.
func openOwner(dir string, node qpid.NodeID, kind string, lost bool) (*owner, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	o := &owner{lock: flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))}
	within, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	switch locked, err := o.lock.TryLockContext(within, lockRetry); {
	case !locked && (err == nil || errors.Is(err, context.DeadlineExceeded)):
		return nil, errUsed
	case err != nil:
		return nil, err
	}
	err := o.load(dir, node, kind, lost)
	if err != nil {
		_ = o.lock.Unlock()
		return nil, err
	}
	return o, nil
}

func (o *owner) load(dir string, node qpid.NodeID, kind string, lost bool) (err error) {
	if o.file, err = openSealed(dir, ownerFile); err != nil {
		return err
	}
	found, err := o.file.read(&o.p)
	if err == nil && !found {
		found, err = o.adopt(dir)
	}
	switch {
	case err != nil:
		return err
	case !found && hasLog(dir): // they are written before it
		return damaged(o.file.path(), "it is missing")
	case !found:
		return o.update(func(p *papers) {
			*p = papers{Version: ownerVersion, Node: node, Disk: random(4), Kind: kind, Summed: true, Lost: lost}
		})
	case o.p.Version != ownerVersion:
		return fmt.Errorf("it is of version %d, and this program knows %d", o.p.Version, ownerVersion)
	case o.p.Node == "" && o.p.Kind == kind: // made again by Recover, which is not told of a node
		return o.update(func(p *papers) { p.Node = node })
	case o.p.Node != node:
		return fmt.Errorf("it belongs to node %s, and this is %s: give each node its own node.data", o.p.Node, node)
	case o.p.Kind != kind:
		return fmt.Errorf("it is for %s queues, not for %s ones", o.p.Kind, kind)
	}
	return nil
}

// adopt takes over the papers of a version of the program that kept them in bbolt,
// which has no checksums for what it keeps.
func (o *owner) adopt(dir string) (bool, error) {
	name := filepath.Join(dir, oldOwnerFile)
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{Timeout: lockWithin})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return false, errUsed
	}
	if err != nil {
		return false, err
	}
	var text []byte
	err = db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket([]byte(oldOwnerFile)); b != nil {
			text = append(text, b.Get([]byte(oldOwnerFile))...)
		}
		return nil
	})
	if err = errors.Join(err, db.Close()); err != nil || text == nil {
		return false, err
	}
	if err := json.Unmarshal(text, &o.p); err != nil {
		return false, fmt.Errorf("%s: %w", oldOwnerFile, err)
	}
	if err := o.file.write(o.p); err != nil {
		return false, err
	}
	return true, os.Remove(name)
}

// matches checks that the log is the one that these papers were made for. What a
// log without its papers has promised to other nodes, or papers without their log, must not be forgotten.
func (o *owner) matches(s raft.StableStore) error {
	mark, err := s.Get([]byte(markKey))
	if err != nil {
		return err
	}
	p := o.papers()
	if err := o.fits(mark); err != nil {
		return err
	}
	if string(mark) != p.Disk {
		if err := s.Set([]byte(markKey), []byte(p.Disk)); err != nil {
			return err
		}
	}
	return o.update(func(p *papers) { p.Marked = true })
}

// fits returns an error if a log with that mark is not the one of these papers.
func (o *owner) fits(mark []byte) error {
	if p := o.papers(); string(mark) != p.Disk && (len(mark) > 0 || p.Marked) {
		return damaged(o.file.path(), "it and the log beside it do not belong together")
	}
	return nil
}

// hasLog reports whether there is something of a log in dir.
func hasLog(dir string) bool {
	for _, name := range []string{metaFile, "*.wal", metadb.FileName} {
		if all, _ := filepath.Glob(filepath.Join(dir, "log", name)); len(all) > 0 {
			return true
		}
	}
	return false
}

// random returns n random bytes in hex.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

func (o *owner) papers() papers {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.p
}

// update changes the papers on the disk and then here.
func (o *owner) update(change func(*papers)) error {
	_, err := o.decide(func(p *papers) bool {
		change(p)
		return true
	})
	return err
}

// decide is an update that may find that there is nothing to change.
func (o *owner) decide(change func(*papers) bool) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.p
	if !change(&p) {
		return false, nil
	}
	if p == o.p {
		return true, nil
	}
	if err := o.file.write(p); err != nil {
		return false, fmt.Errorf("%s: %w", ownerFile, err)
	}
	o.p = p
	return true, nil
}

func (o *owner) close() error { return o.lock.Unlock() }
