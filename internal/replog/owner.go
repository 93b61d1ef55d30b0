package replog

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/anteroom/anteroom/qpid"
)

const (
	ownerFile    = "owner.db"
	ownerVersion = 1
	markKey      = "anteroom"
	lockWithin   = time.Second // of another process that is just ending
)

// papers say whose directory this is. They are written before they are acted on.
type papers struct {
	Version int         `json:"version"`
	Node    qpid.NodeID `json:"node"`
	Disk    string      `json:"disk"` // names this life of the directory
	Kind    string      `json:"kind"` // durable or replicated
	// Marked says that the log beside this file bears the name of Disk.
	Marked bool `json:"marked,omitempty"`
	// Group is the log that this directory has a part of; empty: none yet.
	Group string `json:"group,omitempty"`
	// Founded says that this node founded Group.
	Founded bool `json:"founded,omitempty"`
	// Voted is the node that may found VotedGroup with our vote.
	Voted      qpid.NodeID `json:"voted,omitempty"`
	VotedGroup string      `json:"voted_group,omitempty"`
}

// owner keeps the papers, and keeps other processes out of the directory.
type owner struct {
	db *bbolt.DB
	mu sync.Mutex
	p  papers
}

// openOwner opens the papers in dir, or makes them.
func openOwner(dir string, node qpid.NodeID, kind string) (*owner, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(filepath.Join(dir, ownerFile), 0o600, &bbolt.Options{Timeout: lockWithin})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, errors.New("another process is using it")
	}
	if err != nil {
		return nil, err
	}
	o := &owner{db: db}
	if err := o.load(node, kind); err != nil {
		_ = db.Close()
		return nil, err
	}
	return o, nil
}

func (o *owner) load(node qpid.NodeID, kind string) error {
	var found []byte
	err := o.db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket([]byte(ownerFile)); b != nil {
			found = append(found, b.Get([]byte(ownerFile))...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if found == nil {
		return o.update(func(p *papers) {
			*p = papers{Version: ownerVersion, Node: node, Disk: random(4), Kind: kind}
		})
	}
	if err := json.Unmarshal(found, &o.p); err != nil {
		return fmt.Errorf("%s: %w", ownerFile, err)
	}
	switch {
	case o.p.Version != ownerVersion:
		return fmt.Errorf("it is of version %d, and this program knows %d", o.p.Version, ownerVersion)
	case o.p.Node != node:
		return fmt.Errorf("it belongs to node %s, and this is %s: give each node its own node.data", o.p.Node, node)
	case o.p.Kind != kind:
		return fmt.Errorf("it is for %s queues, not for %s ones", o.p.Kind, kind)
	}
	return nil
}

// matches checks that the log is the one that these papers were made for. What a
// log without its papers has promised to other nodes, or papers without their log, must not be forgotten.
func (o *owner) matches(s raft.StableStore) error {
	mark, err := s.Get([]byte(markKey))
	if err != nil {
		return err
	}
	p := o.papers()
	switch {
	case string(mark) == p.Disk:
	case len(mark) > 0 || p.Marked:
		return fmt.Errorf("%s and the log beside it do not belong together: bring the directory back from a copy, or move all of it away", ownerFile)
	default:
		if err := s.Set([]byte(markKey), []byte(p.Disk)); err != nil {
			return err
		}
	}
	return o.update(func(p *papers) { p.Marked = true })
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
	text, err := json.Marshal(p)
	if err != nil {
		return false, err
	}
	err = o.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(ownerFile))
		if err != nil {
			return err
		}
		return b.Put([]byte(ownerFile), text)
	})
	if err != nil {
		return false, fmt.Errorf("%s: %w", ownerFile, err)
	}
	o.p = p
	return true, nil
}

func (o *owner) close() error { return o.db.Close() }
