package loop

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// A newcomer's position is known when a wave has counted them. It is worth
// waiting for, since what is told first can only be bettered.
const (
	placeWithin = 1500 * time.Millisecond
	slotWaves   = 3   // for a slot that is free elsewhere, after the one that has counted them
	placesMax   = 512 // newcomers who wait for it at once; others are told later
)

// waves wakes whoever waits for the next one.
type waves struct {
	mu     sync.Mutex
	last   qpid.Epoch
	next   chan struct{} // closed by the next one; nil: nobody waits
	places atomic.Int32
}

// passed notes the last wave that this node took part in.
func (w *waves) passed(e qpid.Epoch) {
	if e == w.last { // only the loop changes it
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last = e; w.next != nil {
		close(w.next)
		w.next = nil
	}
}

func (w *waves) wait() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		w.next = make(chan struct{})
	}
	return w.next
}

// placed waits until the position of a newcomer is known, and until a slot that is free
// for them has come from where it was, within bounds.
func (l *Loop) placed(ctx context.Context, a ticket.Answer) ticket.Answer {
	room, ok := l.Snapshot().Room(a.Ticket.Room)
	if !ok || a.State != ticket.Waiting || room.Now.Method == eviction.Random || !room.MayAdmit {
		return a // nobody counts there
	}
	if l.waves.places.Add(1) > placesMax {
		l.waves.places.Add(-1)
		return a
	}
	defer l.waves.places.Add(-1)
	patience := time.NewTimer(placeWithin)
	defer patience.Stop()
	for more := slotWaves; a.State == ticket.Waiting && (a.Position == 0 || more > 0 && l.hasSlot(&a)); {
		if a.Position > 0 {
			more--
		}
		select {
		case <-l.waves.wait():
		case <-patience.C:
			return a
		case <-ctx.Done():
			return a
		}
		later, err := l.Local(ctx, ticket.Request{Op: ticket.CheckIn, Room: a.Ticket.Room, Ticket: a.Ticket})
		if err != nil || later.Forward != (eviction.Member{}) {
			return a
		}
		a = later
	}
	if a.State == ticket.Called { // there was room after all
		if in, err := l.Local(ctx, ticket.Request{Op: ticket.Leave, Room: a.Ticket.Room, Ticket: a.Ticket}); err == nil && in.Forward == (eviction.Member{}) {
			return in
		}
	}
	return a
}

// hasSlot reports whether the whole room has a free slot for who waits as a says.
func (l *Loop) hasSlot(a *ticket.Answer) bool {
	r, ok := l.Snapshot().Room(a.Ticket.Room)
	if !ok || a.Paused != "" || r.Now.QueueAll {
		return false
	}
	limit := r.Now.Target
	if r.Bound > 0 {
		limit = min(limit, r.Bound)
	}
	return a.Position <= limit-r.Missing-r.Active
}
