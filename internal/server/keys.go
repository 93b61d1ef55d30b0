package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/seal"
)

// keysOnDisk is the name of the key file in node.data.
const keysOnDisk = "keys.json"

// rotateAfter is when the cluster makes itself a new key. What was sealed with
// the old one opens for a day longer. Keys of security.signing_keys are the
// operator's to rotate.
const rotateAfter = 24 * time.Hour

// keys is the node's ring and where it comes from. A node without keys takes
// those of the members it meets; the coordinator of a cluster without any makes
// the first one.
type keys struct {
	ring  *seal.Ring
	file  string // "": in memory only
	fixed bool   // the file is the operator's: read, never written
	offer func() // tells the others
	log   *slog.Logger
}

// load reads the key file. One that is not there yet is made later, unless the
// operator has named it.
func (k *keys) load() error {
	if k.file == "" {
		return nil
	}
	err := k.ring.Load(k.file)
	switch {
	case err == nil && k.fixed && k.ring.Empty():
		return fmt.Errorf("security.signing_keys: %s has no key in it; make one with: anteroom keys new --out %s", k.file, k.file)
	case errors.Is(err, fs.ErrNotExist) && !k.fixed:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("security.signing_keys: %w; make the file with: anteroom keys new --out %s", err, k.file)
	}
	return err
}

// exchange takes in what another node offers and returns ours.
func (k *keys) exchange(offered []byte) ([]byte, error) {
	if len(offered) > 0 {
		changed, err := k.ring.Merge(offered)
		if err != nil {
			return nil, err
		}
		if changed {
			k.save()
		}
	}
	return k.ring.Export(), nil
}

func (k *keys) save() {
	if k.file == "" || k.fixed {
		return
	}
	if err := k.ring.Save(k.file); err != nil {
		k.log.Error("signing keys are not on disk; places would not survive a restart of all nodes", "err", err)
	}
}

// keep makes keys where they are needed, until ctx ends.
func (k *keys) keep(ctx context.Context, l *loop.Loop) {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		s := &l.Snapshot().Status
		if !s.Leading || s.Grade < eviction.Primary || k.fixed {
			continue
		}
		if old := l.PassTime() - k.ring.Newest(); !k.ring.Empty() && old < rotateAfter.Microseconds() {
			continue
		}
		if err := k.ring.Rotate(); err != nil {
			k.log.Error("no new signing key", "err", err)
			continue
		}
		k.log.Info("made a signing key")
		k.save()
		k.offer()
	}
}
