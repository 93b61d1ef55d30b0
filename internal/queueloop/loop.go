// Package queueloop runs the priority queues of one node: it gives the pure
// package broker the time, its messages and its callers, and does what it says.
//
//	l, err := queueloop.New(queueloop.Config{Broker: …, Links: …, Clock: …})
//	go l.Run(ctx)
//	answer, err := l.Do(ctx, broker.Call{Command: pqueue.Command{Op: pqueue.OpInsert, …}})
//
// Whoever has something for the broker borrows it for a moment; there is no
// goroutine to hand it to, and so none to wait for. Nothing is decided here.
package queueloop

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	"github.com/anteroom/anteroom/qpid"
)

// Links reaches the other members.
type Links interface {
	// Send queues m for m.To and returns at once. It arrives at most once, and
	// what arrives at one member is in order; what was lost on the way is reported
	// with Loop.Broke.
	Send(m broker.Message)
}

// Config says what a loop runs and what stands around it.
type Config struct {
	Broker broker.Config
	Links  Links
	Clock  func() broker.Time
	Logger *slog.Logger // nil: none
}

// Loop runs one node's queues. Its methods are safe for concurrent use.
type Loop struct {
	c   Config
	log *slog.Logger

	mu        sync.Mutex // of all below
	broker    *broker.Broker
	waiting   map[uint64]func(broker.Answer) // called once, with mu held
	next      uint64                         // id of the last call
	watches   map[string][]*Watch
	watching  int
	proposers [3]*proposer // by kind
	tick      *time.Ticker // turns the clock
	quiet     bool         // it does so every QuietEvery
	stopped   bool
}

// New makes a loop. The error lists what is wrong with c.Broker.
func New(c Config) (*Loop, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	b, err := broker.New(c.Broker, c.Clock())
	if err != nil {
		return nil, err
	}
	return &Loop{
		c: c, log: c.Logger, broker: b, waiting: map[uint64]func(broker.Answer){}, watches: map[string][]*Watch{},
		tick: time.NewTicker(broker.TickEvery * time.Microsecond),
	}, nil
}

// Attach gives the loop the log of a kind that c.Broker.Logs names. Call it
// before Run.
func (l *Loop) Attach(k broker.Kind, log Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proposers[k] = &proposer{loop: l, kind: k, log: log, wake: make(chan struct{}, 1)}
}

// Run turns the clock, until ctx is done. Then whoever waits is told that the
// node is stopping.
func (l *Loop) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, p := range l.proposers {
		if p != nil {
			running.Go(func() { p.run(ctx.Done()) })
		}
	}
	defer l.tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.stop()
			running.Wait()
			return context.Cause(ctx)
		case <-l.tick.C:
			l.with(func(b *broker.Broker, now broker.Time) { b.Tick(now) })
		}
	}
}

func (l *Loop) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	for id, then := range l.waiting {
		delete(l.waiting, id)
		then(stopping())
	}
	for _, all := range l.watches {
		for _, w := range all {
			close(w.events)
		}
	}
	clear(l.watches)
}

// with has f use the broker, and does what that leads to.
func (l *Loop) with(f func(*broker.Broker, broker.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.broker, l.c.Clock())
	r := l.broker.Ready()
	for _, m := range r.Messages {
		l.c.Links.Send(m)
	}
	for _, p := range r.Proposals {
		to := l.proposers[p.Kind]
		if to == nil {
			panic(fmt.Sprintf("queueloop: a command for the %v log, which is not attached", p.Kind))
		}
		to.waiting = append(to.waiting, p)
		select {
		case to.wake <- struct{}{}:
		default: // it is awake
		}
	}
	for _, a := range r.Answers {
		if then := l.waiting[a.ID]; then != nil {
			delete(l.waiting, a.ID)
			then(a)
		}
	}
	for _, s := range r.Seen {
		l.tell(s)
	}
	l.pace()
}

// pace has the clock turn as often as the broker has use for it: each turn wakes a
// processor.
func (l *Loop) pace() {
	quiet := l.broker.Quiet()
	if quiet == l.quiet || l.stopped {
		return
	}
	l.quiet = quiet
	every := broker.TickEvery
	if quiet {
		every = broker.QuietEvery
	}
	l.tick.Reset(time.Duration(every) * time.Microsecond)
}

func stopping() broker.Answer { return broker.Answer{Result: pqueue.Result{Code: pqueue.Unavailable}} }

// Begin begins calls and takes together, in their order. The Then of each is called once,
// maybe before Begin returns, with the loop locked: it must be quick, and not use the
// loop.
func (l *Loop) Begin(all []*broker.Ask) {
	l.with(func(b *broker.Broker, now broker.Time) {
		for _, a := range all {
			if l.stopped {
				a.Then(stopping())
				continue
			}
			l.next++
			a.ID = l.next
			l.waiting[a.ID] = a.Then
			if a.Take.Max > 0 {
				a.Take.ID = a.ID
				b.Take(now, a.Take)
			} else {
				a.Call.ID = a.ID
				b.Do(now, a.Call)
			}
		}
	})
}

// Forget has nobody wait any more for the answers to what Begin has begun: those not
// called by then are not. What a take was given goes back, and a call goes on.
func (l *Loop) Forget(all []*broker.Ask) {
	l.with(func(b *broker.Broker, now broker.Time) {
		for _, a := range all {
			if l.waiting[a.ID] == nil {
				continue
			}
			delete(l.waiting, a.ID)
			if a.Take.Max > 0 {
				b.Forsake(now, a.ID)
			}
		}
	})
}

