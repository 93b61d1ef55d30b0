package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
)

// askAgain is how soon a visitor is asked back whose home does not answer.
const askAgain = time.Second

// Local has this node carry out q. The answer's Forward may name another that
// must. With too many requests waiting it fails with ticket.ErrBusy.
func (l *Loop) Local(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	if q.Listener == (eviction.Member{}) {
		return l.told(ctx, q)
	}
	l.expect(&q) // first, so that nothing happens in between
	a, err := l.told(ctx, q)
	l.expectMore(&q, &a, err)
	return a, err
}

// told carries q out and has the answer heard of, see Config.Told.
func (l *Loop) told(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	a, err := l.local(ctx, q)
	if err == nil && l.c.Told != nil && a.Forward == (eviction.Member{}) && a.State != ticket.Admitted {
		l.c.Told(&a)
	}
	return a, err
}

func (l *Loop) local(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	var kept <-chan struct{}
	if a, done, err := l.borrow(ctx, &q, &kept); done {
		return l.joined(ctx, &q, a, kept, err)
	}
	r := &request{Request: q, done: make(chan struct{})}
	select {
	case l.requests <- r:
	default:
		l.refused.Add(1)
		return ticket.Answer{}, ticket.ErrBusy
	}
	select {
	case <-r.done:
		return l.joined(ctx, &q, r.answer, r.kept, r.err)
	case <-ctx.Done():
		r.gone.Store(true)
		return ticket.Answer{}, ctx.Err()
	case <-l.done:
		return ticket.Answer{}, errStopped
	}
}

// borrow answers on the spot, without a word to the loop's goroutine, if the node
// is free: two switches of goroutines cost more than all that most requests do. It
// does not wait for longer than another of its kind takes: while the node has
// something else to do, the request takes its turn with everything else.
//
// What follows from the request is the loop's to do, as ever. While that is held
// up, by a disk for example, only so many requests are answered ahead of it; but
// check-ins from which nothing follows, as from most, always are.
func (l *Loop) borrow(ctx context.Context, q *ticket.Request, kept *<-chan struct{}) (a ticket.Answer, done bool, err error) {
	for tries := 0; !l.mu.TryLock(); tries++ {
		if tries == triesMax {
			return a, false, nil
		}
	}
	defer l.unlock()
	if l.stopped.Load() {
		return a, false, nil
	}
	now := l.c.Clock()
	if q.Op == ticket.CheckIn && !q.Hold {
		if a, done = l.node.Glance(now, q.Ticket); done {
			return a, true, nil
		}
	}
	if l.borrowed == l.c.Requests || ctx.Err() != nil {
		return a, false, nil
	}
	l.borrowed++
	a, err = Ask(l.node, now, *q)
	*kept = l.joins.watch(l.node, q, &a, err)
	l.rouse()
	return a, true, err
}

// rouse has the loop do what follows from something that was done without it.
func (l *Loop) rouse() {
	select {
	case l.wake <- struct{}{}:
	default: // it knows
	}
}

// triesMax is how often borrow looks whether the node is free: for 1 µs or so.
const triesMax = 400

// unlock lets nobody recover from a panic of the node, as net/http does: its
// state would be wrong.
func (l *Loop) unlock() {
	if p := recover(); p != nil {
		trace := debug.Stack()
		go panic(fmt.Sprintf("%v\n\n%s", p, trace)) // ends the process
		select {}
	}
	l.mu.Unlock()
}

// errMoving is why nobody answers for a place: the nodes' lists differ just now.
var errMoving = fmt.Errorf("%w: its nodes do not agree where the place is", ticket.ErrUnavailable)

// Do carries out q, here or at the node that must answer it. That other node
// may have died a moment ago: then whoever waits keeps the ticket, whoever has a
// pass keeps that until it expires, and all else fails with
// ticket.ErrUnavailable and is worth another try. What can be done neither here nor
// there another member is asked for, see relay.
func (l *Loop) Do(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	if q.Op == ticket.Join && l.aside.Load() { // a place here would stand still
		if a, err, ok := l.relay(ctx, q); ok {
			return a, err
		}
	}
	a, to, err := l.carry(ctx, &q)
	if l.unserved(&q, &a, to, err) {
		if b, err, ok := l.relay(ctx, q); ok {
			return b, err
		}
		if err == nil && a.State == ticket.Waiting {
			a.Refresh = l.relays.refresh(l.c.Clock().Boot, a.Refresh)
		}
	}
	if to == (eviction.Member{}) || !errors.Is(err, ticket.ErrUnavailable) {
		return a, err
	}
	switch q.Op {
	case ticket.CheckIn:
		t := l.heardOf(q.Ticket)
		return ticket.Answer{
			State: ticket.Waiting, Ticket: t, Position: int(t.Position), Refresh: askAgain,
			Paused: ticket.PausedUnreached,
		}, nil
	case ticket.Refresh, ticket.Visit:
		return ticket.Answer{State: ticket.Admitted, Pass: q.Pass}, nil
	default:
		return ticket.Answer{}, err
	}
}

func (l *Loop) heardOf(t ticket.Ticket) ticket.Ticket {
	l.mu.Lock()
	defer l.unlock()
	defer l.rouse()
	return l.node.HeardOf(l.c.Clock(), t)
}

// carry has q carried out, here or at the node that must answer it: the last one that was
// asked. q has the newest ticket then.
func (l *Loop) carry(ctx context.Context, q *ticket.Request) (a ticket.Answer, to eviction.Member, err error) {
	a, err = l.Local(ctx, *q)
	if err == nil && q.Op == ticket.Join && !q.Async {
		return l.placed(ctx, a), to, nil
	}
	if err != nil || a.Forward == (eviction.Member{}) {
		return a, to, err
	}
	if q.Op == ticket.CheckIn && q.Relay == (eviction.Member{}) && l.streams.has(watched{q.Room, q.Ticket.ID}) {
		q.Listener = l.c.Node.Self.Member
	}
	asked, cancel := context.WithTimeout(ctx, l.c.Answer)
	defer cancel()
	for range ticket.HopsMax {
		to = a.Forward
		if a.Ticket != (ticket.Ticket{}) {
			q.Ticket = a.Ticket
		}
		if to == q.Relay {
			err = ticket.ErrUnavailable // that is who asks
			break
		}
		there := *q
		there.Relay = eviction.Member{}
		if a, err = l.c.Links.Forward(asked, to, there); err != nil || a.Forward == (eviction.Member{}) {
			break
		}
	}
	switch {
	case err == nil && a.Forward == (eviction.Member{}):
		return a, to, nil
	case err == nil:
		err = errMoving
	case errors.Is(err, context.DeadlineExceeded):
		err = ticket.ErrUnavailable
	}
	return ticket.Answer{}, to, err
}
