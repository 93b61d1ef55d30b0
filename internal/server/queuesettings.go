package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/pqueue"
)

// fileOf is a queue of the broker as a file would have it, but for what keeps it.
func fileOf(q broker.Queue) config.Queue {
	span := func(us int64) config.Duration { return config.Duration(time.Duration(us) * time.Microsecond) }
	c := config.DefaultQueue()
	c.Name, c.MaxItems, c.MaxPayload = q.Name, q.Limits.ItemsMax, q.PayloadMax
	c.Lease, c.LeaseMax, c.MaxAttempts = span(q.Lease), span(q.Limits.LeaseMax), q.Limits.AttemptsMax
	c.DeadLettersMax, c.DeadLetters = q.Limits.DeadMax, q.Limits.DeadTo
	c.Remember, c.RememberMax = span(q.Limits.Remember), q.Limits.RememberMax
	c.Interval, c.PerInterval, c.MaxInFlight = span(q.Interval), q.PerInterval, q.Limits.InFlightMax
	c.ExclusiveKeys, c.FairKeys = q.Limits.Exclusive, q.FairKeys
	if b := q.Limits.Backoff; b.Base > 0 {
		c.Backoff = config.Backoff{Base: span(b.Base), Factor: int(b.Factor / 1000), Max: span(b.Max)}
	}
	return c
}

// checkQueue says what is wrong with the settings of a queue.
func checkQueue(q broker.Queue) error { return config.CheckQueue(fileOf(q)) }

// reloadWithin bounds how long a reload waits for the cluster, for all queues.
const reloadWithin = 30 * time.Second

// SetQueues makes the settings of a file's queues those of the cluster. Nothing is
// lost. A queue that is not in the file stays as it is.
func (s *Server) SetQueues(ctx context.Context, queues []config.Queue) error {
	ctx, cancel := context.WithTimeout(ctx, reloadWithin)
	defer cancel()
	var errs []error
	for _, c := range queues {
		if err := s.queues.change(ctx, c); err != nil {
			errs = append(errs, fmt.Errorf("queue %q: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}

// change makes a queue what the file says, if it is not.
func (q *queues) change(ctx context.Context, c config.Queue) error {
	next := queueOf(c)
	is, set, ok := q.loop.Settings(c.Name, next.Kind == broker.Memory)
	switch {
	case !ok && next.Kind == broker.Memory:
		return errors.New("is new, and cannot be made now: queueing.create_on_use is off, or there are queueing.queues_max; restart the nodes")
	case !ok:
		return fmt.Errorf("is new and %v, which takes a restart of the nodes", next.Kind)
	case is.Kind != next.Kind:
		return fmt.Errorf("is %v, and the file says %v: what keeps a queue's items cannot change while it runs; let it run empty (anteroom queue drain), restart all nodes with the new file, and resume it", is.Kind, next.Kind)
	}
	old, listed := q.inFile(c.Name)
	if next.Kind == broker.Replicated && old.Replicas != c.Replicas {
		return fmt.Errorf("has replicas: %d, and the file says %d: that takes a restart of the nodes, one after the other", old.Replicas, c.Replicas)
	}
	next.PerInterval = max(1, next.PerInterval)
	if is.PerInterval = max(1, is.PerInterval); is == next && (listed || set.Stamp != 0) {
		return nil // one that was made on use is kept from now on, too
	}
	a, err := q.loop.Do(ctx, broker.Call{Command: pqueue.Command{Op: pqueue.OpConfigure, Queue: next.Name, Limits: next.Limits, Settings: next.Settings()}})
	switch {
	case err != nil:
		return fmt.Errorf("no answer: %w; send SIGHUP again", err)
	case a.Result.Code == pqueue.StorageFull:
		return errors.New("its disk is full; make room, and send SIGHUP again")
	case a.Result.Code != pqueue.OK:
		return errors.New("the cluster does not take it just now (is a replicated queue without its majority?); send SIGHUP again")
	}
	if len(a.Missing) > 0 {
		q.s.log.Warn("queues: new settings; not all nodes have them yet, and learn them when they are back", "queue", c.Name, "missing", a.Missing)
	}
	q.s.log.Info("queues: new settings of the file", "queue", c.Name)
	return nil
}

// inFile is a queue as the file had it when this node started.
func (q *queues) inFile(name string) (config.Queue, bool) {
	for _, c := range q.s.c.Queues {
		if c.Name == name {
			return c, true
		}
	}
	return config.Queue{}, false
}

// compare tells, once, of queues that the cluster has otherwise than this node's file:
// whoever changed the file may think that a restart was enough.
func (q *queues) compare(told map[string]uint64) {
	for _, c := range q.s.c.Queues {
		is, set, _ := q.loop.Settings(c.Name, false)
		next := queueOf(c)
		next.PerInterval, is.PerInterval = max(1, next.PerInterval), max(1, is.PerInterval)
		if set.Stamp == 0 || set.Stamp == told[c.Name] {
			continue
		}
		if told[c.Name] = set.Stamp; is != next {
			q.s.log.Warn("queues: a queue was changed at run time, and is otherwise than in the file with which this node started; "+
				"it stays so. SIGHUP to a node makes it what that node's file says", "queue", c.Name, "by", set.By, "at", time.UnixMicro(int64(set.Stamp)).UTC())
		}
	}
}
