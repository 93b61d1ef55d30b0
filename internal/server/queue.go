package server

import (
	"context"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/seal"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// queue is the loop as the gateway knows it.
type queue struct {
	loop    *loop.Loop
	keys    *seal.Ring
	origins *origins
}

var _ gateway.Queue = queue{}

func (s *Server) queue() queue { return queue{s.loop, s.keys.ring, s.origins} }

func (q queue) Do(ctx context.Context, r ticket.Request) (ticket.Answer, error) {
	if r.Op == ticket.Join && q.keys.Empty() { // nobody could be given the place
		return ticket.Answer{}, ticket.ErrUnavailable
	}
	return q.loop.Do(ctx, r)
}

func (q queue) Called(room string, id qpid.ItemID) (<-chan struct{}, func()) {
	return q.loop.Called(room, id)
}

func (q queue) Clock() int64 { return q.loop.PassTime() }

func (q queue) Room(name string) (gateway.RoomState, bool) {
	s := q.loop.Snapshot()
	r, ok := s.Room(name)
	if !ok || r.Room.Mode == eviction.Deleted {
		return gateway.RoomState{}, false
	}
	state := gateway.RoomState{
		Room: r.Now, Draw: r.Draw, Queued: r.Total, Counted: r.Counted, Called: r.Coming, Active: r.Active - r.Coming, AdmittedPerMinute: 60 * r.Rate,
		Wait: r.Wait, Open: r.Open, Paused: q.paused(s, r),
	}
	if r.Room.Mode == eviction.Held {
		state.Wait = ticket.Wait{} // nobody knows
	}
	held := r.HeldUntil
	if r.Missing > 0 && r.Missing >= r.Now.Target { // there is no slot at all yet
		held = max(held, r.WholeAt)
	}
	if held > s.At.Boot {
		state.HeldUntil = s.PassTime(held)
	}
	if state.Missing = r.Missing; r.Missing > 0 {
		state.WholeAt = s.PassTime(r.WholeAt)
	}
	state.Front = front(r.Now, r.Cut)
	return state, true
}

// front is the join stamp up to which everybody's turn has come; 0 where turns
// do not go by it.
func front(r eviction.Room, cut eviction.Cut) uint64 {
	if r.Method != eviction.FIFO || r.Algorithm != eviction.ByCut || cut.Keying != 0 {
		return 0
	}
	return max(1, cut.Value.Stamp) // at first nobody's has
}

// paused says why nobody is called in a room.
func (q queue) paused(s *loop.Snapshot, r *node.RoomStatus) ticket.Pause {
	switch {
	case s.Status.Waiting != "":
		return s.Status.Waiting
	case r.Room.Mode == eviction.Held && q.origins.holds(r.Room.Name):
		return ticket.PausedUnhealthy
	case r.Room.Mode == eviction.Held:
		return ticket.PausedHeld
	case r.Closed && (r.Bound == 0 || r.Active > r.Room.Target): // else it is full, by what its origin bears
		return ticket.PausedOverLimit
	}
	return ""
}