// call begins something and returns where its answer comes.
func (l *Loop) call(f func(b *broker.Broker, now broker.Time, id uint64)) (uint64, <-chan broker.Answer) {
	c := make(chan broker.Answer, 1)
	id := uint64(0)
	l.with(func(b *broker.Broker, now broker.Time) {
		if l.stopped {
			c <- stopping()
			return
		}
		l.next++
		id = l.next
		l.waiting[id] = func(a broker.Answer) { c <- a } // has room for one, and gets one
		f(b, now, id)
	})
	return id, c
}

// Do carries out a call. If ctx ends first nobody knows whether it was carried
// out.
func (l *Loop) Do(ctx context.Context, c broker.Call) (broker.Answer, error) {
	id, answer := l.call(func(b *broker.Broker, now broker.Time, id uint64) {
		c.ID = id
		b.Do(now, c)
	})
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		l.mu.Lock()
		delete(l.waiting, id)
		l.mu.Unlock()
		return broker.Answer{}, ctx.Err()
	}
}

// DoAll carries out calls, begun together and in their order. Of those without an
// answer when ctx ends nobody knows whether they were carried out, and theirs is
// Unavailable.
func (l *Loop) DoAll(ctx context.Context, calls []broker.Call) []broker.Answer {
	answers, coming := make([]broker.Answer, len(calls)), make([]chan broker.Answer, len(calls))
	first := uint64(0)
	l.with(func(b *broker.Broker, now broker.Time) {
		first = l.next + 1
		for i, c := range calls {
			l.next++
			c.ID, coming[i] = l.next, make(chan broker.Answer, 1)
			if l.stopped {
				coming[i] <- stopping()
				continue
			}
			l.waiting[c.ID] = func(a broker.Answer) { coming[i] <- a }
			b.Do(now, c)
		}
	})
	for i := range calls {
		select {
		case answers[i] = <-coming[i]:
		case <-ctx.Done():
			l.mu.Lock()
			delete(l.waiting, first+uint64(i))
			l.mu.Unlock()
			select {
			case answers[i] = <-coming[i]: // it was just answered
			default:
				answers[i].Result.Code = pqueue.Unavailable
			}
		}
	}
	return answers
}

// Take carries out a deleteMin. If ctx ends first, what it was given goes back.
func (l *Loop) Take(ctx context.Context, t broker.Take) (broker.Answer, error) {
	id, answer := l.call(func(b *broker.Broker, now broker.Time, id uint64) {
		t.ID = id
		b.Take(now, t)
	})
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
	}
	var late broker.Answer
	l.with(func(b *broker.Broker, now broker.Time) {
		delete(l.waiting, id)
		b.Forsake(now, id)
		select {
		case late = <-answer: // it was just answered
		default:
		}
	})
	if len(late.Parts) > 0 {
		return late, nil
	}
	return broker.Answer{}, ctx.Err()
}

// Deliver hands in messages of another member.
func (l *Loop) Deliver(messages ...broker.Message) {
	l.with(func(b *broker.Broker, now broker.Time) {
		for _, m := range messages {
			if err := b.Step(now, m); err != nil {
				l.log.Debug("message refused", "from", m.From.String(), "err", err)
			}
		}
	})
}

// Broke says that messages from m, or to it, may have been lost.
func (l *Loop) Broke(m eviction.Member) {
	l.with(func(b *broker.Broker, now broker.Time) { b.Broke(now, m) })
}

// SetView hands in what the last wave said.
func (l *Loop) SetView(v broker.View) {
	l.with(func(b *broker.Broker, now broker.Time) { b.SetView(now, v) })
}

// SetLeader says who leads the log of the replicated queues; empty: nobody
// knows.
func (l *Loop) SetLeader(leader qpid.NodeID) {
	l.with(func(b *broker.Broker, now broker.Time) { b.SetLeader(now, leader) })
}

// SetRoom says what there is room for on the disks behind the queues of a kind.
func (l *Loop) SetRoom(k broker.Kind, r broker.Room) {
	l.with(func(b *broker.Broker, now broker.Time) { b.SetRoom(now, k, r) })
}

// Settings are what a queue goes by at this node, and what it was told at run time.
// Make has one made that this node does not know, if it may be.
func (l *Loop) Settings(queue string, make bool) (q broker.Queue, s pqueue.Settings, ok bool) {
	l.with(func(b *broker.Broker, now broker.Time) {
		if make {
			b.Use(now, queue)
		}
		q, ok = b.ConfigOf(queue)
		s, _ = b.SettingsOf(queue)
	})
	return q, s, ok
}

// Stays reports whether a queue that this node knows is there also when nothing has been
// in it for long.
func (l *Loop) Stays(queue string) (stays bool) {
	l.with(func(b *broker.Broker, _ broker.Time) { stays = b.Stays(queue) })
	return stays
}

// Changes counts the changes of settings that this node has taken in.
func (l *Loop) Changes() (n uint64) {
	l.with(func(b *broker.Broker, _ broker.Time) { n = b.Changes() })
	return n
}

// Snapshot is what this node has, for its metrics.
type Snapshot struct {
	Queues []pqueue.Stats // of some, by name
	Rest   broker.Rest    // of all others
	Known  int            // queues
	Counts broker.Counts
	Calls  int // under way
	Ready  bool
}

// sumAtOnce is how many queues a snapshot counts while nothing else can go on.
const sumAtOnce = 500

// Snapshot returns what this node has now.
func (l *Loop) Snapshot() Snapshot {
	var s Snapshot
	for more := true; more; {
		l.with(func(b *broker.Broker, _ broker.Time) { more = b.SumUp(&s.Rest, sumAtOnce) })
	}
	l.with(func(b *broker.Broker, _ broker.Time) {
		s.Queues, s.Known = b.Each(), b.Known()
		s.Counts, s.Calls, s.Ready = b.Counts(), b.Calls(), b.Installed()
	})
	return s
}
