package loop

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/ticket"
)

// relays says which member is asked for what this node can do nothing about.
type relays struct {
	mu   sync.Mutex
	node node.Relays
	done atomic.Uint64 // requests that another carried out
}

func (r *relays) see(now int64, v eviction.View) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node.See(now, v)
}

func (r *relays) pick(now, exclude int64, self eviction.Member) (eviction.Member, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.node.Pick(now, exclude, self)
}

func (r *relays) answered(m eviction.Member, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.node.Answered(m, ok); ok {
		r.done.Add(1)
	}
}

func (r *relays) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node.Clear()
}

func (r *relays) refresh(now int64, d time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.node.Refresh(now, d)
}

// unserved reports whether whoever asked for q stands still with what came of it here, or
// at node to, and another member may do better. Where it may not, nothing is lost.
func (l *Loop) unserved(q *ticket.Request, a *ticket.Answer, to eviction.Member, err error) bool {
	switch {
	case q.Hold || q.Op == ticket.Offer || q.Op == ticket.Take:
		return false
	case to != (eviction.Member{}):
		return errors.Is(err, ticket.ErrUnavailable) && !errors.Is(err, errMoving)
	case !l.aside.Load() || q.Op == ticket.Join || q.Op == ticket.Abandon || q.Op == ticket.End:
		return false
	case err != nil:
		return errors.Is(err, ticket.ErrUnavailable)
	}
	switch a.State {
	case ticket.Waiting:
	case ticket.Called: // here, and maybe still with a lease
		if room, ok := l.Snapshot().Room(q.Room); ok && room.LeaseUntil > l.c.Clock().Boot {
			return false
		}
	default:
		return q.Op == ticket.Refresh && a.Pass == q.Pass
	}
	q.Ticket = a.Ticket
	return true
}

// relay has another member carry q out. Without ok none did.
func (l *Loop) relay(ctx context.Context, q ticket.Request) (a ticket.Answer, err error, ok bool) {
	self := l.c.Node.Self.Member
	to, ok := l.relays.pick(l.c.Clock().Boot, l.Snapshot().Status.Reckons.Exclude, self)
	if !ok {
		return a, nil, false
	}
	q.Relay = self
	if q.Op == ticket.CheckIn && l.streams.has(watched{q.Room, q.Ticket.ID}) {
		q.Listener = self
	}
	asked, cancel := context.WithTimeout(ctx, l.c.Answer) // a newcomer's position takes a wave
	defer cancel()
	a, err = l.c.Links.Forward(asked, to, q)
	failed := errors.Is(err, ticket.ErrUnavailable) || errors.Is(err, ticket.ErrBusy) || asked.Err() != nil ||
		a.Forward != (eviction.Member{}) // by a release that relays nothing
	if ctx.Err() == nil {
		l.relays.answered(to, !failed)
	}
	return a, err, !failed
}

// Relay carries out q for q.Relay, a member that can do nothing for whoever asks it.
func (l *Loop) Relay(ctx context.Context, q ticket.Request) (ticket.Answer, error) {
	if l.aside.Load() {
		return ticket.Answer{}, ticket.ErrUnavailable
	}
	a, _, err := l.carry(ctx, &q)
	return a, err
}

// Relayed returns how many requests another member has carried out because this node could
// not.
func (l *Loop) Relayed() uint64 { return l.relays.done.Load() }

// RelayedBy returns the member that carries out what visitors ask of this node while it is
// in no wave, if one does.
func (l *Loop) RelayedBy() (eviction.Member, bool) {
	l.relays.mu.Lock()
	defer l.relays.mu.Unlock()
	m := l.relays.node.Known()
	return m, l.aside.Load() && m != (eviction.Member{})
}
