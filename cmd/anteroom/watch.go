package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/anteroom/anteroom/internal/store"
)

// watchEvery is how often a watched file is looked at. A look reads some kB.
const watchEvery = 2 * time.Second

// watchedSum is the file of node.data that says which contents of the watched file
// count: those that come while the node is down are a change as well.
const watchedSum = "watched.sum"

// watcher tells when the contents of a file change. It reads them, because a file
// may be a link to one in a directory that is swapped, as in Kubernetes.
type watcher struct {
	file string
	kept *store.Store // nil: nothing is remembered over a restart
	seen string       // sum at the last look
	took string       // sum of what counts
}

// newWatcher is to be called before the file is read: what comes after is a change.
func newWatcher(file string) *watcher {
	sum := sumOfFile(file)
	return &watcher{file: file, seen: sum, took: sum}
}

// remember has it go by what counted when the node of this directory ran last; of
// none, nothing is remembered.
func (w *watcher) remember(data string) (err error) {
	if data == "" {
		return nil
	}
	if w.kept, err = store.Open(data); err != nil {
		return err
	}
	b, err := os.ReadFile(w.kept.Path(watchedSum))
	if errors.Is(err, fs.ErrNotExist) { // the first life: whatever the cluster has goes on
		return w.take()
	}
	if err != nil {
		return fmt.Errorf("node.data: %w", err)
	}
	w.took = string(bytes.TrimSpace(b))
	return nil
}

// sumOfFile is empty where there is no file, as for a moment in which it is replaced.
func sumOfFile(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// changed reports whether the file has contents that do not count yet. Two looks must
// see the same: what is only half written is no change.
func (w *watcher) changed() bool {
	before := w.seen
	w.seen = sumOfFile(w.file)
	return w.seen != "" && w.seen == before && w.seen != w.took
}

// take notes that what was seen last counts.
func (w *watcher) take() error {
	w.took = w.seen
	if w.kept == nil {
		return nil
	}
	if err := w.kept.Write(watchedSum, []byte(w.took+"\n")); err != nil {
		return fmt.Errorf("node.data: %w", err)
	}
	return nil
}

// run calls reload for each change, once serving says that there is a cluster to bring it to.
func (w *watcher) run(ctx context.Context, serving func() bool, reload func(), log *slog.Logger) {
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if !w.changed() || !serving() {
			continue
		}
		reload()
		if err := w.take(); err != nil {
			log.Error("the file is taken in once more after a restart", "err", err)
		}
	}
}
