package node

import (
	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// line is a queue of visitors whose order is given.
type line struct{ ids []qpid.ItemID }

func (l *line) push(id qpid.ItemID) { l.ids = append(l.ids, id) }

// Whose turn is certain, and who is called: a turn takes a wave, and a call a slot besides.

// byCut reports whether tickets are entitled by weight: the cut itself, not a
// mark on the ticket, says who is.
func (r *room) byCut() bool {
	c := r.gate.InForce()
	return c.Algorithm == eviction.ByCut && c.Method != eviction.Random
}

// entitleByCut marks whom a raised cut reaches.
func (r *room) entitleByCut() {
	cut := r.gate.Cut()
	if cut == r.cut || !r.byCut() {
		return
	}
	from := r.cut.Value
	if cut.Keying != r.cut.Keying {
		from = qpid.Weight{}
	}
	r.cut = cut
	r.gate.Queue.AscendAfter(from, func(w qpid.Weight) bool {
		if cut.Value.Less(w) {
			return false
		}
		r.mark(r.visitors.get(w.ID), r.gate.WaveOf(w), w)
		return true
	})
}

// mark logs that v's turn is certain, once.
func (r *room) mark(v *visitor, epoch uint64, key qpid.Weight) {
	if !v.has(entitled) {
		v.marks |= entitled
		v.wave = epoch
		r.record(Entitled, v.weight(), epoch, key)
	}
}

// entitle marks v, draws it out of the queue and puts it in line for a slot.
func (r *room) entitle(v *visitor, epoch uint64, key qpid.Weight) {
	r.dequeue(v)
	r.mark(v, epoch, key)
	v.stage = drawn
	r.due.push(v.id)
	r.gate.Due++
	r.copy(v) // that it is
}

// next returns whose turn it is, nil if nobody is entitled.
func (r *room) next() *visitor {
	for len(r.due.ids) > 0 {
		if v := r.visitors.get(r.due.ids[0]); v != nil && v.stage == drawn {
			return v
		}
		r.due.ids = r.due.ids[1:]
	}
	if w, ok := r.gate.Queue.Min(); ok && r.byCut() && !r.gate.Cut().Value.Less(w) {
		return r.visitors.get(w.ID)
	}
	return nil
}

// call sets slots aside for the entitled while there are both: weight ≤ cut,
// a free slot here, a valid lease.
func (r *room) call(now eviction.Time) {
	for v := r.next(); v != nil; v = r.next() {
		if !r.node.ev.Calls(r.gate, now) || r.node.visitLog.fails || !r.gate.Spend(now.Boot) {
			return
		}
		r.dequeue(v)
		v.stage = called
		r.called++
		v.due = now.Boot + r.claim(v)
		r.schedule(v)
		r.record(CalledIn, v.weight(), 0, qpid.Weight{})
	}
}

// takeBack has somebody who was called wait again at the old place. What becomes of
// the slot is for who calls it.
func (r *room) takeBack(v *visitor, now eviction.Time) {
	r.called--
	r.unguard(v.id)
	v.marks &^= told | tried | walkedIn
	r.enqueue(v)
	r.watch(v, now)
}

// takeBackCalls frees the slots of a node that leaves and lets nobody in any more:
// whoever was called is called again where the slots are then.
func (r *room) takeBackCalls(now eviction.Time) {
	for _, v := range r.sortedVisitors() {
		if v.stage == called {
			r.takeBack(v, now)
			r.release(v, now)
		}
	}
}

func (r *room) record(e Event, w qpid.Weight, epoch uint64, key qpid.Weight) {
	r.node.log = append(r.node.log, Admission{
		Event: e, Room: r.name, Weight: w, Line: r.gate.Line().Stamp, Epoch: epoch, Key: key, OnSite: r.onSite,
	})
}

// recorded is the entry that record has just made.
func (r *room) recorded() *Admission { return &r.node.log[len(r.node.log)-1] }
