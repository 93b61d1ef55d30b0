package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/internal/queueloop"
	"github.com/anteroom/anteroom/internal/replog"
	"github.com/anteroom/anteroom/membership"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/priorityqueue"
	"github.com/anteroom/anteroom/proto/queuelink"
	"github.com/anteroom/anteroom/proto/rpc"
)

// queues are the node's priority queues: the loop around the broker, its links
// to the other nodes, the logs behind durable and replicated queues, and the
// public service.
type queues struct {
	s      *Server
	loop   *queueloop.Loop
	links  *queuelink.Links
	logs   []*replog.Log
	kinds  []broker.Kind // of the logs
	group  *replog.Log   // that of the replicated queues; nil: there are none
	public *priorityqueue.Server
}

// kinds of queues that have a log here.
func logged(c config.Config) []broker.Kind {
	var kinds []broker.Kind
	durable, replicas := c.Logged()
	if durable {
		kinds = append(kinds, broker.Durable)
	}
	if replicas > 0 {
		kinds = append(kinds, broker.Replicated)
	}
	return kinds
}

// buildQueues makes the queues' parts; nothing of them runs yet.
func (s *Server) buildQueues() error {
	q := &queues{s: s}
	s.queues = q
	c := broker.Config{
		Self: s.self.Member, CreateOnUse: s.c.Queueing.CreateOnUse, OnUse: queueOf(config.DefaultQueue()), QueuesMax: s.c.Queueing.QueuesMax,
		MemoryMax: int64(s.c.Queueing.MemoryMax), Logs: logged(s.c), Fresh: s.settings.now().Fresh().Microseconds(),
	}
	for _, o := range s.c.Queues {
		c.Queues = append(c.Queues, queueOf(o))
	}
	var err error
	q.loop, err = queueloop.New(queueloop.Config{Broker: c, Links: q, Clock: q.clock, Logger: s.log})
	if err != nil {
		return err
	}
	q.links = queuelink.New(queuelink.Config{
		Self: s.self.Member, Policy: s.auth, Logger: s.log, Dial: s.o.Dial,
		Deliver: func(m ...broker.Message) { q.loop.Deliver(m...) }, Broke: func(m eviction.Member) { q.loop.Broke(m) },
	})
	for _, k := range c.Logs {
		if err := q.openLog(k); err != nil {
			return err
		}
	}
	q.public = priorityqueue.New(priorityqueue.Config{Queues: q.offered(), Self: s.self.Name, Logger: s.log, Check: checkQueue, Allow: rpc.AllowsCall})
	s.metrics.MustRegister(queueMetrics{q})
	return nil
}

// queueOf is a queue of the configuration as the broker knows it.
func queueOf(c config.Queue) broker.Queue {
	micros := func(d config.Duration) int64 { return time.Duration(d).Microseconds() }
	q := broker.Queue{
		Name: c.Name, Lease: micros(c.Lease), PayloadMax: c.MaxPayload, Interval: micros(c.Interval), PerInterval: c.PerInterval, FairKeys: c.FairKeys,
		Limits: pqueue.Limits{
			ItemsMax: c.MaxItems, BytesMax: 1 << 50, AttemptsMax: c.MaxAttempts, DeadMax: c.DeadLettersMax, RememberMax: c.RememberMax,
			Remember: micros(c.Remember), LeaseMax: micros(c.LeaseMax), DeadTo: c.DeadLetters, InFlightMax: c.MaxInFlight, Exclusive: c.ExclusiveKeys,
		},
	}
	if c.Backoff.Base > 0 {
		q.Limits.Backoff = pqueue.Backoff{Base: micros(c.Backoff.Base), Factor: int64(c.Backoff.Factor) * 1000, Max: micros(c.Backoff.Max)}
	}
	switch {
	case c.Replicas > 1:
		q.Kind = broker.Replicated
	case c.Durable:
		q.Kind = broker.Durable
	}
	return q
}

// openLog opens the log of a kind of queues.
func (q *queues) openLog(k broker.Kind) error {
	s := q.s
	c := replog.Config{
		Dir: s.store.Path("queues/" + k.String()), Note: s.store.Path("queues-" + k.String()), Node: s.self.Name, Machine: q.loop.Machine(k), Logger: s.log,
		Leads: func(leads bool) { q.loop.Leads(k, leads) },
	}
	if k == broker.Replicated {
		_, replicas := s.c.Logged()
		founders := s.c.Node.Expect
		if len(s.c.Node.Join) == 0 {
			founders = max(1, founders)
		}
		c.Group = &replog.Group{Self: s.self.Member, Replicas: replicas, Founders: founders, Policy: s.auth, Dial: s.o.Dial}
	}
	l, err := replog.Open(c)
	if err != nil {
		return err
	}
	q.logs, q.kinds = append(q.logs, l), append(q.kinds, k)
	if k == broker.Replicated {
		q.group = l
	}
	q.loop.Attach(k, queueLog{l})
	return nil
}

// queueLog is a replog.Log as package queueloop knows it.
type queueLog struct{ *replog.Log }

func (l queueLog) Refused(err error) bool { return errors.Is(err, replog.ErrRefused) }
func (l queueLog) Full(err error) bool    { return errors.Is(err, replog.ErrFull) }

func (l queueLog) Room() broker.Room {
	room, _ := l.Log.Room()
	return diskRoom(room)
}

