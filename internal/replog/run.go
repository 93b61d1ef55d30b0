package replog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Run runs the log until ctx is done, then ends it and closes its files. Leads
// is called from it. Commands under way end with an error.
func (l *Log) Run(ctx context.Context) error {
	if err := l.openLate(ctx); err != nil {
		if l.group != nil {
			l.group.hangUp()
		}
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { l.submit(ctx) })
	running.Go(l.land)
	running.Go(func() { l.compact(ctx) })
	running.Go(func() { l.disk.witness.keep(ctx.Done()) })
	running.Go(func() { l.scrub(ctx) })
	running.Go(func() { l.watchSpace(ctx) })
	if l.group != nil {
		running.Go(func() { l.group.run(ctx) })
	}
	l.follow(ctx, &running)
	return cmp.Or(l.close(&running), context.Cause(ctx))
}

// follow tells the caller who leads, until ctx is done.
func (l *Log) follow(ctx context.Context, running *sync.WaitGroup) {
	begun := make(chan uint64)
	for {
		select {
		case <-ctx.Done():
			return
		case term := <-begun:
			l.begin(term)
		case leads := <-l.notify:
			if !leads {
				if l.group != nil { // nobody else leads a durable log, and its state stays as it is
					l.resign()
				}
				continue
			}
			term := l.raft.CurrentTerm()
			running.Go(func() {
				// The barrier comes back once everything before it is applied, or with an
				// error when the leadership is lost.
				if l.raft.Barrier(0).Error() != nil {
					return
				}
				if l.machine.unread.Load() != nil {
					l.passOn()
					return
				}
				select {
				case begun <- term:
				case <-ctx.Done():
				}
			})
		}
	}
}

// begin says that this node has led since term, if it still does.
func (l *Log) begin(term uint64) {
	l.machine.mu.Lock()
	defer l.machine.mu.Unlock()
	if l.leading() && l.raft.CurrentTerm() == term && !l.machine.leading {
		l.log.Info("queues: this node leads the log", slog.String("dir", l.c.Dir), slog.Uint64("term", term))
		l.machine.lead(true, term)
	}
}

// resign says that this node does not lead.
func (l *Log) resign() {
	l.machine.mu.Lock()
	defer l.machine.mu.Unlock()
	l.machine.lead(false, 0)
}

// close ends raft and closes the files. What is under way ends first: raft may
// leave it without an answer.
func (l *Log) close(running *sync.WaitGroup) error {
	idle := make(chan struct{})
	go func() {
		running.Wait()
		close(idle)
	}()
	_ = l.await(idle)
	if l.group != nil {
		_ = l.group.close() // before the disk: what is not written down must not be said
	}
	close(l.disk.ended)
	over := make(chan struct{})
	go func() {
		_ = l.raft.Shutdown().Error() // there is none
		close(over)
	}()
	err := cmp.Or(l.await(over), l.await(idle))
	l.resign()
	if err != nil {
		return err // whoever still uses the files keeps them
	}
	return cmp.Or(l.disk.Close(), l.owner.close())
}

// await waits for done to be closed, and takes what raft says meanwhile.
func (l *Log) await(done <-chan struct{}) error {
	timer := time.NewTimer(endWithin)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-l.notify:
		case <-timer.C:
			return fmt.Errorf("the queues' log in %s did not end within %v: does its disk answer?", l.c.Dir, endWithin)
		}
	}
}

// compact takes a snapshot whenever the log has grown enough.
func (l *Log) compact(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.machine.full:
		}
		err := l.raft.Snapshot().Error()
		if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) && ctx.Err() == nil {
			l.log.Warn("queues: no snapshot, so the log grows", slog.String("dir", l.c.Dir), slog.Any("err", err))
		}
	}
}

// scrub reads what is on the disk now and then: damage to what nobody reads is
// found while there is still a copy elsewhere.
func (l *Log) scrub(ctx context.Context) {
	every := time.NewTicker(l.c.ScrubEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		var d *Damage
		if err := errors.Join(l.shots.validate(), l.validate()); errors.As(err, &d) && l.damage.Swap(d) == nil {
			l.log.Error("queues: a log is damaged, and goes on from memory; restart the node to have it refused or made anew", "why", d.Error())
		}
	}
}

// validate reads all entries, but for those that are removed meanwhile.
func (l *Log) validate() error {
	first, err := l.disk.FirstIndex()
	if err != nil {
		return err
	}
	last, err := l.disk.LastIndex()
	if err != nil {
		return err
	}
	for i := max(first, 1); i <= last; i++ {
		var e raft.Log
		if err := l.disk.entries.GetLog(i, &e); err != nil && !errors.Is(err, raft.ErrLogNotFound) {
			return &Damage{segmentOf(filepath.Join(l.c.Dir, "log"), i), err.Error(), i, last}
		}
	}
	return nil
}
