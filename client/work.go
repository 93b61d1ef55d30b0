package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	leaseDefault = 30 * time.Second
	waitDefault  = 20 * time.Second
	graceDefault = 30 * time.Second
	batchMax     = 1000 // items of one call
	reasonMax    = 1024 // bytes of what a Nack says
	idle         = time.Second
	extendMin    = 10 * time.Millisecond
)

// Worker says how Work goes about it. The zero value is good.
type Worker struct {
	Concurrency int           // handlers at a time [1]
	Lease       time.Duration // of an item; extended every third of it while its handler runs [30s]
	Wait        time.Duration // one call of Take waits so long for items, at most a minute [20s]
	// Grace is how long handlers may go on when the context of Work has ended,
	// before theirs ends too [30s].
	Grace time.Duration
	// Again says after what delay an item comes back whose handler failed, by how
	// often it was leased [1s, doubled each time, 5 minutes at most]; 0 is as the
	// queue's backoff says.
	Again func(attempts uint32) time.Duration
	// Logger hears of handlers that failed, of leases that were lost, and of a
	// cluster that does not answer. Nil: nobody does.
	Logger *slog.Logger
}

func (w Worker) withDefaults() (Worker, error) {
	if w.Concurrency < 0 || w.Lease < 0 || w.Wait < 0 || w.Grace < 0 {
		return w, &Error{Op: "work", Reason: ErrInvalid, Text: fmt.Sprintf("a Worker of %+v; give no negative numbers", w)}
	}
	w.Concurrency = max(1, w.Concurrency)
	for _, d := range []struct {
		to       *time.Duration
		fallback time.Duration
	}{{&w.Lease, leaseDefault}, {&w.Wait, waitDefault}, {&w.Grace, graceDefault}} {
		if *d.to == 0 {
			*d.to = d.fallback
		}
	}
	if w.Again == nil {
		w.Again = again
	}
	if w.Logger == nil {
		w.Logger = slog.New(slog.DiscardHandler)
	}
	return w, nil
}

// again doubles a delay of a second with each attempt.
func again(attempts uint32) time.Duration {
	return min(5*time.Minute, time.Second<<min(10, max(attempts, 1)-1))
}

// Handler works on an item. Nil: it is done. An error: it comes back later. ctx
// ends when the lease is lost (context.Cause is ErrLeaseLost), and when Work has
// to come to its end.
type Handler func(ctx context.Context, l *Lease) error

// Work takes items and has handle work on them, until ctx ends. Then it takes no
// more, waits for the handlers, at most for Grace longer than they need to obey
// their context, and returns nil. While a handler runs its lease is extended;
// then the item is acknowledged, or given back with a delay. It outlasts a
// cluster that does not answer; an error comes only if the cluster refuses the
// request itself. A handler that panics takes the program with it, and its item
// is somebody else's when the lease lapses.
func (q *Queue) Work(ctx context.Context, worker Worker, handle Handler) error {
	worker, err := worker.withDefaults()
	if err != nil {
		return err
	}
	hands, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	w := &working{queue: q, Worker: worker, handle: handle, free: make(chan struct{}, worker.Concurrency)}
	for range worker.Concurrency {
		w.free <- struct{}{}
	}
	err = w.take(ctx, hands)
	grace := time.AfterFunc(worker.Grace, stop)
	defer grace.Stop()
	w.running.Wait()
	return err
}

// working is one call of Work.
type working struct {
	queue *Queue
	Worker
	handle  Handler
	free    chan struct{} // a token for each handler that could run
	running sync.WaitGroup
}

// take hands out items until ctx ends.
func (w *working) take(ctx, hands context.Context) error {
	for {
		n := w.claim(ctx)
		if n == 0 {
			return nil
		}
		asked := time.Now()
		t, err := w.queue.Take(ctx, Want{Items: n, Lease: w.Lease, Wait: w.Wait})
		for _, l := range t.Leases {
			n--
			w.running.Go(func() {
				defer func() { w.free <- struct{}{} }()
				w.one(hands, l)
			})
		}
		for range n {
			w.free <- struct{}{}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrInvalid):
			return err
		case err != nil: // an unknown queue too: whoever fills it may come later
			w.Logger.Warn("nothing can be taken", "queue", w.queue.name, "err", err)
			sleep(ctx, idle)
		case len(t.Leases) == 0 && time.Since(asked) < min(w.Wait, idle): // a node that does not wait
			sleep(ctx, idle)
		}
	}
}

// claim waits for a free handler and claims all that are. 0: ctx has ended.
func (w *working) claim(ctx context.Context) int {
	select {
	case <-w.free:
	case <-ctx.Done():
		return 0
	}
	for n := 1; n < batchMax; n++ {
		select {
		case <-w.free:
		default:
			return n
		}
	}
	return batchMax
}

// one has the handler work on an item, and tells the cluster how that went.
func (w *working) one(hands context.Context, l *Lease) {
	ctx, lost := context.WithCancelCause(hands)
	ended := make(chan struct{})
	var extending sync.WaitGroup
	extending.Go(func() { w.extend(ctx, ended, l, lost) })
	err := w.handle(ctx, l)
	close(ended)
	expired := errors.Is(context.Cause(ctx), ErrLeaseLost)
	lost(nil)
	extending.Wait()
	log := w.Logger.With("queue", w.queue.name, "item", l.ID, "attempts", l.Attempts)
	if expired {
		log.Warn("lease lost: somebody else may have the item", "err", err)
		return
	}
	say, cancel := context.WithTimeout(context.WithoutCancel(hands), w.Lease) // later it is somebody else's
	defer cancel()
	if err == nil {
		if err = l.Ack(say); err != nil {
			log.Warn("done, but not acknowledged: it may be delivered again", "err", err)
		}
		return
	}
	delay := w.Again(l.Attempts)
	if hands.Err() != nil {
		delay = AtOnce // it was told to stop
	}
	log.Warn("failed", "err", err, "again_in", max(0, delay))
	if err := l.Nack(say, delay, clip(err.Error())); err != nil {
		log.Warn("not given back: its lease will lapse", "err", err)
	}
}

// extend keeps a lease until the handler has ended, and says when it is lost.
func (w *working) extend(ctx context.Context, ended <-chan struct{}, l *Lease, lost context.CancelCauseFunc) {
	now := time.Now()
	left := w.left(now, l.Until)
	until := now.Add(left)
	for {
		next := time.NewTimer(max(left/3, extendMin))
		select {
		case <-ended:
			next.Stop()
			return
		case <-ctx.Done():
			next.Stop()
			return
		case <-next.C:
		}
		now = time.Now()
		try, cancel := context.WithDeadline(ctx, until)
		lasts, err := w.queue.Extend(try, l.Receipt, w.Lease)
		cancel()
		if gone(err) || err != nil && !time.Now().Before(until) {
			lost(ErrLeaseLost)
			return
		}
		if err == nil {
			until = now.Add(w.left(now, lasts))
		}
		left = time.Until(until)
	}
}

// left is how much of a lease is left, by this machine's clock: what the node
// has said, unless the clocks are too far apart for that to be true.
func (w *working) left(now, until time.Time) time.Duration {
	if d := until.Sub(now); d > 0 && d < w.Lease {
		return d
	}
	return w.Lease
}

// clip keeps what a node takes for a reason.
func clip(s string) string {
	for i := range s {
		if i > reasonMax {
			return s[:i]
		}
	}
	return s
}
