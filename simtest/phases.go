package simtest

import (
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// enter begins a phase.
func (w *world) enter(p phase) {
	if p <= w.phase {
		return
	}
	w.phase = p
	w.printf("PHASE %v", [...]string{"storm", "healing", "settled", "whole", "drained"}[p])
	switch p {
	case healing:
		w.heal()
		w.maybeDone()
		w.agenda.push(w.now+w.settleTime(), evPhase, int32(settled), 0)
		w.agenda.push(w.now+w.o.Limit.Microseconds(), evPhase, int32(drained), 1)
	case settled:
		w.checkSettled()
		if w.o.After == Demand {
			w.unbind()
		}
		w.agenda.push(w.now+w.wholeTime(), evPhase, int32(whole), 0)
	case whole:
		w.checkWhole()
		if w.o.After == Demand {
			w.loosen()
		}
		w.maybeDone()
	case drained:
		if !w.aloneAhead() {
			w.checkDrained()
		}
		w.checkTakes()
		w.checkOrder()
		w.over = true
	case storm:
		panic("simtest: a run begins with the storm")
	}
}

// aloneAhead reports whether nobody has a quorum because a node has one by itself whose clock began ahead,
// and who lets nobody in before it is right: that takes as long as it is ahead, as its passes may be
// good until then.
func (w *world) aloneAhead() bool {
	ahead := false
	for i := range w.hosts {
		h := &w.hosts[i]
		switch s := &h.seen.status; {
		case !h.up():
		case s.Grade >= eviction.Primary && w.leased(h):
			return false
		case len(s.Voters.Names) == 1 && s.Voters.Names[0] == h.name && w.clockRight(h) && !w.passClockRight(h):
			ahead = ahead || w.passClockOff(h) > 0
		}
	}
	return ahead
}

// heal ends all faults.
func (w *world) heal() {
	for i := range w.nemesis.troubles {
		w.end(&w.nemesis.troubles[i])
	}
	w.nemesis.traps = nil
	w.endGray()
	w.wires.calm = true
	for i := range w.hosts {
		h := &w.hosts[i]
		if h.paused > 0 {
			h.pauseTo = w.now
			w.resume(h, w.now)
		}
		if !w.clockRight(h) {
			h.clock.set(w.now, w.offset()/2)
			w.mishap(h)
		}
	}
	w.returnAll()
	w.topology()
}

// returnAll starts every host that is down, except for those that never
// return while a quorum of the others still knows.
func (w *world) returnAll() {
	for i := range w.hosts {
		h := &w.hosts[i]
		if h.up() || h.gone {
			continue
		}
		if w.nemesis.gone > 0 && w.quorumKnows() {
			w.nemesis.gone--
			w.goesForGood(h, "")
			continue
		}
		w.agenda.push(w.now+1+w.rngFaults.Int64N(1_000_000), evStart, h.index, 0)
	}
}

// settleTime is how long after the last fault everybody takes part in waves
// again: gossip notices, the longest back-off of a coordinator runs out, clocks
// are measured.
func (w *world) settleTime() int64 {
	c := w.o.slowest()
	return (w.o.Faults.Detect.Max + 12*c.ExcludeAfter + 4*c.Deadline + 4*time.Second).Microseconds()
}

// wholeTime is D and a little: everything that was lost is made again.
func (w *world) wholeTime() int64 {
	c := w.o.slowest()
	longest := time.Duration(0)
	for r := range w.o.Rooms {
		longest = max(longest, w.sessionMax(r))
	}
	d := c.Deadline + c.Lease + longest + 2*c.MaxSkew + c.Margin
	return (2*d + 10*c.Period + time.Second).Microseconds()
}

// unbind settles what only an operator can: rooms that share slots get back
// those of nodes that will not return, and rooms that stop do without them.
func (w *world) unbind() {
	var dead []eviction.Member
	for i := range w.lives {
		if w.lives[i].over {
			dead = append(dead, w.lives[i].member)
		}
	}
	for r := range w.o.Rooms {
		reclaim := (w.o.Rooms[r].OnPartition != eviction.Majority || w.checker.rooms[r].shares) && len(dead) > 0
		follow := w.leftBehind(r)
		if !reclaim && !follow {
			continue
		}
		w.reached.n[reachReclaim]++
		w.configure(r, func(room *eviction.Room) { // both at once: the second change would be of the room as it was seen before the first
			if reclaim {
				room.Reclaimed = dead
			}
			if follow {
				room.Survivor = time.Millisecond
			}
		})
	}
}

// leftBehind reports whether the nodes have gone on to another line than the
// room's, which follows by itself after its own survivor_after, or never.
func (w *world) leftBehind(r int) bool {
	for i := range w.hosts {
		h := &w.hosts[i]
		if rs := &h.seen.rooms[r]; h.running() && rs.Line.Founded() && rs.Line != h.seen.status.Line {
			return true
		}
	}
	return false
}

// loosen lets everybody in at last: rooms that let in nobody, or few, are
// changed live, so that the rest is in within half a minute or so.
func (w *world) loosen() {
	for r := range w.o.Rooms {
		w.configure(r, func(room *eviction.Room) {
			room.Events, room.Mode = nil, eviction.Normal // over long ago
			room.NewPerMinute = 0
			room.Target = max(room.Target, 5+w.crowd.active/10)
			if room.OnPartition == eviction.Stop && w.anyGone() {
				room.OnPartition = eviction.Majority
			}
			if room.Method == eviction.Reject {
				room.Method = eviction.FIFO
			}
		})
	}
}

// configure changes a room at the first node that is up.
func (w *world) configure(r int, change func(*eviction.Room)) {
	for i := range w.hosts {
		if h := &w.hosts[i]; h.running() && h.seen.rooms[r].Room.Name != "" {
			room := h.seen.rooms[r].Room
			change(&room)
			w.setRoom(h, r, room)
			return
		}
	}
}

// everybodyDone: the last visitor has gone.
func (w *world) everybodyDone() {
	if w.crowd.came == w.o.Users {
		w.maybeDone()
	}
}

// maybeDone sets the end of the run, when all are gone and slots are whole:
// sessions run out, silent visitors are given up, locked slots come free. A run
// that only measures is over at once, if no faults are to come.
func (w *world) maybeDone() {
	switch f := &w.o.Faults; {
	case w.crowd.active > 0 || w.crowd.came < w.o.Users:
	case w.o.After == Measure:
		if w.phase != storm || f.Every == 0 && f.Kills+f.Adds+f.Partitions == 0 {
			w.agenda.push(w.now, evPhase, int32(drained), 0)
		}
	case w.phase == whole:
		longest := time.Duration(0)
		for r := range w.o.Rooms {
			o := &w.o.Rooms[r]
			longest = max(longest, w.sessionMax(r)+o.ClaimWindow+o.TicketTTL+3*o.Refresh)
		}
		w.agenda.push(w.now+longest.Microseconds()+w.wholeTime(), evPhase, int32(drained), 0)
	}
}