// diskRoom is what there is room for, as package broker knows it.
func diskRoom(r replog.Room) broker.Room {
	switch r {
	case replog.RoomForAll:
		return broker.RoomForAll
	case replog.RoomToRemove:
		return broker.RoomToRemove
	default:
		return broker.RoomForNone
	}
}

// Send implements queueloop.Links; the links are made after the loop.
func (q *queues) Send(m broker.Message) { q.links.Send(m) }

func (q *queues) clock() broker.Time {
	return broker.Time{Boot: q.s.o.Clock().Boot, Clock: q.s.loop.PassTime()}
}

// offered is the loop as the public service knows it.
func (q *queues) offered() priorityqueue.Queues { return offered{q.loop, q} }

type offered struct {
	*queueloop.Loop
	q *queues
}

func (o offered) Clock() int64 { return o.q.s.loop.PassTime() }

func (o offered) Watch(queue string) (priorityqueue.Watch, func(), pqueue.Code) {
	return o.Loop.Watch(queue)
}

// register offers what the peers call, of the history as well.
func (q *queues) register(g grpc.ServiceRegistrar) {
	q.links.Register(g)
	peerv1.RegisterHistoryServer(g, historyService{h: q.s.past})
	for _, l := range q.logs {
		l.Register(g)
	}
}

func (q *queues) setMembers(v membership.View) {
	q.links.SetMembers(v.Addr)
	for _, l := range q.logs {
		l.SetMembers(v.Addr)
	}
}

// run runs all parts until ctx is done.
func (q *queues) run(ctx context.Context, all *errgroup.Group) {
	all.Go(func() error { return q.loop.Run(ctx) })
	all.Go(func() error { return q.links.Run(ctx) })
	all.Go(func() error { return q.follow(ctx) })
	for _, l := range q.logs {
		all.Go(func() error { return l.Run(ctx) })
	}
}

// How often the queues ask their logs who leads, and whether there is room; and how
// often who has none looks for changes.
const (
	followEvery = 20 * time.Millisecond
	changeEvery = 200 * time.Millisecond
)

// follow tells the broker of each wave, and of who leads the replicated queues.
func (q *queues) follow(ctx context.Context) error {
	pause := changeEvery
	if len(q.logs) > 0 {
		pause = followEvery
	}
	every := time.NewTicker(pause)
	defer every.Stop()
	var seen int64
	missing := make([]string, len(q.logs)) // what each log lacked when it was last asked
	for i := range missing {
		missing[i] = "not asked yet"
	}
	rooms := make([]string, len(q.logs))
	told, changes := map[string]uint64{}, uint64(0)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-every.C:
		case <-q.s.loop.Shown():
		}
		if q.group != nil {
			leader, _ := q.group.Leader()
			q.loop.SetLeader(leader)
		}
		q.askLogs(missing)
		q.askRoom(rooms)
		if now := q.loop.Changes(); now != changes {
			changes = now
			q.compare(told)
		}
		st := &q.s.loop.Snapshot().Status
		if at := st.LeaseUntil - st.Acts.Lease; at != seen && slices.Contains(st.List, q.s.self.Member) {
			seen = at
			q.loop.SetView(broker.View{List: st.List, Primary: st.Grade >= eviction.Primary, At: at, Voters: st.Voters.Names})
		}
	}
}

// askLogs tells the log of the node when a log takes commands, and when it does
// so no more.
func (q *queues) askLogs(missing []string) {
	for i, l := range q.logs {
		now := ""
		if err := l.Ready(); err != nil {
			now = err.Error()
		}
		if now == missing[i] {
			continue
		}
		if missing[i] = now; now == "" {
			q.s.log.Info("queues: a log takes items", "kind", q.kinds[i].String())
		} else {
			q.s.log.Warn("queues: a log takes nothing; queues in memory go on", "kind", q.kinds[i].String(), "why", now)
		}
	}
}

// askRoom tells the broker what there is room for, and the log of the node when
// that changes.
func (q *queues) askRoom(rooms []string) {
	for i, l := range q.logs {
		kind, text := q.kinds[i], ""
		room, err := l.Room()
		q.loop.SetRoom(kind, diskRoom(room))
		switch room {
		case replog.RoomForAll:
		case replog.RoomToRemove:
			text = "nothing is put in; what is there can be taken"
		default:
			text = "nothing is put in or taken"
		}
		if text == rooms[i] {
			continue
		}
		if rooms[i] = text; text == "" {
			q.s.log.Info("queues: there is room again", "kind", kind.String())
		} else {
			q.s.log.Error("queues: a disk is full: "+text, "kind", kind.String(), "why", err.Error())
		}
	}
}

// storageWarnings is what who runs the node should know of its disks.
func (q *queues) storageWarnings() []string {
	var all []string
	for i, l := range q.logs {
		kind, s := q.kinds[i], l.Storage()
		switch room, err := l.Room(); {
		case room != replog.RoomForAll:
			all = append(all, fmt.Sprintf("%s queues take nothing in (storage_full): %v", kind, err))
		case s.Low:
			all = append(all, fmt.Sprintf("the disk of the %s queues has %d MiB free; nothing is put in below %d: %s", kind, s.Free>>20, s.Reserve>>20, s.Dir))
		}
	}
	return all
}

// close ends what does not end by itself.
func (q *queues) close() { q.public.Close() }
