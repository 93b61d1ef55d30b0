package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// visitsDisk is a host's file of visits, as package internal/store keeps it: a batch is durable
// when it has been synced. A crash before that may leave it there, or not. A file that is damaged
// says nothing.
type visitsDisk struct {
	lives, leaving []eviction.Member
	rooms          []visitsRoom // by name
	damaged        bool
	flight         *eviction.VisitsBatch // not synced yet
	hung           bool                  // no sync comes back, and none fails
	early          []int                 // by room: visits of earlier lives, when this one began
}

type visitsRoom struct {
	name  string
	lines []eviction.VisitLine // by id
	held  int64
}

// How long a sync takes, in µs, and how long it is until one that failed is tried again.
const (
	syncMost   = 4_000
	syncSlow   = 60_000
	syncsAgain = 100_000
	hangMost   = 6_000_000 // of a sync that hangs, and then is done
)

func (d *visitsDisk) room(name string) *visitsRoom {
	i, ok := slices.BinarySearchFunc(d.rooms, name, func(r visitsRoom, name string) int { return compareText(r.name, name) })
	if !ok {
		d.rooms = slices.Insert(d.rooms, i, visitsRoom{name: name})
	}
	return &d.rooms[i]
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (r *visitsRoom) find(id qpid.ItemID) (int, bool) {
	return slices.BinarySearchFunc(r.lines, id, func(l eviction.VisitLine, id qpid.ItemID) int { return slices.Compare(l.ID[:], id[:]) })
}

// take makes the batch on its way durable.
func (d *visitsDisk) take() {
	b := d.flight
	d.flight = nil
	if b == nil {
		return
	}
	if self := d.lives[len(d.lives)-1]; b.Leaving && !slices.Contains(d.leaving, self) {
		d.leaving = append(d.leaving, self)
	}
	for i := range b.Rooms {
		in := &b.Rooms[i]
		r := d.room(in.Room)
		for _, l := range in.Put {
			if at, ok := r.find(l.ID); ok {
				r.lines[at] = l
			} else {
				r.lines = slices.Insert(r.lines, at, l)
			}
		}
		for _, id := range in.Struck {
			if at, ok := r.find(id); ok {
				r.lines = slices.Delete(r.lines, at, at+1)
			}
		}
		if in.Held != 0 {
			r.held = max(0, in.Held)
		}
	}
}

// begin is what a life of h finds, and has the file be its own from here on.
func (w *world) beginVisits(h *host, self eviction.Member) *eviction.VisitsKept {
	if !w.o.Faults.Visits {
		return nil
	}
	d := &h.disk.visits
	if d.damaged {
		w.printf("%s finds its visits damaged", h.name)
		*d = visitsDisk{}
	}
	d.lives = append(d.lives, self)
	d.lives = d.lives[max(0, len(d.lives)-eviction.LivesMax):]
	d.forget()
	kept := &eviction.VisitsKept{Lives: slices.Clone(d.lives[:len(d.lives)-1]), Leaving: slices.Clone(d.leaving)}
	d.early = make([]int, len(w.o.Rooms))
	for i := range d.rooms {
		r := &d.rooms[i]
		if len(r.lines) > 0 || r.held > 0 {
			kept.Rooms = append(kept.Rooms, eviction.RoomLines{Room: r.name, Put: slices.Clone(r.lines), Held: r.held})
			d.early[w.roomIndex(r.name)] = len(r.lines)
		}
	}
	return kept
}

// forget drops what is of lives that were too many.
func (d *visitsDisk) forget() {
	unknown := func(m eviction.Member) bool { return !slices.Contains(d.lives, m) }
	d.leaving = slices.DeleteFunc(d.leaving, unknown)
	for i := range d.rooms {
		r := &d.rooms[i]
		r.lines = slices.DeleteFunc(r.lines, func(l eviction.VisitLine) bool { return unknown(l.Homes[0].Member) })
	}
}

// loseVisits is what a crash leaves of the batch on its way.
func (w *world) loseVisits(d *visitsDisk) {
	if d.flight != nil && chance(w.rngVisits, 1, 2) {
		d.take()
	}
	d.flight = nil
	d.damaged = d.damaged || chance(w.rngVisits, w.o.Faults.Damage, 100)
}

// writeVisits puts a batch on its way.
func (w *world) writeVisits(h *host, b *eviction.VisitsBatch) {
	if b == nil {
		return
	}
	d := &h.disk.visits
	if d.flight != nil {
		w.fail("S27", "%s writes two batches of visits at a time", h.name)
	}
	d.flight = b
	most := int64(syncMost)
	if chance(w.rngVisits, 1, 20) {
		most = syncSlow
	}
	if w.phase == storm && chance(w.rngVisits, w.o.Faults.Hangs, 1000) {
		w.reached.n[reachSyncHung]++
		most = hangMost
	}
	w.agenda.push(w.now+1+w.rngVisits.Int64N(most), evSynced, h.index, h.life)
}

// synced is the end of a sync.
func (w *world) synced(h *host, life int32) {
	switch {
	case h.life != life:
		return
	case h.paused > 0:
		h.hold(event{kind: evSynced, a: h.index, b: life})
		return
	case h.disk.visits.hung:
		w.agenda.push(w.now+syncsAgain, evSynced, h.index, life)
		return
	case h.disk.failing && !h.disk.spares:
		w.reached.n[reachSyncFailed]++
		h.n.VisitsFailed()
		w.agenda.push(w.now+syncsAgain, evSynced, h.index, life)
	default:
		w.reached.n[reachSynced]++
		h.disk.visits.take()
		h.n.VisitsSaved(h.clock.read(w.now))
	}
	w.drain(h)
}
