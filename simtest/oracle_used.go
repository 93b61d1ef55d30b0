package simtest

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
)

// S16, used for good. Somebody who was let in is not called again with the same
// ticket by a node that could know: a later life of the one that let them in, if
// that has a disk, or one that was there, and in reach, when that one took its leave.

// checkUsed looks at a call.
func (w *world) checkUsed(h *host, t *place) {
	if t.usedBy == 0 {
		return
	}
	by := t.usedBy - 1
	switch {
	case w.o.Faults.Disk && w.lives[by].host == h.index && by != h.life:
		w.fail("S16", "%s calls ticket %d, which it had used up in an earlier life and has on its disk", h.name, w.ticketOf(t.id))
	case slices.Contains(h.knows, by):
		w.fail("S16", "%s calls ticket %d, which %s had used up and told of when it left", h.name, w.ticketOf(t.id), w.name(w.lives[by].member))
	}
}

// keepUsed puts on the disk what is to be kept, and notes who was let in.
func (w *world) keepUsed(h *host, r *node.Ready) {
	d := &h.disk
	if len(r.Used) > 0 && w.o.Faults.Disk {
		d.spent = append(d.spent, eviction.UsedBatch{At: h.clock.read(w.now).Wall, Tickets: r.Used})
	}
	for i := range r.Log {
		if e := &r.Log[i]; e.Event == node.AdmittedQ {
			t := w.ticketOf(e.Weight.ID)
			w.crowd.tickets[t].usedBy = h.life + 1
			d.lost = append(d.lost, t)
		}
	}
	if !d.failing {
		d.used = append(d.used, d.spent...)
		d.spent, d.lost = nil, nil
	}
}

// handedOver notes who knows what h had used up: it has taken its leave, and a
// second and a half was enough to tell everybody who was in reach all the time.
func (w *world) handedOver(h *host) {
	if !h.running() || w.o.Net.Loss > 0 || w.o.Net.Latency.Max.Milliseconds() > 20 {
		return
	}
	for i := range w.hosts {
		o := &w.hosts[i]
		if !slices.Contains(h.audience, audience{o.index, o.life, o.mishaps}) || !w.inReach(h, o) || o.calm >= h.leftAt || h.calm >= h.leftAt {
			continue
		}
		o.knows = append(o.knows, h.life)
		w.reached.n[reachUsedHandedOver]++
	}
}

// audience is a host that may hear what another tells when it leaves, and what has
// befallen it until then.
type audience struct{ host, life, mishaps int32 }

// takesLeave notes who is there to hear it.
func (w *world) takesLeave(h *host) {
	h.leftAt, h.audience = w.now, nil
	for i := range w.hosts {
		if o := &w.hosts[i]; w.inReach(h, o) {
			h.audience = append(h.audience, audience{o.index, o.life, o.mishaps})
		}
	}
}

func (w *world) inReach(h, o *host) bool {
	return o != h && o.running() && h.cuts == 0 && o.cuts == 0 && slices.Contains(h.seen.status.List, w.lives[o.life].member) &&
		w.wires.link(h.index, o.index).slow == 0 && w.wires.link(o.index, h.index).slow == 0
}

// keptMax bounds the copies of used tickets.
const keptMax = 64

// keep has somebody keep a copy of the ticket that p has just used.
func (c *crowd) keep(p *visitor) {
	if len(c.kept) == keptMax {
		c.kept = slices.Delete(c.kept, 0, 1)
	}
	c.kept = append(c.kept, *p)
}

// replayUsed has used tickets tried whose node is back, or gone.
func (w *world) replayUsed(h *host) {
	if len(h.disk.used) > 0 {
		w.reached.n[reachUsedKept]++
	}
	tries := 0
	for i := len(w.crowd.kept) - 1; i >= 0 && tries < 3; i-- {
		p := w.crowd.kept[i]
		if p.home == none || w.lives[p.home].host != h.index {
			continue
		}
		tries++
		w.reached.n[reachReplayLater]++
		v := w.newVisitor()
		q := &w.crowd.visitors.at[v]
		*q = p
		q.req, q.tries, q.traits, q.stage = none, 0, cheat, waiting
		q.asks = uint8(2 + w.rngLoad.IntN(4))
		q.host = h.index
		w.wakeIn(v, w.rngLoad.Int64N(4_000_000))
	}
}
