package node

import (
	"fmt"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	"github.com/anteroom/anteroom/qpid"
)

// What must be true of a room is looked at after whatever is done in it. If something
// is not so, this node gives the room up until it starts anew, and goes on with the
// others:
//
//   - Its account is void, as that of a lost node: it calls nobody, lets nobody in and
//     extends no pass, and its slots are made again elsewhere when D is over.
//   - Passes that are out are good until they end. Whoever waited here keeps the
//     ticket, and is taken over elsewhere once this life is over.
//   - What is known of its visitors stays in memory as it was, and is only read.

// breach names what of the room is not as it must be.
func (r *room) breach(what string) *eviction.Broken {
	return &eviction.Broken{Room: r.name, What: what, State: r.gate.State()}
}

// mayLetIn panics if nobody may be let in here and now: whoever gives out a pass, or
// extends one, has asked before.
func (r *room) mayLetIn(now eviction.Time) {
	if b := r.node.ev.WrongPass(r.gate, now); b != nil {
		panic(b)
	}
}

// giveUp ends what this node does in the room.
func (r *room) giveUp(now eviction.Time, b *eviction.Broken) {
	if r.broken != nil {
		return // and this follows from it
	}
	n := r.node
	r.broken = &eviction.Broken{Room: r.name, What: b.What, State: fmt.Sprintf("%s; %d called, %d on the site, %d slots held, %d deleteMins, %d in line, %d due, %d parked",
		b.State, r.called, r.onSite, len(r.held), len(r.deletes.active), r.gate.Queue.Len(), r.gate.Due, r.parked)}
	n.broke = append(n.broke, *r.broken)
	n.ev.GiveUp(r.gate)
	n.stale = true
	r.q, _ = qpid.New(qpid.Config{Self: n.c.Self.Name, Queue: r.gate.Queue})
	r.due, r.wanting, r.held, r.deletes, r.giving = line{}, nil, nil, deletes{}, giving{}
	r.cut = r.gate.Cut()
	r.copyNone()
	r.closeLines()
	r.stir()
	r.plan()
}

// installBroken is install in a room that was given up: visits that others give this
// node use their slots until the passes end, and the room's tree goes on.
func (r *room) installBroken(now eviction.Time, in *eviction.Installed) {
	if in.Reset {
		r.held = nil
	}
	for i := range in.Visits {
		r.held = append(r.held, in.Visits[i].Expires+2*r.skew())
	}
	if in.Resume && r.node.writes() { // what is on the disk ends by itself
		pending := r.takePending()
		r.gate.Book(len(pending))
		for i := range pending {
			r.held = append(r.held, r.passEnds(&pending[i], now)+2*r.skew())
		}
	}
	if in.QPID != nil {
		if err := r.q.Install(*in.QPID); err != nil {
			r.gate.Touch()
		}
	}
}

// keeps is what somebody hears whose place is at a node that has given the room up.
func (r *room) keeps(t Ticket, now eviction.Time) Answer {
	if v := r.visitors.get(t.ID); v == nil || v.stage <= parked || v.has(unheard) {
		t = r.heardOf(t, now)
	}
	return Answer{
		State: Waiting, Ticket: t, Position: int(t.Position), Queued: max(1, r.waiting(), int(t.Position)), Refresh: r.gate.Room().Refresh,
		Paused: ticket.PausedUnreached,
	}
}

// Spoil frees a slot that somebody uses, as a fault of this program might: what becomes
// of such a room is for a simulator to see. It reports false if none is in use.
func (n *Node) Spoil(name string) bool {
	r, err := n.room(name)
	if err != nil || r.gate.Ledger().Used() == 0 {
		return false
	}
	r.gate.Ledger().Release()
	return true
}
