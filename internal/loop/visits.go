package loop

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// Visits are written beside the loop, which never waits for them: one batch after the other, as
// the node asks for them, and each until it is durable.

// visitsAgain is how long it takes until a batch is tried again that could not be written, and
// visitsLate how long one may take until the log says so.
const (
	visitsAgain = saveEvery * time.Microsecond
	visitsLate  = 2 * time.Second
)

// visits is what the loop and its writer have to say to each other.
type visits struct {
	batches chan *eviction.VisitsBatch // one at a time
	written chan error                 // nil: the batch is durable; else it is tried again
	told    int64                      // boot time before which the log is not told again that it fails
	failing bool
	lateAt  atomic.Int64 // boot time before which it is not told again that one is late
}

func newVisits() visits {
	return visits{batches: make(chan *eviction.VisitsBatch, 1), written: make(chan error)}
}

// writeVisits makes batches durable until ctx ends.
func (l *Loop) writeVisits(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-l.visits.batches:
			for err := l.write(b); ; err = l.write(b) {
				select {
				case l.visits.written <- err:
				case <-ctx.Done():
					return
				}
				if err == nil {
					break
				}
				select {
				case <-time.After(visitsAgain):
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

// write tries to make a batch durable once.
func (l *Loop) write(b *eviction.VisitsBatch) error {
	began := time.Now()
	late := time.AfterFunc(visitsLate, func() {
		if now := l.c.Clock().Boot; now >= l.visits.lateAt.Load() {
			l.visits.lateAt.Store(now + tellEvery)
			l.c.Logger.Error("visits are not written yet, so this node calls nobody; the disk of node.data hangs", "for", time.Since(began).Round(time.Second))
		}
	})
	defer late.Stop()
	return l.c.Visits(b)
}

// wroteVisits has the node hear what became of a batch.
func (l *Loop) wroteVisits(err error) {
	now := l.c.Clock()
	switch {
	case err != nil:
		l.node.VisitsFailed()
		if l.visits.failing = true; now.Boot >= l.visits.told {
			l.visits.told = now.Boot + tellEvery
			l.c.Logger.Error("visits cannot be written, so this node calls nobody and renews no pass for longer than it has on disk; free space in node.data or make it writable", "err", err)
		}
		return
	case l.visits.failing:
		l.visits.failing, l.visits.told = false, 0
		l.c.Logger.Info("visits can be written again")
	}
	l.node.VisitsSaved(now)
}
