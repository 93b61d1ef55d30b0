package simtest

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// schedule is the room's events, and the one that it may have without a list.
func schedule(o *eviction.Room) []eviction.Event {
	if o.Event.Start > 0 {
		return []eviction.Event{o.Event}
	}
	return o.Events
}

// S14, closed doors. Between the beginning of a pre-queue and its event nobody
// is called and nobody walks in. The clock of a node may be wrong by the greatest
// skew; that of a machine that stood still may be wrong by anything until it has heard of
// it, see Standstill, and so may those by which a few go on alone, see falseQuorum. Nor does a node call anybody into a room that it knows to be held,
// before this step and after.
func (w *world) checkDoors(h *host, r int, t *place) {
	if h.seen.rooms[r].Room.Mode == eviction.Held {
		if rs, _ := h.n.Room(w.o.Rooms[r].Name, h.clock.read(w.now)); rs.Room.Mode == eviction.Held {
			w.fail("S14", "%s calls ticket %d into a room that is held", h.name, w.ticketOf(t.id))
		}
	}
	if h.stopped || w.falseQuorum(h) {
		return
	}
	skew := w.o.Cluster.MaxSkew.Microseconds()
	for _, e := range schedule(&w.o.Rooms[r]) {
		if now := wallAt(w.now); now > e.Prequeue+skew && now < e.Start-skew {
			w.fail("S14", "%s calls ticket %d %v before the event begins", h.name, w.ticketOf(t.id), micros(e.Start-now))
		}
	}
}

// S14, draws. No node draws before the event begins: it would be for good, and for all.
func (w *world) checkDraw(h *host, old, rs *node.RoomStatus) {
	if k := rs.Cut.Keying; k > old.Cut.Keying && int64(k) > wallAt(w.now)+w.o.Cluster.MaxSkew.Microseconds() && !w.falseQuorum(h) {
		w.fail("S14", "%s room %s: draws %v before the event begins", h.name, rs.Room.Name, micros(int64(k)-wallAt(w.now)))
	}
}

// falseQuorum reports whether half of those who tell h what time it is are wrong, or more. Of
// all nodes fewer are, see ClockJump; but a few may be left over, and go on alone.
func (w *world) falseQuorum(h *host) bool {
	voters, wrong := h.seen.status.Voters.Names, 0
	for i := range w.hosts {
		if o := &w.hosts[i]; slices.Contains(voters, o.name) && !w.clockRight(o) {
			wrong++
		}
	}
	return 2*wrong >= len(voters) && wrong > 0
}

// followEvent counts what a room's events do to it.
func (w *world) followEvent(old, rs *node.RoomStatus) {
	was, is := &old.Now.Event, &rs.Now.Event
	if was.Start == is.Start {
		return
	}
	if is.Start > 0 && len(rs.Room.Events) > 0 {
		w.reached.n[reachEvent]++
		if is.Set&eviction.SetTarget != 0 && rs.Now.Target != old.Now.Target {
			w.reached.n[reachEventLimit]++
		}
	}
	if was.Start > 0 && len(old.Room.Events) > 0 {
		w.reached.n[reachEventEnd]++
	}
}

// rateMax is the highest rate at which the room may ever call; 0: any.
func rateMax(o *eviction.Room) int {
	rate := o.NewPerMinute
	for _, e := range o.Events {
		if e.Set&eviction.SetNewPerMinute != 0 {
			if e.NewPerMinute == 0 || rate == 0 {
				return 0
			}
			rate = max(rate, e.NewPerMinute)
		}
	}
	return rate
}

// sessionMax is the longest session that the room has given, or will by an event.
func (w *world) sessionMax(r int) time.Duration {
	return max(w.checker.rooms[r].session, w.filed(r))
}

// filed is the longest session of the room in the nodes' files.
func (w *world) filed(r int) time.Duration {
	d := w.o.Rooms[r].Session
	for _, e := range w.o.Rooms[r].Events {
		if e.Set&eviction.SetSession != 0 {
			d = max(d, e.Session)
		}
	}
	return d
}

// alwaysFIFO reports whether no event of the room has another method.
func alwaysFIFO(o *eviction.Room) bool {
	return o.Method == eviction.FIFO && !slices.ContainsFunc(o.Events, func(e eviction.Event) bool {
		return e.Set&eviction.SetMethod != 0 && e.Method != eviction.FIFO
	})
}

// mayDraw reports whether the room ever shows no position: while it draws.
func mayDraw(o *eviction.Room) bool {
	return o.Method == eviction.Random || slices.ContainsFunc(o.Events, func(e eviction.Event) bool {
		return e.Set&eviction.SetMethod != 0 && e.Method == eviction.Random
	})
}

// keyingOf is the draw by which an entitled ticket had its turn: the start of an
// event, 0 if it was none. Weights of different draws cannot be compared.
func keyingOf(o *eviction.Room, t *place) int64 {
	keying := int64(0)
	for _, e := range schedule(o) {
		switch {
		case !e.Shuffle:
		case t.stamp >= uint64(e.Start) && t.key.Stamp == t.stamp:
			keying = max(keying, e.Start) // it came after that one
		case t.stamp < uint64(e.Start) && t.key.Stamp == eviction.Shuffled(e.Seed, uint64(e.Start), t.id):
			keying = e.Start
		}
	}
	return keying
}

// drawn reports whether what a ticket was shown says nothing any more: a draw
// that it takes part in comes, or counts since.
func (w *world) drawn(h *host, q *request) bool {
	skew := w.o.Cluster.MaxSkew.Microseconds()
	for _, e := range schedule(&w.o.Rooms[q.room]) {
		if e.Shuffle && q.ticket.Stamp < uint64(e.Start) && wallAt(w.now) > e.Prequeue-skew &&
			(h.seen.rooms[q.room].Cut.Keying < uint64(e.Start) || q.ticket.Issued < e.Start+skew) {
			return true
		}
	}
	return false
}
