package replog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	lateEvery = 500 * time.Millisecond // between two tries to open a log for which there was no room
	lateSpare = 4                      // and at least as many times as long as a try took: it reads all there is
)

// late is what a log knows that there was no room to open.
type late struct {
	open chan struct{} // closed once it is open
	lost bool          // its directory is to replace a damaged one; of who opens it

	mu  sync.Mutex
	why error
}

// err returns why the log is not open, nil if it is.
func (w *late) err() error {
	select {
	case <-w.open:
		return nil
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why
}

func (w *late) wait(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.why = fmt.Errorf("%w, so the log is not open yet: %w", ErrFull, why)
}

// openLate opens the log, unless it is open, once there is room. Until then it finds
// out who leads a group, to whom this node can send what it is asked.
func (l *Log) openLate(ctx context.Context) error {
	for pause := lateEvery; l.late.err() != nil; {
		_, _, _ = l.measure(0)
		if l.group != nil {
			l.group.look(ctx)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		began := time.Now()
		switch err := l.openOrRenew(); {
		case isFull(err):
			l.late.wait(err)
			pause = max(lateEvery, lateSpare*time.Since(began))
		case err != nil:
			return err
		default:
			l.log.Info("queues: there is room, and the log is open", slog.String("dir", l.c.Dir))
			close(l.late.open)
		}
	}
	return nil
}
