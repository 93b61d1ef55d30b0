package node

import (
	"slices"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// deletesMax bounds the deleteMins under way at one node.
const deletesMax = 1024

// deletes are the deleteMins of a QPID room that were called at this node.
// Each holds a slot of the caller until it is answered: the slot then goes to
// the root that gave up its lightest ticket, or stays.
type deletes struct {
	left   int // of those that the last wave asked for
	wave   qpid.OpID
	active []deleteOp
}

type deleteOp struct {
	id    qpid.OpID
	until int64 // boot time at which it counts as lost
	held  bool
	told  bool // the caller wants to hear
}

// DeleteMin takes the lightest ticket of a QPID room, wherever it is, with a
// slot of this node's. The answer comes in Ready.Taken; a lost one comes as
// Refused. It fails if the node has no free slot to give.
func (n *Node) DeleteMin(now eviction.Time, name string) (op qpid.OpID, err error) {
	defer n.guard(name, now, &err)
	r, err := n.room(name)
	if err != nil {
		return qpid.OpID{}, err
	}
	n.clock(now)
	if r.gate.Room().Algorithm != eviction.ByQPID || !n.ev.Calls(r.gate, now) || len(r.deletes.active) >= deletesMax {
		return qpid.OpID{}, ticket.ErrUnavailable
	}
	op, ok := r.startDelete(now, true)
	if !ok {
		return qpid.OpID{}, ticket.ErrUnavailable
	}
	n.carryOn(now)
	return op, nil
}

func (r *room) startDelete(now eviction.Time, told bool) (qpid.OpID, bool) {
	if !r.gate.Ledger().Spend() {
		return qpid.OpID{}, false
	}
	r.node.seq++
	op := qpid.OpID{Caller: r.node.c.Self.Name, Seq: r.node.seq}
	until := now.Boot + r.node.c.Cluster.WithDefaults().ExcludeAfter.Microseconds()
	r.deletes.active = append(r.deletes.active, deleteOp{op, until, true, told})
	r.q.DeleteMin(op)
	r.stir()
	r.plan()
	return op, true
}

// drainQPID carries on with the room's QPID: messages out, tickets taken here,
// answers, and the next of the wave's deleteMins, one at a time.
func (r *room) drainQPID(now eviction.Time) {
	for {
		ready := r.q.Ready()
		for _, m := range ready.Messages {
			if to, ok := r.node.ev.MemberOf(m.To); ok {
				r.node.out = append(r.node.out, eviction.Message{
					From: r.node.c.Self.Member, To: to, Body: &eviction.RoomQPID{Room: r.name, Msg: m},
				})
			}
		}
		for _, t := range ready.Removed {
			r.takenHere(now, t)
		}
		for _, a := range ready.Answers {
			r.answered(now, a)
		}
		again := r.deletes.left > 0 && !r.deletes.waveActive() && r.node.ev.Calls(r.gate, now)
		if again {
			op, ok := r.startDelete(now, false)
			r.deletes.wave = op
			r.deletes.left--
			if !ok {
				r.deletes.left = 0
			}
			continue
		}
		if len(ready.Answers) == 0 && len(ready.Removed) == 0 {
			return
		}
	}
}

func (d *deletes) waveActive() bool {
	return slices.ContainsFunc(d.active, func(o deleteOp) bool { return o.id == d.wave })
}

// takenHere entitles a ticket that a deleteMin took from this node's queue. It
// is called when the caller's slot arrives, or any other that is free here.
func (r *room) takenHere(now eviction.Time, t qpid.Removal) {
	v := r.visitors.get(t.Weight.ID)
	if v == nil || v.stage != queued {
		return
	}
	r.mark(v, r.q.Epoch().Num, qpid.Weight{Stamp: t.Op.Seq, ID: v.id})
	v.stage = drawn
	r.due.push(v.id)
	r.gate.Due++
	r.gate.Touch()
}

func (r *room) answered(now eviction.Time, a qpid.Answer) {
	i := slices.IndexFunc(r.deletes.active, func(o deleteOp) bool { return o.id == a.Op })
	if i < 0 {
		return // given up before; the ticket waits for a slot of the next wave's
	}
	o := r.deletes.active[i]
	r.deletes.active = slices.Delete(r.deletes.active, i, i+1)
	r.gate.Ledger().Release()
	if a.Outcome == qpid.Taken {
		if m := r.gate.SendTo(r.node.c.Self.Member, a.Home, 1); m != nil {
			r.node.out = append(r.node.out, *m)
		}
	} else {
		r.deletes.left = 0
	}
	if o.told {
		r.node.taken = append(r.node.taken, a)
	}
}

// expire gives up deleteMins whose answer is lost; their slots stay here.
func (d *deletes) expire(r *room, now eviction.Time) {
	for len(d.active) > 0 && d.active[0].until <= now.Boot {
		r.answered(now, qpid.Answer{Op: d.active[0].id, Outcome: qpid.Refused})
	}
}

func (d *deletes) deadline() int64 {
	if len(d.active) == 0 {
		return ever
	}
	return d.active[0].until
}
